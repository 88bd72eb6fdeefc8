"""Whether operations keep their rules: a context variable, and blocks that set it."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from lantern.blocks import Setting, from_the_start
from lantern.eager.bodies import inside
from lantern.errors import ArgumentError

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

# Whether rules are kept; in ``inference_mode`` 0 or 1 in place of False and True.
grad_mode: ContextVar[bool | int] = ContextVar("lantern.grad_mode", default=True)
# The derivatives of transforms of functions that ``no_grad`` inside of them stops.
stoppable: ContextVar[tuple[Any, ...]] = ContextVar("lantern.stoppable", default=())
is_enabled = grad_mode.get


def without_stopped(z: Any) -> Any:
    """A value without the derivatives that ``no_grad`` stops."""
    stopped = stoppable.get()
    while getattr(z, "level", None) in stopped:
        z = z.primal
    return z


def is_grad_enabled() -> bool:
    """Whether operations keep their rules, so that ``backward`` finds them.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_grad_enabled()
        True
        >>> with torch.no_grad():
        ...     print(torch.is_grad_enabled())
        False
    """
    return bool(grad_mode.get())


def is_inference_mode_enabled() -> bool:
    """Whether ``inference_mode`` is on.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_inference_mode_enabled()
        False
        >>> with torch.inference_mode():
        ...     print(torch.is_inference_mode_enabled())
        True
    """
    return type(grad_mode.get()) is int


class _Mode(Setting):
    """A block, or a decorator, in which rules are kept or not."""

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(grad_mode, mode)

    def within(self, before: bool | int) -> bool | int:
        """The mode in the block, in the form of the one around it."""
        return type(before)(self.value)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose body alone runs in such a block."""
        return inside(self.clone, function)

    def clone(self) -> Any:
        """Another block like this one."""
        cls: Any = type(self)
        return cls()


class no_grad(_Mode):
    """A block, or a decorator, in which no operation keeps its rule.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """

    def __new__(cls, function: Any = None) -> Any:
        """A block; of a function (``@no_grad``), that function inside one."""
        block = super().__new__(cls)
        if function is None:
            return block
        cls.__init__(block)
        return block(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(False)


class enable_grad(no_grad):
    """A block, or a decorator, in which operations keep their rules.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     print((x * 2).requires_grad)
        True
    """

    def __init__(self, function: Any = None) -> None:
        _Mode.__init__(self, True)


class set_grad_enabled(_Mode):
    """Say at once, or for a block, whether operations keep their rules.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.set_grad_enabled(False):
        ...     print(torch.is_grad_enabled())
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, "
                f"not {type(mode).__name__}"
            )
        super().__init__(mode)
        self.outer = grad_mode.get()
        try:
            grad_mode.set(self.within(self.outer))
        except BaseException:  # an interrupt, behind it
            grad_mode.set(self.outer)
            raise

    @from_the_start
    def __enter__(self) -> None:
        try:
            grad_mode.set(self.outer)
            _Mode.__enter__(self)
        except BaseException:
            grad_mode.set(self.outer)
            raise

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function inside such a block; until it is called, nothing is set."""
        grad_mode.set(self.outer)
        return super().__call__(function)

    def clone(self) -> Any:
        """Another block like this one."""
        return _Mode(self.value)  # which sets nothing before it is entered


class inference_mode(_Mode):
    """As ``no_grad``.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.inference_mode():
        ...     print(torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        False True
    """

    def __new__(cls, mode: Any = True) -> Any:
        """A block; of a function (``@inference_mode``), that function inside one."""
        block = super().__new__(cls)
        if isinstance(mode, bool):
            return block
        cls.__init__(block, True)
        return block(mode)

    def __init__(self, mode: Any = True) -> None:
        super().__init__(not mode)
        self.inference = bool(mode)

    def within(self, before: bool | int) -> bool | int:
        """No rules; with ``mode=False`` rules are kept, whatever there was around."""
        return 0 if self.inference else True

    def clone(self) -> Any:
        """Another block like this one."""
        return type(self)(self.inference)

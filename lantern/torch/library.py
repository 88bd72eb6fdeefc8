"""Operations that libraries define: ``torch.library``; ``torch.ops`` has them."""

from collections.abc import Callable
from typing import Any

from lantern.errors import OptionError
from lantern.torch.autograd.function import Function

__all__ = [
    "Library",
    "custom_op",
    "define",
    "impl",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

# By their full names, "library::operation": what they compute.
OPERATIONS: dict[str, Any] = {}


class CustomOp:
    """An operation of a library's own.

    Args:
        name: ``"library::operation"``.
        function: what it computes.
    """

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.function = name, function
        self.derivative: Any = None
        OPERATIONS[name] = self

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What it computes, with its derivative if it has one."""
        if self.derivative is not None:
            return self.derivative.apply(*args, **options)
        return self.function(*args, **options)

    def register_fake(self, fn: Any = None) -> Any:
        """A function of shapes, which nothing here asks for, as it is."""
        return (lambda function: function) if fn is None else fn

    register_vmap = register_torch_dispatch = register_fake

    def register_kernel(self, device_types: Any, fn: Any = None) -> Any:
        """Another function for a device; the one for the CPU counts."""

        def take(function: Any) -> Any:
            if device_types is None or "cpu" in device_types:
                self.function = function
            return function

        return take if fn is None else take(fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """State the derivative: ``backward(ctx, *gradients)``."""
        function = self.function

        def start(ctx: Any, inputs: Any, output: Any) -> None:
            if setup_context is not None:
                setup_context(ctx, inputs, output)

        names = {
            "forward": staticmethod(lambda *args: function(*args)),
            "setup_context": staticmethod(start),
            "backward": staticmethod(backward),
        }
        self.derivative = type(self.name.rpartition(":")[2], (Function,), names)


class OwnOp(CustomOp):
    """An operation of another library that is written here: its rules are known."""

    def register_kernel(self, device_types: Any, fn: Any = None) -> Any:
        """Has no effect."""
        return self.register_fake(fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Has no effect."""


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: Any = None,
    tags: Any = None,
) -> Any:
    """A decorator that makes an operation of a function.

    Args:
        name: ``"library::operation"``; ``torch.ops.library.operation`` finds it.
        fn: the function.
        mutates_args: has no effect, as what follows.
        device_types: has no effect.
        schema: has no effect.
        tags: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> @torch.library.custom_op("mine::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> torch.ops.mine.twice(torch.ones(2))
        tensor([2., 2.])
    """
    return (lambda f: CustomOp(name, f)) if fn is None else CustomOp(name, fn)


triton_op = custom_op


def _known(name: Any) -> CustomOp:
    known = name if isinstance(name, str) else getattr(name, "name", "")
    if known not in OPERATIONS:
        raise OptionError(f"torch.library: there is no operation {name}")
    found: CustomOp = OPERATIONS[known]
    return found


def register_fake(op: Any, func: Any = None, /, **more: Any) -> Any:
    """A function of shapes, which nothing here asks for, as it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.library.register_fake("mine::any", abs) is abs
        True
    """
    return (lambda function: function) if func is None else func


impl_abstract = register_vmap = register_torch_dispatch = register_fake


def register_kernel(op: Any, device_types: Any, func: Any = None, /) -> Any:
    """Another function for a device: that for the CPU counts."""
    return _known(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """State the derivative of an operation.

    Args:
        op: the operation, or its name.
        backward: ``backward(ctx, *gradients)``.
        setup_context: ``setup_context(ctx, inputs, output)``, which saves.
        lib: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> @torch.library.custom_op("mine::half", mutates_args=())
        ... def half(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(x.detach().numpy() / 2)
        >>> torch.library.register_autograd("mine::half", lambda ctx, g: g / 2)
        >>> x = torch.ones(1, requires_grad=True)
        >>> half(x).backward()
        >>> x.grad
        tensor([0.5000])
    """
    _known(op).register_autograd(backward, setup_context=setup_context)


class Library:
    """A library's operations, defined by a line of text and then by functions.

    Args:
        ns: the name of the library.
        kind: has no effect, as ``dispatch_key``.
        dispatch_key: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> mine = torch.library.Library("others", "DEF")
        >>> _ = mine.define("thrice(Tensor x) -> Tensor")
        >>> mine.impl("thrice", lambda x: 3 * x, "CPU")
        >>> torch.ops.others.thrice(torch.ones(1))
        tensor([3.])
    """

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        self.ns = ns

    def define(self, schema: str, *args: Any, **options: Any) -> str:
        """Announce an operation; its name."""
        return schema.partition("(")[0].strip()

    def impl(
        self, op_name: Any, fn: Any, dispatch_key: str = "", *args: Any, **options: Any
    ) -> None:
        """Say what an operation computes; what is for other devices does not count."""
        if dispatch_key in ("", "CPU", "CompositeImplicitAutograd", "Autograd"):
            CustomOp(f"{self.ns}::{op_name}", fn)

    def _register_fake(self, op_name: str, fn: Any, *args: Any, **options: Any) -> None:
        """Has no effect."""


def define(qualname: str, schema: str = "", *, lib: Any = None, tags: Any = ()) -> None:
    """Announce an operation.

    Example:
        >>> import lantern.torch as torch
        >>> torch.library.define("mine::later", "(Tensor x) -> Tensor")
    """


def impl(qualname: str, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Say what an operation computes; a decorator without a function.

    Example:
        >>> import lantern.torch as torch
        >>> @torch.library.impl("mine::later", "cpu")
        ... def later(x):
        ...     return x + 1
        >>> torch.ops.mine.later(torch.ones(1))
        tensor([2.])
    """

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        kinds = (types,) if isinstance(types, str) else types
        if {"cpu", "default", "CPU", "CompositeImplicitAutograd"} & set(kinds):
            CustomOp(qualname, function)
        return function

    return take if func is None else take(func)

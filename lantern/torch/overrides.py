"""Classes that say what PyTorch's functions do with them: ``__torch_function__``."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from lantern.torch.asking import (
    BLOCKS_ALONE,
    asked,
    for_a_while,
    functions,
    handled,
    is_on,
    members,
    modes,
)
from lantern.torch.tensor.subclasses import asks
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "TorchFunctionMode",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of several values says itself what functions do with it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.overrides.has_torch_function([torch.ones(1), 2])
        False
    """
    return is_on() and any(map(asks, relevant_args))


def has_torch_function_variadic(*args: Any) -> bool:
    """As ``has_torch_function``, of its arguments."""
    return has_torch_function(args)


def has_torch_function_unary(arg: Any) -> bool:
    """As ``has_torch_function``, of one value."""
    return is_on() and asks(arg)


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or says what functions do with it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.overrides.is_tensor_like(torch.ones(1))
        True
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def handle_torch_function(
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """What the values themselves make of a function.

    Args:
        public_api: the function.
        relevant_args: the values that are asked, subclasses first.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        TypeError: if all of them return NotImplemented.

    Example:
        >>> import lantern.torch as torch
        >>> class Named:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return func.__name__
        >>> torch.overrides.handle_torch_function(torch.exp, [Named()], Named())
        'exp'
    """
    return handled(public_api, asked(relevant_args), args, kwargs)


class TorchFunctionMode:
    """A block that says what PyTorch's functions do in it: ``__torch_function__``.

    In the method itself functions are seen by the outer blocks alone. It sees what the
    program calls, not what these functions call themselves.

    Example:
        >>> import lantern.torch as torch
        >>> class Named(torch.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Named():
        ...     x = torch.exp(torch.zeros(2)) + 1
        zeros
        exp
        add
    """

    _noted_later = True  # by its blocks

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What becomes of a call of a function: a subclass says it."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        block = ExitStack()
        block.enter_context(for_a_while())
        token = modes.set((*modes.get(), self))
        block.callback(modes.reset, token)
        self.__dict__.setdefault("_blocks", []).append(block)
        return self

    def __exit__(self, *exception: Any) -> None:
        self.__dict__["_blocks"].pop().close()


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether a function is a tensor's method, or reads one of its properties.

    Example:
        >>> import lantern.torch as torch
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
        True
    """
    return func in get_overridable_functions()[Tensor]


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that ask their arguments, by where they stand.

    Example:
        >>> import lantern.torch as torch
        >>> found = torch.overrides.get_overridable_functions()
        >>> torch.exp in found[torch], torch.Tensor.add in found[torch.Tensor]
        (True, True)
    """
    found: dict[Any, list[Any]] = defaultdict(list)
    for home, name, function in functions():
        if name not in BLOCKS_ALONE:
            found[import_module(home)].append(function)
    for _, member in members():
        is_property = type(member) is property
        found[Tensor].append(member.__get__ if is_property else member)
    return found


def resolve_name(f: Any) -> Any:
    """The path of a function, as text.

    Example:
        >>> import lantern.torch as torch
        >>> torch.overrides.resolve_name(torch.exp)
        'torch.exp'
    """
    for home, name, function in functions():
        if function is f:
            return f"{home}.{name}".removeprefix("lantern.")
    for name, member in members():
        if member is f:
            return f"torch.Tensor.{name}"
    return f"{f.__module__}.{f.__qualname__}".removeprefix("lantern.")

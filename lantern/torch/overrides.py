"""Classes that say what PyTorch's functions do with them: ``__torch_function__``."""

from collections.abc import Callable, Iterable
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.asking import asked, handled, is_on
from lantern.torch.tensor.subclasses import asks
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
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
    """Refused: functions of tensors do not ask blocks what to do."""

    def __enter__(self) -> None:
        raise MissingRuleError(
            "TorchFunctionMode: functions are not intercepted by a block here. Wrap "
            "the functions themselves."
        )

    def __exit__(self, *exception: Any) -> None:
        """Never reached."""


def resolve_name(f: Any) -> Any:
    """The path of a function, as text."""
    return f"{f.__module__}.{f.__qualname__}".removeprefix("lantern.")

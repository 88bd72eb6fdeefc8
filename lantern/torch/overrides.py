"""Classes that say what PyTorch's functions do with them: ``__torch_function__``."""

from collections.abc import Callable, Iterable
from typing import Any

from lantern.errors import ArgumentError, MissingRuleError
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


def _overrides(x: Any) -> bool:
    found = getattr(type(x), "__torch_function__", None)
    plain = getattr(Tensor, "__torch_function__", None)
    return found is not None and getattr(found, "__func__", found) is not getattr(
        plain, "__func__", plain
    )


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of several values says itself what functions do with it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.overrides.has_torch_function([torch.ones(1), 2])
        False
    """
    return any(map(_overrides, relevant_args))


def has_torch_function_variadic(*args: Any) -> bool:
    """As ``has_torch_function``, of its arguments."""
    return has_torch_function(args)


def has_torch_function_unary(arg: Any) -> bool:
    """As ``has_torch_function``, of one value."""
    return _overrides(arg)


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
    asked: list[Any] = []
    for x in relevant_args:
        if _overrides(x) and type(x) not in map(type, asked):
            places = (i for i, y in enumerate(asked) if isinstance(x, type(y)))
            asked.insert(next(places, len(asked)), x)
    types = tuple(map(type, asked))
    for x in asked:
        found = x.__torch_function__(public_api, types, args, kwargs)
        if found is not NotImplemented:
            return found
    raise ArgumentError(
        f"no implementation found for 'torch.{public_api.__name__}' on types that "
        f"implement __torch_function__: {[t.__name__ for t in types]}"
    )


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

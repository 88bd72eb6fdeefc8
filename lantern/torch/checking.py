"""Checks that programs make of their own arguments: ``torch._check`` and its kin."""

from collections.abc import Callable
from typing import Any

from lantern.errors import (
    ArgumentError,
    EagerError,
    LanternError,
    MissingRuleError,
    PositionError,
    ShapeError,
)
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor

__all__: list[str] = []


def _said(message: Any) -> str:
    if message is None:
        return (
            "Expected cond to be True, but got False. (Could this error message be "
            "improved? If so, give a message.)"
        )
    if not callable(message):
        raise ArgumentError("message must be a callable")
    return str(message())


def _checking(name: str, error: type[LanternError]) -> Callable[..., None]:
    """A function that raises an error unless a condition holds."""

    def check(cond: Any, message: Any = None) -> None:
        if not isinstance(cond, bool):
            raise ArgumentError(f"cond must be a bool, but got {type(cond)}")
        if not cond:
            raise error(_said(message))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise {error.__bases__[-1].__name__} unless a condition holds."
    return check


_check = _checking("_check", EagerError)
_check_index = _checking("_check_index", PositionError)
_check_value = _checking("_check_value", ShapeError)
_check_type = _checking("_check_type", ArgumentError)
_check_not_implemented = _checking("_check_not_implemented", MissingRuleError)


def _check_with(error_type: Any, cond: Any, message: Any) -> None:
    """Raise an error of a class of one's own unless a condition holds."""
    if not isinstance(cond, bool):
        raise ArgumentError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(_said(message))


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise an error unless all elements of a tensor hold."""
    if not isinstance(cond, Tensor):
        raise ArgumentError(f"cond must be a tensor, but got {type(cond)}")
    if base(cond).dtype.kind != "b":
        raise ArgumentError(
            f"cond tensor must have dtype torch.bool, but got {cond.dtype}"
        )
    if not base(cond).all():
        raise EagerError(_said(message))


def _check_tensor_all_with(error_type: Any, cond: Any, message: Any = None) -> None:
    """Raise an error of a class of one's own unless all elements of a tensor hold."""
    _check_with(error_type, bool(cond.all()), message)


def _check_is_size(i: int, message: Any = None, *, max: Any = None) -> None:
    """Raise an error for a number that is no size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _assert_async(input: Tensor, assert_msg: Any = None) -> None:
    """Raise an error if a tensor's only element is 0."""
    if not input:
        raise EagerError(
            assert_msg or "Expected Tensor with single nonzero value, but got zero"
        )


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether elements are shown more than once: 0 no, 1 yes, 2 too hard to tell."""
    pairs = zip(input.shape, input.stride(), strict=True)
    steps = sorted((step, n) for n, step in pairs if n > 1)
    if any(not step for step, _ in steps):
        return 1
    expected = 1
    for step, n in steps:
        if step != expected:
            return 0 if input.is_contiguous() else 2
        expected = step * n
    return 0

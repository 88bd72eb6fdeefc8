"""Limits of each element, and the extremes of two that let a nan pass."""

from typing import Any

import numpy as np

from lantern.core.namespace import common_namespace
from lantern.core.value import Rule, Value
from lantern.core.value import base as value_of
from lantern.errors import EagerError, MissingRuleError
from lantern.op import elementwise
from lantern.torch.functions.elementwise import functions, where
from lantern.torch.tables import documented
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.halves import in_single
from lantern.torch.tensor.operators import (
    as_kind,
    as_tensor,
    cast,
    promote,
    refuse_numbers,
    result_dtype,
    unary,
)
from lantern.torch.tensor.tensor import Tensor, fresh

_PLAIN = (float, int, type(None))
_larger = functions["maximum"]


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Each element limited to an interval; None is no limit.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-2, 1, 5])
        >>> torch.clamp(x, min=0, max=3)
        tensor([0, 1, 3])
    """
    if min is None and max is None:
        raise EagerError("torch.clamp: At least one of 'min' or 'max' must not be None")
    array = input.primal
    if array.dtype.kind == "f" and type(min) in _PLAIN and type(max) in _PLAIN:
        return _clamped(input, min, max)
    if array.dtype.kind == "V":
        return in_single(clamp, input, min, max)
    kind = result_dtype(*(as_tensor(x) for x in (input, min, max) if x is not None))
    if kind.kind == "c":
        raise MissingRuleError("clamp is not supported for complex types")
    input = cast(input, kind)
    if not any(isinstance(x, Value) for x in (min, max)):
        return _clamped(input, min, max)
    low, high = (None if x is None else _limit(x, kind) for x in (min, max))
    z, x, met = input, value_of(input), False
    if low is not None:
        z = where(fresh((x < value_of(low)) | _strange(low)), low, z)
        met = x == value_of(low)
    if high is not None:
        over = value_of(z) > value_of(high)
        z = where(fresh(over | _strange(high)), high, z)
        met = met | (x == value_of(high))
    if low is None or high is None or not z.requires_grad:
        return _halved(z, met, input, high if low is None else low)
    apart = value_of(low) < value_of(high)
    bound = where(fresh(as_array(x == value_of(low))), low, high)
    return _halved(z, met & apart, input, bound)


def _halved(z: Any, met: Any, x: Any, y: Any) -> Any:
    """A result; where two operands meet, each receives half of its derivative."""
    return where(fresh(as_array(met)), _larger(x, y), z) if z.requires_grad else z


def _strange(x: Any) -> Any:
    """Where a tensor is nan."""
    return value_of(x) != value_of(x)


def _either(name: str, sign: str) -> Any:
    """``fmax`` or ``fmin``; at a tie, each receives half of the derivative."""
    better = {">": np.greater_equal, "<": np.less_equal}[sign]

    def operate(input: Any, other: Any) -> Any:
        refuse_numbers(name, input, other, "")
        x, y = promote(input, other)
        first = better(value_of(x), value_of(y)) | _strange(y)
        z = where(fresh(as_array(first)), x, y)
        return _halved(z, value_of(x) == value_of(y), x, y)

    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = f"""Where x {sign}= y, or y is nan, x; else y.

    Shapes:
        input, other: (...), broadcast; result: (...)
    """
    return operate


fmax = documented(
    _either("fmax", ">"),
    """
    >>> torch.fmax(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """,
)
fmin = documented(
    _either("fmin", "<"),
    """
    >>> torch.fmin(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)


def _limit(x: Any, kind: Any) -> Any:
    return cast(x, kind) if isinstance(x, Tensor) else as_kind(x, kind)


@elementwise
def _limited(x: Any, /, low: Any, high: Any) -> Rule:
    """x limited to an interval of numbers, either of which may be None.

    Args:
        low: the smallest result.
        high: the largest.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar between the limits, nothing on them and elsewhere
    """
    array = value_of(x)
    inside = True if low is None else np.greater(array, low)
    inside = inside if high is None else np.less(array, high) & inside
    tracked = array is not x
    z = _limited(x, low, high) if tracked else _within(x, low, high)
    del x, array
    z_bar = yield (z, z := None)[0]
    yield common_namespace(inside, z_bar).where(inside, z_bar, 0)


limited = unary(_limited)


def _within(x: Any, low: Any, high: Any) -> Any:
    z = x if low is None else np.maximum(x, low)
    if high is None:
        return z
    return np.minimum(z, high, out=z if z is not x and type(z) is np.ndarray else None)


def _clamped(input: Any, min: Any, max: Any) -> Any:
    array = base(input)
    try:
        if input.requires_grad and array.dtype.kind == "f":
            return limited(input, min, max)
        return fresh(_within(array, min, max))
    except OverflowError:  # a limit that the type does not have
        min, max = (x and dtypes.fitting(x, array.dtype) for x in (min, max))
        return _clamped(input, min, max)


def clamp_min(input: Any, min: Any) -> Any:
    """Each element, but not less than a limit.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-2, 1, 5])
        >>> torch.clamp_min(x, 0)
        tensor([0, 1, 5])
    """
    return clamp(input, min=min)


def clamp_max(input: Any, max: Any) -> Any:
    """Each element, but not more than a limit.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-2, 1, 5])
        >>> torch.clamp_max(x, 3)
        tensor([-2,  1,  3])
    """
    return clamp(input, max=max)


functions = {
    "clamp": clamp,
    "clamp_max": clamp_max,
    "clamp_min": clamp_min,
    "clip": clamp,
    "fmax": fmax,
    "fmin": fmin,
}

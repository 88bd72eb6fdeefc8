"""Axes and options of reductions, as NumPy's take them."""

import math
from typing import Any

from lantern.core.value import base
from lantern.errors import MissingRuleError
from lantern.rules import selection
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.shape import astype, axis_of, reshape

__all__ = [
    "count",
    "how_many",
    "line",
    "of_type",
    "part",
    "per",
    "prepared",
    "reduced_axes",
    "refuse",
]


def refuse(where: str, **options: Any) -> None:
    """Raise if any of these options was given.

    Raises:
        MissingRuleError: naming the option.

    Example:
        >>> refuse("sum", out=None)
    """
    for name, value in options.items():
        if value is not None:
            raise MissingRuleError(
                f"{where}: no rule for {name}=. Leave it away, and use the result."
            )


def reduced_axes(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """The axes that a reduction removes, counted from 0."""
    if axis is None or not shape:  # NumPy lets a number be summed over axis 0
        return tuple(range(len(shape)))
    axes = tuple(axis) if hasattr(axis, "__iter__") else (axis,)
    return tuple(a % len(shape) for a in axes)


def count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements become one."""
    return math.prod(shape[a] for a in reduced_axes(shape, axis))


def prepared(
    name: str, x: Any, dtype: Any, out: Any, where: Any = True, fill: Any = 0
) -> Any:
    """The array that a reduction works on, with what it leaves out replaced."""
    if out is not None:
        refuse(name, out=out)
    if not hasattr(x, "shape"):
        x = asarray(x)
    if dtype is not None and x.dtype != dtype:
        x = astype(x, dtype)
    if where is not True:
        xp = array_namespace(base(x), base(where))
        x = selection.where(xp.broadcast_to(xp.asarray(base(where)), x.shape), x, fill)
    return x


def of_type(z: Any, dtype: Any) -> Any:
    """A result in the type that was asked for, which NumPy may have widened."""
    return z if dtype is None or z.dtype == dtype else astype(z, dtype)


def how_many(x: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """How many elements become one where some are left out."""
    x = base(asarray(x))
    xp = array_namespace(x, base(where))
    counted = xp.broadcast_to(xp.asarray(base(where)), x.shape)
    return xp.sum(counted != 0, axis=axis, keepdims=keepdims)


def per(z: Any, n: Any) -> Any:
    """A sum divided by plain numbers, which leave float32 as it is."""
    return of_type(z / n, z.dtype if z.dtype.kind in "fc" else None)


def line(name: str, x: Any, axis: int | None, dtype: Any, out: Any) -> tuple[Any, int]:
    """The array that a running operation works on, and its axis counted from 0.

    Example:
        >>> line("cumsum", 2.0, None, None, None)
        (array([2.]), 0)
    """
    x = prepared(name, x, dtype, out)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return x, axis_of(axis, len(x.shape))


def part(x: Any, axis: int, start: Any, stop: Any = None, step: Any = None) -> Any:
    """A slice of an array along one axis.

    Shapes:
        x: (..., n, ...); result: (..., m, ...)

    Example:
        >>> import numpy as np
        >>> part(np.array([[1.0, 2.0, 3.0]]), 1, 1, None)
        array([[2., 3.]])
    """
    return x[(slice(None),) * axis + (slice(start, stop, step),)]

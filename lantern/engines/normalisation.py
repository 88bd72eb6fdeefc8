"""Arrays less their means, over their deviations, by oneDNN.

Its batch normalisation has a mean for each channel, which is to be last in memory, its
layer normalisation one for each row.
"""

import ctypes
import math
from functools import lru_cache
from typing import Any

from lantern.engines import gpu
from lantern.engines.arrays import (
    FIRST,
    LAST,
    empty,
    filled,
    in_rows,
    laid,
    single,
    steps,
)
from lantern.engines.onednn import Layout, described, is_on, threads
from lantern.engines.plan import Plan

__all__ = ["normalised", "pulled_back"]

_TRAINING, _BACKWARD, _SCALE_AND_SHIFT = 64, 128, 6
_X, _Z, _MEAN, _VARIANCE, _SCALE, _SHIFT = 1, 17, 49, 50, 51, 52
_X_BAR, _Z_BAR, _SCALE_BAR, _SHIFT_BAR = 129, 145, 255, 256
_LONGEST = 1 << 15  # of longer rows oneDNN's sums have few right digits
_NAMES = {LAST: "batch_normalization", FIRST: "layer_normalization"}


def normalised(
    x: Any, weight: Any, bias: Any, axes: Any, eps: float, shape: Any
) -> Any:
    """The normalised array, its means and its variances; None if not for the engine.

    Args:
        x: an array.
        weight: what it is multiplied by then; None for nothing.
        bias: what is added then; None for nothing.
        axes: those that means are taken over: all but the second, or the last ones.
        eps: is added to the variance.
        shape: the form in which weight and bias broadcast.

    Shapes:
        x: (...); weight, bias: any; results: (...), and two rows of means
    """
    if not single(x):
        return gpu.normalisation.normalised(x, weight, bias, axes, eps, shape)
    kind = _kind(x, axes, shape)
    size = math.prod(shape)
    fit = (p is None or (single(p) and p.size == size) for p in (weight, bias))
    if kind is None or not all(fit):
        return None
    rows = x if kind == LAST else _rows(x, size)
    plan = _forward(rows.shape, kind, eps, threads())
    if plan is None:
        return None
    count, width = rows.shape[kind], rows.shape[1]
    mean, variance = empty((count,), FIRST), empty((count,), FIRST)
    scale, shift = _row(weight, width, 1), _row(bias, width, 0)
    z = plan.run(rows, scale, shift, mean, variance).reshape(x.shape)
    return z, mean, variance


def pulled_back(
    z_bar: Any,
    x: Any,
    moments: tuple[Any, Any],
    weight: Any,
    axes: Any,
    eps: float,
    shape: Any,
) -> Any:
    """The cotangents of the array, of weight and of bias; None if not for the engine.

    Args:
        z_bar: the cotangent of the normalised array.
        x: the array, which ``normalised`` has taken.
        moments: the rows of means and variances that it found, and what else it did.
        weight: as there.
        axes: as there.
        eps: as there.
        shape: as there.
    """
    if not single(x):
        return gpu.normalisation.pulled_back(
            z_bar, x, moments, weight, axes, eps, shape
        )
    kind = _kind(x, axes, shape)
    if kind is None or not single(z_bar) or z_bar.shape != x.shape:
        return None
    if kind == LAST:
        (rows, _), (z_bar, order) = laid(x), laid(z_bar)
    else:
        size = math.prod(shape)
        rows, z_bar, order = _rows(x, size), _rows(z_bar, size), FIRST
    plan = _backward(rows.shape, order, kind, eps, threads())
    if plan is None:
        return None
    width = rows.shape[1]
    scale = _row(weight, width, 1)
    read = (scale,) if kind == LAST else (scale, scale)
    found = empty((width,), FIRST), empty((width,), FIRST)
    x_bar = plan.run(z_bar, rows, *moments, *read, *found).reshape(x.shape)
    return x_bar, *found


def _kind(x: Any, axes: Any, shape: Any) -> int | None:
    """``LAST`` for means of channels, ``FIRST`` for means of rows.

    None where that is not for the engine.
    """
    kind = _kind_of(x.shape, tuple(axes), tuple(shape)) if is_on() else None
    return None if kind == LAST and laid(x)[1] != LAST else kind


@lru_cache(512)
def _kind_of(lengths: Any, axes: Any, shape: Any) -> int | None:
    """As ``_kind``, of an array whose channels are last in memory."""
    ndim = len(lengths)
    axes = tuple(sorted(axis % ndim for axis in axes))
    if 2 <= ndim <= 5 and axes == (0, *range(2, ndim)):
        return LAST if math.prod(shape) == lengths[1] else None
    rows = axes and axes == tuple(range(axes[0], ndim)) and shape == lengths[axes[0] :]
    return FIRST if rows and math.prod(shape) <= _LONGEST else None


def _row(p: Any, width: int, value: float) -> Any:
    """A row of parameters; of equal numbers, where there are none."""
    return filled(width, value) if p is None else in_rows(p).reshape(-1)


def _rows(x: Any, size: int) -> Any:
    """A matrix with a row, of so many elements, for each mean."""
    return in_rows(x).reshape(-1, size)


def _described(shape: Any, kind: int, eps: float) -> Any:
    """The layouts of the array and of the means, and the forward description."""
    x = Layout(shape, steps(shape, kind))
    means = () if kind == LAST else (Layout(shape[:1], (1,)),)
    numbers = (ctypes.c_float(eps), _SCALE_AND_SHIFT)
    name = f"{_NAMES[kind]}_forward"
    return x, means, described(name, _TRAINING, x, x, *means, *numbers)


@lru_cache(512)
def _forward(shape: Any, kind: int, eps: float, _: int) -> Plan | None:
    x, _means, description = _described(shape, kind, eps)
    if description is None:
        return None
    more = [_SCALE, _SHIFT, _MEAN, _VARIANCE]
    return Plan(description, [(_X, x)], (_Z, x), shape, kind, more)


@lru_cache(512)
def _backward(shape: Any, order: int, kind: int, eps: float, _: int) -> Plan | None:
    x, means, forward = _described(shape, kind, eps)
    if forward is None:
        return None
    numbers = (ctypes.c_float(eps), _SCALE_AND_SHIFT)
    description = described(
        f"{_NAMES[kind]}_backward", _BACKWARD, x, x, x, *means, *numbers, forward
    )
    if description is None:
        return None
    read = [_SCALE] if kind == LAST else [_SCALE, _SHIFT]  # which it asks for, unread
    more = [_MEAN, _VARIANCE, *read, _SCALE_BAR, _SHIFT_BAR]
    given = [(_Z_BAR, Layout(shape, steps(shape, order))), (_X, x)]
    return Plan(description, given, (_X_BAR, x), shape, kind, more)

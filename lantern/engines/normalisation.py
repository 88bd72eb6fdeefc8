"""Arrays less their means, over their deviations, by oneDNN.

Its batch normalisation has a mean for each channel, its layer normalisation one for
each row; what has groups of axes behind the mean is made of rows.
"""

import ctypes
import math
from functools import lru_cache
from typing import Any

from lantern.engines.arrays import (
    FIRST,
    LAST,
    empty,
    filled,
    in_rows,
    laid,
    products,
    single,
    steps,
)
from lantern.engines.onednn import Layout, described, is_on, threads
from lantern.engines.plan import Plan

__all__ = ["normalised", "pulled_back"]

_TRAINING, _BACKWARD, _SCALE_AND_SHIFT = 64, 128, 6
_X, _Z, _MEAN, _VARIANCE, _SCALE, _SHIFT = 1, 17, 49, 50, 51, 52
_X_BAR, _Z_BAR, _SCALE_BAR, _SHIFT_BAR = 129, 145, 255, 256
_NAMES = {True: "batch_normalization", False: "layer_normalization"}


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
    kind = _kind(x, axes, shape)
    size = math.prod(shape)
    fit = (p is None or (single(p) and p.size == size) for p in (weight, bias))
    if kind is None or not all(fit):
        return None
    whole, scaled = kind
    rows, order = laid(x) if whole else (_rows(x, axes), FIRST)
    plan = _forward(rows.shape, order, eps, whole, threads())
    if plan is None:
        return None
    count, width = rows.shape[1 if whole else 0], rows.shape[1]
    mean, variance = empty((count,), FIRST), empty((count,), FIRST)
    scale = _row(weight if scaled else None, width, 1)
    shift = _row(bias if scaled else None, width, 0)
    z = plan.run(rows, scale, shift, mean, variance).reshape(x.shape)
    if not scaled and weight is not None:
        z *= weight.reshape(shape)
    if not scaled and bias is not None:
        z += bias.reshape(shape)
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
        moments: the rows of means and variances that it found.
        weight: as there.
        axes: as there.
        eps: as there.
        shape: as there.
    """
    kind = _kind(x, axes, shape)
    if kind is None or not single(z_bar) or z_bar.shape != x.shape:
        return None
    whole, scaled = kind
    n_bar = z_bar
    if not scaled and weight is not None:
        n_bar = z_bar * weight.reshape(shape)
    (rows, one), (n_bar, other) = (
        laid(a) if whole else (_rows(a, axes), FIRST) for a in (x, n_bar)
    )
    plan = _backward(rows.shape, one, other, eps, whole, threads())
    if plan is None:
        return None
    width = rows.shape[1]
    scale = _row(weight if scaled else None, width, 1)
    read = (scale,) if whole else (scale, scale)
    found = empty((width,), FIRST), empty((width,), FIRST)
    x_bar = plan.run(n_bar, rows, *moments, *read, *found).reshape(x.shape)
    return x_bar, *(found if scaled else _each(z_bar, x, moments, eps, shape))


def _each(z_bar: Any, x: Any, moments: tuple[Any, Any], eps: float, shape: Any) -> Any:
    """The cotangents of weight and bias that are the same for several elements."""
    examples = math.prod(x.shape[: x.ndim - len(shape)])
    z_bar, x = (in_rows(a).reshape(examples, math.prod(shape), -1) for a in (z_bar, x))
    many = x.shape[1] * examples // moments[0].size
    mean, variance = (m.reshape(examples, -1).repeat(many, 1) for m in moments)
    total = z_bar.sum(axis=-1)
    both = products(z_bar, x) - total * mean
    return (both * (variance + eps) ** -0.5).sum(axis=0), total.sum(axis=0)


def _kind(x: Any, axes: Any, shape: Any) -> tuple[bool, bool] | None:
    """Whether there is a mean for each channel, and a scale in the same way.

    None where that is not for the engine.
    """
    if not (single(x) and is_on()):
        return None
    axes = tuple(sorted(axis % x.ndim for axis in axes))
    if 2 <= x.ndim <= 5 and axes == (0, *range(2, x.ndim)):
        return (True, True) if math.prod(shape) == x.shape[1] else None
    first = x.ndim - len(axes)
    if axes and axes == tuple(range(first, x.ndim)):
        return False, tuple(shape) == x.shape[first:]
    return None


def _row(p: Any, width: int, value: float) -> Any:
    """A row of parameters; of equal numbers, where there are none."""
    return filled(width, value) if p is None else in_rows(p).reshape(-1)


def _rows(x: Any, axes: Any) -> Any:
    """A matrix with a row for each mean."""
    return in_rows(x).reshape(-1, math.prod(x.shape[x.ndim - len(axes) :]))


def _described(shape: Any, order: int, eps: float, whole: bool) -> Any:
    """The layouts of the array and of the means, and the forward description."""
    x = Layout(shape, steps(shape, order))
    means = () if whole else (Layout(shape[:1], (1,)),)
    numbers = (ctypes.c_float(eps), _SCALE_AND_SHIFT)
    name = f"{_NAMES[whole]}_forward"
    return x, means, described(name, _TRAINING, x, x, *means, *numbers)


@lru_cache(512)
def _forward(shape: Any, order: int, eps: float, whole: bool, _: int) -> Plan | None:
    inside = LAST if whole else FIRST
    x, _means, description = _described(shape, inside, eps, whole)
    if description is None:
        return None
    more = [_SCALE, _SHIFT, _MEAN, _VARIANCE]
    given = [(_X, Layout(shape, steps(shape, order)))]
    return Plan(description, given, (_Z, x), shape, inside, more)


@lru_cache(512)
def _backward(
    shape: Any, order: int, other: int, eps: float, whole: bool, _: int
) -> Plan | None:
    inside = LAST if whole else FIRST
    x, means, forward = _described(shape, inside, eps, whole)
    if forward is None:
        return None
    description = described(
        f"{_NAMES[whole]}_backward",
        _BACKWARD, x, x, x, *means, ctypes.c_float(eps), _SCALE_AND_SHIFT, forward,
    )  # fmt: skip
    if description is None:
        return None
    read = [_SCALE] if whole else [_SCALE, _SHIFT]  # which it asks for, unread
    more = [_MEAN, _VARIANCE, *read, _SCALE_BAR, _SHIFT_BAR]
    given = [
        (_Z_BAR, Layout(shape, steps(shape, other))),
        (_X, Layout(shape, steps(shape, order))),
    ]
    return Plan(description, given, (_X_BAR, x), shape, inside, more)

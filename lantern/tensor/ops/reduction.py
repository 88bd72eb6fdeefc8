"""Operations that combine elements along axes."""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.errors import ShapeError
from lantern.op import linear, op
from lantern.rules import selection
from lantern.tensor.ops.axes import (
    count,
    how_many,
    of_type,
    per,
    prepared,
    reduced_axes,
)
from lantern.tensor.ops.creation import asarray

__all__ = [
    "amax",
    "amin",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "sum",
]


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The sum over axes.

    Args:
        a: what is summed.
        axis: the axes to sum over: one, several, or None for all.
        dtype: in which to sum.
        out: not supported.
        keepdims: whether the axes stay, with length 1.
        initial: added to the sum.
        where: which elements count.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([4., 6.])
    """
    if dtype is out is initial is None and where is True and getattr(a, "rank", False):
        return _sum(a, axis, keepdims)
    z = of_type(_sum(prepared("sum", a, dtype, out, where), axis, keepdims), dtype)
    return z if initial is None else z + initial


@linear
def _sum(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """The sum over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar, repeated
    """
    shape = x.shape
    z_bar = yield (x.sum(axis, keepdims=keepdims), x := None)[0]
    yield spread(z_bar, shape, axis)


plain_sum = _sum  # without NumPy's options


def spread(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """A reduction's result with the axes that it removed back, of length 1."""
    if axis is None or not shape:
        return z  # it broadcasts as it is
    if type(axis) is int:
        axis %= len(shape)
        return namespace(z).reshape(z, (*shape[:axis], 1, *shape[axis + 1 :]))
    removed = reduced_axes(shape, axis)
    lengths = [1 if i in removed else n for i, n in enumerate(shape)]
    return namespace(z).reshape(z, lengths)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """The mean over axes.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([2., 3.])
    """
    if where is not True:
        n = how_many(a, axis, keepdims, where)
        return per(sum(a, axis, dtype, out, keepdims, where=where), n)
    return of_type(_mean(prepared("mean", a, dtype, out), axis, keepdims), dtype)


@linear
def _mean(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """The mean over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / n, repeated, where n elements become one
    """
    shape = x.shape
    z_bar = yield (namespace(x).mean(x, axis=axis, keepdims=keepdims), x := None)[0]
    n = count(shape, axis) or 1  # of an empty array nothing is left to divide
    yield spread(z_bar / n, shape, axis)


plain_mean = _mean  # without NumPy's options


def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The largest elements over axes; ties share the derivative equally.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> max(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([3., 4.])
    """
    fill = _fill("max", a, initial, where, -math.inf)
    x = prepared("max", a, None, out, where, fill)
    if initial is None:
        return _max(x, axis, keepdims)
    if not count(x.shape, axis):
        return _of_nothing(x, axis, keepdims, initial)
    return selection.maximum(_max(x, axis, keepdims), initial)


def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The smallest elements over axes; ties share the derivative equally.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> min(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([1., 2.])
    """
    fill = _fill("min", a, initial, where, math.inf)
    x = prepared("min", a, None, out, where, fill)
    if initial is None:
        return _min(x, axis, keepdims)
    if not count(x.shape, axis):
        return _of_nothing(x, axis, keepdims, initial)
    return selection.minimum(_min(x, axis, keepdims), initial)


amax, amin = max, min


def _of_nothing(x: Any, axis: Any, keepdims: bool, initial: Any) -> Any:
    """What remains where no element is left."""
    return _sum(x, axis, keepdims) + initial


def _fill(name: str, x: Any, initial: Any, where: Any, bound: float) -> Any:
    """What stands for elements that are left out; whole numbers have no infinity."""
    if where is True:
        return bound
    if initial is None:
        raise ShapeError(
            f"{name}: where= may leave nothing to choose from. Give an initial value."
        )
    return base(initial) if base(asarray(x)).dtype.kind in "iub" else bound


@op
def _max(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """The largest elements over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / count where x == z, nothing elsewhere
    """
    yield from _extreme("max", x, axis, keepdims)


@op
def _min(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """The smallest elements over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / count where x == z, nothing elsewhere
    """
    yield from _extreme("min", x, axis, keepdims)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Rule:
    """The rule of max and min: the elements that attain it share the cotangent."""
    z = getattr(namespace(x), name)(x, axis=axis, keepdims=keepdims)
    z_bar = yield z
    x, top = base(x), base(spread(z, x.shape, axis))
    chosen = (x == top) | ((x != x) & (top != top))
    xp = namespace(chosen)
    count = xp.sum(chosen, axis=axis, keepdims=keepdims)
    count = xp.asarray(count, dtype=x.dtype)  # float32 stays float32
    yield xp.select(chosen, spread(z_bar / count, x.shape, axis))


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The distance from the smallest to the largest elements over axes.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> ptp(np.array([[1.0, 2.0], [3.0, 5.0]]), axis=0)
        array([2., 3.])
    """
    return max(a, axis, out, keepdims) - min(a, axis, out, keepdims)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The product over axes; its derivative is exact where factors are 0.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> prod(np.array([2.0, 3.0, 4.0]))
        np.float64(24.0)
    """
    z = of_type(_prod(prepared("prod", a, dtype, out, where, 1), axis, keepdims), dtype)
    return z if initial is None else z * initial


@op
def _prod(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """The product over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * the product of the other elements
    """
    z_bar = yield namespace(x).prod(x, axis=axis, keepdims=keepdims)
    yield spread(z_bar, x.shape, axis) * _others(x, reduced_axes(x.shape, axis))


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element, the product of the others along the axes.

    The products before and after each element, doubling their reach in each step, so
    that no division is needed and n elements take log2(n) steps.
    """
    xp = namespace(x)
    kept = [a for a in range(len(x.shape)) if a not in axes]
    order = [*kept, *axes]
    moved = xp.permute_dims(x, order)
    n = count(x.shape, axes)
    flat = xp.reshape(moved, (*(x.shape[a] for a in kept), n))
    if not n:
        return x
    ones = xp.ones_like(flat[..., :1])
    before = xp.concat([ones, flat[..., :-1]], axis=-1)
    after = xp.concat([flat[..., 1:], ones], axis=-1)
    reach = 1
    while reach < flat.shape[-1]:
        edge = xp.ones_like(flat[..., :reach])
        before = before * xp.concat([edge, before[..., :-reach]], axis=-1)
        after = after * xp.concat([after[..., reach:], edge], axis=-1)
        reach *= 2
    others = xp.reshape(before * after, moved.shape)
    return xp.permute_dims(others, sorted(range(len(order)), key=order.__getitem__))

"""Convolution, correlation and interpolation of signals, and polynomials."""

import math
from typing import Any

from lantern.core.namespace import common_namespace, namespace
from lantern.core.value import Rule, base, is_tracked
from lantern.errors import ArgumentError, MissingRuleError, ShapeError
from lantern.op import bilinear, elementwise, op
from lantern.rules import selection
from lantern.rules.arithmetic import conj
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.concat_stack import concat, stack
from lantern.tensor.ops.creation import arrays, asarray
from lantern.tensor.ops.indexing import joined, scatter
from lantern.tensor.ops.shape import astype

__all__ = ["convolve", "correlate", "interp", "unwrap"]


def _signals(where: str, *signals: Any) -> list[Any]:
    """Numbers, lists or arrays as arrays with one axis."""
    signals = tuple(arrays(*signals))
    for x in signals:
        if len(x.shape) > 1 or 0 in x.shape:
            raise ShapeError(
                f"{where}: expected signals with one axis that are not empty, got "
                f"shape {x.shape}. Loop over other axes."
            )
    return [x if x.shape else x[None] for x in signals]


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The convolution of two signals.

    Args:
        a: a signal.
        v: another one.
        mode: "full" for all places where they overlap, "same" for as many as the
            longer one has, "valid" for those where they overlap completely.

    Shapes:
        a: (n,); v: (m,); result: (n + m - 1,), (max(n, m),) or (abs(n - m) + 1,)

    Example:
        >>> import numpy as np
        >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5]))
        array([0. , 1. , 2.5, 4. , 1.5])
    """
    a, v = _signals("convolve", a, v)
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"convolve: there is no mode {mode!r}. Use full, same or valid."
        )
    return _convolve(a, v, mode)


@bilinear
def _convolve(a: Any, v: Any, /, mode: str) -> Rule:
    """The convolution of two signals.

    Shapes:
        a: (n,); v: (m,); result: as the mode says

    Rule:
        with z_bar as if all places had been taken, a_bar = the correlation of z_bar
        with v where they overlap completely, v_bar = that with a
    """
    z_bar = yield namespace(a, v).convolve(a, v, mode)
    n, m = a.shape[0], v.shape[0]
    if mode != "full":
        start = (min(n, m) - 1) // (2 if mode == "same" else 1)
        plain = array_namespace(base(z_bar))
        before = plain.zeros(start, dtype=z_bar.dtype)
        after = plain.zeros(n + m - 1 - start - z_bar.shape[0], dtype=z_bar.dtype)
        z_bar = namespace(z_bar).concat([before, z_bar, after])
    yield lambda: namespace(z_bar, v).convolve(z_bar, v[::-1], "valid")
    yield lambda: namespace(z_bar, a).convolve(z_bar, a[::-1], "valid")


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The correlation of two signals: sums of products, v moved along a.

    Args:
        a: a signal.
        v: another one; of a complex one, the conjugate is taken.
        mode: as for ``convolve``.

    Shapes:
        a: (n,); v: (m,); result: (n + m - 1,), (max(n, m),) or (abs(n - m) + 1,)

    Example:
        >>> import numpy as np
        >>> correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0]))
        array([2., 3.])
    """
    a, v = _signals("correlate", a, v)
    if a.shape[0] < v.shape[0]:
        return conj(correlate(v, a, mode)[::-1])
    return convolve(a, conj(v)[::-1], mode)


def interp(
    x: Any,
    xp: Any,
    fp: Any,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Any:
    """Values between given points, on straight lines from point to point.

    At a point the derivative with respect to x is the mean of the slopes beside it; at
    the first and at the last point it is the inner slope, beyond them 0.

    Args:
        x: where to interpolate.
        xp: the points, increasing; with a period, in any order.
        fp: the values at the points.
        left: the value before the first point; by default the first value.
        right: the value behind the last point; by default the last value.
        period: of x, if it is periodic.

    Shapes:
        x: (...); xp, fp: (n,); result: (...)

    Example:
        >>> import numpy as np
        >>> interp(np.array([0.5, 3.0]), np.array([0.0, 1.0]), np.array([2.0, 4.0]))
        array([3., 4.])
    """
    x, knots, values = arrays(x, xp, fp)
    if knots.shape != values.shape or len(knots.shape) != 1 or not knots.shape[0]:
        raise ShapeError(
            f"interp: points of shape {knots.shape} and values of shape "
            f"{values.shape} do not fit together. Give one value for each point."
        )
    knots = _floating(knots)
    if period is not None:
        x, knots, values = _periodic(x, knots, values, period)
        left = right = None
    z = _interp(_floating(x), knots, _floating(values))
    if left is not None:
        z = selection.where(base(x) < base(knots)[0], left, z)
    if right is not None:
        z = selection.where(base(x) > base(knots)[-1], right, z)
    return z


def _floating(x: Any) -> Any:
    if x.dtype.kind in "fc":
        return x
    return astype(x, array_namespace(base(x)).float64)


def _periodic(x: Any, knots: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """Points of one period in increasing order, with one more at each end."""
    if base(period) == 0:
        raise ShapeError("interp: period must not be 0. Leave it away for none.")
    period = selection.abs(period)
    x, knots = x % period, knots % period
    order = array_namespace(base(knots)).argsort(base(knots))
    knots, values = knots[order], values[order]
    knots = concat([knots[-1:] - period, knots, knots[:1] + period])
    return x, knots, concat([values[-1:], values, values[:1]])


@op
def _interp(x: Any, knots: Any, values: Any, /) -> Rule:
    """Values between given points, on straight lines.

    Shapes:
        x: (...); knots, values: (n,); result: (...)

    Rule:
        on a line of some slope between two points, at a part t from 0 to 1 of it,
        x_bar = z_bar * slope, values_bar += z_bar and knots_bar -= z_bar * slope,
        the last two with the weights 1 - t and t for the line's ends
    """
    plain = array_namespace(base(x), base(knots), base(values))
    z = common_namespace(x, knots, values).interp(x, knots, values)
    dtype = plain.result_type(x.dtype, knots.dtype, values.dtype)
    z = z if z.dtype == dtype else astype(z, dtype)
    z_bar = yield z
    line = _lines(plain, base(x), base(knots))
    knots, values = joined(knots, line[0]), joined(values, line[0])
    slope = _slope(x, knots, values, line)
    yield z_bar * slope
    i, j = line[0], plain.minimum(line[0] + 1, knots.shape[0] - 1)
    t = selection.clip((x - knots[i]) / _width(knots, i), 0, 1)
    weights, ends = stack([1 - t, t]), plain.stack([i, j])
    yield lambda: scatter(-z_bar * slope * weights, (ends,), knots.shape)
    yield lambda: scatter(z_bar * weights, (ends,), values.shape)


def _lines(plain: Any, x: Any, knots: Any) -> tuple[Any, Any, Any]:
    """Where the lines beside x begin, to its right and to its left; what x are on any.

    The two differ where x is a point between the first and the last.
    """
    last = max(len(knots) - 2, 0)
    sides = (plain.searchsorted(knots, x, side=side) for side in ("right", "left"))
    right, left = (plain.clip(i - 1, 0, last) for i in sides)
    return right, left, (x >= knots[0]) & (x <= knots[-1])


def _slope(x: Any, knots: Any, values: Any, line: tuple[Any, Any, Any]) -> Any:
    """The slope at x: at a point the mean of those beside it, beyond all points 0."""
    if knots.shape[0] == 1:
        return 0.0
    right, left = (
        (values[i + 1] - values[i]) / (knots[i + 1] - knots[i]) for i in line[:2]
    )
    return selection.where(line[2], (right + left) / 2, 0.0)


def _width(knots: Any, i: Any) -> Any:
    """The length of the line that begins at a point; 1 if there is only one point."""
    return knots[i + 1] - knots[i] if knots.shape[0] > 1 else 1.0


def unwrap(
    p: Any,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 2 * math.pi,
) -> Any:
    """Angles without jumps: to each a multiple of the period is added, a constant.

    Args:
        p: the angles.
        discont: what counts as a jump: more than this, and than half a period.
        axis: along which they follow each other.
        period: of the angles.

    Shapes:
        p: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> unwrap(np.array([0.0, 3.0, 6.0, 2.0]), period=4.0)
        array([ 0., -1., -2., -2.])
    """
    if is_tracked(period) or is_tracked(discont):
        raise MissingRuleError(
            "unwrap: no rule for a tracked period or discont. Divide by the period "
            "before, and multiply with it afterwards."
        )
    return _unwrap(asarray(p), discont, axis, period=base(period))


@elementwise
def _unwrap(x: Any, /, discont: Any, axis: int, *, period: float) -> Rule:
    """Angles without jumps.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar
    """
    xp = namespace(x)
    z_bar = yield (xp.unwrap(x, discont, axis, period=period), x := None)[0]
    yield z_bar

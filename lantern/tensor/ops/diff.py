"""Differences between neighbours along an axis, and what they approximate."""

from typing import Any

from lantern.core.value import Value, base
from lantern.errors import ShapeError, counted
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops import reduction
from lantern.tensor.ops.axes import part
from lantern.tensor.ops.concat_stack import cast, concat
from lantern.tensor.ops.creation import arrays, asarray
from lantern.tensor.ops.shape import astype, axis_of, broadcast_to, reshape

__all__ = ["diff", "ediff1d", "gradient", "trapezoid"]


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    """The differences between neighbours along an axis, n times.

    Args:
        a: the array.
        n: how many times.
        axis: along which.
        prepend: what stands in front of a, if anything.
        append: what stands behind it.

    Shapes:
        a: (..., m, ...); result: (..., m - n, ...)

    Example:
        >>> import numpy as np
        >>> diff(np.array([1.0, 4.0, 9.0]))
        array([3., 5.])
    """
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, got {n}. Use cumsum to sum.")
    a = asarray(a)
    if n == 0:
        return a  # without what stands around it, as NumPy
    axis = axis_of(axis, len(a.shape))
    form = [1 if i == axis else m for i, m in enumerate(a.shape)]
    parts = [
        part if part.shape else broadcast_to(part, form)
        for part in arrays(*(x for x in (prepend, a, append) if x is not None))
    ]
    z = concat(parts, axis=axis) if len(parts) > 1 else a
    for _ in range(n):
        later, earlier = part(z, axis, 1), part(z, axis, 0, -1)
        z = later != earlier if z.dtype.kind == "b" else later - earlier
    return z


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences between consecutive elements, in order, between two ends.

    Shapes:
        ary: (...), n elements; result: (n - 1,), and what the ends add

    Example:
        >>> import numpy as np
        >>> ediff1d(np.array([1.0, 4.0, 9.0]), to_begin=0.0)
        array([0., 3., 5.])
    """
    ary = asarray(ary)
    xp = array_namespace(base(ary))
    parts = [to_begin, diff(reshape(ary, -1)), to_end]
    parts = [xp.asarray(x) if isinstance(x, int | float) else x for x in parts]
    parts = [cast(asarray(x), ary.dtype, "same_kind") for x in parts if x is not None]
    return concat([reshape(x, -1) for x in parts])


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of y over x along an axis, by the trapezoidal rule.

    Args:
        y: the values.
        x: where they were taken; by default at equal distances.
        dx: that distance.
        axis: along which.

    Shapes:
        y: (..., n, ...); x: (n,) or as y; result: without the axis

    Example:
        >>> import numpy as np
        >>> trapezoid(np.array([1.0, 2.0, 3.0]))
        np.float64(4.0)
    """
    y = asarray(y)
    own = axis_of(axis, len(y.shape))  # x may have other axes, and so has the product
    if x is not None:
        x = asarray(x, like=y)
        dx = diff(x, axis=0 if len(x.shape) == 1 else axis)
        if len(x.shape) == 1:
            dx = reshape(dx, [-1 if i == own else 1 for i in range(len(y.shape))])
    return reduction.sum(dx * (part(y, own, 1) + part(y, own, 0, -1)) / 2.0, axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slope of f along axes: by central differences, at the ends by one-sided ones.

    Args:
        f: the values at the points of a grid.
        varargs: nothing for distances of 1; one distance for all axes; or for each
            axis a distance or the coordinates of the points.
        axis: along which: one, several, or None for all.
        edge_order: of the one-sided differences, 1 or 2.

    Shapes:
        f: (...); result: (...), or a tuple with one for each of several axes

    Example:
        >>> import numpy as np
        >>> gradient(np.array([0.0, 1.0, 4.0, 9.0]))
        array([1., 2., 4., 5.])

    References:
        Fornberg (1988), table 3, for equal distances.
    """
    f = asarray(f)
    if f.dtype.kind in "iub":
        f = astype(f, array_namespace(base(f)).float64)
    axes = range(len(f.shape)) if axis is None else axis
    axes = [
        axis_of(a, len(f.shape)) for a in ([axes] if isinstance(axes, int) else axes)
    ]
    steps = _steps(f, axes, varargs)
    if edge_order not in (1, 2) or any(f.shape[a] < edge_order + 1 for a in axes):
        raise ShapeError(
            f"gradient: edge_order={edge_order} needs that many points and one more "
            f"along each axis, got shape {f.shape}. Use 1 or 2, and enough points."
        )
    slopes = [_slope(f, a, h, edge_order) for a, h in zip(axes, steps, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _steps(f: Any, axes: list[int], spacing: Any) -> list[Any]:
    """For each axis the distance of its points, or the distances between them."""
    if len(spacing) < 2 and not any(_ndim(h) for h in spacing):
        return list(spacing or (1.0,)) * len(axes)
    if len(spacing) != len(axes):
        raise ShapeError(
            f"gradient: got {counted(len(spacing), 'spacing')} for "
            f"{counted(len(axes), 'axis', 'axes')}. Give one for each axis, one "
            "number for all, or none."
        )
    steps = []
    for a, h in zip(axes, spacing, strict=True):
        if _ndim(h):
            h = asarray(h, like=f)
            if h.shape != (f.shape[a],):
                raise ShapeError(
                    f"gradient: coordinates of shape {h.shape} do not fit axis {a} of "
                    f"shape {f.shape}. Give one coordinate for each point."
                )
            h = diff(h)
            if not isinstance(h, Value) and (h == h[0]).all():
                h = h[0]
        steps.append(h)
    return steps


def _ndim(x: Any) -> int:
    return len(asarray(base(x)).shape)


def _slope(f: Any, axis: int, h: Any, edge_order: int) -> Any:
    """The slope along one axis, for a distance or for all distances."""
    if _ndim(h):
        form = [-1 if i == axis else 1 for i in range(len(f.shape))]
        before, after = h[:-1], h[1:]
        both = before + after
        weights = (
            -after / (before * both),
            1 / before - 1 / after,
            before / (after * both),
        )
        a, b, c = (reshape(w, form) for w in weights)
        middle = a * part(f, axis, 0, -2) + b * part(f, axis, 1, -1)
        middle = middle + c * part(f, axis, 2)
    else:
        h = (h, h)
        middle = (part(f, axis, 2) - part(f, axis, 0, -2)) / (2.0 * h[0])
    first, last = _end(f, axis, h, edge_order, 1), _end(f, axis, h, edge_order, -1)
    return concat([first, middle, last], axis=axis)


def _end(f: Any, axis: int, h: Any, order: int, sign: int) -> Any:
    """The slope at the first point, or with sign -1 at the last one."""
    places = (0, 1, 2) if sign > 0 else (-1, -2, -3)
    x, y = (part(f, axis, i, i + 1 or None) for i in places[:2])
    near = h[0 if sign > 0 else -1]
    if order == 1:
        return (y - x) / near * sign
    far = h[1 if sign > 0 else -2]
    z = part(f, axis, places[2], places[2] + 1 or None)
    slope = (near + far) / (near * far) * y - near / (far * (near + far)) * z
    return (slope - (2.0 * near + far) / (near * (near + far)) * x) * sign

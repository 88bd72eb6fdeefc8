"""Medians and quantiles, by the places of elements in sorted order.

The order is a constant; the derivative goes to the elements that are chosen by it. Of
equal elements those are chosen that a stable sort chooses.
"""

import math
from typing import Any

from lantern.core.value import Value, base
from lantern.errors import MissingRuleError
from lantern.rules import selection
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.axes import prepared, reduced_axes, refuse
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.reduction import mean
from lantern.tensor.ops.shape import astype, axis_of, permute_dims, reshape

__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


# Methods by which a quantile is always one of the elements.
_STEPS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


class _Sorted:
    """An array sorted along the axes that a reduction removes.

    Attributes:
        rows: the elements, in rows.
        order: for each row, the places of its elements in sorted order; nan is last.
        count: how many elements count: one number; or, if nan is left out, one for
            each row.
        shape: the result's.
        void: the rows of which the result is nan.
        xp: the functions that compute on the plain elements.
    """

    __slots__ = ("count", "order", "rows", "shape", "void", "xp")

    def __init__(self, name: str, x: Any, axis: Any, keepdims: bool, nan: bool) -> None:
        x = prepared(name, x, None, None)
        if axis is not None:
            axis = axis if hasattr(axis, "__iter__") else [axis]
            axis = [axis_of(i, len(x.shape)) for i in axis]
        axes = reduced_axes(x.shape, axis)
        kept = [i for i in range(len(x.shape)) if i not in axes]
        n = math.prod(x.shape[i] for i in axes)
        lengths = [x.shape[i] for i in kept]
        self.shape = tuple(lengths)
        if keepdims:
            self.shape = tuple(1 if i in axes else m for i, m in enumerate(x.shape))
        self.rows = reshape(permute_dims(x, (*kept, *axes)), (math.prod(lengths), n))
        if not n:  # what is the middle of nothing: nan, as the mean
            self.rows, n = mean(self.rows, axis=1, keepdims=True), 1
        plain = base(self.rows)
        self.xp = array_namespace(plain)
        self.order = self.xp.argsort(plain, axis=1, kind="stable")
        numbers = (plain == plain).sum(axis=1)
        self.void = (numbers == 0) if nan else (numbers < n)
        self.count = numbers if nan else n

    def at(self, places: Any) -> Any:
        """The elements at places in sorted order, one for each row.

        Shapes:
            places: (k, rows); result: (k, rows)
        """
        xp = self.xp
        places = xp.where(self.void, self.rows.shape[1] - 1, xp.asarray(places))
        rows = xp.arange(self.rows.shape[0])
        return self.rows[rows, self.order[rows, places]]


def median(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The middle of the elements over axes, or the mean of the two in the middle.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> median(np.array([3.0, 1.0, 2.0, 9.0]))
        np.float64(2.5)
    """
    refuse("median", out=out)
    return _median(_Sorted("median", a, axis, keepdims, nan=False))


def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """As ``median``, of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanmedian(np.array([3.0, 1.0, 2.0, 9.0, np.nan]))
        np.float64(2.5)
    """
    refuse("nanmedian", out=out)
    return _median(_Sorted("nanmedian", a, axis, keepdims, nan=True))


def _median(x: _Sorted) -> Any:
    n = x.xp.asarray(x.count)[None, ...]
    low, high = x.at((n - 1) // 2), x.at(n // 2)
    return _shaped((low + high) / 2, x.shape)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """What a part q of the elements over axes is below; between two, interpolated.

    Args:
        a: the elements.
        q: from 0 to 1; differentiable for the method "linear".
        axis: the axes: one, several, or None for all.
        out: not supported.
        overwrite_input: a is never written to.
        method: how to interpolate, one of NumPy's.
        keepdims: whether the axes stay, with length 1.
        weights: not supported.

    Shapes:
        a: (...); q: (...); result: that of q, then a's without the axes

    Example:
        >>> import numpy as np
        >>> quantile(np.array([3.0, 1.0, 2.0]), 0.25)
        np.float64(1.5)
    """
    refuse("quantile", out=out, weights=weights)
    return _quantile(_Sorted("quantile", a, axis, keepdims, nan=False), q, method)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """As ``quantile``, of the elements that are not nan.

    Shapes:
        a: (...); q: (...); result: that of q, then a's without the axes

    Example:
        >>> import numpy as np
        >>> nanquantile(np.array([3.0, np.nan, 1.0, 2.0]), 0.25)
        np.float64(1.5)
    """
    refuse("nanquantile", out=out, weights=weights)
    return _quantile(_Sorted("nanquantile", a, axis, keepdims, nan=True), q, method)


def percentile(a: Any, q: Any, *args: Any, **options: Any) -> Any:
    """As ``quantile``, with q from 0 to 100.

    Shapes:
        a: (...); q: (...); result: that of q, then a's without the axes

    Example:
        >>> import numpy as np
        >>> percentile(np.array([3.0, 1.0, 2.0]), 25)
        np.float64(1.5)
    """
    return quantile(a, asarray(q) / 100, *args, **options)


def nanpercentile(a: Any, q: Any, *args: Any, **options: Any) -> Any:
    """As ``percentile``, of the elements that are not nan.

    Shapes:
        a: (...); q: (...); result: that of q, then a's without the axes

    Example:
        >>> import numpy as np
        >>> nanpercentile(np.array([3.0, np.nan, 1.0, 2.0]), 25)
        np.float64(1.5)
    """
    return nanquantile(a, asarray(q) / 100, *args, **options)


def _quantile(x: _Sorted, q: Any, method: str) -> Any:
    """Each quantile lies between two neighbours in sorted order."""
    xp, n, form = x.xp, x.xp.asarray(x.count), base(asarray(q)).shape
    plain = _places(xp, x.count, base(q), method)
    low = xp.minimum(xp.astype(xp.floor(plain), n.dtype), xp.maximum(n - 2, 0))
    if x.rows.dtype.kind in "iub" and method in _STEPS:
        return _shaped(x.at(xp.astype(plain, n.dtype)), form + x.shape)
    beyond: Any = plain - low
    high = low + (beyond > 0)
    if isinstance(q, Value):
        if method != "linear":
            raise MissingRuleError(
                f"quantile: no rule for a tracked q with method={method!r}. Use linear."
            )
        high = xp.minimum(low + 1, xp.maximum(n - 1, 0))
        beyond = reshape(asarray(q), (-1, 1)) * (n - 1) - low
    if x.rows.dtype.kind == "f":
        beyond = astype(beyond, x.rows.dtype)
    a, b = x.at(low), x.at(high)
    near = a + (b - a) * beyond, b - (b - a) * (1 - beyond)
    return _shaped(selection.where(base(beyond) < 0.5, *near), form + x.shape)


def _shaped(z: Any, shape: tuple[int, ...]) -> Any:
    return reshape(z, shape) if shape else reshape(z, shape)[()]


def _places(xp: Any, count: Any, q: Any, method: str) -> Any:
    """Where quantiles are among as many sorted elements: NumPy's, of 0, 1, 2, ...

    Shapes:
        count: () or (rows,); q: (...); result: (size of q, 1) or (size of q, rows)
    """
    if xp is not numpy_namespace and method == "linear":  # nothing leaves the device
        return xp.asarray(q, dtype=float).reshape((-1, 1)) * (xp.asarray(count) - 1)
    q, np = q.tolist() if hasattr(q, "tolist") else q, numpy_namespace
    q = np.reshape(np.asarray(q, dtype=float), (-1, 1))
    counts = count.tolist() if hasattr(count, "tolist") else [count]
    if not q.size:
        return xp.zeros((0, len(counts)))
    columns = {
        n: np.quantile(np.arange(max(n, 1), dtype=float), q, method=method)
        for n in set(counts)
    }
    places = [columns[n] for n in counts]
    return xp.asarray(np.concat(places, axis=1) if places else np.zeros((len(q), 0)))

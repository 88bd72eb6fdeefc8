"""Histograms: counts are constants, edges move with the outermost elements.

Where weights are counted, their sum is linear in them.
"""

from typing import Any

from lantern.core.value import Value, base, is_tracked
from lantern.errors import MissingRuleError
from lantern.rules.selection import where
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops import reduction
from lantern.tensor.ops.creation import asarray, linspace
from lantern.tensor.ops.diff import diff
from lantern.tensor.ops.indexing import scatter
from lantern.tensor.ops.shape import reshape

__all__ = [
    "bincount",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
]

_range = range  # a parameter has this name, as NumPy's


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each integer stands in x, or the sum of its weights.

    Shapes:
        x, weights: (n,); result: (max(x) + 1,), or longer (minlength)

    Example:
        >>> import numpy as np
        >>> bincount(np.array([0, 2, 2]), weights=np.array([1.0, 2.0, 3.0]))
        array([1., 0., 5.])
    """
    x = base(asarray(x))
    x = x * 1 if x.dtype.kind == "b" else x
    counts = array_namespace(x).bincount(x, minlength=minlength)
    if weights is None:
        return counts
    return scatter(asarray(weights, like=x), x, counts.shape)


def histogram_bin_edges(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None
) -> Any:
    """The edges of a histogram's bins, from the smallest element to the largest.

    How many bins there are is a constant.

    Args:
        a: the elements.
        bins: how many bins, a rule of NumPy's for that, or the edges.
        range: the first and the last edge; by default the outermost elements.
        weights: of the elements, which the edges do not depend on.

    Shapes:
        a: (...); result: (bins + 1,)

    Example:
        >>> import numpy as np
        >>> histogram_bin_edges(np.array([1.0, 3.0, 2.0]), 2)
        array([1., 2., 3.])
    """
    a = asarray(a)
    if not isinstance(bins, int | str) and asarray(base(bins)).shape:
        return asarray(bins, like=a)
    xp = array_namespace(base(a))
    if xp is numpy_namespace or not isinstance(bins, int):
        limits = None if range is None else tuple(map(base, range))
        edges = xp.histogram_bin_edges(base(a), base(bins), limits)
        if not any(map(is_tracked, (a, *(range or ())))):
            return edges
        bins = len(edges) - 1
    first, last = (reduction.min(a), reduction.max(a)) if range is None else range
    widened = (base(first) == base(last)) * 0.5
    return linspace(first - widened, last + widened, bins + 1)


def histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Any, Any]:
    """How many elements, or what weight of them, each bin has; and the bins' edges.

    Args:
        a: the elements.
        bins: how many bins, a rule of NumPy's for that, or the edges.
        range: the first and the last edge; by default the outermost elements.
        density: whether to divide by the bins' widths and by the sum.
        weights: of the elements.

    Shapes:
        a, weights: (...); result: a pair of (bins,) and (bins + 1,)

    Example:
        >>> import numpy as np
        >>> histogram(np.array([1.0, 3.0, 2.0]), 2)
        (array([1, 2]), array([1., 2., 3.]))
    """
    a = asarray(a)
    edges = histogram_bin_edges(a, bins, range)
    plain, limits = base(a), base(edges)
    xp = array_namespace(plain, limits)
    if isinstance(weights, Value) and limits.shape[0] > 1:
        n = limits.shape[0] - 1
        place = xp.searchsorted(limits, plain, side="right") - 1
        inside = (plain >= limits[0]) & (plain <= limits[-1])
        counted = reshape(where(inside, weights, 0.0), (-1,))
        counts = scatter(counted, xp.clip(place, 0, n - 1).reshape(-1), (n,))
    else:
        counts = xp.histogram(plain, limits, weights=base(weights))[0]
    if density:
        counts = counts / diff(edges) / reduction.sum(counts)
    return counts, edges


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Any, list[Any]]:
    """A histogram in several dimensions, and the edges along each.

    Shapes:
        sample: (n, d), or d arrays (n,); result: (bins, ...), and d edges

    Raises:
        MissingRuleError: for tracked weights.

    Example:
        >>> import numpy as np
        >>> histogramdd(np.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
        array([[1., 0.],
               [0., 1.]])
    """
    if is_tracked(weights):
        raise MissingRuleError(
            "histogramdd: no rule for tracked weights. Use lantern.histogram or "
            "lantern.bincount, or detach them with lantern.stop_gradient."
        )
    if hasattr(sample, "shape"):
        sample = reshape(sample, (-1, 1)) if len(sample.shape) == 1 else sample
        columns = [sample[:, i] for i in _range(sample.shape[1])]
    else:
        columns = [asarray(x) for x in sample]
    d = len(columns)
    each = list(bins) if hasattr(bins, "__len__") else [bins] * d
    limits = [None] * d if range is None else range
    edges = [histogram_bin_edges(*c) for c in zip(columns, each, limits, strict=True)]
    plain = [base(c) for c in columns]
    xp = array_namespace(*plain, *map(base, edges))
    options = {"weights": base(weights)}
    counts = xp.histogramdd(xp.stack(plain, axis=1), [*map(base, edges)], **options)[0]
    if density:
        counts = counts / counts.sum()
        for i, e in enumerate(edges):
            form = [-1 if i == j else 1 for j in _range(d)]
            counts = counts / reshape(diff(e), form)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """A histogram in two dimensions, and the edges along each.

    Shapes:
        x, y: (n,); result: (bins, bins), and two edges (bins + 1,)

    Example:
        >>> import numpy as np
        >>> histogram2d(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 2)[0]
        array([[1., 0.],
               [0., 1.]])
    """
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second

"""Reductions that leave nan out; an element that is nan has derivative zero."""

import math
from typing import Any

from lantern.core.value import base
from lantern.rules import selection
from lantern.tensor.ops import reduction
from lantern.tensor.ops.axes import how_many
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.cumulative import cumprod, cumsum
from lantern.tensor.ops.mean_variance import std, var

__all__ = [
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _numbers(x: Any, where: Any = True) -> tuple[Any, Any]:
    """An array, and which of its elements count."""
    x = asarray(x)
    return x, (base(x) == base(x)) & base(where)


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The sum over axes of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nansum(np.array([3.0, np.nan, 1.0]))
        np.float64(4.0)
    """
    x, mask = _numbers(a, where)
    return reduction.sum(x, axis, dtype, out, keepdims, initial, mask)


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The product over axes of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanprod(np.array([3.0, np.nan, 1.0]))
        np.float64(3.0)
    """
    x, mask = _numbers(a, where)
    return reduction.prod(x, axis, dtype, out, keepdims, initial, mask)


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """The mean over axes of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanmean(np.array([3.0, np.nan, 1.0]))
        np.float64(2.0)
    """
    x, mask = _numbers(a, where)
    return reduction.mean(x, axis, dtype, out, keepdims, where=mask)


def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The largest elements over axes that are not nan; nan where all are.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanmax(np.array([3.0, np.nan, 1.0]))
        np.float64(3.0)
    """
    x, mask = _numbers(a, where)
    if x.dtype.kind in "iub":
        return reduction.max(x, axis, out, keepdims, initial, where)
    least = -math.inf if initial is None else initial
    z = reduction.max(x, axis, out, keepdims, least, mask)
    return _or_nan(z, how_many(x, axis, keepdims, mask), initial)


def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The smallest elements over axes that are not nan; nan where all are.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanmin(np.array([3.0, np.nan, 1.0]))
        np.float64(1.0)
    """
    x, mask = _numbers(a, where)
    if x.dtype.kind in "iub":
        return reduction.min(x, axis, out, keepdims, initial, where)
    most = math.inf if initial is None else initial
    z = reduction.min(x, axis, out, keepdims, most, mask)
    return _or_nan(z, how_many(x, axis, keepdims, mask), initial)


def _or_nan(z: Any, count: Any, initial: Any) -> Any:
    """A result, and nan where nothing was left to choose from."""
    if initial is not None:
        return z
    z = selection.where(count > 0, z, math.nan)
    return z if z.shape else z[()]


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    **options: Any,
) -> Any:
    """The variance over axes of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanvar(np.array([3.0, np.nan, 1.0]))
        np.float64(1.0)
    """
    x, mask = _numbers(a, where)
    z = var(x, axis, dtype, out, ddof, keepdims, where=mask, **options)
    n = how_many(x, axis, keepdims, mask) - (ddof or options.get("correction", 0))
    return _or_nan(z, n, None)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    **options: Any,
) -> Any:
    """The standard deviation over axes of the elements that are not nan.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> nanstd(np.array([3.0, np.nan, 1.0]))
        np.float64(1.0)
    """
    x, mask = _numbers(a, where)
    z = std(x, axis, dtype, out, ddof, keepdims, where=mask, **options)
    n = how_many(x, axis, keepdims, mask) - (ddof or options.get("correction", 0))
    return _or_nan(z, n, None)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running sum along an axis, with 0 in place of nan.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> nancumsum(np.array([3.0, np.nan, 1.0]))
        array([3., 3., 4.])
    """
    x, mask = _numbers(a)
    return cumsum(selection.where(mask, x, 0), axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The running product along an axis, with 1 in place of nan.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> nancumprod(np.array([3.0, np.nan, 1.0]))
        array([3., 3., 3.])
    """
    x, mask = _numbers(a)
    return cumprod(selection.where(mask, x, 1), axis, dtype, out)

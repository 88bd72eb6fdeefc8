"""Means, variances and covariances."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.unwrap import every_example
from lantern.core.value import Rule, base, is_complex
from lantern.errors import ShapeError
from lantern.op import elementwise, op
from lantern.rules import selection
from lantern.rules.arithmetic import conj, imag, real
from lantern.rules.exponential import sqrt
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops import reduction
from lantern.tensor.ops.axes import (
    count,
    how_many,
    of_type,
    per,
    prepared,
    reduced_axes,
    refuse,
)
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.products import matmul
from lantern.tensor.ops.reduction import spread
from lantern.tensor.ops.shape import broadcast_to, permute_dims, reshape, squeeze

__all__ = ["average", "corrcoef", "cov", "std", "var"]


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float = 0,
) -> Any:
    """The variance over axes: squared deviations' sum, divided by n - correction.

    Args:
        a: what varies.
        axis: the axes: one, several, or None for all.
        dtype: in which to compute.
        out: not supported.
        ddof: NumPy's older name for the correction.
        keepdims: whether the axes stay, with length 1.
        where: which elements count.
        mean: not supported.
        correction: 1 for the unbiased estimate.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> var(np.array([1.0, 3.0]))
        np.float64(1.0)
    """
    refuse("var", mean=mean)
    a = prepared("var", a, dtype, out)
    less = ddof or correction
    if is_complex(a):
        options: Any = {"ddof": less, "keepdims": keepdims, "where": where}
        z = var(real(a), axis, **options) + var(imag(a), axis, **options)
    elif where is True:
        z = _var(a, axis, less, keepdims)
    else:
        n = selection.maximum(how_many(a, axis, keepdims, where) - less, 0)
        centre = reduction.sum(a, axis, keepdims=True, where=where)
        deviation = a - per(centre, how_many(a, axis, True, where))
        squares = deviation * deviation
        z = per(reduction.sum(squares, axis, keepdims=keepdims, where=where), n)
    return of_type(z, dtype)


@op
def _var(
    x: Any, /, axis: Any = None, correction: float = 0, keepdims: bool = False
) -> Rule:
    """The variance of real numbers over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * 2 * (x - mean(x)) / (n - correction)
    """
    xp = namespace(x)
    n = count(x.shape, axis) - correction
    n = n if n > 0 else 0
    deviation = x - xp.mean(x, axis=axis, keepdims=True)
    z_bar = yield xp.sum(deviation * deviation, axis=axis, keepdims=keepdims) / n
    deviation = namespace(deviation).ieee_divide(2 * deviation, n)
    yield spread(z_bar, x.shape, axis) * deviation


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """The standard deviation over axes; of a constant, its derivative is 0.

    Its arguments are those of ``var``.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> std(np.array([1.0, 3.0]))
        np.float64(1.0)
    """
    return _root(var(a, axis, dtype, out, ddof, keepdims, **options))


@elementwise
def _root(x: Any, /) -> Rule:
    """The square root, with derivative 0 at 0.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (2 * z), 0 where z is 0
    """
    z = sqrt(x)
    del x
    z_bar = yield z
    xp = namespace(z)
    yield xp.where(z == 0, 0, z_bar / xp.where(z == 0, 1, 2 * z))


def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over axes.

    Args:
        a: what is averaged.
        axis: the axes: one, several, or None for all.
        weights: of the shape of a, or of its axes; none for equal ones.
        returned: whether to return the sum of the weights as well.
        keepdims: whether the axes stay, with length 1.

    Shapes:
        a: (...); result: without the axes, or with length 1 there (keepdims)

    Raises:
        ShapeError: if weights sum to zero.

    Example:
        >>> import numpy as np
        >>> average(np.array([1.0, 2.0]), weights=np.array([3.0, 1.0]))
        np.float64(1.25)
    """
    a = asarray(a)
    if axis is not None:
        axis = reduced_axes(a.shape, axis)
    if weights is None:
        z = reduction.mean(a, axis, keepdims=keepdims)
        total = array_namespace(base(z)).full_like(base(z), count(a.shape, axis))
        return (z, total) if returned else z
    weights = asarray(weights, like=a)
    if weights.shape != a.shape:
        weights = _along(weights, a.shape, axis)
    total = reduction.sum(weights, axis, keepdims=keepdims)
    if not every_example(total).all():
        raise ShapeError(
            "average: the weights sum to zero. Give weights that can be divided by it."
        )
    z = reduction.sum(a * weights, axis, keepdims=keepdims) / total
    return (z, broadcast_to(total, z.shape)) if returned else z


def _along(weights: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Weights of some axes, in the form of the array that they belong to."""
    axes = reduced_axes(shape, axis)
    if axis is None or weights.shape != tuple(shape[i] for i in axes):
        raise ShapeError(
            f"average: weights of shape {weights.shape} do not fit an array of shape "
            f"{shape} and axis={axis}. Give one weight for each element, or one for "
            f"each place along the axis."
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    form = [n if i in axes else 1 for i, n in enumerate(shape)]
    return reshape(permute_dims(weights, order), form)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariance matrix of variables that are observed together.

    Args:
        m: one variable in each row, one observation in each column.
        y: further variables.
        rowvar: False if rows and columns are the other way round.
        bias: whether to divide by n, not n - 1.
        ddof: divide by n - ddof.
        fweights: how often each observation was made.
        aweights: how much each observation counts.
        dtype: of the result.

    Shapes:
        m: (k, n) or (n,); result: (k, k) or ()

    Example:
        >>> import numpy as np
        >>> cov(np.array([[1.0, 2.0], [2.0, 4.0]]))
        array([[0.5, 1. ],
               [1. , 2. ]])
    """
    x = _observations(m, rowvar, dtype)
    if y is not None:
        y = asarray(y, like=x)
        row = len(y.shape) == 2 and y.shape[0] == 1
        x = concat([x, _observations(y, rowvar or row, dtype)], axis=0)
    less = (0 if bias else 1) if ddof is None else ddof
    weights = None if fweights is None else asarray(base(fweights), like=x) * 1.0
    if aweights is not None:
        aweights = asarray(aweights, like=x)
        weights = aweights if weights is None else weights * aweights
    centre, total = average(x, axis=1, weights=weights, returned=True)
    if weights is not None and aweights is not None:
        less = less * reduction.sum(weights * aweights) / total[0]
    x = x - centre[:, None]
    right = x if weights is None else x * weights
    return squeeze(matmul(x, conj(right).mT) / selection.maximum(total[0] - less, 0))


def _observations(m: Any, rowvar: bool, dtype: Any) -> Any:
    """One variable in each row."""
    x = prepared("cov", m, dtype, None)
    if len(x.shape) > 2:
        raise ShapeError(
            f"cov: an array of shape {x.shape} has too many axes. Give a matrix with "
            f"one variable in each row."
        )
    if len(x.shape) < 2:
        return reshape(x, (1, -1))
    return x if rowvar else x.mT


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlations of variables that are observed together, from -1 to 1.

    Shapes:
        x: (k, n), one variable in each row; result: (k, k)

    Example:
        >>> import numpy as np
        >>> corrcoef(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))[0, 1]
        np.float64(-1.0)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return c / c
    i = array_namespace(base(c)).arange(len(c))
    scale = sqrt(real(c[i, i]))
    c = c / scale[:, None] / scale
    if is_complex(c):
        return selection.clip(real(c), -1, 1) + 1j * selection.clip(imag(c), -1, 1)
    return selection.clip(c, -1, 1)

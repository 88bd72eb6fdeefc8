"""Arrays joined: along an axis that they have, or along a new one."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from lantern.core.namespace import common_namespace
from lantern.core.value import Rule, Value
from lantern.errors import ShapeError
from lantern.op import linear
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.shape import alike, astype, reshape

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "stack",
    "vstack",
]


def concat(
    arrays: Any,
    /,
    axis: int | None = 0,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Arrays joined along an axis that they have; flattened ones, if axis is None.

    Shapes:
        arrays: (..., n_i, ...) each; result: (..., sum of n_i, ...)

    Example:
        >>> import numpy as np
        >>> concat([np.ones(1), np.zeros(2)])
        array([1., 0., 0.])
    """
    arrays = alike(list(arrays))
    if axis is None:
        arrays, axis = [reshape(x, -1) for x in arrays], 0
    if not all(x.shape for x in arrays):
        raise ShapeError(
            "concat: numbers have no axis to be joined along. Use lantern.stack."
        )
    return cast(_concat(*arrays, axis=axis), dtype, casting)


concatenate = concat


@linear
def _concat(*operands: Any, axis: int) -> Rule:
    """Arrays joined along an axis that they have.

    Shapes:
        arrays: (..., n_i, ...) each; result: (..., sum of n_i, ...)

    Rule:
        each x_bar = its part of z_bar
    """
    shapes, xp = [x.shape for x in operands], common_namespace(*operands)
    z_bar = yield (xp.concat(operands, axis=axis), operands := ())[0]
    ends = accumulate([shape[axis] for shape in shapes], initial=0)
    before = (slice(None),) * (axis % len(z_bar.shape))
    for start, stop in pairwise(ends):
        yield z_bar[(*before, slice(start, stop))]


plain_concat = _concat  # of arrays that fit together


def stack(
    arrays: Any,
    /,
    axis: int = 0,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Arrays or numbers of one shape, joined along a new axis.

    Shapes:
        arrays: (...) each, n of them; result: (..., n, ...)

    Example:
        >>> stack([1.0, 2.0])
        array([1., 2.])
    """
    arrays = tuple(arrays)
    first = arrays[0] if arrays and axis == 0 else None
    # Rows that lie in one array are read from it at once (lantern.batching).
    read = getattr(first, "read_together", None) if isinstance(first, Value) else None
    z = None if read is None else read(arrays)
    z = _stack(*arrays, axis=axis) if z is None else z
    return cast(z, dtype, casting)


@linear
def _stack(*operands: Any, axis: int) -> Rule:
    """Arrays or numbers of one shape, joined along a new axis.

    Shapes:
        arrays: (...) each, n of them; result: (..., n, ...)

    Rule:
        each x_bar = its slice of z_bar
    """
    n, xp = len(operands), array_namespace(*operands)
    z_bar = yield (xp.stack(operands, axis=axis), operands := ())[0]
    before = (slice(None),) * (axis % len(z_bar.shape))
    for i in range(n):
        yield z_bar[(*before, i)]


plain_stack = _stack  # of arrays that fit together


def cast(x: Any, dtype: Any, casting: str) -> Any:
    """x with elements of another type, if NumPy's rule of this name allows it."""
    if dtype is None:
        return x
    numpy_namespace.empty(0, x.dtype).astype(dtype, casting=casting)  # may refuse
    return astype(x, dtype)


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis; a tuple, if there are several.

    Shapes:
        arys: (...) each; each result: (...), or (1,)

    Example:
        >>> atleast_1d(2.0)
        array([2.])
    """
    return _each(lambda x: x if x.shape else reshape(x, (1,)), arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes; a tuple, if there are several.

    Shapes:
        arys: (...) each; each result: (...), or (1, n)

    Example:
        >>> atleast_2d([1.0, 2.0])
        array([[1., 2.]])
    """
    return _each(lambda x: x if len(x.shape) > 1 else reshape(x, (1, -1)), arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes; a tuple, if there are several.

    Shapes:
        arys: (...) each; each result: (...), or (n, m, 1), or (1, n, 1)

    Example:
        >>> atleast_3d([1.0, 2.0]).shape
        (1, 2, 1)
    """

    def convert(x: Any) -> Any:
        if len(x.shape) > 2:
            return x
        return reshape(x, (*x.shape, 1) if len(x.shape) == 2 else (1, -1, 1))

    return _each(convert, arys)


def _each(convert: Callable[[Any], Any], arrays: Any) -> Any:
    """A function's result for one array, its results for several."""
    results = tuple(map(convert, alike(arrays)))
    return results[0] if len(results) == 1 else results


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays joined along their second axis; along the first, if they have but one.

    Shapes:
        tup: (n, m_i, ...) each; result: (n, sum of m_i, ...)

    Example:
        >>> hstack([1.0, [2.0, 3.0]])
        array([1., 2., 3.])
    """
    arrays = [atleast_1d(x) for x in tup]
    axis = 0 if arrays and len(arrays[0].shape) == 1 else 1
    return concat(arrays, axis, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays joined along their first axis; those with one axis are rows.

    Shapes:
        tup: (n_i, m, ...) or (m,) each; result: (sum of n_i, m, ...)

    Example:
        >>> vstack([[1.0, 2.0], [3.0, 4.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    return concat([atleast_2d(x) for x in tup], 0, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    """Arrays joined along their third axis.

    Shapes:
        tup: (n, m, k_i) or (n, m) or (m,) each; result: (n, m, sum of k_i)

    Example:
        >>> dstack([[1.0, 2.0], [3.0, 4.0]])
        array([[[1., 3.],
                [2., 4.]]])
    """
    return concat([atleast_3d(x) for x in tup], 2)


def column_stack(tup: Any) -> Any:
    """Arrays joined along their second axis; those with one axis are columns.

    Shapes:
        tup: (n, m_i) or (n,) each; result: (n, sum of m_i)

    Example:
        >>> column_stack([[1.0, 2.0], [3.0, 4.0]])
        array([[1., 3.],
               [2., 4.]])
    """
    arrays = alike(list(tup))
    return concat([x if len(x.shape) > 1 else reshape(x, (-1, 1)) for x in arrays], 1)

"""Elements in other places: reversed, moved round, repeated, on diagonals."""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.unwrap import plain
from lantern.core.value import Rule, base
from lantern.errors import MissingRuleError, ShapeError
from lantern.op import linear
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.indexing import scatter, take
from lantern.tensor.ops.products import diagonal
from lantern.tensor.ops.shape import (
    as_array,
    axis_of,
    moveaxis,
    on_arrays,
    reshape,
    swapaxes,
)

__all__ = [
    "diag",
    "diagflat",
    "flip",
    "fliplr",
    "flipud",
    "ix_",
    "repeat",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "tile",
    "tril",
    "tril_indices_from",
    "triu",
    "triu_indices_from",
]


@on_arrays
@linear
def flip(m: Any, /, axis: Any = None) -> Rule:
    """An array with its elements in reverse order along axes; along all for None.

    Shapes:
        m: (...); result: (...)

    Rule:
        m_bar = flip(z_bar)

    Example:
        >>> import numpy as np
        >>> flip(np.array([1.0, 2.0, 3.0]))
        array([3., 2., 1.])
    """
    z_bar = yield (namespace(m).flip(m, axis=axis), m := None)[0]
    yield namespace(z_bar).flip(z_bar, axis=axis)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Arrays with one axis each, shaped so that together they span a grid.

    Args:
        args: the arrays; for a mask its positions are taken.

    Shapes:
        args: (n_i,) each; result: (1, ..., n_i, ..., 1) each

    Example:
        >>> import numpy as np
        >>> np.arange(6.0).reshape(2, 3)[ix_([1, 0], [False, True, True])]
        array([[4., 5.],
               [1., 2.]])
    """
    grid = []
    for i, x in enumerate(map(as_array, args)):
        if len(x.shape) != 1:
            raise ShapeError(
                f"ix_: argument {i} has shape {x.shape}. Give arrays with one axis."
            )
        part = base(x).nonzero()[0] if x.dtype.kind == "b" else x
        grid.append(reshape(part, (1,) * i + (-1,) + (1,) * (len(args) - i - 1)))
    return tuple(grid)


def flipud(m: Any) -> Any:
    """An array with its first axis reversed.

    Shapes:
        m: (n, ...); result: (n, ...)

    Example:
        >>> import numpy as np
        >>> flipud(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[3., 4.],
               [1., 2.]])
    """
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """An array with its second axis reversed.

    Shapes:
        m: (n, m, ...); result: (n, m, ...)

    Example:
        >>> import numpy as np
        >>> fliplr(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[2., 1.],
               [4., 3.]])
    """
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """An array turned by k right angles, from the first of two axes to the second.

    Shapes:
        m: (..., n, ..., m, ...); result: the same, or with n and m swapped

    Example:
        >>> import numpy as np
        >>> rot90(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[2., 4.],
               [1., 3.]])
    """
    m = as_array(m)
    if k != int(k):
        raise MissingRuleError(
            f"rot90: no rule for {k!r} right angles. Give a whole number for k."
        )
    numpy_namespace.rot90(numpy_namespace.broadcast_to(0, m.shape), k, axes)  # raises
    first, second = axes
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return flip(m, (first, second))
    if k % 4 == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


@on_arrays
@linear
def roll(a: Any, /, shift: Any, axis: Any = None) -> Rule:
    """An array moved along axes, what falls off coming in on the other side.

    Shapes:
        a: (...); result: (...)

    Rule:
        a_bar = roll(z_bar, -shift)

    Example:
        >>> import numpy as np
        >>> roll(np.array([1.0, 2.0, 3.0]), 1)
        array([3., 1., 2.])
    """
    z_bar = yield (namespace(a).roll(a, shift, axis=axis), a := None)[0]
    back = [-s for s in shift] if isinstance(shift, tuple | list) else -shift
    yield namespace(z_bar).roll(z_bar, back, axis=axis)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An array with one axis moved to stand before the axis ``start``.

    Shapes:
        a: (n0, n1, ...); result: the same lengths in another order

    Example:
        >>> import numpy as np
        >>> rollaxis(np.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    ndim = len(a.shape)
    start = axis_of(start + ndim if start < 0 else start, ndim + 1)
    axis = axis_of(axis, ndim)
    return moveaxis(a, axis, start - (axis < start))


@on_arrays
@linear
def tile(A: Any, /, reps: Any) -> Rule:
    """An array put beside itself along each axis, as often as ``reps`` says.

    Shapes:
        A: (n0, n1, ...); result: (reps[0] * n0, reps[1] * n1, ...)

    Rule:
        A_bar = the sum of the tiles of z_bar

    Example:
        >>> import numpy as np
        >>> tile(np.array([1.0, 2.0]), 2)
        array([1., 2., 1., 2.])
    """
    old = A.shape
    z_bar = yield (namespace(A).tile(A, reps), A := None)[0]
    reps = tuple(reps) if hasattr(reps, "__iter__") else (reps,)
    ndim = max(len(reps), len(old))
    reps, shape = (1,) * (ndim - len(reps)) + reps, (1,) * (ndim - len(old)) + old
    pairs = [n for pair in zip(reps, shape, strict=True) for n in pair]
    xp = namespace(z_bar)
    z_bar = xp.sum(xp.reshape(z_bar, pairs), axis=tuple(range(0, 2 * ndim, 2)))
    yield xp.reshape(z_bar, old)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """An array with each part along an axis repeated; the flat array for None.

    Args:
        repeats: how often: one number for all parts, or one for each.

    Shapes:
        a: (..., n, ...); result: (..., n * repeats or their sum, ...)

    Example:
        >>> import numpy as np
        >>> repeat(np.array([1.0, 2.0]), [1, 3])
        array([1., 2., 2., 2.])
    """
    a = as_array(a)
    if axis is None:
        a, axis = reshape(a, -1), 0
    if not a.shape:
        a = reshape(a, -1)  # as NumPy's, with its only axis
    axis = axis_of(axis, len(a.shape))
    counts = array_namespace(base(repeats)).to_device(base(repeats), "cpu")
    repeats = numpy_namespace.asarray(counts)  # they say how long the result is
    if repeats.size == 1 and repeats >= 0:
        return _repeat(a, repeats=int(repeats.reshape(())), axis=axis)
    places = numpy_namespace.repeat(numpy_namespace.arange(a.shape[axis]), repeats)
    return take(a, array_namespace(plain(a)).asarray(places), axis)


@linear
def _repeat(a: Any, /, repeats: int, axis: int) -> Rule:
    """An array with each part along an axis repeated equally often.

    Shapes:
        a: (..., n, ...); result: (..., n * repeats, ...)

    Rule:
        a_bar = z_bar, summed over the repetitions
    """
    old = a.shape
    z_bar = yield (namespace(a).repeat(a, repeats, axis=axis), a := None)[0]
    xp = namespace(z_bar)
    groups = (*old[: axis + 1], repeats, *old[axis + 1 :])
    yield xp.sum(xp.reshape(z_bar, groups), axis=axis + 1)


def resize(a: Any, new_shape: Any) -> Any:
    """The elements in another shape, as often as it takes to fill it.

    Shapes:
        a: (...); result: new_shape

    Example:
        >>> import numpy as np
        >>> resize(np.array([1.0, 2.0, 3.0]), (2, 2))
        array([[1., 2.],
               [3., 1.]])
    """
    a = reshape(a, -1)
    new_shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    size = math.prod(new_shape)
    if min(new_shape, default=0) < 0:
        raise ShapeError(
            f"resize: the shape {new_shape} has a negative length. Give each length."
        )
    copies = -(-size // a.shape[0]) if a.shape[0] else 0
    if not copies:
        return namespace(base(a)).zeros(new_shape, dtype=a.dtype)
    return reshape(tile(a, copies)[:size], new_shape)


@on_arrays
@linear
def tril(m: Any, /, k: int = 0) -> Rule:
    """Matrices with zeros above the k-th diagonal.

    Shapes:
        m: (..., n, m); result: (..., n, m)

    Rule:
        m_bar = tril(z_bar)

    Example:
        >>> import numpy as np
        >>> tril(np.ones((2, 2)))
        array([[1., 0.],
               [1., 1.]])
    """
    z_bar = yield (namespace(m).tril(m, k=k), m := None)[0]
    yield namespace(z_bar).tril(z_bar, k=k)


@on_arrays
@linear
def triu(m: Any, /, k: int = 0) -> Rule:
    """Matrices with zeros below the k-th diagonal.

    Shapes:
        m: (..., n, m); result: (..., n, m)

    Rule:
        m_bar = triu(z_bar)

    Example:
        >>> import numpy as np
        >>> triu(np.ones((2, 2)))
        array([[1., 1.],
               [0., 1.]])
    """
    z_bar = yield (namespace(m).triu(m, k=k), m := None)[0]
    yield namespace(z_bar).triu(z_bar, k=k)


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Where a matrix has its elements on and below the k-th diagonal: constants.

    Shapes:
        arr: (n, m); each of two results: (count,)

    Example:
        >>> import numpy as np
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> x[tril_indices_from(x)]
        array([1., 3., 4.])
    """
    return namespace(base(arr)).tril_indices(arr.shape[-2], k, arr.shape[-1])


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Where a matrix has its elements on and above the k-th diagonal: constants.

    Shapes:
        arr: (n, m); each of two results: (count,)

    Example:
        >>> import numpy as np
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> x[triu_indices_from(x)]
        array([1., 2., 4.])
    """
    return namespace(base(arr)).triu_indices(arr.shape[-2], k, arr.shape[-1])


def diag(v: Any, k: int = 0) -> Any:
    """A square matrix with a vector on its k-th diagonal; of a matrix, that diagonal.

    Shapes:
        v: (n,) or (n, m); result: (n + abs(k), n + abs(k)) or (d,)

    Example:
        >>> import numpy as np
        >>> diag(np.array([1.0, 2.0]))
        array([[1., 0.],
               [0., 2.]])
    """
    v = as_array(v)
    if len(v.shape) == 2:
        return diagonal(v, k)
    if len(v.shape) != 1:
        raise ShapeError(
            f"diag: expected one axis or two, got shape {v.shape}. Use diagflat for "
            f"more, or diagonal for a batch of matrices."
        )
    n, i = v.shape[0] + abs(k), namespace(base(v)).arange(v.shape[0])
    return scatter(v, (i + max(-k, 0), i + max(k, 0)), (n, n))


def diagflat(v: Any, k: int = 0) -> Any:
    """A square matrix with all elements of an array on its k-th diagonal.

    Shapes:
        v: (...), n elements; result: (n + abs(k), n + abs(k))

    Example:
        >>> diagflat([[1.0, 2.0]])
        array([[1., 0.],
               [0., 2.]])
    """
    return diag(reshape(v, -1), k)

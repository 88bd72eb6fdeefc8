"""Sums and greatest elements of rows of plain matrices, in fewer steps than NumPy's.

A product with ones takes an eighth to a half of the time of ``sum`` (64 rows of 10: 0.6
µs for 2.4; 4,096: 9 for 82), and to find out where a row's greatest element lies and
take it, a quarter to two thirds of that of ``max`` (AMD EPYC, one thread). Other arrays
get the functions of their libraries.
"""

from functools import lru_cache
from typing import Any

from lantern import engines
from lantern.core.namespace import namespace
from lantern.tensor.backend.numpy_namespace import REAL, numpy_namespace

__all__ = ["greatest", "highest", "over_rows", "starts", "summed", "total"]

_LARGE = 1 << 20
_array: Any = numpy_namespace.ndarray


@lru_cache(32)
def _ones(n: int, dtype: Any) -> Any:
    """A row of n times 1, not to be written to."""
    return numpy_namespace.ones(n, dtype)


def starts(rows: int, n: int) -> Any:
    """Where rows of n start that lie end to end; not to be written to."""
    return _few_starts(rows, n) if rows <= FEW else _starts(rows, n)


def _starts(rows: int, n: int) -> Any:
    return numpy_namespace.arange(0, rows * n, n)


FEW = 1 << 14
"""Of so many rows the starts are kept: 4 MiB at the most."""

_few_starts = lru_cache(32)(_starts)


def greatest(x: Any) -> Any:
    """The greatest element of a row; of each row, as a column."""
    if type(x) is not _array:
        return x.max() if x.ndim == 1 else x.max(axis=1, keepdims=True)
    if x.ndim == 1:
        return x[x.argmax()]
    places = x.argmax(axis=1)
    places += starts(*x.shape)
    return x.reshape(-1)[places][:, None]


def summed(x: Any) -> Any:
    """The sum of a row, or of each row."""
    if type(x) is not _array:
        return x.sum(axis=-1)
    return x.dot(_ones(x.shape[-1], x.dtype))


def over_rows(x: Any) -> Any:
    """The sum of the rows of a matrix; None if it is no plain one."""
    if type(x) is not _array or x.ndim != 2 or x.dtype not in REAL:
        return None
    z = engines.sums.over_rows(x) if x.size > _LARGE else None
    return _ones(x.shape[0], x.dtype).dot(x) if z is None else z


def highest(x: Any, axis: int) -> Any:
    """The greatest elements along an axis, which stays with length 1."""
    if not _has_rows(x, axis):
        return namespace(x).max(x, axis=axis, keepdims=True)
    return greatest(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], 1)


def total(x: Any, axis: int) -> Any:
    """The sums along an axis, which stays with length 1."""
    if not _has_rows(x, axis):
        return namespace(x).sum(x, axis=axis, keepdims=True)
    return summed(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], 1)


def _has_rows(x: Any, axis: int) -> bool:
    plain = type(x) is _array and x.dtype in REAL and x.size
    return bool(plain) and axis in (-1, x.ndim - 1)

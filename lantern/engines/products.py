"""Products of two matrices by oneDNN, where it takes less time than NumPy's BLAS.

The rule: arrays of single precision, more than 2 ** 20 products of elements, and a
processor with AVX-512. Measured there (Intel Xeon, one thread, OpenBLAS 0.3.31 with its
kernel for SkylakeX): of 2 to 500 million products 0.40 to 1.06 of the time, 0.85 in the
middle; of fewer up to 14 times, since a call takes 7 µs. With AVX2 it is 0.91 to 1.06,
where nothing would be won.

By a matrix that is kept in oneDNN's order, as recurrent layers keep theirs, products of
2 or more rows take 0.4 to 0.9 of the time, from 2 ** 20 products of elements on, and to
bring it into order as long as one to four of them.

In several threads, where the second matrix lies in columns, as a layer's weight does,
another of oneDNN's ways takes 0.75 to 0.93 of its ``sgemm``'s time (AMD EPYC, two
threads). Where it lies in rows and is small, as a weight on the way back does, and the
first one has more than 64 rows, that takes 0.76 to 1.06, the middle 0.92 (Intel Xeon,
one thread and two); by more than 2 ** 16 elements 0.7 to 1.7. Of 2,048 rows and more,
matrices of up to 2 ** 18 elements are brought into oneDNN's order each time: 0.83 to
1.02 of the time without, 0.95 in the middle; but not those in rows that are wider than
high, where it is 1.03 to 1.10. To add a layer's bias on the way takes 0.69 to 0.92 of
the time of both (two threads); in one, of more than 64 rows, 0.59 to 1.06.

Many pairs of matrices, such as attention has, are one call: where oneDNN has several
threads, while NumPy uses one, or the second ones lie in columns: 0.7 to 0.95 of NumPy's
time then (AMD EPYC, one thread), else 0.7 to 1.4. In one thread up to 2 ** 16 elements
in columns with gaps between them are brought into rows for NumPy: 0.5 of oneDNN's time
(Intel Xeon, keys of four heads); of more it would be 1.2.
"""

import ctypes
from functools import cache, lru_cache
from typing import Any

from lantern.engines.arrays import (
    address,
    empty_rows,
    in_rows,
    laid_like,
    room,
    single,
    steps,
    whole,
)
from lantern.engines.onednn import (
    Layout,
    Primitive,
    described,
    has_avx512,
    is_on,
    library,
    reorder,
    threads,
)
from lantern.engines.plan import Plan

__all__ = [
    "LEAST",
    "Repeated",
    "adding_product",
    "affine",
    "matmul",
    "product",
    "repeated",
    "times_each",
]

LEAST = 1 << 20
_FEW, _MANY = 64, 2048
_SMALL, _MEDIUM = 1 << 16, 1 << 18
_OFTEN = 8  # to bring a matrix into order takes as long as one to four products
_INFERENCE, _X, _WEIGHTS, _BIAS, _Z = 96, 1, 33, 41, 17


def product(x: Any, y: Any, out: Any = None) -> Any:
    """``x @ y`` of two matrices, perhaps in given memory; None if not for the engine.

    Shapes:
        x: (n, k); y: (k, m); out, result: (n, m)
    """
    if x.size * y.shape[-1] <= LEAST:
        return None
    if not all(single(a) and a.ndim == 2 for a in (x, y)):
        return None
    if out is None:
        z = _in_one_call(x, y)
        if z is not None:
            return z
        out = empty_rows((x.shape[0], y.shape[1]))
    call = _call(x, y, out, 1.0, 0.0)
    if call is None:
        return None
    function, *arguments = call
    function(*arguments)
    return out


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """``x @ weight.T + bias``; None if not for the engine.

    In one thread it is for layers with a bias, of more than 64 rows, or of 2,048.

    Shapes:
        x: (n, k); weight: (m, k); bias: (m,) or None; result: (n, m)
    """
    if x.size * weight.shape[0] <= LEAST:
        return None
    if not (single(x) and single(weight) and x.ndim == weight.ndim == 2):
        return None
    if bias is not None and not (
        single(bias) and whole(bias) and bias.shape == weight.shape[:1]
    ):
        return None
    return _in_one_call(x, weight.T, bias)


def _in_one_call(x: Any, y: Any, bias: Any = None) -> Any:
    """``x @ y + bias`` if that takes less time than ``sgemm``; or None."""
    if not _is_faster() or x.shape[1] != y.shape[0]:
        return None
    x_lies, y_lies = _lies(x), _lies(y)
    if x_lies is None or y_lies is None or x_lies[0] != b"N":
        return None
    (order, step), of_x, many = y_lies, (x_lies[1], 1), len(x) > _FEW
    if order == b"N":
        pays, of_y = many and y.size <= _SMALL, (step, 1)
    else:
        pays, of_y = threads() > 1 or (many and bias is not None), (1, step)
    fits = len(x) >= _MANY and y.size <= _MEDIUM and whole(x)
    if fits and (order == b"T" or y.shape[0] >= y.shape[1]):
        plan = _ordered(len(x), y.shape, of_y, bias is not None, threads())
        return plan.run(x, y, *([] if bias is None else [bias]))
    return _multiplied(x, x.shape, of_x, y, of_y, bias) if pays else None


def matmul(x: Any, y: Any, like: Any = None) -> Any:
    """``x @ y``; of many pairs of matrices by the engine where that takes less time.

    Args:
        x: an array.
        y: another one.
        like: an array in whose order of axes the engine lays the result, if it has the
            shape: a cotangent, which will then go the array's way back without copies.

    Shapes:
        x: (..., n, k); y: (..., k, m); like, result: (..., n, m)
    """
    if x.size * y.shape[-1] <= LEAST or not _are_many(x, y):
        return x @ y
    gaps = y.strides[-2] == 4 and y.strides[-1] > 4 * y.shape[-2]
    if gaps and y.size <= _SMALL and threads() == 1:
        return x @ in_rows(y)
    shape = *x.shape[:-1], y.shape[-1]
    if not single(like) or like.shape != shape or min(like.strides) <= 0:
        like = None
    elif like.strides[-1] > like.strides[-2]:
        return matmul(y.mT, x.mT, like.mT).mT
    of_x, of_y = (tuple(step // 4 for step in a.strides) for a in (x, y))
    z = _multiplied(x, x.shape, of_x, y, of_y, like=like)
    return x @ y if z is None else z


def _multiplied(
    x: Any, shape: Any, of_x: Any, y: Any, of_y: Any, bias: Any = None, like: Any = None
) -> Any:
    """One call for all products of arrays that lie so, x in a shape; perhaps None."""
    shape_of_z = *y.shape[:-2], shape[-2], y.shape[-1]
    z = empty_rows(shape_of_z) if like is None else laid_like(like)
    of_z = tuple(step // 4 for step in z.strides)
    primitive = _matrices(shape, of_x, y.shape, of_y, of_z, bias is not None, threads())
    if primitive is None:
        return None
    primitive.run(x, y, *([] if bias is None else [bias]), z)
    return z


def _are_many(x: Any, y: Any) -> bool:
    """Whether arrays are pairs of matrices that the engine multiplies in less time."""
    if x.ndim < 3 or not (single(x) and single(y)) or x.shape[:-2] != y.shape[:-2]:
        return False
    (n, k), m = x.shape[-2:], y.shape[-1]
    if k != y.shape[-2] or 1 in (n, m) or not _is_faster():
        return False
    if threads() == 1 and y.strides[-1] == 4:
        return False
    first = (0,) * (x.ndim - 2)
    return all(min(a.strides) > 0 and _lies(a[first]) for a in (x, y))


@lru_cache(512)
def _matrices(
    x: Any, of_x: Any, y: Any, of_y: Any, of_z: Any, biased: bool, _: int
) -> Primitive | None:
    z = *y[:-2], x[-2], y[-1]
    row = (1,) * (len(z) - 1) + z[-1:]
    bias = Layout(row, steps(row)) if biased else None
    layouts = Layout(x, of_x), Layout(y, of_y), bias, Layout(z, of_z)
    description = described("matmul", *layouts)
    numbers = (_X, _WEIGHTS, _BIAS, _Z) if biased else (_X, _WEIGHTS, _Z)
    return description and Primitive(description, *numbers)


def times_each(x: Any, y: Any) -> Any:
    """``x @ y`` of one matrix and many; None if not for the engine, or in one thread.

    Shapes:
        x: (n, k); y: (count, k, m); result: (count, n, m)
    """
    if not (single(x) and single(y)) or len(y) * x.size * y.shape[2] <= LEAST:
        return None
    if not _is_faster() or threads() == 1 or _lies(x) is None or not whole(y):
        return None
    of_x = x.size, *(step // 4 for step in x.strides)
    return _multiplied(x, (1, *x.shape), of_x, y, steps(y.shape))


def adding_product(total: Any, x: Any, y: Any, factor: float) -> Any:
    """A call that does ``total += factor * x @ y``; None if it is not for the engine.

    Returns:
        The function, which is written in C, and its arguments, which hold the arrays.

    Shapes:
        total: (n, m); x: (n, k); y: (k, m)
    """
    if x.size * y.shape[-1] <= LEAST:
        return None
    return _call(x, y, total, factor, 1.0)


def _call(x: Any, y: Any, out: Any, factor: float, keep: float) -> Any:
    """A call for ``out = factor * x @ y + keep * out``; perhaps None."""
    if not all(single(a) and a.ndim == 2 for a in (x, y, out)) or not _is_faster():
        return None
    (n, k), m = x.shape, y.shape[1]
    x_lies, y_lies = _lies(x), _lies(y)
    if x_lies is None or y_lies is None or y.shape[0] != k:
        return None
    if out.shape != (n, m) or not out.flags.carray:
        return None
    threads()
    (x_order, x_step), (y_order, y_step) = x_lies, y_lies
    return (
        _multiply(), x_order, y_order, n, m, k, factor, _Pointer(x), x_step,
        _Pointer(y), y_step, keep, _Pointer(out), m,
    )  # fmt: skip


class _Pointer(ctypes.c_void_p):
    """Where an array begins; it holds the array."""

    def __init__(self, x: Any) -> None:
        super().__init__(address(x))
        self.array = x


class Repeated:
    """The products of many matrices with one, which is brought into order once.

    Args:
        y: the matrix.
        n: how many rows each of the others has.

    Shapes:
        y: (k, m)
    """

    def __init__(self, y: Any, n: int) -> None:
        lies = tuple(step // 4 for step in reversed(y.strides))
        move, self.primitive, size = _inner(n, y.shape[::-1], lies, threads())
        self.weight, self.width = room(size), y.shape[1]
        move.run(y, self.weight)

    def __call__(self, x: Any) -> Any:
        """``x @ y``; None for an array that does not lie in rows.

        Shapes:
            x: (n, k); result: (n, m)
        """
        if not (single(x) and whole(x)):
            return None
        z = empty_rows((len(x), self.width))
        self.primitive.run(x, self.weight, z)
        return z


def repeated(y: Any, n: int, times: int) -> Repeated | None:
    """What multiplies matrices by y; None if that is not for the engine.

    Args:
        y: a matrix.
        n: how many rows the others have.
        times: how many there will be.
    """
    if n == 1 or n * y.size < LEAST or times < _OFTEN or not single(y):
        return None
    return Repeated(y, n) if _lies(y) is not None and _is_faster() else None


@lru_cache(512)
def _inner(n: int, shape: Any, lies: Any, _: int) -> tuple[Primitive, Primitive, int]:
    """What brings a matrix (m, k) into order, what multiplies by it, and its size."""
    description = _layer(n, shape, False)
    move = reorder(Layout(shape, lies), description.layout(_WEIGHTS))
    primitive = Primitive(description, _X, _WEIGHTS, _Z)
    return move, primitive, description.size(_WEIGHTS)


@lru_cache(512)
def _ordered(n: int, y: Any, of_y: Any, biased: bool, _: int) -> Plan:
    """What brings a matrix (k, m) into order and multiplies by it."""
    k, m = y
    given = [(_X, Layout((n, k), (k, 1))), (_WEIGHTS, Layout((m, k), of_y[::-1]))]
    made, more = (_Z, Layout((n, m), (m, 1))), [_BIAS] if biased else []
    return Plan(_layer(n, (m, k), biased), given, made, (n, m), more=more)


def _layer(n: int, shape: Any, biased: bool) -> Any:
    """The description of a layer, whose weight (m, k) may lie in any order."""
    m, k = shape
    x, z = (Layout(lengths, (lengths[1], 1)) for lengths in ((n, k), (n, m)))
    bias = Layout((m,), (1,)) if biased else None
    return described("inner_product_forward", _INFERENCE, x, Layout(shape), bias, z)


def _lies(x: Any) -> tuple[bytes, int] | None:
    """Whether a matrix lies row by row or column by column, and how long one is."""
    down, right = x.strides
    n, m = x.shape
    if right == 4 and down >= 4 * m and not down % 4:
        return b"N", down // 4
    if down == 4 and right >= 4 * n and not right % 4:
        return b"T", right // 4
    return None


def _is_faster() -> bool:
    return is_on() and has_avx512()


@cache
def _multiply() -> Any:
    """oneDNN's ``sgemm``, which takes matrices row by row."""
    function = library().functions.dnnl_sgemm
    matrix = [ctypes.c_void_p, ctypes.c_int64]
    function.argtypes = [
        ctypes.c_char, ctypes.c_char, *[ctypes.c_int64] * 3, ctypes.c_float,
        *matrix, *matrix, ctypes.c_float, *matrix,
    ]  # fmt: skip
    return function

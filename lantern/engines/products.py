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
import math
import operator
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from lantern.engines.arrays import (
    empty_rows,
    in_rows,
    maker,
    pointer,
    room,
    single,
    steps,
    steps_of,
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
    if not _is_faster():
        return None
    way = _layer_way(
        x.shape, x.strides, y.shape, y.strides, bias is not None, threads()
    )
    return way and way(x, y, *([] if bias is None else [bias]))


@lru_cache(512)
def _layer_way(
    x: Any, of_x: Any, y: Any, of_y: Any, biased: bool, number: int
) -> Callable[..., Any] | None:
    """What multiplies matrices that lie so, and adds a bias, in one call; or None."""
    x_lies, y_lies = _lies(x, of_x), _lies(y, of_y)
    if x_lies is None or y_lies is None or x[1] != y[0] or x_lies[0] != b"N":
        return None
    (order, step), many, size = y_lies, x[0] > _FEW, y[0] * y[1]
    if order == b"N":
        pays, of_y = many and size <= _SMALL, (step, 1)
    else:
        pays, of_y = number > 1 or (many and biased), (1, step)
    fits = x[0] >= _MANY and size <= _MEDIUM and of_x == (4 * x[1], 4)
    if fits and (order == b"T" or y[0] >= y[1]):
        return _ordered(x[0], y, of_y, biased, number).run
    of_x = x_lies[1], 1
    return _multiplier(x, of_x, y, of_y, biased, None, number) if pays else None


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
    fits = x.size * y.shape[-1] > LEAST and single(x) and single(y)
    if not fits or not _is_faster():
        return x @ y
    lies = (like.shape, like.strides) if single(like) else None
    way = _pairs_way(x.shape, x.strides, y.shape, y.strides, lies, threads())
    return x @ y if way is None else way(x, y)


@lru_cache(512)
def _pairs_way(
    x: Any, of_x: Any, y: Any, of_y: Any, like: Any, number: int
) -> Callable[[Any, Any], Any] | None:
    """What multiplies pairs of matrices that lie so in less time than NumPy; or None.

    Args:
        x, of_x, y, of_y: the shapes, and steps in bytes.
        like: shape and steps of an array that the result is to lie like; or None.
        number: of threads.
    """
    if len(x) < 3 or x[:-2] != y[:-2] or min(*of_x, *of_y) <= 0:
        return None
    (n, k), m = x[-2:], y[-1]
    if k != y[-2] or 1 in (n, m) or (number == 1 and of_y[-1] == 4):
        return None
    if _lies(x[-2:], of_x[-2:]) is None or _lies(y[-2:], of_y[-2:]) is None:
        return None
    if number == 1 and of_y[-1] > 4 * k and math.prod(y) <= _SMALL:  # gaps
        return lambda x, y: x @ in_rows(y)
    axes = None
    if like is not None and like[0] == (*x[:-1], m) and min(like[1]) > 0:
        if like[1][-1] > like[1][-2]:
            swapped = (_swapped(a) for a in (y, of_y, x, of_x))
            way = _pairs_way(*swapped, tuple(map(_swapped, like)), number)
            way = way or operator.matmul
            return lambda x, y: way(y.mT, x.mT).mT
        axes = tuple(sorted(range(len(x)), key=lambda axis: -like[1][axis]))
    of_x, of_y = (tuple(step // 4 for step in strides) for strides in (of_x, of_y))
    return _multiplier(x, of_x, y, of_y, False, axes, number)


def _swapped(lengths: Any) -> Any:
    """Lengths of axes, or steps along them, with the last two swapped."""
    *first, n, m = lengths
    return *first, m, n


@lru_cache(512)
def _multiplier(
    x: Any, of_x: Any, y: Any, of_y: Any, biased: bool, axes: Any, _: int
) -> Callable[..., Any] | None:
    """What makes all products of arrays that lie so in one call; perhaps None.

    Args:
        x, of_x, y, of_y: the shapes, and steps from one element to the next.
        biased: whether it is given a bias as well.
        axes: those of the result, from the outermost in memory on; None for their own
            order.
    """
    z = *y[:-2], x[-2], y[-1]
    make = maker(z, axes)
    row = (1,) * (len(z) - 1) + z[-1:]
    bias = Layout(row, steps(row)) if biased else None
    layouts = Layout(x, of_x), Layout(y, of_y), bias, Layout(z, steps_of(make()))
    description = described("matmul", *layouts)
    if description is None:
        return None
    numbers = (_X, _WEIGHTS, _BIAS, _Z) if biased else (_X, _WEIGHTS, _Z)
    primitive = Primitive(description, *numbers)

    def multiplied(*arrays: Any) -> Any:
        made = make()
        primitive.run(*arrays, made)
        return made

    return multiplied


def times_each(x: Any, y: Any) -> Any:
    """``x @ y`` of one matrix and many; None if not for the engine, or in one thread.

    Shapes:
        x: (n, k); y: (count, k, m); result: (count, n, m)
    """
    if not (single(x) and single(y)) or len(y) * x.size * y.shape[2] <= LEAST:
        return None
    if not _is_faster() or threads() == 1 or not whole(y):
        return None
    if _lies(x.shape, x.strides) is None:
        return None
    of_x, number = (x.size, *(step // 4 for step in x.strides)), threads()
    shape, of_y = (1, *x.shape), steps(y.shape)
    way = _multiplier(shape, of_x, y.shape, of_y, False, None, number)
    return way and way(x, y)


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
    orders = _orders(x.shape, x.strides, y.shape, y.strides)
    if orders is None or out.shape != orders[0] or not out.flags.carray:
        return None
    threads()
    (n, m), x_order, x_step, y_order, y_step = orders
    return (
        _multiply(), x_order, y_order, n, m, len(y), factor, _start(x), x_step,
        _start(y), y_step, keep, _start(out), m,
    )  # fmt: skip


@lru_cache(512)
def _orders(x: Any, of_x: Any, y: Any, of_y: Any) -> Any:
    """The shape of a product, and how its factors lie; None if ``sgemm`` has no way."""
    x_lies, y_lies = _lies(x, of_x), _lies(y, of_y)
    if x_lies is None or y_lies is None or x[1] != y[0]:
        return None
    return (x[0], y[1]), *x_lies, *y_lies


class _Pointer(ctypes.c_void_p):
    """Where an array begins; it holds the array."""

    array: Any


def _start(x: Any) -> _Pointer:
    found: _Pointer = pointer(x, _Pointer)
    found.array = x
    return found


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
    return Repeated(y, n) if _lies(y.shape, y.strides) and _is_faster() else None


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


def _lies(shape: Any, strides: Any) -> tuple[bytes, int] | None:
    """Whether a matrix lies row by row or column by column, and how long one is."""
    (n, m), (down, right) = shape, strides
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

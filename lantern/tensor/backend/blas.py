"""What is added to an array in one pass over it: the only file that calls BLAS itself.

BLAS adds a product of few rows in one pass over the sum. NumPy, which has BLAS inside
it, has no function for that: it writes the product first, and then adds it. Likewise a
multiple of an array.
"""

import ctypes
import sys
from functools import cache
from operator import iadd
from typing import Any

from lantern.core.namespace import namespace
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__all__ = ["adding_multiple", "adding_product"]

# What the function is called in the libraries that NumPy is linked with, and the
# integers that it counts in. A library without "64_" may count in either; everywhere
# but on macOS an argument takes eight bytes, whichever it is.
_NAMES = (
    ("scipy_cblas_{}64_", ctypes.c_int64),
    ("cblas_{}64_", ctypes.c_int64),
    ("cblas_{}", ctypes.c_int if sys.platform == "darwin" else ctypes.c_int64),
)
_ROWS, _PLAIN, _TRANSPOSED = 101, 111, 112
_start = (ctypes.c_char * 0).from_buffer  # where an array begins, which it holds


_NUMBERS = {"f": ctypes.c_float, "d": ctypes.c_double}


def _function(name: str, letter: str) -> tuple[Any, Any]:
    """A function for a type of elements, and the type of its integers; perhaps None."""
    linked = sys.modules["numpy.linalg._umath_linalg"]
    if letter not in _NUMBERS or not linked.__file__:
        return None, None
    library = ctypes.CDLL(linked.__file__)
    for form, integer in _NAMES:
        full = form.format(letter.replace("f", "s") + name)
        function = getattr(library, full, None)
        if function is not None:
            function.restype = None
            return function, integer
    return None, None


@cache
def _gemm(letter: str) -> Any:
    """``c = alpha * a @ b + beta * c`` of a type of elements; None if there is none."""
    function, integer = _function("gemm", letter)
    if function is not None:
        number, matrix = _NUMBERS[letter], [ctypes.c_void_p, integer]
        function.argtypes = [
            *[ctypes.c_int] * 3, *[integer] * 3,
            number, *matrix, *matrix, number, *matrix,
        ]  # fmt: skip
    return function


@cache
def _ger(letter: str) -> Any:
    """``a += alpha * x[:, None] * y`` of a type of elements; None if there is none."""
    function, integer = _function("ger", letter)
    if function is not None:
        row = [ctypes.c_void_p, integer]
        function.argtypes = [
            ctypes.c_int, integer, integer, _NUMBERS[letter], *row, *row, *row
        ]  # fmt: skip
    return function


@cache
def _axpy(letter: str) -> Any:
    """``y += alpha * x`` of a type of elements; None if there is none."""
    function, integer = _function("axpy", letter)
    if function is not None:
        row = [ctypes.c_void_p, integer]
        function.argtypes = [integer, _NUMBERS[letter], *row, *row]
    return function


def adding_multiple(total: Any, x: Any, factor: float) -> tuple[Any, ...] | None:
    """A call that does ``total += factor * x`` in one pass, rounded once.

    Returns:
        The function, which is written in C, and its arguments, which hold the arrays;
        None where that takes NumPy: for other types, or arrays that do not lie alike.
    """
    array = numpy_namespace.ndarray
    if (
        type(total) is type(x) is array
        and x.dtype is total.dtype
        and x.shape == total.shape
        and x.flags.carray
        and total.flags.carray
        and 0 < total.size < 1 << 31
        and factor  # BLAS takes 0 times infinity for nothing
        and (axpy := _axpy(total.dtype.char)) is not None
    ):
        return axpy, total.size, factor, _start(x), 1, _start(total), 1
    return None


def adding_product(total: Any, x: Any, z_bar: Any, factor: float) -> tuple[Any, ...]:
    """A call that does ``total += factor * x.T @ z_bar``, and holds the arrays.

    For one row BLAS has a function of its own, which took 0.14 (1,024 by 1,024) to 0.96
    (128 by 784) of the time of a product's (OpenBLAS 0.3.31, AMD EPYC, one thread).

    Shapes:
        total: (k, m); x: (n, k); z_bar: (n, m)
    """
    array = numpy_namespace.ndarray
    dtype = total.dtype
    if (
        type(total) is type(x) is type(z_bar) is array
        and x.dtype is z_bar.dtype is dtype
        and x.flags.carray
        and z_bar.flags.carray
        and total.flags.carray
        and total.size
        and len(x)
        and (gemm := _gemm(dtype.char)) is not None
    ):
        n, k = x.shape
        m = z_bar.shape[1]
        first, second, sum_ = _start(x), _start(z_bar), _start(total)
        if n == 1 and (ger := _ger(dtype.char)) is not None:
            return ger, _ROWS, k, m, factor, first, 1, second, 1, sum_, m
        return (
            gemm, _ROWS, _TRANSPOSED, _PLAIN, k, m, n,
            factor, first, k, second, m, 1.0, sum_, m,
        )  # fmt: skip
    if factor != 1:
        z_bar = z_bar * factor
    return iadd, total, namespace(x, z_bar).dot(x.T, z_bar)

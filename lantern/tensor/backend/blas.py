"""A product of matrices added to another matrix: the only file that calls BLAS itself.

BLAS adds a product of few rows in one pass over the sum. NumPy, which has BLAS inside
it, has no function for that: it writes the product first, and then adds it.
"""

import ctypes
import sys
from functools import cache
from typing import Any

from lantern.core.namespace import namespace
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__all__ = ["add_product"]

# What the function is called in the libraries that NumPy is linked with, and the
# integers that it counts in. A library without "64_" may count in either; everywhere
# but on macOS an argument takes eight bytes, whichever it is.
_NAMES = (
    ("scipy_cblas_{}gemm64_", ctypes.c_int64),
    ("cblas_{}gemm64_", ctypes.c_int64),
    ("cblas_{}gemm", ctypes.c_int if sys.platform == "darwin" else ctypes.c_int64),
)
_ROWS, _PLAIN, _TRANSPOSED = 101, 111, 112
_first_byte = ctypes.c_char.from_buffer
_address = ctypes.addressof


@cache
def _gemm(letter: str) -> Any:
    """``c = alpha * a @ b + beta * c`` of a type of elements; None if there is none."""
    number = {"f": ctypes.c_float, "d": ctypes.c_double}.get(letter)
    linked = sys.modules["numpy.linalg._umath_linalg"]
    if number is None or not linked.__file__:
        return None
    library = ctypes.CDLL(linked.__file__)
    for name, integer in _NAMES:
        function = getattr(library, name.format(letter.replace("f", "s")), None)
        if function is not None:
            matrix = [ctypes.c_void_p, integer]
            function.argtypes = [
                *[ctypes.c_int] * 3, *[integer] * 3,
                number, *matrix, *matrix, number, *matrix,
            ]  # fmt: skip
            function.restype = None
            return function
    return None


def add_product(total: Any, x: Any, z_bar: Any, factor: float = 1.0) -> None:
    """``total += factor * x.T @ z_bar``.

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
        # Their owners hold these arrays until the call is over.
        first, second, sum_ = map(_address, map(_first_byte, (x, z_bar, total)))
        gemm(
            _ROWS, _TRANSPOSED, _PLAIN, k, m, n,
            factor, first, k, second, m, 1.0, sum_, m,
        )  # fmt: skip
    else:
        if factor != 1:
            z_bar = z_bar * factor
        total += namespace(x, z_bar).dot(x.T, z_bar)

"""CuPy's arrays as an engine takes them: the only file of this room that names CuPy.

It is not imported here: where there is an array of CuPy's, CuPy is.
"""

import math
import sys
from functools import cache, lru_cache
from typing import Any

__all__ = [
    "aligned",
    "cupy",
    "dense",
    "device",
    "empty",
    "fits",
    "room",
    "row",
    "single",
]

_MOST = 1 << 31  # elements, which cuDNN counts in 32 bits


def cupy() -> Any:
    """The module of the arrays that an engine has been given."""
    return sys.modules["cupy"]


def single(*arrays: Any) -> bool:
    """Whether all are arrays of single precision on a GPU, and none is empty."""
    for x in arrays:  # in no generator, which takes longer than what it looks at
        if type(x).__module__ != "cupy" or x.dtype.char != "f":
            return False
        if not 0 < x.size < _MOST:
            return False
    return True


def aligned(*arrays: Any) -> bool:
    """Whether kernels may take four elements of each at a time, from the first on."""
    for x in arrays:
        if x.data.ptr % 16 or x.size % 4 or not x.flags.c_contiguous:
            return False
    return True


def dense(x: Any) -> Any:
    """An array in the order of its axes, without gaps."""
    return x if x.flags.c_contiguous else cupy().ascontiguousarray(x)


def empty(shape: Any) -> Any:
    """An array of single precision without values."""
    return cupy().ndarray(shape, _kind())


@cache
def _kind() -> Any:
    """The type, which takes longer to be found by its name."""
    return cupy().dtype("f")


def room(size: int) -> Any:
    """Memory of so many bytes."""
    return cupy().ndarray(size, "B")


def device() -> int:
    """The number of the current device."""
    number: int = cupy().cuda.runtime.getDevice()
    return number


def row(p: Any, width: int, value: float) -> Any:
    """A row of parameters; of equal numbers, where there are none."""
    if p is None:
        return _equal(width, value, device())
    return dense(p).reshape(-1)


@lru_cache(64)
def _equal(width: int, value: float, _: int) -> Any:
    return cupy().full(width, value, "f")


def fits(p: Any, shape: Any) -> bool:
    """Whether there is a parameter for each of so many elements, or none at all."""
    return p is None or (single(p) and p.size == math.prod(shape))

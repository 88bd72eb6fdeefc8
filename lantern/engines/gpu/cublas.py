"""The library cuBLASLt, by its C interface: the only file that calls it.

It has CuPy's own products among its functions; called without what CuPy does around
them, a product of two small matrices takes the host a third of the time.

References:
    cuBLAS 12 and 13, cublasLt.h.
"""

import ctypes
import threading
from functools import cache
from typing import Any

from lantern.engines.gpu.arrays import cupy, device, room
from lantern.errors import EagerError

__all__ = ["is_installed", "multiply"]

_FLOAT, _IN_FLOAT = 0, 68
_TURNED, _EPILOGUE, _BIAS = (3, 4), 7, 8
_ROOM, _STARTS, _WITH_BIAS = 1, (5, 6), 4
_LINE = 256  # bytes: at what numbers of these a matrix begins, unless one is told
_SIZE = 1 << 25  # bytes that a product may compute in
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
_ONE, _ZERO = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))


class _Way(ctypes.Structure):
    """How the library would compute a product."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("size", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class _Here(threading.local):
    """What a thread has of its own: products that it has computed before."""

    def __init__(self) -> None:
        self.plans: dict[Any, _Plan | None] = {}


_here = _Here()


@cache
def library() -> Any:
    """The library, which CuPy has loaded; None where it is not found."""
    major = cupy().cuda.runtime.runtimeGetVersion() // 1000
    try:
        found = ctypes.CDLL(f"libcublasLt.so.{major}")
    except OSError:
        return None
    found.cublasLtMatmul.argtypes = [*[_POINTER] * 14, ctypes.c_size_t, _POINTER]
    return found


def is_installed() -> bool:
    """Whether the library is there."""
    return library() is not None


@cache
def _handle(_: int) -> int:
    """A handle for a device; threads may share it."""
    made = _POINTER()
    _checked("Create", library().cublasLtCreate(ctypes.byref(made)))
    return made.value or 0


def _checked(name: str, status: int) -> None:
    if status:
        raise EagerError(
            f"cuBLASLt: {name} failed with status {status}. Set torch.backends.cudnn."
            f"enabled to False to do without it, and report what was computed."
        )


def multiply(x: Any, y: Any, z: Any, bias: Any = None) -> bool:
    """``z = x @ y + bias`` of single precision; False if it is not done.

    Args:
        x: a matrix and whether it lies column by column, and how far apart its rows or
            columns are.
        y: likewise.
        z: the result, which lies in rows.
        bias: is added to each row; None for nothing.

    Shapes:
        x: (n, k); y: (k, m); z: (n, m); bias: (m,)
    """
    (left, left_turned, left_step), (right, right_turned, right_step) = x, y
    (n, k), m = left.shape, right.shape[1]
    number, begin = device(), (_start(right), _start(left))
    lie = left_turned, left_step, right_turned, right_step
    key = n, m, k, *lie, begin, bias is None, number
    try:
        plan = _here.plans[key]
    except KeyError:
        plan = _here.plans[key] = _planned(*key)
    if plan is None:
        return False
    if bias is not None:
        _set(plan.product, _BIAS, ctypes.c_uint64(bias.data.ptr))
    memory = room(plan.way.size) if plan.way.size else None
    # Of matrices that lie in rows the library sees the transposes: z.T = y.T @ x.T.
    status = library().cublasLtMatmul(
        _handle(number), plan.product, _ONE, right.data.ptr, plan.right, left.data.ptr,
        plan.left, _ZERO, z.data.ptr, plan.made, z.data.ptr, plan.made,
        ctypes.byref(plan.way), None if memory is None else memory.data.ptr,
        plan.way.size, cupy().cuda.get_current_stream().ptr,
    )  # fmt: skip
    _checked("Matmul", status)
    return True


class _Plan:
    """What the library needs to know of a product.

    Args:
        product: what is done.
        right: how the second matrix lies.
        left: how the first one lies.
        made: how the result lies.
        way: how it is computed.
    """

    def __init__(
        self, product: Any, right: Any, left: Any, made: Any, way: Any
    ) -> None:
        self.product, self.right, self.left = product, right, left
        self.made, self.way = made, way


def _planned(
    n: int, m: int, k: int, left_turned: bool, left_step: int, right_turned: bool,
    right_step: int, begin: Any, plain: bool, number: int,
) -> _Plan | None:  # fmt: skip
    """How a product is computed; None if the library does not say."""
    product = _POINTER()
    create = library().cublasLtMatmulDescCreate
    _checked("MatmulDescCreate", create(ctypes.byref(product), _IN_FLOAT, _FLOAT))
    for name, turned in zip(_TURNED, (right_turned, left_turned), strict=True):
        _set(product, name, ctypes.c_int32(turned))
    if not plain:
        _set(product, _EPILOGUE, ctypes.c_int32(_WITH_BIAS))
    right = _layout(*((k, m) if right_turned else (m, k)), right_step)
    left = _layout(*((n, k) if left_turned else (k, n)), left_step)
    made = _layout(m, n, m)
    wish, way, count = _POINTER(), _Way(), ctypes.c_int()
    create = library().cublasLtMatmulPreferenceCreate
    _checked("MatmulPreferenceCreate", create(ctypes.byref(wish)))
    sizes: list[Any] = [(_ROOM, ctypes.c_size_t(_SIZE))]
    sizes += [(i, ctypes.c_uint32(b)) for i, b in zip(_STARTS, begin, strict=True)]
    for name, size in sizes:
        give = library().cublasLtMatmulPreferenceSetAttribute
        status = give(wish, name, ctypes.byref(size), ctypes.sizeof(size))
        _checked("MatmulPreferenceSetAttribute", status)
    status = library().cublasLtMatmulAlgoGetHeuristic(
        _POINTER(_handle(number)), product, right, left, made, made, wish, 1,
        ctypes.byref(way), ctypes.byref(count),
    )  # fmt: skip
    library().cublasLtMatmulPreferenceDestroy(wish)
    if status or not count.value:
        return None
    return _Plan(product, right, left, made, way)


def _start(x: Any) -> int:
    """The largest power of two, up to 256, by which an address may be divided."""
    address: int = x.data.ptr
    return min(address & -address, _LINE)


def _layout(rows: int, columns: int, step: int) -> Any:
    """How a matrix lies, as the library sees it: column by column."""
    made, create = _POINTER(), library().cublasLtMatrixLayoutCreate
    lengths = ctypes.c_uint64(rows), ctypes.c_uint64(columns), _LONG(step)
    _checked("MatrixLayoutCreate", create(ctypes.byref(made), _FLOAT, *lengths))
    return made


def _set(product: Any, name: int, value: Any) -> None:
    """Give a product one of its attributes."""
    status = library().cublasLtMatmulDescSetAttribute(
        product, name, ctypes.byref(value), ctypes.sizeof(value)
    )
    _checked("MatmulDescSetAttribute", status)

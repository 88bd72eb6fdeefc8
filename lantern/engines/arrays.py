"""Arrays as an engine takes them: the only file of this room that names NumPy."""

import math
from collections.abc import Callable, Iterable
from ctypes import c_void_p
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = [
    "FIRST",
    "LAST",
    "address",
    "all_finite",
    "brain",
    "broadcast",
    "broadcasts",
    "empty",
    "empty_like",
    "empty_rows",
    "fill",
    "filled",
    "fit",
    "from_last",
    "in_rows",
    "keep",
    "laid",
    "maker",
    "multiply_up",
    "numbers_like",
    "order_of",
    "pointer",
    "pointers",
    "quotient",
    "room",
    "single",
    "steps",
    "steps_of",
    "to_last",
    "waves",
    "whole",
]

# Where the channels, the second axis, are in memory.
FIRST, LAST = 0, 1

_HEAD = object.__basicsize__  # bytes
_at = c_void_p.from_address


@lru_cache(64)
def _axes(ndim: int) -> Any:
    """The axes with the channels last, and the way back."""
    return (0, *range(2, ndim), 1), (0, ndim - 1, *range(1, ndim - 1))


def steps(shape: Any, order: int = FIRST) -> tuple[int, ...]:
    """From one element to the next along each axis, where nothing lies between."""
    axes = _axes(len(shape))[0] if order == LAST else range(len(shape))
    found, size = [0] * len(shape), 1
    for axis in reversed(axes):
        found[axis] = size
        size *= shape[axis]
    return tuple(found)


def to_last(x: Any, axis: int) -> Any:
    """An array with an axis brought to the end, in the order of its axes in memory."""
    if not _is_last(x, axis):  # NumPy would look at all axes to move none
        x = np.moveaxis(x, axis, -1)
    return np.ascontiguousarray(x)


def from_last(x: Any, axis: int) -> Any:
    """An array with its last axis brought to a place; its memory stays."""
    return x if _is_last(x, axis) else np.moveaxis(x, -1, axis)


def _is_last(x: Any, axis: int) -> bool:
    return axis in (-1, x.ndim - 1)


def steps_of(x: Any) -> tuple[int, ...] | None:
    """From one element to the next along each axis of an array; None if it has gaps."""
    size = x.itemsize
    for step, n in sorted(zip(x.strides, x.shape, strict=True)):
        if n != 1 and step != size:
            return None
        size *= n
    return tuple(step // x.itemsize for step in x.strides)


def laid(x: Any) -> tuple[Any, int]:
    """An array whose channels are first or last in memory, and which they are."""
    there, back = _axes(x.ndim)
    turned = x.transpose(there)
    if turned.flags.c_contiguous:
        return x, LAST
    if x.flags.c_contiguous:
        return x, FIRST
    return np.ascontiguousarray(turned).transpose(back), LAST


def empty(shape: Any, order: int) -> Any:
    """An array of single precision, without values."""
    if order == FIRST:
        return np.empty(shape, np.float32)
    there, back = _axes(len(shape))
    return np.empty([shape[axis] for axis in there], np.float32).transpose(back)


def empty_rows(shape: Any) -> Any:
    """An array of single precision in the order of its axes, without values."""
    return np.empty(shape, np.float32)


def maker(shape: Any, axes: Any = None) -> Callable[[], Any]:
    """What makes arrays of single precision, without values and without gaps.

    Args:
        shape: theirs.
        axes: in memory, from the outermost on; None for their own order.
    """
    if axes is None:
        return lambda: np.empty(shape, np.float32)
    lengths, back = [shape[axis] for axis in axes], np.argsort(axes).tolist()
    return lambda: np.empty(lengths, np.float32).transpose(back)


def empty_like(x: Any, shape: Any) -> Any:
    """An array of another's type in the order of its axes, without values."""
    return np.empty(shape, x.dtype)


def pointer(x: Any, kind: Any = c_void_p) -> Any:
    """The pointer to the first element of an array, which is NumPy's own.

    NumPy's C interface has it behind the head of an object. To read it there takes
    0.13 µs, by the buffer 1, by NumPy's description 3.
    """
    return kind.from_address(id(x) + _HEAD)


def pointers(arrays: Iterable[Any]) -> list[Any]:
    """The pointers to the first elements of arrays."""
    return [_at(id(x) + _HEAD) for x in arrays]


def address(x: Any) -> int:
    """Where the first element of an array is in memory."""
    found: int = pointer(x).value
    return found


def filled(n: int, value: float) -> Any:
    """A row of n equal numbers."""
    return np.full(n, value, np.float32)


def fill(x: Any, number: Any, condition: Any) -> None:
    """Write a number into an array where a condition holds."""
    np.copyto(x, number, where=condition)


def multiply_up(x: Any, y: Any, z: Any) -> None:
    """Write the sum of the products of each two rows into an array."""
    np.vecdot(x, y, out=z)


def keep(z: Any, x: Any, bits: Any) -> None:
    """Write x into an array where bits are set, and 0 where none is."""
    np.bitwise_and(x.view(bits.dtype), bits, out=z.view(bits.dtype))


def broadcasts(x: Any, shape: Any) -> bool:
    """Whether an array broadcasts to a shape, whose axes all stay."""
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    return x.ndim <= len(shape) and all(n in (1, m) for n, m in pairs)


def broadcast(x: Any, shape: Any) -> Any:
    """An array seen in a shape that it broadcasts to."""
    return np.broadcast_to(x, shape)


def fit(form: Any, x: Any, w: Any, z: Any, bias: Any = None) -> bool:
    """Whether the shapes of a convolution's arrays fit one another, as engines need it.

    They read memory by them. All but one of the first three are given.
    """
    if len(form.size) > 3:
        return False
    n = (z if x is None else x).shape[0]
    k, c = (z.shape[1], x.shape[1]) if w is None else (len(w), w.shape[1] * form.groups)
    return (
        (x is None or x.shape == (n, c, *form.lengths))
        and (z is None or z.shape == (n, k, *form.steps))
        and (w is None or w.shape == (k, c // form.groups, *form.size))
        and (bias is None or bias.shape == (k,))
        and not (k % form.groups or c % form.groups)
    )


def in_rows(x: Any) -> Any:
    """An array in the order of its axes."""
    return np.ascontiguousarray(x)


def single(x: Any) -> bool:
    """Whether something is an array of single precision, and not empty."""
    return type(x) is np.ndarray and x.dtype == np.float32 and x.size > 0


def brain(x: Any) -> bool:
    """Whether something is an array of bfloat16, and not empty."""
    if type(x) is not np.ndarray or x.dtype.itemsize != 2:
        return False
    return bool(x.dtype.name == "bfloat16" and x.size > 0)


def whole(x: Any) -> bool:
    """Whether an array lies in the order of its axes, without gaps."""
    return bool(x.flags.c_contiguous)


def room(size: int) -> Any:
    """Memory of so many bytes, from the start of a line of the cache on."""
    memory = np.empty(size + 64, np.uint8)
    start = -address(memory) % 64
    return memory[start : start + size]


def order_of(x: Any) -> int | None:
    """Where the channels of an array without gaps are in memory; None if elsewhere."""
    if x.flags.c_contiguous:
        return FIRST
    last = x.ndim > 2 and x.transpose(_axes(x.ndim)[0]).flags.c_contiguous
    return LAST if last else None


def all_finite(x: Any) -> bool:
    """Whether all elements are finite, and so is the sum of their squares."""
    if order_of(x) == LAST:
        x = x.transpose(_axes(x.ndim)[0])
    flat = x.reshape(-1)
    with np.errstate(all="ignore"):
        return bool(np.isfinite(flat.dot(flat)))


def quotient(x: Any, y: Any) -> Any:
    """``x / y``; None if not all of it is finite."""
    with np.errstate(all="ignore"):
        z = x / y
    return z if np.isfinite(z).all() else None


def numbers_like(shape: Any, size: int) -> Any:
    """Whole numbers in so many bytes, the channels last, without values."""
    there, back = _axes(len(shape))
    kind = np.uint8 if size == math.prod(shape) else np.int32
    return np.empty([shape[axis] for axis in there], kind).transpose(back)


def waves(n: int, count: int, at: int) -> Any:
    """Real and imaginary parts of ``exp(-2i pi f (p + at) / n)``, in double precision.

    Shapes:
        result: (2, n, count), of frequencies f and places p
    """
    turns = np.outer(np.arange(n), np.arange(at, at + count)) % n
    angles = turns * (2 * math.pi / n)
    return np.cos(angles), -np.sin(angles)

"""Copies of large arrays, changed on the way or joined, in several threads.

The rule: single precision, 2 ** 20 elements or more, shared out along the first axis.
Measured (Intel Xeon, two threads, 3 million elements), of the time of NumPy's
functions: 0.5 to 0.7 with a number in the places of attention's mask, 0.6 to 0.9 with 0
there; of 2 ** 18 elements it would be 1.3.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from lantern.engines.arrays import (
    broadcast,
    broadcasts,
    empty_rows,
    fill,
    join,
    keep,
    single,
    whole,
)
from lantern.engines.onednn import is_on
from lantern.engines.team import share

__all__ = ["LEAST", "filled", "joined", "kept"]

LEAST = 1 << 20
_PART = 1 << 18  # elements, which stay in the cache between two steps


def filled(x: Any, condition: Any, number: Any) -> Any:
    """x, with a number where a condition holds; None if not for the engine.

    Shapes:
        x, result: (...); condition: (...), broadcast
    """

    def fill_part(z: Any, x: Any, where: Any) -> None:
        z[...] = x
        fill(z, number, where)

    return _masked(fill_part, x, condition)


def kept(x: Any, bits: Any) -> Any:
    """x where all bits are set, 0 where none is; None if not for the engine.

    Shapes:
        x, result: (...); bits: (...), broadcast, of four bytes each
    """
    return _masked(keep, x, bits)


def joined(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays side by side along an axis that is not the first; None as there.

    Shapes:
        arrays: (n, ...), alike but along the axis; result: (n, ...)
    """
    first, length = arrays[0], sum(x.shape[axis] for x in arrays)
    shape = *first.shape[:axis], length, *first.shape[axis + 1 :]
    if not axis or not all(map(single, arrays)):
        return None

    def join_parts(z: Any, here: slice) -> None:
        join(z, [x[here] for x in arrays], axis)

    return _in_parts(join_parts, shape)


def _masked(make: Callable[[Any, Any, Any], None], x: Any, mask: Any) -> Any:
    """What a function makes of parts of x and of a mask, which broadcasts to it."""
    if not (x.size >= LEAST and single(x) and whole(x) and broadcasts(mask, x.shape)):
        return None
    mask = broadcast(mask, x.shape)
    return _in_parts(lambda z, here: make(z, x[here], mask[here]), x.shape)


def _in_parts(make: Callable[[Any, slice], None], shape: Any) -> Any:
    """An array whose parts a function makes, each for a slice of the first axis."""
    if (size := prod(shape)) < LEAST or not is_on():
        return None
    z, n = empty_rows(shape), shape[0]
    rows = max(1, _PART * n // size)

    def work(turn: int) -> None:
        here = slice(turn * rows, (turn + 1) * rows)
        make(z[here], here)

    return z if share(work, -(-n // rows)) else None

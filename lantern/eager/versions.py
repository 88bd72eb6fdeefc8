"""Versions of arrays: a rule that saved one before it was written to must not go on.

The memory of an array is known by its owner. A write takes the next number of the order
in which rules are suspended, so that one comparison tells whether a rule is older than
the last write of all; only then is it looked at more closely.
"""

import weakref
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from lantern.errors import EagerError
from lantern.guards.bytecode import read_later
from lantern.tensor.backend.numpy_namespace import buffers, numpy_namespace

__all__ = [
    "check_arrays",
    "last_write",
    "order",
    "owner",
    "saved_arrays",
    "shown_by",
    "version",
    "version_of_others",
    "writes",
    "written",
    "written_by_own",
]

# Numbers for rules and writes, in the order in which they happen.
order = count(1)
last_write = [0]
_writes: dict[int, list[Any]] = {}
# By the identity of an array: when tracked operations wrote to it.
rewritten: dict[int, list[int]] = {}


# What NumPy puts between an array and one with other strides (``as_strided``).
_BETWEEN: Any = type(
    numpy_namespace.module.lib.stride_tricks.as_strided(numpy_namespace.zeros(1)).base
)


def owner(array: Any) -> Any:
    """The array whose memory an array shows."""
    while (base := array.base) is not None:
        if type(base) in buffers:
            array = base
        elif type(base) is _BETWEEN:
            array = base.base
        else:
            break
    return array


def shown_by(array: Any) -> Any:
    """The array of which an array shows a part; None if it shows none's."""
    base = array.base
    between = type(base) is _BETWEEN
    return base.base if between else base if type(base) in buffers else None


def written(*arrays: Any, tracked: bool = False) -> None:
    """Remember that arrays have been written to, and by a tracked operation."""
    last_write[0] = stamp = next(order)
    for array in arrays:
        if array.base is not None:
            array = owner(array)
        entry = _writes.get(id(array)) or _noted(array)
        entry[1] = stamp
        entry[2] += 1
        if tracked:
            rewritten.setdefault(id(array), []).append(stamp)


def _noted(array: Any) -> list[Any]:
    """A place for when an array was last written to, until it is freed."""
    key = id(array)

    def forget(_: Any) -> None:
        _writes.pop(key, None)
        rewritten.pop(key, None)

    entry = _writes[key] = [weakref.ref(array, forget), 0, 0, (0, 0)]
    return entry


def version(array: Any) -> int:
    """When an array was last written to; 0 for never."""
    entry = _writes.get(id(owner(array)))
    return entry[1] if entry else 0


def version_of_others(array: Any) -> int:
    """When an array was last written to by others than its own (``written_by_own``)."""
    entry = _writes.get(id(owner(array)))
    if entry is None:
        return 0
    _, stamp, _, (own, before) = entry
    return before if own == stamp else stamp


def written_by_own(array: Any, before: int) -> None:
    """Remember that an array's last writes were those of who keeps it for that.

    Args:
        array: the array.
        before: its ``version_of_others`` before these writes.
    """
    entry = _writes.get(id(owner(array)))
    if entry is not None:
        entry[3] = entry[1], before


def writes(array: Any) -> int:
    """How often an array has been written to."""
    entry = _writes.get(id(owner(array)))
    return entry[2] if entry else 0


def check_arrays(
    since: int, arrays: Iterable[Any], when: Callable[[Any], int] = version
) -> None:
    """Raise if an array has been written to since a rule saved it.

    Args:
        since: when that was.
        arrays: what it saved.
        when: when an array was last written to.
    """
    for array in arrays:
        if when(array) > since:
            raise EagerError(
                "one of the variables needed for gradient computation has been "
                f"modified by an inplace operation: [{array.dtype} "
                f"{list(array.shape)}] was written to after an operation saved it. "
                "Use an operation that makes a new tensor, or clone() it first."
            )


def saved_arrays(rule: Any, contributions: int) -> Iterable[Any]:
    """The arrays that a suspended rule has saved, and still reads.

    Args:
        rule: the generator.
        contributions: how many it is asked for: a quotient reads its divisor only, if
            nobody wants the divisor's derivative.
    """
    while rule is not None and rule.gi_frame is not None:
        frame = rule.gi_frame
        read = read_later(frame.f_code, frame.f_lasti, contributions).own
        for name, x in frame.f_locals.items():
            if type(x) in buffers and name in read:
                yield x
        rule = rule.gi_yieldfrom

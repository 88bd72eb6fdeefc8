"""The layout of CPython's objects: measured, and not looked at if unknown."""

import ctypes
import sys
import sysconfig
from functools import cache
from types import MemberDescriptorType
from typing import Any

__all__ = ["is_known", "slot_offset", "tuple_items", "version_offset", "word"]


def word(address: int) -> int:
    """The eight bytes at an address."""
    return int(ctypes.c_uint64.from_address(address).value)


@cache
def is_known() -> bool:
    """Whether floats and tuples lie as native code takes for granted."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var(
        "Py_GIL_DISABLED"
    ):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    x, y = 1.5, "y"
    row = [x, y]
    inside = ctypes.c_double.from_address(id(x) + 16).value == x
    items = word(id(row) + 24)
    lists = word(id(row) + 16) == 2 and word(items + 8) == id(y)
    known = inside and lists and word(id(x) + 8) == id(float)
    return known and tuple_items() > 0


@cache
def tuple_items() -> int:
    """Where the items of a tuple begin; -1 if that is not known.

    Since CPython 3.14 its hash is kept before them, once it is known; -1 until then.
    """
    x, y = 1.5, "y"
    pair = (x, y)
    if word(id(pair) + 16) != 2:
        return -1
    hash_is_kept = word(id(pair) + 24) == 2**64 - 1
    first = 32 if hash_is_kept else 24
    found = [word(id(pair) + first), word(id(pair) + first + 8)]
    return first if found == [id(x), id(y)] else -1


def slot_offset(cls: type, name: str) -> int:
    """Where an object of a class keeps a slot; -1 if that is not known.

    It is looked for in an object that has a value of its own in that slot alone.
    """
    found: Any = cls.__dict__.get(name)
    if type(found) is not MemberDescriptorType or cls.__basicsize__ > 512:
        return -1
    try:
        probe: Any = object.__new__(cls)
        mark = object()
        found.__set__(probe, mark)
    except (TypeError, AttributeError):
        return -1
    for offset in range(16, cls.__basicsize__, 8):
        if word(id(probe) + offset) == id(mark):
            return offset
    return -1


@cache
def version_offset() -> int:
    """Where a dict keeps what changes with each change of it; -1 if nowhere."""
    if not (3, 11) <= sys.version_info < (3, 14):
        return -1
    probe: dict[str, Any] = {"x": 1}
    before = word(id(probe) + 24)
    probe["x"] = 2
    middle = word(id(probe) + 24)
    probe["y"] = 3
    return 24 if len({before, middle, word(id(probe) + 24)}) == 3 else -1

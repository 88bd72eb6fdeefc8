"""Objects for which Python runs functions that no call in the program names.

To add two numbers or to go through a list, Python runs no code of the user's; with an
object whose class says what ``+`` means, it does. Such functions are *hooks*.
"""

from collections.abc import Iterator
from enum import Enum
from types import FunctionType, MappingProxyType, SimpleNamespace
from typing import Any

from lantern.staging.watch import is_generated, is_trusted

__all__ = ["HEAP_TYPE", "class_attribute", "has_hooks", "hides", "is_by_identity"]

HEAP_TYPE = 1 << 9
"""The flag of classes that Python code has made: no others can be changed."""

_READING = (
    "lt le gt ge eq ne bool len length_hint iter next reversed contains getitem "
    "missing neg pos abs invert int float complex index round trunc floor ceil"
).split()
_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
).split()
_OTHER = (
    "hash str repr format bytes setitem delitem getattr getattribute setattr delattr "
    "del instancecheck subclasscheck"
).split()
_CONTENTS = frozenset(
    [f"__{x}__" for x in _READING]
    + [f"__{kind}{x}__" for x in _OPERATORS for kind in ("", "r", "i")]
)
_HOOKS = _CONTENTS.union(f"__{x}__" for x in _OTHER)
_FROZEN = ("__setattr__", "__delattr__")


def class_attribute(cls: type, name: str) -> Any:
    """What a class has under a name, as it is: no descriptor is asked."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _said(cls: type, names: frozenset[str]) -> Iterator[Any]:
    """What a class says of hooks otherwise than all objects do."""
    base = type if issubclass(cls, type) else object
    own = [x.__dict__ for x in cls.__mro__ if x is not base and x is not object]
    for name in sorted({x for space in own for x in names.intersection(space)}):
        found = class_attribute(cls, name)
        if found is not None and found is not class_attribute(base, name):
            yield found


def _is_written(f: Any) -> bool:
    """Whether ``dataclass`` has written a function, or what it is wrapped around."""
    if type(f) is not FunctionType:
        return False
    inside = [cell.cell_contents for cell in f.__closure__ or ()]
    return is_generated(f.__code__) or any(map(_is_written, inside))


def _is_value(cls: type) -> bool:
    """Whether objects of a class, of Python's or of C, never change."""
    if issubclass(cls, _CHANGING) or class_attribute(cls, "__setitem__") is not None:
        return False
    own = class_attribute(cls, "__hash__")
    return issubclass(cls, _VALUES) or (
        own not in (None, object.__hash__)
        and not (type(own) is FunctionType and not is_trusted(own.__code__))
    )


_VALUES = (type, tuple, BaseException, Enum)
_CHANGING = (MappingProxyType, SimpleNamespace)


def _is_ours(f: Any) -> bool:
    """Whether a function stands in Python's library, or in Lantern's."""
    return is_trusted(f.__code__) and not is_generated(f.__code__)


def has_hooks(cls: type, is_outside: bool) -> bool:
    """Whether Python runs functions of a class's by itself.

    Args:
        cls: the class of an object.
        is_outside: whether the object may change between calls. If not, what
            ``dataclass`` has written for it reads nothing that is not known.
    """
    if not cls.__flags__ & HEAP_TYPE:
        return is_outside and cls is SimpleNamespace
    if cls.__module__.startswith("lantern.staging."):
        return False
    is_value = _is_value(cls)
    for f in _said(cls, _HOOKS):
        if type(f) is not FunctionType or (is_value and _is_ours(f)):
            continue
        if not _is_written(f) or (is_outside and f.__name__ not in _FROZEN):
            return True
    return _has_descriptors(cls)


def _has_descriptors(cls: type) -> bool:
    """Whether attributes are found by code that is no property's."""
    own = [x.__dict__.values() for x in cls.__mro__ if x.__module__ != "enum"]
    kinds = {type(x) for values in own for x in values}
    return any(
        type(class_attribute(kind, name)) is FunctionType
        for kind in kinds
        if kind.__flags__ & HEAP_TYPE  # C has no functions of Python's
        for name in ("__get__", "__set__", "__delete__")
    )


def is_by_identity(cls: Any) -> bool:
    """Whether an object of a class equals itself alone, so that a copy is another."""
    if cls is type(None):
        return False
    return cls.__eq__ is object.__eq__ or cls.__hash__ is object.__hash__


def hides(cls: type) -> bool:
    """Whether objects of a class hold what no attribute shows, and may change.

    So do containers written in C, and those of Python's library, whose functions are
    not followed.
    """
    if _is_value(cls) or cls is SimpleNamespace:
        return False
    return any(
        _is_ours(f) and not _is_written(f) if type(f) is FunctionType else True
        for f in _said(cls, _CONTENTS)
    )

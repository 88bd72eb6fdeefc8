"""Structures of staged values: taken apart into leaves, and put together again."""

from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from lantern.core.tree import is_leaf, tree_children, tree_leaves, tree_map
from lantern.errors import StagingError
from lantern.staging.ir import current
from lantern.staging.objects import class_attribute, is_by_identity
from lantern.staging.staged import Staged
from lantern.staging.types import type_of
from lantern.staging.watch import is_generated

__all__ = [
    "UNDEFINED",
    "Lost",
    "NeedsKeptError",
    "Signal",
    "check_equal",
    "check_faithful",
    "containers_of",
    "contents_of",
    "describe",
    "is_copied",
    "is_faithful",
    "is_number",
    "is_undefined",
    "leaves_of",
    "note_copied",
    "renewed",
    "same",
    "unflatten",
    "unknown_of",
]


class Signal(Exception):  # noqa: N818  # none that anybody sees
    """What ends an attempt to stage something, to begin another one."""


class Undefined:
    """What a variable holds before anything is assigned to it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def refuse(self) -> Any:
        """Whatever is asked of it has another answer in the plain function."""
        raise StagingError(
            "if: a variable is used that is not assigned to on every way, or is "
            "another object on each. Assign it first."
        )

    def _asked(self, *others: Any) -> Any:
        return self.refuse()

    __bool__ = __eq__ = __ne__ = __hash__ = __str__ = __format__ = _asked
    __lt__ = __le__ = __gt__ = __ge__ = __iter__ = __len__ = __getitem__ = _asked
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _asked
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _asked
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __abs__ = __call__ = _asked


UNDEFINED = Undefined()


class Lost(Undefined):
    """What a variable holds behind a loop that has given it its first value.

    Attributes:
        place: the loop and the variable.
    """

    __slots__ = ("place",)

    def __init__(self, place: Any) -> None:
        self.place = place

    def refuse(self) -> Any:
        """Somebody asks for it: the loop has to hand it on."""
        raise NeedsKeptError(self.place)


class NeedsKeptError(Signal):
    """A variable that a loop has given its first value is asked for behind it."""

    def __init__(self, place: Any) -> None:
        self.place = place


def unknown_of(*values: Any) -> Undefined:
    """What a variable holds that has such values on the ways before."""
    return next((x for x in values if isinstance(x, Lost)), UNDEFINED)


def is_undefined(x: Any) -> bool:
    """Whether a variable holds nothing that is known here."""
    return isinstance(x, Undefined)


_PLAIN = (bool, int, float, complex, str, bytes)
_BOUND = MethodType, BuiltinMethodType, MethodWrapperType  # made anew at each access


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of any structure of Python's containers."""
    return list(tree_leaves(tree))


def describe(tree: Any) -> str:
    """The containers of a structure, with their classes and keys, as a text."""
    if tree is None:
        return "None"
    kind = type(tree)
    if kind in (list, tuple):
        return f"{kind.__name__}({', '.join(map(describe, tree))})"
    children = tree_children(tree)
    if children is None:
        return "."
    inside = [f"{_key(key)}: {describe(x)}" for key, x in children]
    more = _besides(tree) or len(getattr(tree, "__dict__", ()))
    return f"{kind.__qualname__}@{id(kind)}({more}: {', '.join(inside)})"


def _besides(tree: Any) -> str:
    """What a container of Python's is besides its parts."""
    if isinstance(tree, deque):
        return f"of {tree.maxlen}"
    if isinstance(tree, defaultdict):
        return f"by {id(tree.default_factory)}"
    return ""


def _key(x: Any) -> str:
    return repr(x) if type(x) in _PLAIN else f"{type(x).__name__}@{id(x)}"


def is_faithful(cls: Any) -> bool:
    """Whether objects of a class are as before if they are made anew of their parts."""
    init = getattr(class_attribute(cls, "__init__"), "__code__", None)
    if not is_dataclass(cls):
        return not hasattr(cls, "__attrs_post_init__")
    return (
        init is not None
        and is_generated(init)
        and init.co_argcount + init.co_kwonlyargcount == 1 + len(fields(cls))
        and all(f.init for f in fields(cls))
        and not hasattr(cls, "__post_init__")
    )


def check_faithful(tree: Any) -> None:
    """Refuse objects that would be others if they were made anew of their parts.

    Raises:
        StagingError: if there is one.
    """
    children = tree_children(tree) or ()
    size = len(getattr(tree, "__dict__", children))
    if not is_faithful(type(tree)) or (is_dataclass(tree) and size != len(children)):
        raise StagingError(
            f"a {type(tree).__name__} that is more than its fields. Give its numbers."
        )
    for _, part in children:
        check_faithful(part)


def is_number(x: Any) -> bool:
    """Whether a plain leaf is a number or an array."""
    known = type_of(x)
    return known is not None and (known.is_number or known.kind == "array")


def unflatten(like: Any, leaves: list[Any]) -> Any:
    """A structure like another one, with other leaves."""
    rest = iter(leaves)
    return tree_map(lambda leaf: next(rest), like)


def renewed(like: Any, leaves: list[Any]) -> Any:
    """A structure like another one, in whose place it stands in the program.

    Raises:
        StagingError: if the program could tell the two from each other.
    """
    note_copied(like)
    new = unflatten(like, leaves)
    note_copied(new)
    return new


def note_copied(tree: Any) -> None:
    """Note containers that are copied, or are copies: ``write`` and ``is`` tell them.

    Raises:
        StagingError: if the program could tell the two from each other.
    """
    found = containers_of(tree)
    _check_all_equal(found)
    current.copied.update((id(x), x) for x in found)


def is_copied(x: Any) -> bool:
    """Whether there is a copy of a container in the program, or it is one."""
    return x is not None and current.copied.get(id(x)) is x


def contents_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """What is in values, and in what functions among them have captured, by now.

    The program may change it while it is staged: by a new value for a variable, by a
    write to what it has made.
    """
    found: list[Any] = []
    waiting, seen = list(values), set()
    for x in waiting:
        kind = type(x)
        if isinstance(x, Staged):
            found.append(x.node)
        elif kind in _PLAIN:
            found.append((kind, repr(x)))
        elif id(x) in seen or (
            kind.__module__.startswith("lantern.staging.") and is_leaf(x)
        ):
            found.append(id(x))
        else:
            seen.add(id(x))
            parts = _parts_of(x)
            found.append((id(x), len(parts)))
            waiting += parts
    return tuple(found)


def _parts_of(x: Any) -> list[Any]:
    """What a value is made of; a function, of the variables that it has captured."""
    if isinstance(x, FunctionType):
        return [y for cell in x.__closure__ or () for y in _in_cell(cell)]
    if isinstance(x, MethodType):
        return [x.__func__, x.__self__]
    if isinstance(x, partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, type | ModuleType):
        return []
    if isinstance(x, dict):
        return [*x, *x.values()]
    own = list(x) if isinstance(x, list | tuple | set | frozenset | deque) else []
    for each in [y for c in type(x).__mro__ for y in c.__dict__.values()]:
        if type(each) is MemberDescriptorType:
            with suppress(AttributeError):  # nothing is in the slot
                own.append(each.__get__(x))
    return [*own, *getattr(x, "__dict__", {}).values()]


def _in_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not assigned to yet
        return []


def check_equal(tree: Any) -> None:
    """Refuse objects of parts that equal themselves alone: no copy is equal to them."""
    _check_all_equal(containers_of(tree))


def _check_all_equal(containers: list[Any]) -> None:
    for x in containers:
        if is_by_identity(type(x)):
            raise StagingError(
                f"a {type(x).__name__}, which equals itself alone, and no copy of it. "
                f"Let its class compare by its fields."
            )


def containers_of(tree: Any) -> list[Any]:
    """A structure and all in it that has parts of its own."""
    found, waiting = [], [tree]
    for x in waiting:
        children = tree_children(x)
        if children is not None and x is not None:
            found.append(x)
            waiting += [part for _, part in children]
    return found


def same(x: Any, y: Any) -> bool:
    """Whether two leaves are one and the same: a number to the sign of its zero."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, _PLAIN):
        return repr(x) == repr(y)
    return isinstance(x, _BOUND) and bool(x == y)

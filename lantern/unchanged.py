"""What a function reads besides its arguments, and must find again on the way back.

A rule of the user's may read an array that no derivative was handed: a variable that it
closes over, a global one, a default, an attribute, a local name of an array that
somebody else holds. A copy tells later whether that was written to. What can be given
its old value is not here (``lantern.saving``): the rule will read what is there.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from types import (
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from lantern.errors import MutationError
from lantern.names import Names, bound_in, names_in, names_of
from lantern.saving import changed, copied, is_array, is_promised, mark
from lantern.tree import is_leaf, tree_leaves
from lantern.value import Value, base, is_tracked

__all__ = [
    "FIXED",
    "Reading",
    "Search",
    "Unchanged",
    "readings",
    "writable",
]

MOST_LEAVES = 1_000
"""How far a structure is searched: a data set shall cost no time."""

# What cannot be written to, and holds no array.
FIXED = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})
_NUMBERS = frozenset({float, complex})


class Reading(NamedTuple):
    """Something that a function reads.

    Attributes:
        name: as the function calls it.
        value: an array, or a number that has a holder.
        holder: the cell or the dictionary that binds the name; None for what is inside
            of something else.
        key: the name there.
    """

    name: str
    value: Any
    holder: Any = None
    key: str = ""

    def is_rebound(self) -> bool:
        """Whether the name is bound to something else by now."""
        if self.holder is None:
            return False
        if type(self.holder) is CellType:
            now = _contents(self.holder)
        else:
            now = self.holder.get(self.key, self.value)
        return now is not self.value and (
            type(now) is not type(self.value)
            or type(now) not in _NUMBERS
            or bool(now != self.value)
        )


class Unchanged:
    """Arrays and numbers that a function reads, as they are now.

    Args:
        where: for messages.
        found: what the function reads.
        keep: makes a copy of an array; or returns the array itself, if it is promised
            not to change.
    """

    __slots__ = ("known", "where")

    def __init__(
        self,
        where: str,
        found: Iterable[Reading],
        keep: Callable[[Any], Any] = copied,
    ) -> None:
        self.where = where
        self.known = [
            (reading, mark)
            for reading in found
            if (mark := _mark(reading.value, keep)) is not None
            or reading.holder is not None
        ]

    def forgive(self) -> None:
        """Forget what has changed by now: the function itself has written to it."""
        self.known = [known for known in self.known if not _differs(*known)]

    def changes(self) -> str | None:
        """The name of something that has changed; None for nothing."""
        return next((known[0].name for known in self.known if _differs(*known)), None)

    def check(self) -> None:
        """Raise if anything has changed."""
        name = self.changes() if self.known else None
        if name is not None:
            raise MutationError(
                f"{self.where}: {name} was changed after the forward pass had read it, "
                f"and the backward pass needs what it was. Pass it as an argument, "
                f"keep a copy of it, or make a new array instead of writing to this "
                f"one."
            )


def _mark(x: Any, keep: Callable[[Any], Any]) -> Any:
    return None if type(x) in _NUMBERS else mark(_now(x), keep)


def _now(x: Any) -> Any:
    """An array; of an untracked value, which may be written to, what it holds now."""
    return base(x.frozen()) if isinstance(x, Value) else x


def _differs(reading: Reading, mark: Any) -> bool:
    if mark is not None and changed(_now(reading.value), mark):
        return True
    return reading.is_rebound()


class Search:
    """A search for what functions read.

    Attributes:
        found: what was found so far.
        seen: what need not be searched again, by identity.
        left: how many parts of structures it may still look at.
    """

    __slots__ = ("found", "left", "seen")

    def __init__(self) -> None:
        self.found: list[Reading] = []
        self.seen: set[int] = set()
        self.left = MOST_LEAVES

    def read(self, f: Any, names: Names | None = None) -> None:
        """Find what a function reads under some names, by default all of its code."""
        if f is None or id(f) in self.seen:
            return
        kind = type(f)
        if kind is not FunctionType and type(kind.__call__) is FunctionType:
            f = MethodType(kind.__call__, f)  # an object that can be called
        self.seen.add(id(f))
        if isinstance(f, FunctionType):
            self._read_function(f, names_in(f.__code__) if names is None else names)
        elif isinstance(f, MethodType):
            own = names_of(f.__func__) if names is None else names
            self.find("self", f.__self__, own.attributes, f)
            self.read(f.__func__, names)
        elif isinstance(f, partial):
            attributes = names_of(f.func).attributes
            for x in (*f.args, *f.keywords.values()):
                self.find("an argument of a partial", x, attributes, f)
            self.read(f.func, names)

    def _read_function(self, f: FunctionType, names: Names) -> None:
        space = f.__globals__
        if f.__closure__:
            for key, cell in zip(f.__code__.co_freevars, f.__closure__, strict=True):
                if key in names.free:
                    x = _contents(cell)
                    self.find(key, x, names.attributes, f, cell, key)
        if str(space.get("__name__")).partition(".")[0] != "lantern":
            for key in names.outer:
                if key in space:
                    self.find(key, space[key], names.attributes, f, space, key)
        if f.__defaults__ or f.__kwdefaults__:
            for x in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
                self.find("a default", x, names.attributes, f)

    def find_in(self, others: Iterable[tuple[str, Any]], functions: Any) -> None:
        """Find what functions read of other things that they are given."""
        for name, x in others:
            if type(x) not in FIXED and not is_array(x):
                for f in functions:
                    self.find(name, x, names_of(f).attributes, f)

    def find(
        self,
        name: str,
        x: Any,
        attributes: frozenset[str],
        reader: Any,
        holder: Any = None,
        key: str = "",
    ) -> None:
        """Find what is read of something that a name is bound to.

        Args:
            name: for messages.
            x: the thing.
            attributes: the names of those to look at.
            reader: the function that reads it.
            holder: what binds its name, a cell or a dictionary; None if that does not
                matter.
            key: its name there.
        """
        kind = type(x)
        if kind in FIXED:
            return
        if kind in _NUMBERS or is_array(x):
            if holder is not None and key in bound_in(reader):
                holder = None  # the function itself binds it
            if holder is not None or kind not in _NUMBERS:
                self.found.append(Reading(name, x, holder, key))
        elif isinstance(x, Value):
            if not is_tracked(x):
                self.found.append(Reading(name, x))
        elif kind is FunctionType or kind is MethodType:
            if _package(reader) in (_package(x), "lantern"):
                self.read(x)
        elif kind is partial:
            self.read(x)
        elif id(x) not in self.seen:
            self._find_inside(name, x, attributes, reader)

    def _find_inside(
        self, name: str, x: Any, attributes: frozenset[str], reader: Any
    ) -> None:
        kind = type(x)
        if kind is ModuleType or isinstance(x, type):
            for key in attributes:
                if is_array(part := vars(x).get(key)):
                    self.found.append(Reading(f"{name}.{key}", part, vars(x), key))
            return
        self.seen.add(id(x))
        if kind is list or kind is tuple or kind is dict or not is_leaf(x):
            parts = x.values() if kind is dict else x
            if kind is not list and kind is not tuple and kind is not dict:
                parts = tree_leaves(x)
            for part in islice(parts, self.left):
                self.left -= 1
                self.find(name, part, attributes, reader)
            return
        if is_array(own := getattr(x, "__self__", None)):  # a method of an array
            self.found.append(Reading(name, own))
        space = getattr(x, "__dict__", {})
        for key in attributes:
            if key in space:
                full = f"{name}.{key}"
                self.find(full, space[key], attributes, reader, space, key)
            elif is_array(part := _of_class(x, key)):
                self.found.append(Reading(f"{name}.{key}", part))


def _of_class(x: Any, key: str) -> Any:
    """An attribute that lies in an object's class, or in a slot."""
    part = getattr(type(x), key, None)
    if type(part) is MemberDescriptorType and hasattr(x, key):
        return part.__get__(x)
    return part


def readings(functions: Iterable[Any]) -> Search:
    """The arrays and numbers that functions read apart from their arguments.

    Searched are the variables that they close over, their defaults, the globals that
    they name, of objects the attributes that they name, and the functions of their own
    package among all these.

    Args:
        functions: functions, methods or ``partial``; None for none.
    """
    search = Search()
    for f in functions:
        search.read(f)
    return search


def writable(f: Any) -> str | None:
    """The name of an array that a function reads and somebody may write to."""
    found = readings((f,)).found
    arrays = (r for r in found if type(r.value) not in _NUMBERS)
    return next((r.name for r in arrays if not is_promised(base(r.value))), None)


def _package(f: Any) -> str:
    """Whose function it is: the first part of its module's name."""
    f = f.func if isinstance(f, partial) else f
    return (getattr(f, "__module__", None) or "").partition(".")[0]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None

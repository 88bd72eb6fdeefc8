"""Captured values: what a function reads besides its arguments, the same later.

A rule of the user's may read an array that no derivative was handed: a variable that it
closes over, a global one, a default, an attribute, an array that a variable of a
generator names. A copy tells later whether that was written to. What can be given its
old value is not here (``lantern.core.residuals``): the rule will read what is there.
"""

from collections.abc import Callable, Collection, Iterable
from functools import cached_property, partial
from itertools import islice
from types import (
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from lantern.core.residuals import changed, copied, is_array, is_ours, is_promised, mark
from lantern.core.tree import is_leaf, tree_leaves
from lantern.core.value import Value, base, is_tracked
from lantern.errors import MutationError
from lantern.guards.bytecode import Names, names_in, read_later

__all__ = ["Reading", "Search", "Unchanged", "contents", "writable"]

MOST_LEAVES = 1_000
"""How far a structure is searched: a data set shall cost no time."""

# What cannot be written to, and holds no array.
_FIXED = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})
_NUMBERS = frozenset({float, complex})
_FUNCTIONS = frozenset({FunctionType, MethodType})
_PARTS = _NUMBERS | _FUNCTIONS  # and arrays: what is looked at in classes and modules
_WRAPPERS = {
    property: "fget",
    cached_property: "func",
    classmethod: "__func__",
    staticmethod: "__func__",
}
_MANY = 100  # times that a rule may be resumed


class Reading(NamedTuple):
    """Something that a function reads.

    Attributes:
        name: as the function calls it.
        value: an array, or a number that has a holder.
        holder: the cell, the dictionary or the list that it is in; None for what the
            function itself puts there, or if that does not matter.
        key: its name or its place there.
    """

    name: str
    value: Any
    holder: Any = None
    key: Any = ""

    def is_rebound(self) -> bool:
        """Whether the name is bound to something else by now."""
        if self.holder is None:
            return False
        if type(self.holder) is CellType:
            now = contents(self.holder)
        elif type(self.holder) is list:
            now = next(iter(self.holder[self.key : self.key + 1]), None)
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
    """A search for the arrays and numbers that functions read but are not handed.

    Searched are the variables that they close over, their defaults, the globals that
    they name, and the functions of their own package among these; of all objects met
    the attributes that any of these functions names.

    Args:
        functions: functions, methods, ``partial`` or objects that can be called; None
            for none.

    Attributes:
        attributes: the names of the attributes that the functions read.
    """

    __slots__ = ("_found", "_left", "_objects", "_seen", "_stored", "attributes")

    def __init__(self, *functions: Any) -> None:
        self.attributes = {"__call__"}
        self._stored: set[str | None] = set()
        self._found: list[Reading] = []
        self._objects: list[tuple[str, Any, str, set[str]]] = []
        self._seen: set[int] = set()
        self._left = MOST_LEAVES
        for f in functions:
            self.read(f)

    def found(self) -> list[Reading]:
        """What they read."""
        waiting = True
        while waiting:
            waiting = False
            for name, x, package, known in self._objects:
                for key in sorted(self.attributes - known):
                    waiting = True
                    known.add(key)
                    self._find_attribute(name, x, key, package)
        return self._found

    def read(self, f: Any, names: Names | None = None) -> None:
        """Find what a function reads under some names, by default all of its code."""
        kind = type(f)
        if kind is MethodType:
            self.find("self", f.__self__, _package(f))
            f, kind = f.__func__, type(f.__func__)
        if f is None or id(f) in self._seen:
            return
        self._seen.add(id(f))
        if kind is partial:
            for x in (*f.args, *f.keywords.values()):
                self.find("an argument of a partial", x, _package(f))
            self.read(f.func, names)
        elif kind is FunctionType:
            self._read_function(f, names_in(f.__code__) if names is None else names)
        elif type(kind.__call__) is FunctionType:
            self._find_inside("self", f, _package(kind.__call__))
            self.read(kind.__call__, names)

    def find_in(self, others: Iterable[tuple[str, Any]], f: Any) -> None:
        """Find what a function reads of other things than arrays that it is given."""
        for name, x in others:
            if not is_array(x):
                self.find(name, x, _package(f))

    def read_suspended(self, f: Any, rule: Any, ours: Collection[int]) -> None:
        """Find what a suspended generator reads later.

        Args:
            f: the generator function; None for a generator that another one runs.
            rule: the generator.
            ours: arrays that nobody writes to.
        """
        frame = rule.gi_frame
        names = read_later(frame.f_code, frame.f_lasti, _MANY)
        package = _first(frame.f_globals.get("__name__"))
        cells = frame.f_code.co_freevars if f is not None else ()
        if f is None:
            self._read_globals(frame.f_globals, names)
        else:
            self.read(f, names)
        for key, x in frame.f_locals.items():
            is_own = key in names.own and key not in cells
            if is_own and not (is_array(x) and is_ours(x, ours)):
                self.find(key, x, package)
        if getattr(rule.gi_yieldfrom, "gi_frame", None) is not None:
            self.read_suspended(None, rule.gi_yieldfrom, ours)

    def _read_function(self, f: FunctionType, names: Names) -> None:
        package = _package(f)
        self._read_globals(f.__globals__, names)
        for key, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if key in names.own:
                holder = None if key in names.bound else cell
                self.find(key, contents(cell), package, holder, key)
        for x in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.find("a default", x, package)

    def _read_globals(self, space: dict[str, Any], names: Names) -> None:
        self.attributes |= names.attributes
        self._stored |= names.stored
        package = _first(space.get("__name__"))
        if package != "lantern":
            for key in names.outer:
                if key in space:
                    holder = None if key in names.bound else space
                    self.find(key, space[key], package, holder, key)

    def find(
        self, name: str, x: Any, package: str, holder: Any = None, key: Any = ""
    ) -> None:
        """Find what is read of something that a name is bound to.

        Args:
            name: for messages.
            x: the thing.
            package: whose function reads it.
            holder: what it is in, see ``Reading``.
            key: its name or its place there.
        """
        kind = type(x)
        if kind in _FIXED:
            return
        if kind in _NUMBERS:
            if holder is not None:
                self._found.append(Reading(name, x, holder, key))
        elif is_array(x):
            self._found.append(Reading(name, x, holder, key))
        elif isinstance(x, Value):
            if not is_tracked(x):
                self._found.append(Reading(name, x))
        elif kind in _FUNCTIONS:
            if package in (_package(x), "lantern"):
                self.read(x)
        elif kind is partial:
            self.read(x)
        elif id(x) not in self._seen:
            self._seen.add(id(x))
            self._find_inside(name, x, package)

    def _find_inside(self, name: str, x: Any, package: str) -> None:
        kind = type(x)
        if kind is ModuleType or isinstance(x, type) or is_leaf(x):
            self._objects.append((name, x, package, set()))
            if is_array(own := getattr(x, "__self__", None)):  # a method of an array
                self._found.append(Reading(name, own))
            return
        known = kind is dict or kind is list or kind is tuple
        parts = x.items() if kind is dict else enumerate(x if known else tree_leaves(x))
        for key, part in islice(parts, self._left):
            self._left -= 1
            binds = kind is dict or (kind is list and is_array(part))
            holder = x if binds and None not in self._stored else None
            self.find(name, part, package, holder, key)

    def _find_attribute(self, name: str, x: Any, key: str, package: str) -> None:
        spaces = [getattr(x, "__dict__", {})]
        if type(x) is not ModuleType:
            classes = x.__mro__ if isinstance(x, type) else type(x).__mro__
            spaces += map(vars, classes)
        space = next((space for space in spaces if key in space), None)
        if space is None:
            return
        part, name = space[key], f"{name}.{key}"
        if type(part) is MemberDescriptorType:  # a slot
            self.find(name, getattr(x, key, None), package)
            return
        part = getattr(part, _WRAPPERS.get(type(part), ""), part)
        is_own = space is spaces[0] and not isinstance(x, ModuleType | type)
        if is_own or is_array(part) or type(part) in _PARTS:
            holder = None if key in self._stored else space
            self.find(name, part, package, holder, key)


def writable(f: Any) -> str | None:
    """The name of an array that a function reads and somebody may write to."""
    found = (r for r in Search(f).found() if type(r.value) not in _NUMBERS)
    return next((r.name for r in found if not is_promised(base(r.value))), None)


def _package(f: Any) -> str:
    """Whose function it is: the first part of its module's name."""
    return _first(getattr(f.func if type(f) is partial else f, "__module__", None))


def _first(module: Any) -> str:
    return str(module or "").partition(".")[0]


def contents(cell: CellType) -> Any:
    """What a variable is bound to; None for nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None

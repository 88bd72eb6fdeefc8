"""Guards of what a staged program has taken for constant, at each call."""

import ctypes
from collections.abc import Callable
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

from lantern.errors import StagingError
from lantern.staging.native.layout import is_known, version_offset
from lantern.staging.native.questions import MISSING, Question
from lantern.staging.objects import class_attribute, hides
from lantern.staging.staged import is_staged
from lantern.staging.structure import same

__all__ = ["Guards"]

_Words = ctypes.c_uint64 * ((FunctionType.__basicsize__ - 16) // 8)
"""The words that a function has behind its type."""

MOST_ITEMS = 10_000
MOST_QUESTIONS = 100
"""The items of a list that machine code looks at; of a longer one Python does."""


class Guards:
    """Places that were read while a program was staged, and what was there.

    Attributes:
        meet: is told the class of each object that is found.
        checks: functions that say whether a place is as it was.
        places: addresses of words that say the same, and what has to stand there; None
            for what changes with every change around it, as long as that is no change
            here. None instead of a list if words and questions do not tell it all.
        questions: what machine code asks besides.
        outside: objects that were found, by their addresses.
        names: by the addresses of the latter, a dict, the names that were read in it,
            and what they were bound to.
    """

    def __init__(self, meet: Callable[[type], None] = lambda cls: None) -> None:
        self.meet = meet
        self.checks: list[Callable[[], bool]] = []
        self._seen: set[Any] = set()
        self.places: list[tuple[int, int | None]] | None = []
        self.questions: list[Question] = []
        self.outside: dict[int, Any] = {}
        self.names: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    def hold(self) -> bool:
        """Whether everything is as it was."""
        return all(check() for check in self.checks)

    def _is_new(self, *key: Any) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _place(self, address: int, expected: int | None) -> None:
        if self.places is not None:
            self.places.append((address, expected))

    def _words_of(self, f: FunctionType) -> None:
        """Where a function keeps its code and its defaults."""
        if not is_known():
            self.places = None
            return
        for x in (f.__code__, f.__defaults__, f.__kwdefaults__):
            if x is not None:
                words = _Words.from_address(id(f) + 16)[:]
                if words.count(id(x)) != 1:
                    self.places = None
                else:
                    self._place(id(f) + 16 + 8 * words.index(id(x)), id(x))

    def function(self, f: FunctionType) -> None:
        """What a function reads: its variables outside, its defaults, its globals."""
        if not self._is_new("function", id(f)):
            return
        self._words_of(f)
        code, defaults, kwdefaults = f.__code__, f.__defaults__, f.__kwdefaults__
        self.checks.append(
            lambda: (
                f.__code__ is code
                and f.__defaults__ is defaults
                and f.__kwdefaults__ is kwdefaults
            )
        )
        self.contents((*(defaults or ()), kwdefaults))
        for cell, name in zip(f.__closure__ or (), code.co_freevars, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                raise StagingError(
                    f"{f.__name__}: the variable {name} is not assigned to yet. Call "
                    f"it later."
                ) from None
            self.contents(value)
            if value is not f:
                self._place(id(cell) + 16, id(value))
                self.checks.append(partial(_is_bound, cell, value))
        for name in _names(code):
            self.name(f.__globals__, name)

    def name(self, space: dict[str, Any], name: str) -> None:
        """What a name is bound to, or that it is bound to nothing."""
        offset = version_offset()
        if offset >= 0 and self._is_new("dict", id(space)):
            self._place(id(space) + offset, None)
        if self._is_new("name", id(space), name):
            value = space.get(name, MISSING)
            self.contents(value)
            if offset < 0:
                self.questions.append(Question("name", space, name, value))
            self.names.setdefault(id(space) + offset, (space, {}))[1][name] = value
            self.checks.append(lambda: same(space.get(name, MISSING), value))

    def attribute(self, x: Any, name: str, value: Any) -> None:
        """What an attribute of an object is."""
        if self._is_new("attribute", id(x), name):
            if not _is_found_plainly(x):
                self.places = None
            self.questions.append(Question.about(x, name, value))
            self.contents(value)
            self.checks.append(lambda: same(getattr(x, name, MISSING), value))

    def of_class(self, cls: type, name: str, found: Any) -> None:
        """What a class has for all its objects."""
        value = getattr(cls, name, MISSING)
        if value is not MISSING:
            self.attribute(cls, name, value)
        else:  # the class itself does not show it
            self.places = None
            self.checks.append(lambda: class_attribute(cls, name) is found)

    def asked(self, x: Any, cls: Any) -> None:
        """Whether an object is of a class that says by itself which are."""
        if type(cls) is not type and not isinstance(cls, tuple):
            is_one = isinstance(x, cls)
            self.places = None
            self.checks.append(lambda: isinstance(x, cls) is is_one)
        for each in cls if isinstance(cls, tuple) else ():
            self.asked(x, each)

    def contents(self, x: Any) -> None:
        """What is in a value from outside, however the program may read it.

        Raises:
            StagingError: if no guard tells when it changes.
        """
        kind: Any = type(x)
        if is_staged(x) or kind in _ATOMS or kind.__module__ == "typing":
            return
        self.outside[id(x)] = x
        if isinstance(x, list | dict | set):
            self.items(x)
        elif kind is partial:
            self.contents((x.func, x.args, x.keywords))
        elif kind is MethodType:
            self.contents(x.__self__)
        elif isinstance(x, tuple | frozenset):
            for y in x:
                self.contents(y)
        elif hides(kind):
            raise StagingError(
                f"a {kind.__name__} from outside, which may change: what an operator "
                f"or a loop finds in it is not looked at again. Give it as an argument."
            )
        if kind not in _CONTAINERS:
            self.meet(kind)

    def items(self, x: Any) -> None:
        """What is in a list, a dict or a set."""
        if not self._is_new("items", id(x)):
            return
        if len(x) > MOST_ITEMS:
            raise StagingError(
                f"a {type(x).__name__} of {len(x)} items is read, which may change. "
                f"Make it a tuple, or give it as an argument."
            )
        for y in [*x.keys(), *x.values()] if isinstance(x, dict) else list(x):
            self.contents(y)
        kind = type(x)
        if kind is list and len(x) <= MOST_QUESTIONS:
            self._place(id(x) + 16, len(x))
            self.questions += [Question("item", x, i, y) for i, y in enumerate(x)]
        elif kind is dict and version_offset() >= 0:
            self._place(id(x) + version_offset(), None)
        else:
            self.places = None
        now = list(x.items()) if isinstance(x, dict) else list(x)
        if isinstance(x, dict):
            self.checks.append(
                lambda: type(x) is kind and _same_pairs(list(x.items()), now)
            )
        else:
            self.checks.append(lambda: type(x) is kind and _same_items(list(x), now))


_ATOMS = frozenset(
    {int, float, bool, str, bytes, type(None), type, FunctionType, ModuleType}
    | {BuiltinFunctionType}
)
_CONTAINERS = frozenset({list, dict, set, tuple, frozenset, partial, MethodType})


def _is_found_plainly(x: Any) -> bool:
    """Whether an attribute of an object is found without code of the user's."""
    kind = type(x)
    own = [vars(x)] if isinstance(x, ModuleType) else []
    where = [*own, *(c.__dict__ for c in kind.__mro__)]
    return kind.__getattribute__ in _PLAIN_LOOKS and not any(
        "__getattr__" in names for names in where
    )


_PLAIN_LOOKS: tuple[Any, ...] = (
    object.__getattribute__,
    type.__getattribute__,
    ModuleType.__getattribute__,
)


def _is_bound(cell: CellType, value: Any) -> bool:
    """Whether a variable is bound to a value."""
    try:
        return same(cell.cell_contents, value)
    except ValueError:  # it was deleted
        return False


def _same_items(new: list[Any], old: list[Any]) -> bool:
    return len(new) == len(old) and all(map(same, new, old))


def _same_pairs(new: list[Any], old: list[Any]) -> bool:
    return len(new) == len(old) and all(
        same(a, c) and same(b, d) for (a, b), (c, d) in zip(new, old, strict=True)
    )


def _names(code: CodeType) -> set[str]:
    """The names that code may read among the globals."""
    found = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, CodeType):
            found |= _names(x)
    return found

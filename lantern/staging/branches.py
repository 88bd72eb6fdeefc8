"""Branches of rewritten code: ``if``, what a test asks, comparisons and ``assert``.

What variables hold behind a branch is settled here alone. Those that the parts of a
construct share come as two functions, which read them all and set them all.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType
from typing import Any

from lantern.errors import StagingError
from lantern.staging.control import (
    IF,
    StoppedError,
    filler,
    has_staged,
    joinable,
    truth,
)
from lantern.staging.objects import HEAP_TYPE, class_attribute
from lantern.staging.optional import Optional, aligned
from lantern.staging.session import Session
from lantern.staging.staged import NeedsPlainError, Staged, is_staged, operate, staged
from lantern.staging.structure import (
    UNDEFINED,
    is_copied,
    is_undefined,
    leaves_of,
    unflatten,
    unknown_of,
)
from lantern.staging.syntax import RETURNED
from lantern.staging.trees import StagedTree

__all__ = ["COMPARISONS", "Branches", "Get", "Names", "Put", "blank", "pass_"]

Names = Sequence[str]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[tuple[Any, ...]], None]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}


class Branches:
    """The constructs that ask what is true.

    Args:
        recursive: codes of functions that become functions of the program.
        kept: variables that a loop gives their first value, and hands on.
    """

    UNDEFINED = UNDEFINED
    is_careful = False

    def __init__(self, recursive: set[CodeType], kept: set[Any]) -> None:
        self.session = Session(self, recursive, kept, self.is_careful)

    def truth(self, x: Any) -> Any:
        """What a test asks of a value: more in ``operators.py``."""
        if type(x) is Optional:
            return self.and_(self.not_(x.is_none), lambda: self._told(x.value))
        return self._is_true(x) if isinstance(x, StagedTree) else x

    def _is_true(self, x: StagedTree) -> Any:
        """Whether an object of the caller's is true: a row with items, an object."""
        cls, is_some = x.likely_class(), self.not_(x.is_none())
        if cls is tuple or cls is list:
            return self.and_(is_some, lambda: operate("not_equal", x.size(), 0))
        kinds = dict.fromkeys(map(type, x.node.example))
        if not cls or not _is_always_true(cls):
            raise StagingError("a test of an object that may be false. Say what of it.")

        def ask(rest: list[Any]) -> Any:
            if not rest:  # of a class that was not met
                raise StoppedError
            return IF(x.is_instance(rest[0]), lambda: True, lambda: ask(rest[1:]))

        known = [k for k in kinds if _is_always_true(k)]
        return self.and_(is_some, lambda: ask(known))

    def _told(self, x: Any) -> Any:
        """What a test asks of a value, as a bool."""
        x = self.truth(x)
        return Staged(truth(x)) if is_staged(x) else bool(x)

    def branch(
        self, test: Any, then: Any, other: Any, get: Get, put: Put, names: Names
    ) -> None:
        """``if``: what is assigned on both ways is joined, variable by variable."""
        test = self.truth(test)
        if not is_staged(test):
            (then if test else other)()
            return
        before = get()

        def way(body: Callable[[], None]) -> dict[str, Any]:
            self.session.cover(get)
            put(before)
            body()
            return dict(zip(names, get(), strict=True))

        after = IF(test, lambda: way(then), lambda: way(other), _align)
        put(tuple(after[name] for name in names))

    def returning(
        self, test: Any, then: Any, other: Any, get: Get, put: Put, names: Names
    ) -> Any:
        """``if`` with a return: the rest of the function is in both ways."""
        test = self.truth(test)
        if not is_staged(test):
            return then() if test else other()
        before, shared = get(), self.session.shared(get)

        def way(body: Callable[[], Any]) -> Any:
            self.session.cover(get)
            put(before)
            value = body()
            after = dict(zip(names, get(), strict=True))
            return value, {x: after[x] for x in names if x in shared}

        found, after = IF(test, lambda: way(then), lambda: way(other), _align_first)
        put(tuple(after.get(x, UNDEFINED) for x in names))  # somebody may ask for them
        return found

    def choose(self, test: Any, then: Any, other: Any) -> Any:
        """``x if test else y``."""
        test = self.truth(test)
        if not is_staged(test):
            return then() if test else other()
        return IF(test, then, other, _align_both)

    def and_(self, x: Any, y: Callable[[], Any]) -> Any:
        """``x and y``."""
        return self.choose(x, y, lambda: x)

    def or_(self, x: Any, y: Callable[[], Any]) -> Any:
        """``x or y``."""
        return self.choose(x, lambda: x, y)

    def not_(self, x: Any) -> Any:
        """``not x``."""
        x = self.truth(x)
        return operate("not", Staged(truth(x))) if is_staged(x) else not x

    def compare(self, ops: Sequence[str], left: Any, *rest: Callable[[], Any]) -> Any:
        """A chain of comparisons, ``is`` and ``in`` among them."""
        right = rest[0]()
        first = self._compared(ops[0], left, right)
        if len(ops) == 1:
            return first
        return self.and_(first, lambda: self.compare(ops[1:], right, *rest[1:]))

    def _compared(self, op: str, x: Any, y: Any) -> Any:
        for each in (x, y):
            if is_undefined(each):
                each.refuse()
        if op in COMPARISONS:
            return COMPARISONS[op](x, y)
        if op in ("Is", "IsNot"):
            if type(x) is Optional or type(y) is Optional:
                return self._is_nothing(op, x, y)
            are_both = x is not None and y is not None
            if are_both and any(map(self._is_copy, (x, y))):
                raise StagingError("is: of a copy. Compare what is in it.")
            if isinstance(x, StagedTree) or isinstance(y, StagedTree):
                tree, known = (x, y) if isinstance(x, StagedTree) else (y, x)
                if known is not None:
                    raise StagingError("is: an object is compared with None alone.")
                found: Any = tree.is_none()
                return found if op == "Is" else self.not_(found)
            if is_staged(x) or is_staged(y):
                if x is not None and y is not None:
                    raise StagingError("is: two numbers. Compare them with ==.")
                return op == "IsNot"
            return (x is y) == (op == "Is")
        if type(y) in (list, tuple) and (type(x) is Staged or has_staged(y)):
            found = self._is_in(x, y)
            return found if op == "In" else self.not_(found)
        return (x in y) == (op == "In")

    def _is_nothing(self, op: str, x: Any, y: Any) -> Any:
        """Whether a value that may be None is the other one, if that is None."""
        value, known = (x, y) if type(x) is Optional else (y, x)
        if known is not None:
            raise StagingError("is: two numbers. Compare them with ==.")
        return value.is_none if op == "Is" else self.not_(value.is_none)

    def _is_in(self, x: Any, items: Any) -> Any:
        """Whether a number is among others; nan is, if it is the same object."""
        if not all(type(y) in (Staged, float, int, bool) for y in (x, *items)):
            raise NeedsPlainError("in: among others than numbers.")
        self.claim(self._compared("Eq", x, x), pass_)
        found: Any = False
        for y in items:
            found = self.or_(found, partial(self._compared, "Eq", x, y))
        return found

    def place(self, items: Any, x: Any) -> Any:
        """The first place of a number among others."""
        self.claim(self._is_in(x, items), pass_)
        found: Any = len(items) - 1
        for i in reversed(range(found)):
            test = self._compared("Eq", x, items[i])
            found = self.choose(test, lambda i=i: i, lambda found=found: found)
        return found

    def _is_copy(self, x: Any) -> bool:
        return self.session.is_given(x) or is_copied(x)

    def claim(self, test: Any, message: Callable[[], Any]) -> None:
        """``assert``."""
        test = self.truth(test)
        if is_staged(test):
            IF(test, lambda: 0, _fail)
        elif not test:
            raise StoppedError

    def raised(self, make: Callable[[], Any]) -> Any:
        """What ``raise`` raises, if it can be told: the plain function raises it."""
        try:
            return make()
        except StagingError:
            return StoppedError


def _is_always_true(cls: Any) -> bool:
    """Whether each object of a class is true."""
    if issubclass(cls, tuple) and getattr(cls, "_fields", None):
        return True
    own = [class_attribute(cls, name) for name in ("__bool__", "__len__")]
    return cls.__flags__ & HEAP_TYPE != 0 and own == [None, None]


def pass_() -> None:
    """A way on which nothing is done."""


def _fail() -> int:
    """The way of a program on which an assertion does not hold."""
    raise StoppedError


def blank(like: Any) -> Any:
    """What a variable holds where nobody reads it, with the types of something."""
    leaves = [
        staged(filler(x.node.type)) if is_staged(x) else x for x in leaves_of(like)
    ]
    return unflatten(like, leaves)


def _align(results: list[Any]) -> None:
    """Leave out variables that the two ways of a branch do not have in common."""
    for name in results[0]:
        x, y = (result[name] for result in results)
        if name == RETURNED and is_undefined(x) != is_undefined(y):
            found = blank(y if is_undefined(x) else x)
            results[0 if is_undefined(x) else 1][name] = found
        elif not joinable(x, y):
            x, y = aligned(x, y)
            if not joinable(x, y):
                x = y = unknown_of(x, y)
            results[0][name], results[1][name] = x, y


def _align_both(results: list[Any]) -> None:
    """Have two results one structure, if one is None where the other is a number."""
    results[:] = aligned(*results)


def _align_first(results: list[Any]) -> None:
    """As ``_align_both``, of what two ways return; their variables are as they are."""
    found = aligned(results[0][0], results[1][0])
    results[:] = [(x, *way[1:]) for x, way in zip(found, results, strict=True)]

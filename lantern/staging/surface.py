"""The surface that rewritten code calls: Python's constructs, plain and staged.

On plain values each does what the construct does. The variables that the parts of a
construct share come as two functions, which read them all and set them all.
"""

import operator
import re
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import is_dataclass
from functools import partial
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from lantern.errors import StagingError
from lantern.staging.calls import Methods, call
from lantern.staging.changes import Carriage, CarryError
from lantern.staging.control import (
    IF,
    Signal,
    StoppedError,
    filler,
    has_staged,
    joinable,
    truth,
)
from lantern.staging.ir import Block, building, current
from lantern.staging.loops import MOST_UNROLLED, UNROLLED, staged_loop
from lantern.staging.native.questions import MISSING
from lantern.staging.objects import HEAP_TYPE, class_attribute
from lantern.staging.optional import Optional, aligned, definite, widened
from lantern.staging.python_functions import (
    COMPENSATES,
    Items,
    Once,
    StagedRange,
    itself,
)
from lantern.staging.session import Session
from lantern.staging.staged import (
    NeedsPlainError,
    Staged,
    StagedArray,
    is_staged,
    operate,
    staged,
)
from lantern.staging.structure import (
    UNDEFINED,
    Lost,
    describe,
    is_copied,
    is_number,
    is_undefined,
    leaves_of,
    same,
    unflatten,
    unknown_of,
)
from lantern.staging.syntax import RETURNED
from lantern.staging.trees import StagedTree
from lantern.staging.types import INT

__all__ = ["BINARY", "COMPARISONS", "Surface"]

MOST_WRITTEN = 16
"""Places of a list of which one is assigned to that is known when the program runs."""

FEW = 64
"""Turns of a loop that is rather unrolled than such an assignment staged."""

Names = Sequence[str]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[tuple[Any, ...]], None]
_TURNED = "_lt_turned"
"""Whether a loop has made a turn: its state, where that gives variables a value."""

_FLAG = re.compile(r"_lt_(broken|returned)\d+")
_TRUSTED = frozenset("math operator functools lantern numpy".split())
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
_IN_PLACE = {
    op: getattr(operator, f"i{f.__name__.strip('_')}") for op, f in BINARY.items()
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}


class Surface:
    """The constructs of one staging.

    Args:
        recursive: codes of functions that become functions of the program.
        kept: variables that a loop gives their first value, and hands on.
    """

    UNDEFINED = UNDEFINED
    is_careful = False

    def __init__(self, recursive: set[CodeType], kept: set[Any]) -> None:
        self.session = Session(self, recursive, kept, self.is_careful)
        self._few = False  # a loop of few turns is tried: it may as well be unrolled

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

    def items_of(self, x: Any) -> Any:
        """What a loop goes through: more in ``operators.py``."""
        return x

    # Branches.

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
        self.claim(self._compared("Eq", x, x), _pass)
        found: Any = False
        for y in items:
            found = self.or_(found, partial(self._compared, "Eq", x, y))
        return found

    def place(self, items: Any, x: Any) -> Any:
        """The first place of a number among others."""
        self.claim(self._is_in(x, items), _pass)
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

    # Loops.

    def while_(
        self, test: Any, body: Any, broken: Any, get: Get, put: Put, names: Names
    ) -> None:
        """``while``."""
        turns = 0
        while True:
            with building(Block("branch", current.blocks[-1])):
                goes_on = self._goes_on(test, broken)
            if not is_staged(goes_on):
                if not goes_on:
                    return
                if turns < UNROLLED or not any(map(has_staged, get())):
                    goes_on = None
            if goes_on is not None:
                before, copied = get(), current.copied.copy()
                try:
                    self._loop(test, body, broken, get, put, names, turns > 0)
                    return
                except StagingError:
                    if is_staged(goes_on):
                        raise
                    put(before)
                    current.copied = copied
            body()
            turns += 1
            self._check_length("while", turns)

    def _check_length(self, what: str, turns: int) -> None:
        """Refuse a loop of too many turns, staged one by one."""
        self.session.step()
        if turns > MOST_UNROLLED:
            raise StagingError(
                f"{what}: it has more than {MOST_UNROLLED} turns, staged one by one."
            )

    def _goes_on(self, test: Any, broken: Any) -> Any:
        return self.and_(self.not_(broken()), lambda: self._told(test()))

    def _told(self, x: Any) -> Any:
        """What a test asks of a value, as a bool."""
        x = self.truth(x)
        return Staged(truth(x)) if is_staged(x) else bool(x)

    def _loop(
        self,
        test: Any,
        body: Any,
        broken: Any,
        get: Get,
        put: Put,
        names: Names,
        is_begun: bool,
        is_settled: bool = False,
    ) -> None:
        """A loop of the program.

        In the first turn a variable may be a value that has other uses. So where
        cotangents have to be added up in order, that turn is staged by itself, unless a
        turn has been.
        """
        loop = partial(self._turns, test, body, broken, get, put, names, is_settled)

        def first() -> None:
            body()
            loop()

        if is_begun or not current.is_ordered:
            loop()
        else:
            goes_on = self._goes_on(test, broken)
            self.branch(goes_on, first, _pass, get, put, names)

    def _turns(
        self,
        test: Any,
        body: Any,
        broken: Any,
        get: Get,
        put: Put,
        names: Names,
        is_settled: bool,
    ) -> None:
        """A loop node; a variable is part of its state once it is defined."""
        state = dict(zip(names, get(), strict=True))
        carried = Carriage()
        firsts = _Firsts(self.session, get, state)

        def set_all(values: dict[str, Any]) -> None:
            carried.put(values)
            for x in values.values():
                self.session.give(x)
            put(tuple(values.get(x, UNDEFINED) for x in names))

        def condition(values: dict[str, Any]) -> Any:
            set_all(values)
            return self._goes_on(test, broken)

        def turn(values: dict[str, Any]) -> dict[str, Any]:
            self.session.cover(get)
            set_all(values)
            with carried.turn():
                body()
            after = dict(zip(names, get(), strict=True))
            after |= carried.numbers()
            firsts.note(after)
            return _handed_on(values, after)

        start = {x: y for x, y in state.items() if not is_undefined(y)}
        while True:
            try:
                result = staged_loop(start, condition, turn, is_settled)
            except _AnotherError as error:
                firsts.kept -= _start_otherwise(start, error.values, is_settled)
                continue
            except CarryError as error:
                self.session.write(error.container, "a change in a loop")
                start |= carried.add(error.container)
                continue
            finally:
                carried.put(carried.start)
            more = firsts.missing(start)
            if not more:
                break
            start |= more
        if _TURNED in result:
            self.claim(result[_TURNED], _pass)
        set_all({**firsts.lost, **result})

    def for_(
        self,
        items: Any,
        body: Any,
        broken: Any,
        get: Get,
        put: Put,
        names: Names,
        brief: Names,
    ) -> None:
        """``for``: over a range it may become a loop; over all else it is unrolled.

        Args:
            items: what it is over.
            body, broken: the body, and whether it has been left by a jump.
            get, put, names: the variables that it assigns to.
            brief: those of them that live for one turn alone.
        """
        if isinstance(items, StagedRange):
            self._count(items, body, broken, get, put, names)
            return
        if isinstance(items, StagedTree):
            count = StagedRange(0, items.size(), 1)

            def with_item(i: Any) -> None:
                body(items[i])

            self._count(count, with_item, broken, get, put, names)
            return
        if is_staged(items) and not isinstance(items, StagedArray):
            raise NeedsPlainError("for: over an object that is known when it runs.")
        items = self.items_of(items)
        rest = items
        if type(items) is range and len(items) > UNROLLED:
            if not current.is_ordered and self._is_counted(
                items, body, broken, get, put, names, brief
            ):
                return
            body(items[0])
            rest = items[1:]
            if self._is_counted(rest, body, broken, get, put, names, None):
                return
        for i, x in enumerate(Items(rest, broken)):
            if is_staged(broken()):
                self.branch(broken(), _pass, partial(body, x), get, put, names)
                continue
            self._check_length("for", i)
            body(x)

    def _is_counted(
        self,
        items: range,
        body: Any,
        broken: Any,
        get: Get,
        put: Put,
        names: Names,
        brief: Names | None,
    ) -> bool:
        """Whether a loop over a range has been staged as one.

        Before its first turn it can be if all variables but brief ones are defined, and
        none changes its type: the first turn, staged by itself, is as long again.
        """
        before, copied = get(), current.copied.copy()
        if brief is not None and not all(
            not is_undefined(x) or name in brief or _FLAG.fullmatch(name)
            for name, x in zip(names, before, strict=True)
        ):
            return False
        counted = StagedRange(items.start, items.stop, items.step)
        settled, few = brief is not None, self._few
        self._few = few or len(items) <= FEW
        try:
            self._count(counted, body, broken, get, put, names, not settled, settled)
        except StagingError:
            put(before)
            current.copied = copied
            return False
        finally:
            self._few = few
        return True

    def _count(
        self,
        items: StagedRange,
        body: Any,
        broken: Any,
        get: Get,
        put: Put,
        names: Names,
        is_begun: bool = False,
        is_settled: bool = False,
    ) -> None:
        """A loop over a range: its counter is one more variable."""
        i: Any = items.start
        compare = operator.lt if items.step > 0 else operator.gt

        def test() -> Any:
            return compare(i, items.stop)

        def turn() -> None:
            nonlocal i
            body(i)
            i = i + items.step

        def get_all() -> tuple[Any, ...]:
            return (i, *get())

        get_all.__wrapped__ = get  # type: ignore[attr-defined]  # read by cover

        def put_all(values: tuple[Any, ...]) -> None:
            nonlocal i
            i = values[0]
            put(values[1:])

        every = ("_lt_counter", *names)
        self._loop(test, turn, broken, get_all, put_all, every, is_begun, is_settled)

    # What ``with``, ``match`` and ``:=`` ask for.

    def entered(self, context: Any) -> Any:
        """What ``with`` enters."""
        kind: Any = type(context)
        if kind is suppress:
            return None
        if kind is nullcontext:
            return context.enter_result
        if type(getattr(kind, "__exit__", None)) is not FunctionType:
            raise StagingError(
                f"with: of {kind.__name__} it is not known what it does. Enter it "
                f"outside of the function."
            )
        return self.call(kind.__enter__, context)

    def left(self, context: Any) -> Any:
        """The end of ``with``; there is nothing in its variable from then on."""
        kind: Any = type(context)
        if kind not in (suppress, nullcontext):
            self.call(kind.__exit__, context, None, None, None)
        return UNDEFINED

    def named(self, put: Callable[[Any], None], value: Any) -> Any:
        """``:=``."""
        put(value)
        return value

    def is_row(self, x: Any, count: int | None) -> Any:
        """Whether a pattern of some values, or of any number of them, may match."""
        if is_undefined(x):
            x.refuse()
        if isinstance(x, StagedTree):
            none = x.is_none()
            return self.and_(self.not_(none), lambda: operate("equal", x.size(), count))
        if is_staged(x) or not isinstance(x, Sequence):
            return False
        if not isinstance(x, tuple | list | range | str | bytes):
            raise StagingError(f"match: a row of the type {type(x).__name__}.")
        return not isinstance(x, str | bytes) and count in (None, len(x))

    def is_long_row(self, x: Any, first: int, last: int) -> bool:
        """Whether a pattern of some values, and others between them, may match."""
        if isinstance(x, StagedTree):
            raise NeedsPlainError("match: a star in an object known when it runs.")
        return self.is_row(x, None) and len(x) >= first + last

    def middle(self, x: Any, first: int, last: int) -> Any:
        """What a star in a pattern stands for."""
        return self.session.made(list(x[first : len(x) - last]))

    def has_keys(self, x: Any, keys: tuple[Any, ...]) -> bool:
        """Whether a pattern of a dict may match."""
        if is_undefined(x):
            x.refuse()
        if isinstance(x, StagedTree):
            raise StagingError("match: a dict of an object known when it runs.")
        if is_staged(x) or not isinstance(x, Mapping):
            return False
        if type(x) not in (dict, defaultdict):
            raise StagingError(f"match: a dict of the type {type(x).__name__}.")
        if len(set(keys)) < len(keys):
            raise StoppedError
        return all(key in x for key in keys)

    def without_keys(self, x: Any, keys: tuple[Any, ...]) -> Any:
        """What a pattern of a dict has not named."""
        return self.session.made({k: y for k, y in x.items() if k not in keys})

    def is_of(self, x: Any, cls: Any, count: int) -> Any:
        """Whether a pattern of a class, with so many parts by place, may match."""
        if count > (cls in _WHOLE or len(self.attribute(cls, "__match_args__"))):
            raise StoppedError
        return self.call(isinstance, x, cls)

    def matched(self, x: Any, cls: Any, place: int) -> Any:
        """The part of an object that a pattern of its class has at a place."""
        if cls in _WHOLE:
            return x
        return self.attribute(x, cls.__match_args__[place])

    # Reads and writes.

    def item(self, x: Any, index: Any) -> Any:
        """``x[index]``."""
        x, index = definite(x), definite(index)
        if not is_staged(index) or is_staged(x):
            if isinstance(x, defaultdict) and index not in x:
                return self._default(x, index)
            found = x[index]
            return self.session.made(found) if type(index) is slice else found
        if isinstance(x, list | tuple) and index.node.type is INT and len(x) <= 64:
            if not x:
                raise StoppedError
            return self._half(list(x), self._place(x, index), 0)
        raise NeedsPlainError("item: an index that is known when the program runs.")

    def _default(self, x: Any, key: Any) -> Any:
        """What a defaultdict puts at a key that it does not have."""
        if x.default_factory is None:
            return x[key]  # as Python raises it
        found = self.call(x.default_factory)
        self.session.write(x, "a new key")
        x[key] = found
        return found

    def _place(self, x: Any, index: Any) -> Any:
        """The place that an index of a list means; it is one of the list's."""
        if index.node.type is not INT:
            raise NeedsPlainError("item: an index that is no int.")
        place = IF(index < 0, lambda: index + len(x), lambda: index)
        inside = self.and_(place >= 0, lambda: place < len(x))
        self.claim(inside, lambda: "list index out of range")
        return place

    def _half(self, items: list[Any], index: Any, at: int) -> Any:
        """One of several values, found by halves."""
        if len(items) == 1:
            return items[0]
        half = len(items) // 2
        return IF(
            index < at + half,
            lambda: self._half(items[:half], index, at),
            lambda: self._half(items[half:], index, at + half),
        )

    def slice_(self, *parts: Any) -> slice:
        """``a:b:c``."""
        return slice(*parts)

    def attribute(self, x: Any, name: str) -> Any:
        """``x.name``."""
        if is_staged(x):
            if isinstance(x, StagedTree):
                return self._of_tree(x, name)
            if name not in _OF_NUMBERS:
                raise StagingError(f"{name}: of a number that is known when it runs.")
            return getattr(x, name)
        kind: Any = type(x)
        if kind is Optional:
            return self.attribute(x.definite(), name)
        if kind is ModuleType and x.__name__.partition(".")[0] in _TRUSTED:
            return getattr(x, name)
        found = class_attribute(kind, name)
        fget = getattr(found, "fget", None)
        if fget is not None:
            self._guard_class(x, name, found)
            return self.call(fget, x)
        if type(class_attribute(type(found), "__get__")) is FunctionType:
            raise StagingError(
                f"{name}: it is found by code of a {type(found).__name__}. Read it "
                f"outside of the function."
            )
        value = getattr(x, name)
        if self.session.is_inside(x) or isinstance(x, _IMMUTABLE):
            if name not in getattr(x, "__dict__", ()):
                self._guard_class(x, name, found)
        else:
            self.session.guards.attribute(x, name, value)
        return value

    def _of_tree(self, x: StagedTree, name: str) -> Any:
        """A method of an object that is walked, or what its attribute is."""
        cls = x.likely_class()
        found = cls and class_attribute(cls, name)
        if type(found) is not FunctionType:
            if found is not None:  # a slot, or an item's name: where machine code reads
                self.session.guards.of_class(cls, name, found)
            return x.field(name)
        every = [found, *(class_attribute(type(y), name) for y in x.node.example)]
        functions = list(dict.fromkeys(f for f in every if type(f) is FunctionType))
        if len(functions) > 1:
            return Methods(x, name, functions)
        self.claim(x.has_method(name, found), _pass)
        return MethodType(found, x)

    def of_parent(self, find: Any, cls: Any, x: Any, name: str) -> Any:
        """``super().name``: what the classes behind one have for an object."""
        kind = x.likely_class() if isinstance(x, StagedTree) else type(x)
        if find is not super or cls not in kind.__mro__:
            raise StagingError(
                f"super: of a {kind.__name__} it is not known what it is."
            )
        if isinstance(x, StagedTree):
            self.claim(x.is_instance(kind), _pass)
        for base in kind.__mro__[kind.__mro__.index(cls) + 1 :]:
            found = base.__dict__.get(name)
            self.session.guards.attribute(base, name, getattr(base, name, MISSING))
            if found is not None:
                break
        if type(found) is FunctionType:
            return MethodType(found, x)
        if type(found) is property:
            return self.call(found.fget, x)
        raise StagingError(f"super: {name} is no function and no property there.")

    def _guard_class(self, x: Any, name: str, found: Any) -> None:
        """Guard what a class has for all its objects."""
        cls = type(x)
        if found is None or type(found) in _PLACES or not cls.__flags__ & HEAP_TYPE:
            return
        self.session.guards.of_class(cls, name, found)

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``f(...)``."""
        return call(self.session, f, args, kwargs)

    def made(self, x: Any) -> Any:
        """A list, dict or set that the program writes down."""
        return self.session.made(x)

    def binary(self, op: str, x: Any, y: Any) -> Any:
        """``x op y``: more in ``operators.py``."""
        return BINARY[op](x, y)

    def joined(self, op: str, x: Any, y: Any) -> Any:
        """``x op y`` where one of them is a list that the program writes down."""
        found = self.binary(op, x, y)
        is_new = type(x) in (list, int) and type(y) in (list, int)
        return self.session.made(found) if is_new else found

    def shares(self, names: Any) -> None:
        """Variables of the running function are assigned to by others inside it."""
        self.session.share(names)

    def rebinds(self, names: Any) -> None:
        """``nonlocal``: the running function assigns to variables of one around it."""
        self.session.rebind(names)

    def once(self, x: Any) -> Once:
        """A generator that the program writes down."""
        return Once(x)

    def known(self, test: Any) -> bool:
        """What a test says that has to be known, as beside a ``yield``."""
        self.session.step()
        test = self.truth(test)
        if is_staged(test) and test.node.op != "constant":
            raise NeedsPlainError(
                "yield, filter: how many items there are is known only when the "
                "program runs. Return a value."
            )
        return bool(test)

    def turns(self, items: Any) -> Iterator[Any]:
        """What a loop with a ``yield`` in it goes through."""
        for x in self.items_of(items):
            self.session.step()
            yield x

    def filtered(self, f: Any, pairs: Iterator[tuple[Any, Callable[[], Any]]]) -> Any:
        """``f(x for ... if test)``, of tests and functions that make the items."""
        if f is sum and (self.session.derivatives or not COMPENSATES):
            total: Any = 0
            for pair in pairs:
                total = self._perhaps_plus(total, pair)
            return total
        if f in (any, all):
            items = (self._asked(f, test, make) for test, make in pairs)
        else:
            items = (make() for test, make in pairs if self.truth(test))
        return self.call(f, self.once(items))

    def reduced(self, f: Any, items: Any, make: Callable[[Any], Any]) -> Any:
        """``f(make(x) for x in items)``."""
        if isinstance(items, StagedTree) and f in _REDUCED:
            return _REDUCED[f](self, self._indices(items), lambda i: make(items[i]))
        if isinstance(items, StagedRange) and f in _REDUCED:
            return _REDUCED[f](self, items, make)
        return self.call(f, self.once(make(x) for x in self.items_of(items)))

    def filtered_of(self, f: Any, items: Any, pair: Callable[[Any], Any]) -> Any:
        """As ``filtered``, of items, and what makes a test and a function of one."""
        if isinstance(items, StagedTree):
            return self.filtered_of(f, self._indices(items), lambda i: pair(items[i]))
        if not isinstance(items, StagedRange) or f not in (sum, any, all):
            return self.filtered(f, (pair(x) for x in self.items_of(items)))
        if f is sum:
            self._check_sum()
            return self._folded(items, pair, 0, self._perhaps_plus)
        return _REDUCED[f](self, items, lambda i: self._asked(f, *pair(i)))

    def _perhaps_plus(self, total: Any, pair: tuple[Any, Callable[[], Any]]) -> Any:
        test, make = pair
        plus = partial(self._plus, total, make)
        return self.choose(test, plus, partial(itself, total))

    def _asked(self, f: Any, test: Any, make: Callable[[], Any]) -> Any:
        """What an item says for ``any`` or ``all``, if a test holds for it."""
        return self.choose(test, lambda: self._told(make()), partial(itself, f is all))

    def _check_sum(self) -> None:
        if COMPENSATES and not self.session.derivatives:
            raise NeedsPlainError("sum: of as many floats as is known when it runs.")

    def _indices(self, items: StagedTree) -> StagedRange:
        return StagedRange(0, items.size(), 1)

    def _folded(
        self, items: StagedRange, make: Callable[[Any], Any], start: Any, plus: Any
    ) -> Any:
        """What is left of a value and items; the program is left if there are none."""
        compare = operator.lt if items.step > 0 else operator.gt
        self.claim(compare(items.start, items.stop), _pass)
        first = make(items.start)
        found = first if start is None else plus(start, first)

        def turn(i: Any) -> None:
            nonlocal found
            found = plus(found, make(i))

        def put(values: tuple[Any, ...]) -> None:
            nonlocal found
            (found,) = values

        rest = StagedRange(items.start + items.step, items.stop, items.step)
        self._count(
            rest, turn, lambda: False, lambda: (found,), put, ("found",), is_begun=True
        )
        return found

    def _sum_of(self, items: StagedRange, make: Callable[[Any], Any]) -> Any:
        """``sum``."""
        self._check_sum()
        return self._folded(items, make, 0, partial(self.binary, "Add"))

    def _extreme_of(
        self, op: str, items: StagedRange, make: Callable[[Any], Any]
    ) -> Any:
        """``max``, ``min``."""

        def better(found: Any, x: Any) -> Any:
            test = self._compared(op, x, found)
            return self.choose(test, lambda: x, lambda: found)

        return self._folded(items, make, None, better)

    def _any_of(
        self, stop_at: bool, items: StagedRange, make: Callable[[Any], Any]
    ) -> Any:
        """``any``, ``all``: no item is asked behind the one that tells."""
        is_told: Any = False

        def turn(i: Any) -> None:
            nonlocal is_told
            x = self._told(make(i))
            is_told = x if stop_at else self.not_(x)

        def put(values: tuple[Any, ...]) -> None:
            nonlocal is_told
            (is_told,) = values

        get = lambda: (is_told,)  # noqa: E731  # it is named as others are
        self._count(items, turn, lambda: is_told, get, put, ("is_told",))
        return is_told if stop_at else self.not_(is_told)

    def _plus(self, total: Any, make: Callable[[], Any]) -> Any:
        return self.binary("Add", total, make())

    def set_item(self, value: Any, x: Any, index: Any) -> None:
        """``x[index] = value``, which is computed before x and the index are."""
        if is_staged(index):
            if self._few or type(x) is not list or not 0 < len(x) <= MOST_WRITTEN:
                raise NeedsPlainError("an assignment to an element known later.")
            place = self._place(x, index)
            found = [self._one_of(place == i, value, y) for i, y in enumerate(x)]
            self.session.write(x, "an assignment to an element")
            x[:] = found
            return
        self.session.write(x, "an assignment to an element")
        x[index] = value

    def _one_of(self, test: Any, x: Any, y: Any) -> Any:
        """One of two numbers."""
        if not (_is_value(x) and _is_value(y)):
            raise NeedsPlainError("an assignment to an element known later.")
        return IF(test, lambda: x, lambda: y)

    def forgotten(self, x: Any) -> Any:
        """What a variable holds behind ``del``."""
        return x.refuse() if is_undefined(x) else UNDEFINED

    def del_item(self, x: Any, index: Any) -> None:
        """``del x[index]``."""
        if is_staged(index):
            raise NeedsPlainError("del: of an element that is known later.")
        self.session.write(x, "del")
        del x[index]

    def set_attribute(self, value: Any, x: Any, name: str) -> None:
        """``x.name = value``."""
        found = class_attribute(type(x), name)
        fset = getattr(found, "fset", None)
        if fset is not None:
            self._guard_class(x, name, found)
            self.call(fset, x, value)
            return
        self.session.write(x, "an assignment to an attribute")
        if isinstance(x, defaultdict):
            raise StagingError(f"{name}: of a defaultdict it does not change.")
        if _is_more_than_fields(x, name):
            raise StagingError(f"{name}: it is no field of a {type(x).__name__}.")
        setattr(x, name, value)

    def set_past_class(self, x: Any, name: Any, value: Any) -> None:
        """``object.__setattr__(x, name, value)``, as frozen data classes need it."""
        found = class_attribute(type(x), name)
        if hasattr(found, "__set__") and type(found) is not MemberDescriptorType:
            raise StagingError(f"{name}: it is set by code of a {type(found)}.")
        self.session.write(x, "an assignment to an attribute")
        if _is_more_than_fields(x, name):
            raise StagingError(f"{name}: it is no field of a {type(x).__name__}.")
        object.__setattr__(x, name, value)

    def augment(self, op: str, x: Any, y: Any) -> Any:
        """``x op= y`` of a variable."""
        if isinstance(x, list | dict | set | deque):
            self.session.write(x, "an augmented assignment")
            return _IN_PLACE[op](x, y)
        return BINARY[op](x, y)

    def augment_item(self, op: str, x: Any, index: Any, y: Callable[[], Any]) -> None:
        """``x[index] op= y``."""
        self.set_item(self.augment(op, self.item(x, index), y()), x, index)

    def augment_attribute(
        self, op: str, x: Any, name: str, y: Callable[[], Any]
    ) -> None:
        """``x.name op= y``."""
        self.set_attribute(self.augment(op, self.attribute(x, name), y()), x, name)


def _is_more_than_fields(x: Any, name: str) -> bool:
    """Whether an attribute would be lost where an object is made anew of its fields.

    Those of classes with ``__post_init__`` are not made anew.
    """
    if not is_dataclass(x) or hasattr(x, "__post_init__"):
        return False
    return name not in x.__dataclass_fields__


def _pass() -> None:
    """A way on which nothing is done."""


def _fail() -> int:
    """The way of a program on which an assertion does not hold."""
    raise StoppedError


_REDUCED: dict[Any, Callable[..., Any]] = {
    sum: Surface._sum_of,
    max: lambda lt, *args: lt._extreme_of("Gt", *args),
    min: lambda lt, *args: lt._extreme_of("Lt", *args),
    any: lambda lt, *args: lt._any_of(True, *args),
    all: lambda lt, *args: lt._any_of(False, *args),
}
"""What goes through as many items as is known when the program runs."""

_Pair = namedtuple("_Pair", "first second")
_WHOLE = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
_OF_NUMBERS = ("real", "imag", "conjugate", "shape", "ndim", "size")
_PLACES = (MemberDescriptorType, GetSetDescriptorType, type(_Pair.first))
_IMMUTABLE = (int, float, bool, str, bytes, tuple, range, type(None))


def _is_always_true(cls: Any) -> bool:
    """Whether each object of a class is true."""
    if issubclass(cls, tuple) and getattr(cls, "_fields", None):
        return True
    own = [class_attribute(cls, name) for name in ("__bool__", "__len__")]
    return cls.__flags__ & HEAP_TYPE != 0 and own == [None, None]


class _Firsts:
    """The variables that a loop gives their first value.

    Those that somebody asks for behind the loop are part of its state: nothing is in
    them before its first turn, and the program is left if there is none. What the loop
    returns is one, too; it is asked for where there is something in it.

    Attributes:
        kept: those that are.
        lost: what stands behind the loop in all others.
    """

    def __init__(self, session: Session, get: Get, state: dict[str, Any]) -> None:
        code = getattr(get, "__wrapped__", get).__code__
        names = [x for x, value in state.items() if is_undefined(value)]
        self.lost = {x: Lost((code, x)) for x in names}
        self.kept = {x for x in names if x == RETURNED or (code, x) in session.kept}
        self._found: dict[str, Any] = {}

    def note(self, after: dict[str, Any]) -> None:
        """Note what there is after a turn."""
        found = {x: after[x] for x in self.kept}
        self._found |= {x: y for x, y in found.items() if not is_undefined(y)}
        after[_TURNED] = True

    def missing(self, start: dict[str, Any]) -> dict[str, Any]:
        """What is to be added to the state."""
        found = {x: y for x, y in self._found.items() if x in self.kept - start.keys()}
        more = {x: _blank(y) for x, y in found.items()}
        return more | {_TURNED: False} if more.keys() - {RETURNED} else more


class _AnotherError(Signal):
    """Variables that are other objects after a turn, and no numbers.

    Attributes:
        values: what they are then.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


def _start_otherwise(
    start: dict[str, Any], after: dict[str, Any], is_settled: bool
) -> set[str]:
    """Have a loop's state hold what a turn gives; the variables that are left out."""
    out: set[str] = set()
    for x, value in after.items():
        wider = start[x] if is_settled else widened(start[x], value)
        if wider is start[x]:  # each turn has its own: it is not handed on
            del start[x]
            out.add(x)
        else:
            start[x] = wider
    return out


def _handed_on(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What a turn hands to the next one."""
    other = [x for x in before if _is_other(before[x], after[x])]
    for x in other:
        if type(before[x]) is Optional:
            after[x] = widened(after[x], before[x])
    other = [x for x in other if _is_other(before[x], after[x])]
    if other:
        raise _AnotherError({x: after[x] for x in other})
    return {x: after[x] for x in before}


def _is_other(before: Any, after: Any) -> bool:
    """Whether a variable holds something that a loop cannot hand from turn to turn."""
    if describe(before) != describe(after):
        return True
    pairs = zip(leaves_of(before), leaves_of(after), strict=True)
    return any(not (_is_value(x) and _is_value(y)) and not same(x, y) for x, y in pairs)


def _is_value(x: Any) -> bool:
    return is_staged(x) or is_number(x)


def _blank(like: Any) -> Any:
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
            found = _blank(y if is_undefined(x) else x)
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

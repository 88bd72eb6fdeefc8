"""Loops of rewritten code: ``while`` and ``for``, as loops of the program or unrolled.

Which variables a loop hands from turn to turn is settled here alone.
"""

import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from lantern.errors import StagingError
from lantern.staging.branches import Branches, Get, Names, Put, blank, pass_
from lantern.staging.changes import Carriage, CarryError
from lantern.staging.control import Signal, has_staged
from lantern.staging.ir import Block, building, current
from lantern.staging.loops import MOST_UNROLLED, UNROLLED, staged_loop
from lantern.staging.optional import Optional, widened
from lantern.staging.python_functions import Items, StagedRange
from lantern.staging.session import Session
from lantern.staging.staged import NeedsPlainError, StagedArray, is_staged
from lantern.staging.structure import (
    UNDEFINED,
    Lost,
    describe,
    is_number,
    is_undefined,
    leaves_of,
    same,
)
from lantern.staging.syntax import RETURNED
from lantern.staging.trees import StagedTree

__all__ = ["Loop", "Loops", "is_value"]

FEW = 64
"""Turns of a loop that is rather unrolled than staged with an ``x[i] = y`` in it."""

_TURNED = "_lt_turned"
"""Whether a loop has made a turn: its state, where that gives variables a value."""

_FLAG = re.compile(r"_lt_(broken|returned)\d+")


class Loop(NamedTuple):
    """A loop of rewritten code.

    Attributes:
        body: what a turn does; one of ``for`` takes its item.
        broken: whether the loop has been left by a jump.
        get, put, names: the variables that it assigns to.
        test: whether there is another turn; None as long as its items say so.
    """

    body: Any
    broken: Any
    get: Get
    put: Put
    names: Names
    test: Any = None


class Loops(Branches):
    """The constructs that have turns."""

    _few = False  # a loop of few turns is tried: it may as well be unrolled

    def items_of(self, x: Any) -> Any:
        """What a loop goes through: more in ``operators.py``."""
        return x

    def while_(
        self, test: Any, body: Any, broken: Any, get: Get, put: Put, names: Names
    ) -> None:
        """``while``."""
        loop = Loop(body, broken, get, put, names, test)
        turns = 0
        while True:
            with building(Block("branch", current.blocks[-1])):
                goes_on = self._goes_on(loop)
            if is_staged(goes_on):
                self._loop(loop, turns > 0)
                return
            if not goes_on:
                return
            is_long = turns >= UNROLLED and any(map(has_staged, get()))
            if is_long and self._succeeds(loop, partial(self._loop, loop, turns > 0)):
                return
            body()
            turns += 1
            self._check_length("while", turns)

    def _succeeds(self, loop: Loop, stage: Callable[[], None]) -> bool:
        """Whether a loop can be staged so; if not, its variables are what they were."""
        before, copied = loop.get(), current.copied.copy()
        try:
            stage()
        except StagingError:
            loop.put(before)
            current.copied = copied
            return False
        return True

    def _check_length(self, what: str, turns: int) -> None:
        """Refuse a loop of too many turns, staged one by one."""
        self.session.step()
        if turns > MOST_UNROLLED:
            raise StagingError(
                f"{what}: it has more than {MOST_UNROLLED} turns, staged one by one."
            )

    def _goes_on(self, loop: Loop) -> Any:
        return self.and_(self.not_(loop.broken()), lambda: self._told(loop.test()))

    def _loop(self, loop: Loop, is_begun: bool, is_settled: bool = False) -> None:
        """A loop of the program.

        In the first turn a variable may be a value that has other uses. So where
        cotangents have to be added up in order, that turn is staged by itself, unless a
        turn has been.
        """

        def first() -> None:
            loop.body()
            self._turns(loop, is_settled)

        if is_begun or not current.is_ordered:
            self._turns(loop, is_settled)
        else:
            variables = loop.get, loop.put, loop.names
            self.branch(self._goes_on(loop), first, pass_, *variables)

    def _turns(self, loop: Loop, is_settled: bool) -> None:
        """A loop node; a variable is part of its state once it is defined."""
        get, put, names = loop.get, loop.put, loop.names
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
            return self._goes_on(loop)

        def turn(values: dict[str, Any]) -> dict[str, Any]:
            self.session.cover(get)
            set_all(values)
            with carried.turn():
                loop.body()
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
            self.claim(result[_TURNED], pass_)
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
        loop = Loop(body, broken, get, put, names)
        if isinstance(items, StagedRange):
            self._count(items, loop)
            return
        if isinstance(items, StagedTree):
            count = StagedRange(0, items.size(), 1)
            self._count(count, loop._replace(body=lambda i: body(items[i])))
            return
        if is_staged(items) and not isinstance(items, StagedArray):
            raise NeedsPlainError("for: over an object that is known when it runs.")
        items = self.items_of(items)
        rest = items
        if type(items) is range and len(items) > UNROLLED:
            if not current.is_ordered and self._is_counted(items, loop, brief):
                return
            body(items[0])
            rest = items[1:]
            if self._is_counted(rest, loop, None):
                return
        for i, x in enumerate(Items(rest, broken)):
            if is_staged(broken()):
                self.branch(broken(), pass_, partial(body, x), get, put, names)
                continue
            self._check_length("for", i)
            body(x)

    def _is_counted(self, items: range, loop: Loop, brief: Names | None) -> bool:
        """Whether a loop over a range has been staged as one.

        Before its first turn it can be if all variables but brief ones are defined, and
        none changes its type: the first turn, staged by itself, is as long again.
        """
        if brief is not None and not all(
            not is_undefined(x) or name in brief or _FLAG.fullmatch(name)
            for name, x in zip(loop.names, loop.get(), strict=True)
        ):
            return False
        counted = StagedRange(items.start, items.stop, items.step)
        settled, few = brief is not None, self._few
        self._few = few or len(items) <= FEW
        try:
            count = partial(self._count, counted, loop, not settled, settled)
            return self._succeeds(loop, count)
        finally:
            self._few = few

    def _count(
        self,
        items: StagedRange,
        loop: Loop,
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
            loop.body(i)
            i = i + items.step

        def get() -> tuple[Any, ...]:
            return (i, *loop.get())

        get.__wrapped__ = loop.get  # type: ignore[attr-defined]  # read by cover

        def put(values: tuple[Any, ...]) -> None:
            nonlocal i
            i = values[0]
            loop.put(values[1:])

        names = ("_lt_counter", *loop.names)
        counted = Loop(turn, loop.broken, get, put, names, test)
        self._loop(counted, is_begun, is_settled)


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
        more = {x: blank(y) for x, y in found.items()}
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
    return any(not (is_value(x) and is_value(y)) and not same(x, y) for x, y in pairs)


def is_value(x: Any) -> bool:
    """Whether something is a number, known or not."""
    return is_staged(x) or is_number(x)

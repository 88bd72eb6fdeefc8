"""Changes of containers on one way of a branch, or in the turns of a loop.

What a program has made it may also change where it is known only when it runs whether
it comes there. Both ways of a branch are staged from the same contents; behind it a
place that has not the same on each is a result of the branch, as a variable is. The
numbers in a container that turns change are part of the loop's state.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from lantern.errors import StagingError
from lantern.staging.ir import Block, current
from lantern.staging.staged import is_staged
from lantern.staging.structure import (
    Signal,
    containers_of,
    is_number,
    leaves_of,
    note_copied,
    same,
    unflatten,
)

__all__ = [
    "Carriage",
    "CarryError",
    "Changes",
    "Way",
    "may_change",
    "note",
]


class Held(NamedTuple):
    """What a container holds: its keys, and what stands there."""

    keys: list[Any]
    values: list[Any]


class Change(NamedTuple):
    """A container that is changed in a block that it was not made in.

    Attributes:
        before: what it held when the block began.
        home: the block that it was made in.
    """

    container: Any
    before: Held
    home: Block


_ROWS = (list, deque)
_DICTS = (dict, defaultdict)


def _held(x: Any) -> Held:
    if type(x) in _ROWS:
        return Held([len(x)], list(x))
    space = x if type(x) in _DICTS else x.__dict__
    return Held(list(space), list(space.values()))


def _put(x: Any, held: Held) -> None:
    if type(x) in _ROWS and len(x) == len(held.values):
        for i, value in enumerate(held.values):
            x[i] = value
        return
    if type(x) in _ROWS:
        x.clear()
        x.extend(held.values)
        return
    space = x if type(x) in _DICTS else x.__dict__
    if not _are_same(list(space), held.keys):
        space.clear()
    space.update(zip(held.keys, held.values, strict=True))


def _are_same(xs: list[Any], ys: list[Any]) -> bool:
    return len(xs) == len(ys) and all(map(same, xs, ys))


def may_change(x: Any, home: Block) -> bool:
    """Whether a container may be changed here, as it may be where it was made.

    Raises:
        CarryError: if it may be once it is part of a loop's state.
    """
    block: Block | None = current.blocks[-1]
    if block is home:
        return True
    if type(x) not in (*_ROWS, *_DICTS) and not _is_all_attributes(x):
        return False
    while block is not None and block is not home:
        if block in current.carried:
            if id(x) not in current.carried[block]:
                raise CarryError(x)
        elif block not in current.changes:
            return False
        block = block.parent
    return block is home


def _is_all_attributes(x: Any) -> bool:
    """Whether an object is no more than its ``__dict__``."""
    if isinstance(x, list | dict | set) or not hasattr(x, "__dict__"):
        return False
    return not any(getattr(cls, "__slots__", ()) for cls in type(x).__mro__)


def note(x: Any, home: Block, before: Held | None = None) -> None:
    """Note that a container is about to be changed here, and what it holds."""
    block = current.blocks[-1]
    if block is not home and block not in current.carried:
        change = Change(x, before or _held(x), home)
        current.changes[block].setdefault(id(x), change)


class Way:
    """One way of a branch.

    Attributes:
        block: what it is staged into.
        changes: what it changes, by the containers' addresses.
        after: what these hold at its end, likewise.
    """

    __slots__ = ("after", "block", "changes")

    def __init__(self) -> None:
        self.block = Block("branch", current.blocks[-1])
        self.changes: dict[int, Change] = {}
        self.after: dict[int, Held] = {}

    def staged(self, branch: Callable[[], Any]) -> Any:
        """What staging it gives; what it has changed is as before then."""
        current.changes[self.block] = self.changes
        try:
            result = branch()
            self.after = {k: _held(x.container) for k, x in self.changes.items()}
            if any(id(x) in self.changes for x in containers_of(result)):
                note_copied(result)
                result = unflatten(result, leaves_of(result))
            return result
        finally:
            del current.changes[self.block]
            for change in self.changes.values():
                _put(change.container, change.before)


class Changes:
    """What the ways of a branch have changed, to be joined.

    Args:
        ways: the two.
        ended: whether each ends the program, so that the other one's contents stay.

    Attributes:
        values: of each way, numbers that stand at some places at its end.
    """

    def __init__(self, ways: Sequence[Way], ended: Sequence[bool]) -> None:
        self.changes = {**ways[0].changes, **ways[1].changes}
        self.values: tuple[list[Any], list[Any]] = [], []
        self._places: list[tuple[list[Any], int]] = []
        self._held: list[Held] = []
        for key, change in self.changes.items():
            ends = [way.after.get(key, change.before) for way in ways]
            if any(ended):
                ends = [ends[ended[0]]] * 2
            self._join(change, *ends)

    def _join(self, change: Change, one: Held, other: Held) -> None:
        held = Held(one.keys, list(one.values))
        self._held.append(held)
        if not _are_same(one.keys, other.keys):
            raise _other(change.container, "on each way of a branch")
        known = set(map(id, change.before.values)) if one is other else ()
        for i, (x, y) in enumerate(zip(one.values, other.values, strict=True)):
            if id(x) in known or (x is y and one is not other):
                continue
            if not all(is_staged(z) or is_number(z) for z in (x, y)):
                raise _other(change.container, "on each way of a branch")
            self._places.append((held.values, i))
            self.values[0].append(x)
            self.values[1].append(y)

    def put(self, values: Sequence[Any]) -> None:
        """Have the containers hold what the ways have in common, and joined values."""
        for (row, i), x in zip(self._places, values, strict=True):
            row[i] = x
        for change, held in zip(self.changes.values(), self._held, strict=True):
            note(change.container, change.home, change.before)
            _put(change.container, held)


class CarryError(Signal):
    """A turn of a loop changes a container that is not part of its state."""

    def __init__(self, container: Any) -> None:
        self.container = container


class Carried:
    """A container whose numbers are part of a loop's state.

    Attributes:
        container: it.
        start: the numbers in it before the loop.
    """

    def __init__(self, container: Any) -> None:
        self.container, self._held = container, _held(container)
        values = self._held.values
        self._places = [i for i, x in enumerate(values) if is_staged(x) or is_number(x)]
        self.start = [values[i] for i in self._places]

    def put(self, numbers: Sequence[Any]) -> None:
        """Have the container hold other numbers."""
        values = list(self._held.values)
        for i, x in zip(self._places, numbers, strict=True):
            values[i] = x
        _put(self.container, Held(self._held.keys, values))

    def numbers(self) -> list[Any]:
        """The numbers in it by now; all else is as it was."""
        keys, values = _held(self.container)
        if not _are_same(keys, self._held.keys):
            raise _other(self.container, "after a turn of a loop")
        for i, x in enumerate(self._held.values):
            if i not in self._places and values[i] is not x:
                raise _other(self.container, "after a turn of a loop")
        return [values[i] for i in self._places]


class Carriage:
    """The containers that a loop's turns change.

    Attributes:
        start: the numbers in each before the loop, by names in the loop's state.
    """

    def __init__(self) -> None:
        self.start: dict[str, list[Any]] = {}
        self._carried: dict[str, Carried] = {}

    def add(self, container: Any) -> dict[str, list[Any]]:
        """One more; its name, and the numbers in it."""
        name = f"_lt_carried{len(self.start)}"
        found = self._carried[name] = Carried(container)
        self.start[name] = found.start
        return {name: found.start}

    def put(self, state: Mapping[str, Any]) -> None:
        """Have them hold the numbers of a state."""
        for name, x in self._carried.items():
            x.put(state[name])

    def numbers(self) -> dict[str, list[Any]]:
        """The numbers in them by now."""
        return {name: x.numbers() for name, x in self._carried.items()}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What is staged in here is a turn of the loop."""
        header, body = current.blocks[-2:]
        known = frozenset(id(x.container) for x in self._carried.values())
        current.carried[body] = current.carried[header] = known
        try:
            yield
        finally:
            del current.carried[body], current.carried[header]


def _other(container: Any, where: str) -> StagingError:
    return StagingError(
        f"a {type(container).__name__} that has other items {where}, or not as many. "
        f"Make a new one."
    )

"""The state of one staging: what was made in it, what was read, what is running."""

from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

from lantern.core.tree import is_leaf, tree_children
from lantern.errors import StagingError
from lantern.staging.changes import may_change, note
from lantern.staging.control import Signal
from lantern.staging.guards import Guards
from lantern.staging.ir import Block, current
from lantern.staging.objects import has_hooks
from lantern.staging.staged import is_staged
from lantern.staging.structure import Undefined, is_copied
from lantern.staging.trees import StagedTree

__all__ = ["NeedsCareError", "Session"]

_PLAIN = (int, float, bool, str, bytes, tuple, range, type(None), Undefined)


MOST_STEPS = 1_000_000
"""Calls, and turns of unrolled loops, that are staged before it is given up."""


class NeedsCareError(Signal):
    """There are objects with hooks: operators have to be looked at."""


class Session:
    """One staging of one function.

    Attributes:
        guards: what it has taken for constant.
        recursive: codes of functions that become functions of the program.
        kept: variables that a loop gives their first value, and hands on.
        is_careful: whether operators are looked at, for there are objects with hooks.
        active: codes of the functions that are running, innermost last.
        derivatives: how many derivatives are being staged around the current call.
        look: is shown the function whose derivative the program is (``known.py``).
        most_steps: calls, and turns of unrolled loops, that are staged at most.
        steps: how many have been.
    """

    def __init__(
        self, lt: Any, recursive: set[CodeType], kept: set[Any], is_careful: bool
    ) -> None:
        self.lt, self.kept = lt, kept
        self.guards = Guards(partial(self.meet, is_outside=True))
        self.recursive = recursive
        self.is_careful = is_careful
        self.active: list[CodeType] = []
        self.derivatives = self.steps = 0
        self.most_steps = MOST_STEPS
        self.look: Any = None
        self._made: dict[int, tuple[Any, Block, Any]] = {}
        self._given: dict[int, Any] = {}
        self._callers: set[int] = set()
        self._met: set[Any] = set()
        self._ours: set[CodeType] = set()
        self._running: set[CodeType] = set()
        self._rewritten: dict[int, tuple[FunctionType, FunctionType]] = {}
        self._homes: dict[int, tuple[CellType, Block, Any]] = {}
        self._covered: dict[Block, frozenset[int]] = {}

    def call(self, f: Any, *args: Any) -> Any:
        """A call in the staged program."""
        return self.lt.call(f, *args)

    def step(self) -> None:
        """Stage a call, or a turn of a loop by itself."""
        self.steps += 1
        if self.steps > self.most_steps:
            raise StagingError(
                f"its calls, and the turns of loops that are staged one by one, are "
                f"more than {self.most_steps}."
            )

    def rewritten(self, f: FunctionType, rewrite: Any) -> FunctionType:
        """The rewritten form of a user's function."""
        if id(f) not in self._rewritten:
            new = rewrite(f, self.lt, self.is_careful)
            self._running.add(new.__code__)
            self._note(new.__code__)
            self._rewritten[id(f)] = new, f
        return self._rewritten[id(f)][0]

    def _note(self, code: CodeType) -> None:
        for x in code.co_consts:
            if isinstance(x, CodeType):
                self._ours.add(x)
                self._note(x)

    def is_ours(self, f: FunctionType) -> bool:
        """Whether a function was made by rewritten code."""
        return f.__code__ in self._ours

    def may_run(self, code: CodeType) -> bool:
        """Whether code is rewritten."""
        return code in self._running or code in self._ours

    def meet(self, cls: type, is_outside: bool = False) -> None:
        """Take care from now on, if Python calls functions of a class by itself.

        Raises:
            NeedsCareError: if no care has been taken so far.
        """
        if self.is_careful or (cls, is_outside) in self._met:
            return
        self._met.add((cls, is_outside))
        if has_hooks(cls, is_outside):
            raise NeedsCareError

    def give(self, x: Any) -> None:
        """Note the containers of an argument: they are copies, and may be read."""
        if isinstance(x, StagedTree):
            for cls in set(map(type, x.node.example)):
                self.meet(cls)
            return
        if is_staged(x):
            return
        for _, part in tree_children(x) or ():
            self.give(part)
        if type(x) not in _PLAIN:
            self.meet(type(x))
        if not is_leaf(x):
            self._given[id(x)] = x

    def take(self, x: Any) -> None:
        """Note an argument of the caller's: what it holds is given, too."""
        self.give(x)
        self._callers.update(self._given)

    def is_callers(self, x: Any) -> bool:
        """Whether the plain function would hand back an object that somebody has."""
        return id(x) in self._callers or id(x) in self.guards.outside

    def is_given(self, x: Any) -> bool:
        """Whether an object is a copy of one that the caller has."""
        return id(x) in self._given and id(x) not in self._made

    def made(self, x: Any) -> Any:
        """Note that an object was made here and now."""
        if type(x) not in _PLAIN and not is_staged(x):
            self.meet(type(x))
            self._made[id(x)] = x, current.blocks[-1], current.ahead
        return x

    def is_inside(self, x: Any) -> bool:
        """Whether an object belongs to the staged program alone."""
        return id(x) in self._made or id(x) in self._given

    def write(self, x: Any, what: str) -> None:
        """Refuse to change what others may see, or what not every way changes."""
        found = self._made.get(id(x))
        if found is None or found[0] is not x:
            raise StagingError(
                f"{what}: it would change a {type(x).__name__} made outside of the "
                f"function. Make a new one."
            )
        if is_copied(x):
            raise StagingError(
                f"{what}: it would change a {type(x).__name__} that has another name "
                f"behind a branch, a loop or a call. Make a new one."
            )
        if found[2] is not current.ahead or not may_change(x, found[1]):
            raise StagingError(
                f"{what}: it would change a {type(x).__name__} on one way of the "
                f"program alone, or once for all turns of a loop. Make a new one."
            )
        note(x, found[1])

    # Variables that several functions assign to.

    def share(self, names: Any) -> None:
        """Note where the variables that a function has captured are at home: here."""
        for cell in _cells(names).values():
            self._homes[id(cell)] = cell, current.blocks[-1], current.ahead

    def shared(self, names: Any) -> set[str]:
        """Those variables that a function has captured that are so noted."""
        return {x for x, cell in _cells(names).items() if id(cell) in self._homes}

    def cover(self, names: Any) -> None:
        """Note that what becomes here of captured variables is handed on behind it."""
        if self._homes:
            names = getattr(names, "__wrapped__", names)
            cells = frozenset(map(id, names.__closure__ or ()))
            block = current.blocks[-1]
            self._covered[block] = cells
            if block.kind == "body" and block.parent is not None:  # behind its test
                self._covered[block.parent] = cells

    def rebind(self, names: Any) -> None:
        """Refuse to assign to captured variables where nobody hands them on."""
        for name, cell in _cells(names).items():
            found = self._homes.get(id(cell))
            if found is None:
                raise StagingError(
                    f"nonlocal: {name} is a variable of a function outside. Return its "
                    f"new value."
                )
            if found[2] is not current.ahead or not self._is_handed_on(cell, found[1]):
                raise StagingError(
                    f"nonlocal: {name} would change on one way of the program alone, "
                    f"or once for all turns of a loop. Return its new value."
                )

    def _is_handed_on(self, cell: CellType, home: Block) -> bool:
        """Whether a variable's value goes from here to where it is at home."""
        block: Block | None = current.blocks[-1]
        while block is not None and block is not home:
            covered = id(cell) in self._covered.get(block, ())
            block = block.parent if covered else None
        return block is home


def _cells(names: Any) -> dict[str, CellType]:
    """The variables that a function has captured, by their names."""
    return dict(zip(names.__code__.co_freevars, names.__closure__ or (), strict=True))

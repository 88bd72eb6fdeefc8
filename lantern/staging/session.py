"""The state of one staging: what was made in it, what was read, what is running."""

from types import CodeType, FunctionType
from typing import Any

from lantern.errors import StagingError
from lantern.staging.guards import Guards
from lantern.staging.ir import Block, current
from lantern.staging.staged import is_staged
from lantern.staging.structure import Undefined

__all__ = ["Session"]

_MUTABLE = (list, dict, set)
_PLAIN = (int, float, bool, str, bytes, tuple, range, type(None), Undefined)


class Session:
    """One staging of one function.

    Attributes:
        guards: what it has taken for constant.
        recursive: codes of functions that become functions of the program.
        active: codes of the functions that are running, innermost last.
        derivatives: how many derivatives are being staged around the current call.
    """

    def __init__(self, lt: Any, recursive: set[CodeType]) -> None:
        self.lt = lt
        self.guards = Guards()
        self.recursive = recursive
        self.active: list[CodeType] = []
        self.derivatives = 0
        self._made: dict[int, tuple[Any, Block]] = {}
        self._given: dict[int, Any] = {}
        self._ours: set[CodeType] = set()
        self._rewritten: dict[int, tuple[FunctionType, FunctionType]] = {}

    def call(self, f: Any, *args: Any) -> Any:
        """A call in the staged program."""
        return self.lt.call(f, *args)

    def rewritten(self, f: FunctionType, rewrite: Any) -> FunctionType:
        """The rewritten form of a user's function."""
        if id(f) not in self._rewritten:
            new = rewrite(f, self.lt)
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

    def give(self, x: Any) -> None:
        """Note the containers of an argument: they are copies, and may be read."""
        if isinstance(x, (*_MUTABLE, tuple)):
            self._given[id(x)] = x
            for part in x.values() if isinstance(x, dict) else x:
                self.give(part)
        elif hasattr(x, "__dict__") and not is_staged(x):
            self._given[id(x)] = x
            for part in vars(x).values():
                self.give(part)

    def is_given(self, x: Any) -> bool:
        """Whether an object is a copy of one that the caller has."""
        return id(x) in self._given and id(x) not in self._made

    def made(self, x: Any) -> Any:
        """Note that an object was made here and now."""
        if not isinstance(x, _PLAIN) and not is_staged(x):
            self._made[id(x)] = x, current.blocks[-1]
        return x

    def is_inside(self, x: Any) -> bool:
        """Whether an object belongs to the staged program alone."""
        return id(x) in self._made or id(x) in self._given

    def read(self, x: Any) -> None:
        """Guard what is in a container of somebody else's."""
        if isinstance(x, _MUTABLE) and not self.is_inside(x):
            self.guards.items(x)

    def write(self, x: Any, what: str) -> None:
        """Refuse to change what others may see, or what not every way changes."""
        found = self._made.get(id(x))
        if found is None or found[0] is not x:
            raise StagingError(
                f"{what}: it would change a {type(x).__name__} made outside of the "
                f"function. Make a new one."
            )
        if found[1] is not current.blocks[-1]:
            raise StagingError(
                f"{what}: it would change a {type(x).__name__} on one way of the "
                f"program alone, or once for all turns of a loop. Make a new one."
            )

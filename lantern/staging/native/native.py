"""A program as machine code: what it takes by itself, and what by way of Python."""

import ctypes
from typing import Any

from lantern.core.tree import is_leaf
from lantern.staging.guards import Guards
from lantern.staging.interpret import BailOutError
from lantern.staging.native.engine import Builtin, compiled
from lantern.staging.native.layout import word
from lantern.staging.native.wrapper import Leaf, Plan, module_text
from lantern.staging.program import Program
from lantern.staging.staged import is_staged
from lantern.staging.types import BOOL, FLOAT, INT

__all__ = ["Native"]


class Native:
    """The machine code of one program.

    Attributes:
        is_direct: whether it takes the arguments as they come and gives the result as
            it is. If not, Python takes them apart and puts it together.
        address: of the code.
        text: what LLVM has made of it.
    """

    def __init__(
        self,
        program: Program,
        guards: Guards,
        args: tuple[Any, ...],
        level: int,
        may_be_direct: bool = True,
    ) -> None:
        main = program.function
        self.places = guards.places or []
        expected = [word(a) if x is None else x for a, x in self.places]
        self._table = (ctypes.c_uint64 * max(len(expected), 1))(*expected)
        start = ctypes.addressof(self._table)
        words = [(a, start + 8 * i) for i, (a, _) in enumerate(self.places)]
        arguments = [
            Leaf() if i in program.trees else _plan(x) for i, x in enumerate(args)
        ]
        result = _result_plan(program)
        numbers = all(x.type in (FLOAT, INT, BOOL) for x in main.body.results)
        simple = numbers and None not in arguments and result is not None
        self.is_direct = may_be_direct and simple and guards.places is not None
        self._held = [args, result, program, guards]
        flat = [Leaf() for _ in main.body.parameters]
        whole = Plan(tuple, tuple(Leaf() for _ in main.body.results))
        plans = (arguments, result) if self.is_direct else (flat, whole)
        used = words if self.is_direct else []
        text = module_text(main, plans[0], plans[1], used)
        self.address, self.text = compiled(text, level)
        self._flat: Any = None
        self._main, self._level = main, level
        if not self.is_direct:
            self._flat = self._builtin(self.address)

    def _builtin(self, address: int) -> Any:
        made = Builtin(_bail, self._main.name, None)
        made.use(address)
        return made.function

    def is_current(self) -> bool:
        """Whether the code itself has found all words as they were; else it will."""
        same = True
        for i, (address, expected) in enumerate(self.places):
            now = word(address)
            if self._table[i] != now:
                same = False
                if expected is None:
                    self._table[i] = now
        return same

    def run(self, numbers: list[Any]) -> list[Any]:
        """The results for the numbers in the arguments."""
        if self._flat is None:
            flat = [Leaf() for _ in self._main.body.parameters]
            whole = Plan(tuple, tuple(Leaf() for _ in self._main.body.results))
            text = module_text(self._main, flat, whole, ())
            self._flat = self._builtin(compiled(text, self._level)[0])
        return list(self._flat(*numbers))


def _bail(*args: Any) -> Any:
    raise BailOutError


def _plan(x: Any) -> Any:
    """How an argument is taken apart; None if Python has to do it."""
    kind = type(x)
    if kind in (float, int, bool):
        return Leaf()
    if kind not in (tuple, list):
        return None
    parts = [_plan(y) for y in x]
    return None if None in parts else Plan(kind, tuple(parts))


def _result_plan(program: Program) -> Any:
    """How the result is put together; None if Python has to do it."""
    like, kept = program.result
    leaves = iter(kept)

    def plan(x: Any) -> Any:
        kind = type(x)
        if kind in (tuple, list):
            return Plan(kind, tuple(plan(y) for y in x))
        if not is_leaf(x):
            raise _OtherError
        leaf = next(leaves)
        return Leaf() if is_staged(leaf) else leaf

    try:
        return plan(like)
    except _OtherError:
        return None


class _OtherError(Exception):
    """A container that machine code does not make."""

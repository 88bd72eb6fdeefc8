"""A program as machine code: what it takes by itself, and what by way of Python."""

import ctypes
import sys
from array import array
from dataclasses import fields
from functools import cached_property
from itertools import count
from types import MemberDescriptorType
from typing import Any

from lantern.core.tree import is_leaf
from lantern.staging.closures import functions_of
from lantern.staging.guards import Guards
from lantern.staging.interpret import run
from lantern.staging.ir import BailOutError, Function
from lantern.staging.native.emit import is_recursive
from lantern.staging.native.engine import (
    Builtin,
    compiled,
    kept,
    key_of_code,
    suspended,
)
from lantern.staging.native.layout import word
from lantern.staging.native.names import Names, front
from lantern.staging.native.slots import Slots, SpentError, is_plain, slots
from lantern.staging.native.split import split
from lantern.staging.native.wrapper import Leaf, Plan, Same, module_text
from lantern.staging.objects import class_attribute
from lantern.staging.program import Program
from lantern.staging.staged import is_staged
from lantern.staging.structure import is_faithful
from lantern.staging.trees import reads_plainly
from lantern.staging.types import BOOL, FLOAT, INT

__all__ = ["Native"]


class Native:
    """The machine code of one program.

    Attributes:
        address: of the code; None as long as there is none.
        entry: of what a builtin runs: the code, or what asks for names before it.
        level: of the passes that the code has gone through; -1 if there is none yet.
        changes: how often words had changed without a change of what was read.
    """

    def __init__(
        self,
        program: Program,
        guards: Guards,
        args: tuple[Any, ...],
        may_be_direct: bool = True,
        exact: bool = False,
    ) -> None:
        self._program, self._exact = program, exact
        self.places = guards.places or []
        expected = [word(a) if x is None else x for a, x in self.places]
        expected += [x.word(x.value) for x in guards.questions]
        self._table = array("Q", expected)
        start = self._table.buffer_info()[0]
        places = [(a, start + 8 * i) for i, (a, _) in enumerate(self.places)]
        self._questions = guards.questions
        self._answers = [x.value for x in guards.questions]  # alive: ids are compared
        after = start + 8 * len(places)
        questions = [(x, after + 8 * i) for i, x in enumerate(guards.questions)]
        arguments = [
            Leaf() if i in program.trees else _plan(x) for i, x in enumerate(args)
        ]
        self._taken = arguments, places, questions
        self._may_be_direct = may_be_direct and guards.places is not None
        self._held = args, guards
        self._names = guards.names
        self.address: int | None = None
        self._code, self._front = ctypes.c_uint64(0), 0
        self.changes, self.level = 0, -1
        self._slots: Slots | None = None
        self._flat: Builtin | None = None

    @cached_property
    def is_direct(self) -> bool:
        """Whether it takes the arguments as they come and gives the result as it is.

        If not, Python takes them apart and puts it together.
        """
        is_noted = type(self._program) is not Program
        return self._may_be_direct and (is_noted or self._is_simple())

    def _is_simple(self) -> bool:
        """Whether numbers come and go, in structures that are taken apart and made."""
        numbers = all(x.type in (FLOAT, INT, BOOL) for x in self._main.body.results)
        return numbers and None not in self._taken[0] and self._result is not None

    @cached_property
    def _main(self) -> Function:
        main = self._program.function
        split(main)
        if self._exact:
            for f in functions_of(main):
                f.is_exact = True
        return main

    @cached_property
    def _result(self) -> Any:
        return _result_plan(self._program)

    @cached_property
    def _written(self) -> tuple[str, list[int]]:
        """The module, and the addresses in its table."""
        if not self.is_direct:
            return self._flat_text()
        arguments, places, questions = self._taken
        return module_text(self._main, arguments, self._result, places, questions)

    @property
    def text(self) -> str:
        """The module of LLVM's."""
        return self._written[0]

    @property
    def _words(self) -> list[int]:
        return self._written[1]

    @cached_property
    def thorough(self) -> int:
        """The passes that the fastest code needs."""
        return 3 if is_recursive(self._main) else 2

    def _flat_text(self) -> tuple[str, list[int]]:
        """The module that takes the program's parameters and gives a tuple."""
        flat = [Leaf() for _ in self._main.body.parameters]
        whole = Plan(tuple, tuple(Leaf() for _ in self._main.body.results))
        return module_text(self._main, flat, whole, (), ())

    @property
    def is_short(self) -> bool:
        """Whether the program is so short that it may be interpreted once."""
        nodes = self._main.body.nodes
        return len(nodes) <= SHORT and all(x.op not in _LONG for x in nodes)

    def find(self) -> bool:
        """Use what another process has compiled, if there is something."""
        key = key_of_code(self.text, self.best)
        if key is None:
            return False
        found = self._use(kept(key, self._words))
        self.level = self.best if found else self.level
        return found

    def find_noted(self, note: bytes) -> bool:
        """Use the code of which something is noted, without writing its program."""
        count, key, *words = note.decode().split("\n")
        known = self._named_words()
        if int(count) != len(known) or not self.is_direct or self._questions:
            return False
        return self._use(kept(key, [known[x] for x in words]))

    def noted(self) -> bytes | None:
        """What others need to find the code; None if they could not tell its words."""
        key, known = key_of_code(self.text, self.best), self._named_words()
        by_address = {address: name for name, address in known.items()}
        is_clear = len(by_address) == len(known) and by_address.keys() >= {*self._words}
        if not key or not is_clear or not self.is_direct or self._questions:
            return None
        words = [by_address[address] for address in self._words]
        lines = [str(len(known)), key, *words]
        return "\n".join(lines).encode()

    def _named_words(self) -> dict[str, int]:
        """The addresses that another process has, too, by names."""
        known = {x.__name__: id(x) for x in (float, int, bool)}
        known |= {repr(x): id(x) for x in (True, False, None)}
        known["suspended"] = suspended()
        for i, (place, expected) in enumerate(self._taken[1]):
            known |= {f"place {i}": place, f"expected {i}": expected}
        return known

    @property
    def best(self) -> int:
        """The passes that are worth their time."""
        return 1 if self.is_short else self.thorough

    def compile(self, level: int) -> None:
        """Compile it, and use that from now on, unless there is better code by now."""
        address = compiled(self.text, self._words, level)
        if level > self.level:
            self.level = level
            self._use(address)

    def may_wait(self) -> bool:
        """Whether the program runs without machine code until there is some."""
        if self.is_short:
            return is_plain(self._main) or not self.find()
        self._slots = slots(self._main)
        return self._slots is not None

    def hurry(self) -> None:
        """See to it that there is machine code now."""
        if self.address is None and not self.find():
            self.compile(0)

    @property
    def entry(self) -> int | None:
        """The address of what a builtin runs."""
        return self._front or self.address

    def ask_for_names(self) -> None:
        """Have machine code look at names from now on whose dicts have changed."""
        start, spaces = self._table.buffer_info()[0], []
        for i, (version, _) in enumerate(self.places):
            if version in self._names:
                space, found = self._names[version]
                spaces.append(Names(space, found, version, start + 8 * i))
        if spaces:
            self._front = front(spaces, ctypes.addressof(self._code))

    def _use(self, address: int | None) -> bool:
        if address is None:
            return False
        if not self.is_direct:
            self._flat = self._flat or Builtin(_bail, self._program.name, None)
            self._flat.use(address)
        self.address = self._code.value = address
        self._slots = None
        return True

    def refreshed(self) -> bool | None:
        """Whether the code will find all words as they are by now.

        Returns:
            True if it will, None if it would have done before; else False.
        """
        same = current = True
        for i, (address, expected) in enumerate(self.places):
            now = word(address)
            if self._table[i] != now:
                same = False
                if expected is None:
                    self._table[i] = now
                else:
                    current = False
        for i, question in enumerate(self._questions):
            k, value = len(self.places) + i, question.now()
            if self._table[k] != question.word(value):
                same = False
                if question.now() is value:  # else it is made anew each time
                    self._answers[i] = value
                    self._table[k] = question.word(value)
                else:
                    current = False
        self.changes += current and not same
        return None if same else current

    def run(self, numbers: list[Any]) -> list[Any]:
        """The results for the numbers in the arguments.

        Raises:
            SpentError: if they take so long that the caller should run machine code.
        """
        written = self._slots  # it is gone when there is better code
        if self.address is None:
            if written is None:
                return run(self._main, numbers)
            try:
                return list(written(*numbers))
            except SpentError:
                self.hurry()
                if self.is_direct:
                    raise
        if self._flat is None:
            self._flat = Builtin(_bail, self._main.name, None)
            self._flat.use(compiled(*self._flat_text(), self.thorough))
        return list(self._flat.function(*numbers))


SHORT = 200
"""Nodes that are interpreted in less time than they are compiled in."""

_LONG = frozenset({"loop", "back", "call"})


def _bail(*args: Any) -> Any:
    raise BailOutError


def _plan(x: Any) -> Any:
    """How an argument is taken apart; None if Python has to do it."""
    kind = type(x)
    if kind in (float, int, bool):
        return Leaf()
    if x is None:
        return Same(None)
    names = _fields(kind)
    if names:
        parts = [_plan(getattr(x, name)) for name in names]
    elif kind is list or _is_row(kind):
        parts = [_plan(y) for y in x]
    else:
        return None
    return None if None in parts else Plan(kind, tuple(parts), names)


def _fields(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass that are read without code of its own; else none."""
    if not hasattr(kind, "__dataclass_fields__"):
        return ()
    names = tuple(sys.intern(f.name) for f in fields(kind))
    found = [class_attribute(kind, name) for name in names]
    asked = [x for x in found if type(x) is not MemberDescriptorType]
    is_plain = is_faithful(kind) and reads_plainly(kind)
    return () if not is_plain or any(hasattr(x, "__set__") for x in asked) else names


def _is_row(kind: Any) -> bool:
    """Whether objects of a class are tuples, made as ``NamedTuple`` makes them."""
    if kind is tuple:
        return True
    own = kind.__bases__ == (tuple,) and hasattr(kind, "_fields")
    plain = own and kind.__getitem__ is tuple.__getitem__
    return plain and kind.__new__.__qualname__ == kind.__name__ + ".__new__"


def _result_plan(program: Program) -> Any:
    """How the result is put together; None if Python has to do it."""
    like, kept = program.result
    leaves, number = iter(kept), count()

    def plan(x: Any) -> Any:
        kind = type(x)
        if kind is list or _is_row(kind):
            return Plan(kind, tuple(plan(y) for y in x))
        if x is None:
            return Same(None)
        names = _fields(kind)
        if names:
            return Plan(kind, tuple(plan(getattr(x, n)) for n in names), names)
        if not is_leaf(x):
            raise _OtherError
        leaf = next(leaves)
        if not is_staged(leaf):
            return Same(leaf)
        return Leaf(program.flags.get(next(number)))

    try:
        return plan(like)
    except _OtherError:
        return None


class _OtherError(Exception):
    """A container that machine code does not make."""

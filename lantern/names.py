"""Which names code reads: what its instructions say, and which of them come later."""

import dis
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["Names", "bound_in", "names_in", "names_of", "read_later"]


class Names(NamedTuple):
    """The names that code reads, and does not bind itself.

    Attributes:
        free: variables of the functions around it.
        outer: globals.
        attributes: of anything.
        own: its own variables, with the free ones; of a generator only.
    """

    free: frozenset[str]
    outer: frozenset[str]
    attributes: frozenset[str]
    own: frozenset[str] = frozenset()


def names_of(f: Any) -> Names:
    """The names in a function's code; of an object that can be called, its method's."""
    code = getattr(f, "__code__", None)
    if code is None:
        code = getattr(vars(type(f)).get("__call__"), "__code__", None)
    return _NONE if code is None else names_in(code)


_NONE = Names(frozenset(), frozenset(), frozenset())
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})


@cache
def names_in(code: CodeType) -> Names:
    """The names in code, and in the functions inside it."""
    return _joined(list(dis.get_instructions(code)), frozenset(code.co_freevars))


def _joined(row: list[Any], free: frozenset[str]) -> Names:
    outer = {x.argval for x in row if x.opname in _GLOBAL}
    attributes = {x.argval for x in row if x.opname in _ATTRIBUTE}
    for inside in (x.argval for x in row if isinstance(x.argval, CodeType)):
        outer |= names_in(inside).outer
        attributes |= names_in(inside).attributes
    return Names(free, frozenset(outer), frozenset(attributes))


def bound_in(f: Any) -> frozenset[str]:
    """The outer names that a function binds itself."""
    code = getattr(f, "__code__", None)
    return frozenset() if code is None else _bound(code)


@cache
def _bound(code: CodeType) -> frozenset[str]:
    names = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname in ("STORE_DEREF", "STORE_GLOBAL", "STORE_ATTR")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _bound(constant)
    return frozenset(names)


@cache
def read_later(code: CodeType, at: int, yields: int) -> Names:
    """The names that code can read behind an instruction, up to a number of yields.

    Args:
        code: of a generator.
        at: where it is suspended.
        yields: how often it is resumed after the first time.
    """
    row = list(dis.get_instructions(code))
    places = {instruction.offset: i for i, instruction in enumerate(row)}
    seen: set[tuple[int, int]] = set()
    waiting = [(places[at] + 1, yields)]
    waiting += [(i, yields) for i, x in enumerate(row) if x.opname == "PUSH_EXC_INFO"]
    while waiting:
        state = i, left = waiting.pop()
        if state in seen or i == len(row):
            continue
        seen.add(state)
        name, value = row[i].opname, row[i].argval
        if row[i].opcode in dis.hasjrel or row[i].opcode in dis.hasjabs:
            waiting.append((places[value], left))
        last = name == "YIELD_VALUE" and left == 1
        if not last and name not in _GONE:
            waiting.append((i + 1, left - (name == "YIELD_VALUE")))
    reached = [row[i] for i in sorted({i for i, _ in seen})]
    own: set[str] = set()
    for instruction in reached:
        value = instruction.argval
        if "LOAD_FAST" in instruction.opname or instruction.opname in _CELL:
            own.update(value if isinstance(value, tuple) else (value,))
    free = frozenset(own.intersection(code.co_freevars))
    return _joined(reached, free)._replace(own=frozenset(own))


_CELL = frozenset({"LOAD_DEREF", "LOAD_CLOSURE"})
# Behind these instructions comes nothing.
_GONE = frozenset(
    "JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_ABSOLUTE RETURN_VALUE "
    "RETURN_CONST RAISE_VARARGS RERAISE".split()
)

"""Names that code reads and binds: what its instructions say, and which come later."""

import dis
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["Names", "names_in", "read_later"]


class Names(NamedTuple):
    """The names in code.

    Attributes:
        own: variables that it reads, its own and those of the functions around it.
        outer: globals that it reads, or a function inside it.
        attributes: attributes of anything, the same.
        bound: variables of others and globals that it binds, the same.
        stored: attributes that it binds, the same; None if it writes to an element.
    """

    own: frozenset[str]
    outer: frozenset[str]
    attributes: frozenset[str]
    bound: frozenset[str]
    stored: frozenset[str | None]


_INSTRUCTIONS = [
    frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}),
    frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"}),
    frozenset({"STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL"}),
    frozenset({"STORE_ATTR", "STORE_SUBSCR"}),
]
_CELL = frozenset({"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_FROM_DICT_OR_DEREF"})
# Behind these instructions comes nothing.
_GONE = frozenset(
    "JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_ABSOLUTE RETURN_VALUE "
    "RETURN_CONST RAISE_VARARGS RERAISE".split()
)


@cache
def names_in(code: CodeType) -> Names:
    """The names in code."""
    return _joined(list(dis.get_instructions(code)))


def _joined(row: list[Any]) -> Names:
    own: set[str] = set()
    for x in row:
        if "LOAD_FAST" in x.opname or x.opname in _CELL:
            own.update(x.argval if isinstance(x.argval, tuple) else (x.argval,))
    names = [{x.argval for x in row if x.opname in some} for some in _INSTRUCTIONS]
    for inside in (x.argval for x in row if isinstance(x.argval, CodeType)):
        for mine, more in zip(names, names_in(inside)[1:], strict=True):
            mine |= more
    return Names(frozenset(own), *map(frozenset, names))


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
        name = row[i].opname
        if row[i].opcode in dis.hasjrel or row[i].opcode in dis.hasjabs:
            waiting.append((places[row[i].argval], left))
        last = name == "YIELD_VALUE" and left == 1
        if not last and name not in _GONE:
            waiting.append((i + 1, left - (name == "YIELD_VALUE")))
    later = _joined([row[i] for i in sorted({i for i, _ in seen})])
    whole = names_in(code)
    return later._replace(bound=whole.bound, stored=whole.stored)

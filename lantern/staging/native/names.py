"""Globals asked by their names: for code whose module binds other names all the time.

A dict's version says that nothing in it has changed. Where it has, machine code gives
the call to Python, which looks at all that was read. A loop at the top of a module
changes the module's dict in each turn; so, once this has happened, a second piece of
machine code stands before the first one, and asks whether the names that were read are
bound to what they were bound to.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lantern.staging.native.declarations import declared
from lantern.staging.native.engine import compiled
from lantern.staging.native.questions import MISSING, Question
from lantern.staging.native.text import Text, Words

__all__ = ["Names", "front"]


class Names(NamedTuple):
    """What was read of a dict.

    Attributes:
        space: the dict.
        bound: names, and the objects that they were bound to; ``MISSING`` for nothing.
        version: the address of the dict's version.
        expected: the address of the version that it had.
    """

    space: dict[str, Any]
    bound: dict[str, Any]
    version: int
    expected: int


def front(spaces: Sequence[Names], code: int) -> int:
    """The address of code that asks for names, notes the versions and goes to other.

    Args:
        spaces: the dicts that were read.
        code: the address of what holds the address of the other code.
    """
    text = Text(Words())
    let, address = text.let, text.address
    words = [(address(x.version), address(x.expected)) for x in spaces]
    pairs = [(let(f"load i64, ptr {a}"), let(f"load i64, ptr {b}")) for a, b in words]
    _fork(text, [f"icmp ne i64 {a}, {b}" for a, b in pairs], "or", "look", "on")
    text.begin("look")
    tests = []
    for x in spaces:
        for name, value in x.bound.items():
            now = Question("name", x.space, name, value).asked(text)
            then = "null" if value is MISSING else text.object(value)
            tests.append(f"icmp eq ptr {now}, {then}")
    _fork(text, tests, "and", "note", "on")
    text.begin("note")
    for (now, _), (_, expected) in zip(pairs, words, strict=True):
        text.do(f"store i64 {now}, ptr {expected}")
    text.jump("on")
    text.begin("on")
    place = let(f"load ptr, ptr {address(code)}")
    arguments = "ptr %self, ptr %args, i64 %n, ptr %names"
    text.do(f"%r = musttail call ptr {place}({arguments})")
    text.do("ret ptr %r")
    found = text.words.addresses
    lines = "\n".join(text.lines)
    module = declared(
        f"@top = global ptr null\n@arena_end = global ptr null\n"
        f"@words = global [{len(found)} x i64] zeroinitializer\n"
        f"!1 = !{{}}\n"
        f"define ptr @wrapper({arguments}) nounwind {{\nentry:\n{lines}\n}}"
    )
    return compiled(module, found, 2)


def _fork(text: Text, tests: Sequence[str], op: str, yes: str, no: str) -> None:
    """Go on by what some tests say together."""
    whole, *rest = [text.let(test) for test in tests]
    for test in rest:
        whole = text.let(f"{op} i1 {whole}, {test}")
    text.fork(whole, yes, no)

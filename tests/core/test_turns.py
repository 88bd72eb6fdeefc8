"""An interrupt between two turns of a loop passes by no ``finally`` and no ``with``."""

import ast
import types
from importlib.machinery import SourceFileLoader
from opcode import opmap
from pathlib import Path

import pytest

import lantern
from lantern.blocks import between_turns

HOME = Path(lantern.__file__).parent
BACK = {number for name, number in opmap.items() if name.startswith("JUMP_BACKWARD")}
# Where an interrupt that passes by does no harm: in threads, where none comes ...
THREADS = {
    *("Hub._connected", "Hub._follow", "Hub._store", "serve", "Coordinator.follow"),
    *("Watch._listen", "HashStore._call", "DataLoader._ahead"),
}
# ... and where what is left open belongs to nobody else.
OWN = {"_Printer.contributions", "load", "gradgradcheck"}


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def cleans_up(node):
    """Whether a function has something to do when an interrupt leaves it."""
    handlers = [x.type for x in ast.walk(node) if isinstance(x, ast.ExceptHandler)]
    return (
        any(isinstance(x, ast.With | ast.AsyncWith) for x in ast.walk(node))
        or any(isinstance(x, ast.Try) and x.finalbody for x in ast.walk(node))
        or any(x is None or "BaseException" in ast.unparse(x) for x in handlers)
    )


def unguarded_turns(code):
    """The lines of jumps that only ``between_turns`` lets the handlers guard."""
    plain = types.FunctionType(
        code, {}, closure=tuple(types.CellType() for _ in code.co_freevars)
    )
    guarded = set(guarded_jumps(between_turns(plain).__code__))
    return sorted(guarded - set(guarded_jumps(code)))


def guarded_jumps(code):
    table = code.co_exceptiontable
    numbers, number, begun = [], 0, False
    for byte in table:
        number = (number << 6 if begun else 0) | byte & 63
        begun = bool(byte & 64)
        if not begun:
            numbers.append(number)
    for start, size in zip(numbers[::4], numbers[1::4], strict=True):
        for at in range(start, start + size):
            if code.co_code[2 * at] in BACK:
                yield at


def gaps_in(path):
    """The functions with a gap, as their code says; the source tells whom it harms."""
    code = SourceFileLoader("", str(path)).get_code("")
    loops = (c for c in codes(code) if BACK.intersection(c.co_code[::2]))
    suspects = [c for c in loops if c.co_exceptiontable and unguarded_turns(c)]
    if not suspects:
        return
    functions = {
        min(x.lineno for x in [node, *node.decorator_list]): node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for code in suspects:
        node = functions.get(code.co_firstlineno)
        if node is None or node.name != code.co_name or not cleans_up(node):
            continue
        names = {ast.unparse(x) for x in node.decorator_list}
        name = code.co_qualname.rpartition("<locals>.")[2]
        if "between_turns" not in names and name not in THREADS | OWN:
            yield f"{path.relative_to(HOME)}:{node.lineno} {name}"


def test_a_loop_is_guarded_between_its_turns():
    """Before CPython 3.12, whose compiler is the first to leave gaps, all are."""
    gaps = [gap for path in sorted(HOME.rglob("*.py")) for gap in gaps_in(path)]
    assert not gaps, "\n".join(gaps)


def test_handlers_guard_what_lies_between_turns_and_nothing_else():
    def turns(things, log):
        try:
            for thing in things:
                if thing:
                    log.append(thing)
            while things:
                if things.pop():
                    continue
        finally:
            log.append("over")
        log.append("behind")

    guarded, log = between_turns(turns), []
    guarded([0, 1, 2], log)
    assert log == [1, 2, "over", "behind"]
    assert unguarded_turns(guarded.__code__) == []
    with pytest.raises(TypeError):
        guarded(None, log := [])
    assert log == ["over"]
    assert (guarded.__name__, guarded.__wrapped__) == ("turns", turns)

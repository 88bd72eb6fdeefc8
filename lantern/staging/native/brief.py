"""Programs of few operations as Python, which runs until there is machine code.

To write and compile that takes a third of the time that LLVM takes without passes, and
a thousand operations take 30 µs. How many there are is known only when the program
runs: so it counts them, and is left when it has done too many.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from lantern.core import scalar_functions
from lantern.staging.emit_python import Writer
from lantern.staging.ir import BailOutError, Block, Function, Node, walk
from lantern.staging.native.counters import most_turns
from lantern.staging.native.tables import LIBM
from lantern.staging.types import FLOAT

__all__ = ["Brief", "SpentError", "brief", "is_plain"]

Brief = Callable[..., tuple[Any, ...]]

_NAME = "_program"
MOST_NODES = 120
MOST_DONE = 20_000
_CONTROL = frozenset("constant result if loop back stop sure nothing stopped".split())
_OPERATORS = frozenset(
    "add subtract multiply divide floor_divide remainder negative positive abs less "
    "less_equal greater greater_equal equal not_equal to_float to_int".split()
)
_BITS = frozenset("and or xor not".split())
_FUNCTIONS = frozenset([*LIBM, "sqrt", "atan2", "fmod", "ieee_divide"])


class SpentError(Exception):
    """A program has done more than it should without machine code."""


def brief(function: Function) -> Brief | None:
    """A program that does little as a function of Python's; None for any other.

    Raises:
        SpentError: it does, when it is called, if it does more than is worth it.
    """
    nodes = walk(function.body)
    if len(nodes) > MOST_NODES or _cost(function.body) > MOST_DONE:
        return None
    writer = _Counting(function)
    if not writer.knows_all(nodes):
        return None
    text = "\n".join(writer.function(function))
    try:
        exec(compile(text, "<brief>", "exec"), writer.space)  # it is ours
    except (SyntaxError, RecursionError, MemoryError):  # blocks in blocks in blocks
        return None
    found: Brief = writer.space[_NAME]
    return found


def is_plain(function: Function) -> bool:
    """Whether there is machine code, for sure, for all operations of a program."""
    return _Counting(function).knows_all(walk(function.body))


def _cost(block: Block) -> int:
    """Operations of a block; a loop turns once if it is not known how often it does."""
    found = len(block.nodes)
    for node in block.nodes:
        turns = most_turns(node) if node.op == "loop" else 1
        found += sum(map(_cost, node.blocks)) * (1 if turns is None else turns)
    return found


class _Counting(Writer):
    """The lines of a program that counts its operations.

    Attributes:
        space: what its names stand for.
    """

    same = frozenset({"stopped"})

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.names[function] = _NAME
        self.space: dict[str, Any] = {"Spent": SpentError, "BailOut": BailOutError}

    def knows_all(self, nodes: list[Node]) -> bool:
        """Whether all of some operations are such as it knows."""
        return all(x.op in _CONTROL or self.knows(x) for x in nodes)

    def knows(self, node: Node) -> bool:
        """Whether an operation can be written, and machine code has it, too."""
        op, types = node.op, [x.type for x in node.inputs]
        if node.static != () or not all(t.is_number for t in types):
            return False
        if op in _OPERATORS:
            return True
        if op in _BITS:
            return FLOAT not in types and len({*types}) == 1
        if op == "pow":  # of a negative number to a fraction it is complex
            n = node.inputs[1]
            return n.op == "constant" and n.static.value in range(9)
        name = op.removeprefix("math.")
        f = getattr(scalar_functions if name is op else math, name, None)
        if name not in _FUNCTIONS or f is None or {*types} != {FLOAT}:
            return False
        self.space[op.replace(".", "_")] = f
        return True

    def expression(self, node: Node) -> str:
        """What computes a node."""
        name = node.op.replace(".", "_")
        if name not in self.space:
            return super().expression(node)
        return f"{name}({', '.join(map(self.value, node.inputs))})"

    def function(self, f: Function) -> Iterator[str]:
        """The function, and what it may do."""
        first, *rest = super().function(f)
        yield from (first, f"    left = {MOST_DONE}", *rest)

    def turn(self, node: Node, inner: str) -> Iterator[str]:
        """Count what a turn does."""
        yield f"{inner}left -= {1 + sum(len(x.nodes) for x in node.blocks)}"
        yield f"{inner}if left < 0:"
        yield f"{inner}    raise Spent"

    def write_sure(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """A value that is no nan."""
        self.values[node] = x = self.value(node.inputs[0])
        yield f"{indent}if {x} != {x}:"
        yield f"{indent}    raise BailOut"

    def write_stop(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """Leave the program."""
        yield f"{indent}raise BailOut"

"""Gradients whose machine code is known before they are staged to their end.

What the way back of a program of numbers is, and what machine code both come to,
follows from the program, from Lantern's own files, and from the processor. So another
process has noted, under all of that, which code it came to, and the way back need not
be staged again. Only what is described in full is looked for.
"""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import lantern
from lantern.core.numpy_protocols import find_operation
from lantern.staging.control import Signal
from lantern.staging.ir import Block, Constant, Function, Node, Tapes, current
from lantern.staging.native.disk import folder, load
from lantern.staging.native.engine import key_of_code
from lantern.staging.program import Program
from lantern.staging.rules import rule_name
from lantern.staging.staged import Staged

__all__ = ["Awaited", "KnownError", "Look"]

_HOME = os.path.dirname(lantern.__file__)
_FOLDERS = [
    os.path.join(_HOME, *folder)
    for folder in ((), ("staging",), ("staging", "native"), ("rules",), ("core",))
]
_KINDS = frozenset({"float", "int", "bool", "nothing"})


class KnownError(Signal):
    """The code of what is being staged may be known."""


class Awaited(Program):
    """A program whose code may be known: it is staged when somebody asks for it.

    Args:
        like: the example arguments.
        make: stages it; what it gives first is the program.
    """

    def __init__(self, like: Any, make: Callable[[], Any]) -> None:
        self.like, self.trees, self._make = like, frozenset[int](), make

    def __getattr__(self, name: str) -> Any:
        if name not in ("function", "result", "flags"):
            raise AttributeError(name)
        whole: Program = self._make()[0]
        for part in ("function", "result", "flags"):
            setattr(self, part, getattr(whole, part))
        return getattr(self, name)


class Look:
    """A look for the code of a gradient, once its function is staged.

    Attributes:
        name: what is noted of it stands under this; None if it is not described.
        note: what is noted; None for nothing.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.note: bytes | None = None

    def __call__(self, derivative: Any, function: Any, args: tuple[Any, ...]) -> None:
        """Look for the code of the derivative of a staged function.

        Args:
            derivative: what it is to be.
            function: the staged function, and where its parameters come from.
            args: of the derivative: those of the program, as they are, are described.

        Raises:
            KnownError: if something is noted of it.
        """
        own = None if folder() is None or current.off else _library()
        if own is None or current.is_ordered or function.captured:
            return
        every = [x.node if type(x) is Staged else None for x in args]
        main: Function = function.function
        if every != current.blocks[-1].parameters:
            return
        try:
            lines = list(_block(main.body, {}))
        except (_OtherError, KeyError):
            return
        asked = f"{derivative.argnums!r} {derivative.with_value} {len(every)}"
        self.name = key_of_code("\n".join([sys.version, own, asked, *lines]), 0)
        self.note = load(self.name) if self.name else None
        if self.note is not None:
            raise KnownError


class _OtherError(Exception):
    """There is something that is not described."""


def _block(block: Block, numbers: dict[Node, int]) -> Iterator[str]:
    """All that a block is, in lines."""
    for p in block.parameters:
        numbers[p] = len(numbers)
    yield f"{block.kind} {block.keeps} {block.stops} {_types(block.parameters)}"
    for node in block.nodes:
        inputs = [numbers[x] for x in node.inputs]
        numbers[node] = len(numbers)
        yield f"{node.op} {inputs} {_static(node)} {_types([node])} {node.keeps}"
        for inside in node.blocks:
            yield from _block(inside, numbers)
    yield f"{[numbers[x] for x in block.results]}"


def _types(nodes: list[Node]) -> str:
    """Types of values."""
    kinds = [x.type.kind for x in nodes]
    if not _KINDS.issuperset(kinds) or any(x.loose for x in nodes):
        raise _OtherError
    return " ".join(kinds)


def _static(node: Node) -> str:
    """What else a node depends on."""
    x, kind = node.static, type(node.static)
    if not _is_own(node.op) or node.op == "call":
        raise _OtherError
    if kind is Constant and type(x.value) in (float, int, bool):
        return f"{type(x.value).__name__} {x.value!r}"
    if kind in (int, str, Tapes) or x == ():
        return repr(x)
    raise _OtherError


def _is_own(op: str) -> bool:
    """Whether an operation has no rule but one of those files."""
    known = find_operation(rule_name(op))
    return known is None or os.path.dirname(known.rule.__code__.co_filename) in _FOLDERS


@cache
def _library() -> str | None:
    """What tells these files from other versions of them.

    When a file was changed the system says: nobody sets it back, as installers may the
    time of its writing.
    """
    found = [_HOME]
    try:
        for place in _FOLDERS:
            # Read to its end, the folder is closed: an interrupt finds nothing open.
            for x in sorted(os.scandir(place), key=lambda x: x.name):
                if x.name.endswith(".py"):
                    about = x.stat()
                    times = about.st_mtime_ns, about.st_ctime_ns
                    found.append(f"{x.name} {about.st_size} {times}")
    except OSError:
        return None
    return " ".join(found)

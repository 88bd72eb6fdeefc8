"""The intermediate representation: nodes in structured blocks, and how they are made.

A program is a ``Function``: parameters, and a ``Block`` of nodes in single assignment.
Control flow is structured, so that a block says where the program goes next:

- ``if``: a condition, and two blocks whose results are the results of one of them;
- ``loop``: a header, which decides whether there is another turn, and the body in it;
  the results are the header's parameters when it says no;
- ``call``: of a function, which may be one that is being defined.

These three have ``result`` nodes. A loop may put values on tapes at the end of each
turn, and ``back`` walks tapes from the newest turn to the oldest (``Tapes``). All other
nodes compute one value from others: by an operator or a function of the values'
namespace.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any, NamedTuple

from lantern.staging.types import NOTHING, Type

__all__ = [
    "CONTROL",
    "BailOutError",
    "Block",
    "Constant",
    "Function",
    "Node",
    "Tapes",
    "building",
    "constant",
    "current",
    "emit",
    "must_run",
    "never_raises",
    "results_of",
    "stop",
    "taking_ahead",
    "walk",
]

CONTROL = frozenset({"if", "loop", "back", "call"})
"""Operations with blocks, or functions, of their own."""

# A record is handed on once: its cotangent has no sum.
_UNIQUE = CONTROL | {"parameter", "result", "stop", "pack"}
_NEVER_RAISES = frozenset(
    "constant parameter result part nothing add subtract multiply negative positive "
    "abs less less_equal greater greater_equal equal not_equal and or xor not where "
    "select sign maximum minimum loosened sure is_none is_nothing is_exactly "
    "is_method pack unpack size ieee_divide ieee_pow".split()
)


class BailOutError(Exception):
    """The program comes to what only the plain function can do."""


class Tapes(NamedTuple):
    """The tapes of a ``loop`` or ``back``: how many values a turn has on each.

    A walk along tapes has these values of a turn as its first parameters, and the tapes
    as its first inputs. What a turn puts on tapes are the last results of the body, and
    the tapes the last results of the node.
    """

    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()


class Node:
    """One operation and its value.

    Attributes:
        op: its name: an operator ("add"), a function of the namespace ("sin"), a method
            (".reshape"), or one of those above.
        inputs: the nodes it computes from.
        static: what else it depends on, known before the program runs.
        type: of its value.
        blocks: of control flow.
        block: where it stands.
        line: of the user's program: a file and a number; None for what has none.
        keeps: whether it must run although nobody needs its value, for it may raise.
        loose: whether it is an int of Python's on some way, although staged as a float.
        flag: of a loose one, what says whether it is an int; None if nothing does.
        example: of an array, the value that it has for the example arguments.
    """

    __slots__ = (
        "block",
        "blocks",
        "example",
        "flag",
        "inputs",
        "keeps",
        "line",
        "loose",
        "op",
        "static",
        "type",
    )

    def __init__(
        self,
        op: str,
        inputs: Iterable["Node"],
        static: Any,
        type: Type,
        blocks: tuple["Block", ...] = (),
        block: "Block | None" = None,
        line: tuple[str, int] | None = None,
        example: Any = None,
    ) -> None:
        self.op, self.inputs, self.static = op, tuple(inputs), static
        self.type, self.blocks, self.block = type, blocks, block
        self.line, self.example = line, example
        self.keeps = block is not None and block.keeps
        self.loose = False
        self.flag: Node | None = None

    def __repr__(self) -> str:
        return f"<{self.op}: {self.type}>"


class Block:
    """Nodes in their order, and which of their values leave the block.

    Attributes:
        kind: "function", "branch", "header", "body" or "back".
        parent: the block around it, whose values it may use; None for a function's.
        stops: whether it leaves the program, by an exception, before its end.
    """

    __slots__ = (
        "keeps",
        "kind",
        "known",
        "nodes",
        "parameters",
        "parent",
        "results",
        "stops",
    )

    def __init__(self, kind: str, parent: "Block | None" = None) -> None:
        self.kind, self.parent = kind, parent
        self.parameters: list[Node] = []
        self.nodes: list[Node] = []
        self.results: list[Node] = []
        self.known: dict[Any, Node] = {}
        self.stops = False
        self.keeps: bool = parent is None or parent.keeps

    def parameter(self, type: Type, example: Any = None) -> Node:
        """A new parameter."""
        node = Node("parameter", (), (), type)
        node.block, node.example = self, example
        self.parameters.append(node)
        return node


class Function:
    """A function of the representation.

    Attributes:
        name: the user's, if there is one.
        body: its block; the parameters are the block's.
        structure: what puts the results together (``structure.py``).
        captured: nodes outside that the body uses: further arguments of every call.
        inside: the parameters that stand for them in the body.
        types: of its results; None as long as they are not known.
        made_of: the function that was staged, and the types of its arguments.
        is_thin: whether calls of it are best replaced by its body.
        is_exact: whether machine code, too, adds up in the order that it says.
        is_closed: whether it is known to use nothing from outside.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.body = Block("function")
        self.structure: Any = None
        self.captured: list[Node] = []
        self.inside: dict[Node, Node] = {}
        self.types: list[Type] | None = None
        self.made_of: Any = None
        self.is_incomplete = self.is_thin = self.is_exact = self.is_closed = False

    def __repr__(self) -> str:
        return f"<{self.name} of {len(self.body.parameters)} parameters>"


class _Stack(local):
    """What a thread is staging.

    Attributes:
        blocks: that are being built, innermost last.
        functions: those made so far, by what they were made of.
        unfinished: functions whose body is being built, innermost last.
        line: of the user's program.
        off: the optimisations that are switched off.
        is_ordered: whether cotangents are added up in the plain function's order.
        copied: by address, containers that are in the program twice: copies stand for
            them behind a branch, a loop or a call; and these copies.
        ahead: the turn of a loop for which an item is taken although the program may
            have left the loop by then; None, if nothing is taken so.
        changes: by the blocks of branches, the containers that they change.
        carried: by the blocks of loops, the addresses of those in the loop's state.
    """

    def __init__(self) -> None:
        self.off: frozenset[str] = frozenset()
        self.is_ordered = False
        self.blocks: list[Block] = []
        self.functions: dict[Any, Function] = {}
        self.unfinished: list[Function] = []
        self.line: tuple[str, int] | None = None
        self.copied: dict[int, Any] = {}
        self.ahead: Any = None
        self.changes: dict[Block, dict[int, Any]] = {}
        self.carried: dict[Block, frozenset[int]] = {}


current = _Stack()


@contextmanager
def building(block: Block) -> Iterator[Block]:
    """What is staged in here goes into a block."""
    current.blocks.append(block)
    try:
        yield block
    finally:
        del current.blocks[current.blocks.index(block) :]


@contextmanager
def taking_ahead(turn: tuple[Any, int]) -> Iterator[None]:
    """What is staged in here is computed whether or not the program comes to it.

    So nothing may be changed. An iterator may be used up, if nobody else asks it.

    Args:
        turn: which loop it is for, and which turn.
    """
    before, current.ahead = current.ahead, turn
    try:
        yield
    finally:
        current.ahead = before


def emit(
    op: str,
    inputs: Iterable[Node],
    type: Type,
    static: Any = (),
    blocks: tuple[Block, ...] = (),
    example: Any = None,
) -> Node:
    """A node in the current block; one that computes the same is found again."""
    inputs = tuple(inputs)
    here = current.__dict__  # the thread's own: it is asked for once
    block = here["blocks"][-1]
    if op in _UNIQUE:
        key = None
    elif static is _NOTHING and not here["off"]:
        key = op, inputs, type
    else:
        key = _key(op, inputs, static, type)
    if key is not None:
        homes = [x.block for x in inputs]
        around: Block | None = block
        while around is not None:
            found = around.known.get(key)
            if found is not None:
                return found
            if around in homes:  # further out there is nothing that uses it
                break
            around = around.parent
    node = Node(op, inputs, static, type, blocks, block, here["line"], example)
    block.nodes.append(node)
    if key is not None:
        block.known[key] = node
    return node


def _key(op: str, inputs: tuple[Node, ...], static: Any, type: Type) -> Any:
    """What a node is found again by; None, if it is not to be found."""
    if "cse" in current.off:
        return None
    if static.__class__ is Constant:
        return static.key, type
    try:
        hash(static)
    except TypeError:  # an array, or a slice, among the options
        return None
    return op, inputs, static, type


_NOTHING = ()


def constant(x: Any, type: Type) -> Node:
    """A plain number, or an array, as a node."""
    return emit("constant", (), type, Constant(x))


class Constant:
    """A number, or an array, and what it is found again by.

    Digits tell 0.0 from -0.0, and nan is itself; an array's text may leave some out.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        kind = type(value)
        if kind is float and value and value == value:
            self.key: Any = value, kind
            return
        self.key = f"{kind.__name__}:{value!r}"
        if hasattr(value, "tobytes"):
            self.key += value.tobytes().hex()

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}:{self.value!r}"


def must_run(node: Node) -> bool:
    """Whether a node has to stay although nobody needs its value: it may raise."""
    if node.op == "stop":
        return True
    if node.op in CONTROL and node.blocks:
        return any(must_run(x) for block in node.blocks for x in block.nodes)
    return node.keeps and not never_raises(node)


def never_raises(node: Node) -> bool:
    """Whether an operation raises for no values of its types."""
    return node.op in _NEVER_RAISES


def results_of(node: Node, types: Iterable[Type]) -> list[Node]:
    """The results of control flow, each as a node."""
    return [emit("result", (node,), type, i) for i, type in enumerate(types)]


def walk(block: Block) -> list[Node]:
    """Every node of a block and of the blocks inside it."""
    found: list[Node] = []
    nodes, start = block.nodes, 0
    for i, node in enumerate(nodes):
        if node.blocks:
            found += nodes[start : i + 1]
            for inside in node.blocks:
                found += walk(inside)
            start = i + 1
    return found + nodes[start:]


def stop(reason: str) -> None:
    """Leave the program here: the caller runs the plain function, which will raise."""
    block = current.blocks[-1]
    if not block.stops:
        emit("stop", (), NOTHING, reason)
        block.stops = True

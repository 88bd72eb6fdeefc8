"""Recursive functions in two: what ends the recursion, and what goes on.

The first is small and stands wherever the function is called, so that the leaves of a
tree, which are as many as all its other nodes, take no call.
"""

from lantern.blocks import between_turns
from lantern.staging.closures import functions_of, substitute, used_in
from lantern.staging.ir import Block, Function, Node, building, emit, results_of, walk
from lantern.staging.types import NOTHING

__all__ = ["split"]

SMALL = 12
"""Nodes that may stand wherever a function is called."""

_CHEAP = frozenset(
    "constant result unpack is_none is_nothing is_exactly not less less_equal greater "
    "greater_equal equal not_equal and or nothing".split()
)


def split(main: Function) -> None:
    """Split the functions of a program that are worth it."""
    for f in functions_of(main):
        place = None if f.is_thin else _place(f)
        if place is not None:
            _move(f, *place)


def _place(f: Function) -> tuple[Node, int] | None:
    """The branch that a function is, and which of its ways goes on."""
    branches = [x for x in f.body.nodes if x.blocks]
    rest = [x for x in f.body.nodes if not x.blocks]
    if len(branches) != 1 or branches[0].op != "if" or len(rest) > SMALL:
        return None
    if any(x.op not in _CHEAP for x in rest):
        return None
    (branch,) = branches
    goes_on = [_calls(block, f) for block in branch.blocks]
    if sum(goes_on) != 1:
        return None
    k = goes_on.index(True)
    end = list(walk(branch.blocks[1 - k]))
    is_small = len(end) <= SMALL and not any(x.blocks or x.op == "call" for x in end)
    return (branch, k) if is_small else None


def _calls(block: Block, f: Function) -> bool:
    """Whether a block calls a function, if only by way of others."""
    called = [x.static for x in walk(block) if x.op == "call"]
    return any(f in functions_of(g) for g in called)


@between_turns
def _move(f: Function, branch: Node, k: int) -> None:
    """Make the way that goes on a function of its own."""
    body = branch.blocks[k]
    rest = Function(f"{f.name}_rest")
    inside = set(walk(body))
    for x in walk(body):
        for block in x.blocks:
            inside.update(block.parameters)
    outside = dict.fromkeys(x for x in used_in(body) if x not in inside)
    free = [x for x in outside if x.op != "constant"]
    new = {}
    for x in outside:
        if x.op == "constant":
            new[x] = Node("constant", (), x.static, x.type)
            new[x].block = body
        else:
            new[x] = body.parameter(x.type, x.example)
            new[x].loose = x.loose
    substitute(body, new)
    body.nodes[:0] = [x for x in new.values() if x.op == "constant"]
    way = Block("branch", f.body)
    body.kind, body.parent, rest.body = "function", None, body
    rest.types = [x.type for x in body.results]
    with building(way):
        call = emit("call", free, NOTHING, rest)
        way.results = results_of(call, rest.types)
    blocks = list(branch.blocks)
    blocks[k] = way
    branch.blocks = tuple(blocks)
    f.is_thin = True

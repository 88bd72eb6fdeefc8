"""Hoisting: what is the same in each turn of a loop is computed once, before it.

What may raise is moved only if the loop comes to it in any case. A branch inside keeps
what is its own, for it may never be taken.
"""

from lantern.blocks import between_turns
from lantern.staging.ir import CONTROL, Block, Node, current, never_raises
from lantern.staging.operations import evaluate

__all__ = ["hoist"]

_STAYS = CONTROL | {"constant", "result", "stop", "part", "sure"}


@between_turns
def hoist(block: Block) -> None:
    """Move out of a block's loops what does not change in them, innermost first."""
    if "hoist" in current.off:
        return
    for node in list(block.nodes):
        for inside in node.blocks:
            hoist(inside)
        if node.op in ("loop", "back"):
            _move_out(node, block)


def _move_out(loop: Node, block: Block) -> None:
    changing = {p for inside in loop.blocks for p in inside.parameters}
    moved: list[Node] = []
    for inside in loop.blocks:
        is_reached = inside.kind == "header" or _turns(loop)
        for node in inside.nodes:
            free = node.op not in _STAYS and changing.isdisjoint(node.inputs)
            if free and _is_plain(node) and (is_reached or never_raises(node)):
                own = [x for x in node.inputs if x.block in loop.blocks]
                moved += [*dict.fromkeys(x for x in own if x.op == "constant"), node]
                for x in (*own, node):
                    x.block = block
            elif node.op != "constant":
                changing.add(node)
        if moved:
            inside.nodes = [x for x in inside.nodes if x.block is not block]
    place = block.nodes.index(loop)
    block.nodes[place:place] = moved


def _is_plain(node: Node) -> bool:
    """Whether a node computes a number from numbers, and is one thing alone."""
    numbers = node.type.is_number and all(x.type.is_number for x in node.inputs)
    return numbers and not node.loose and not any(x.loose for x in node.inputs)


def _turns(loop: Node) -> bool:
    """Whether a loop is known to have a first turn."""
    if loop.op != "loop":
        return False
    header = loop.blocks[0]
    inits = dict(zip(header.parameters, loop.inputs, strict=False))
    (test,) = header.results
    starts = [inits.get(x, x) for x in test.inputs]
    if not starts or not all(x.op == "constant" for x in starts):
        return False
    return bool(evaluate(test.op, test.static, [x.static.value for x in starts]))

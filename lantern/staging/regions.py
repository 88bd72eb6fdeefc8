"""Regions of the way back: values that leave their block there by a record.

While an adjoint is staged, its nodes simply use those of the way there. ``escaping``
finds these uses; a branch hands such values out as further results, a loop puts them on
its tape at the end of each turn, a function into the record that it returns.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lantern.blocks import between_turns
from lantern.staging.closures import substitute, used_in
from lantern.staging.ir import Block, Node, building, current, must_run
from lantern.staging.passes import without
from lantern.staging.types import Type

__all__ = ["add_result", "escaping", "prune", "reopened", "replace_constants"]


def escaping(user: Block, sources: Iterable[Block]) -> list[Node]:
    """The nodes of some blocks that another block uses, each once."""
    there = set(sources)
    return list(dict.fromkeys(x for x in used_in(user) if x.block in there))


def replace_constants(user: Block, found: list[Node]) -> list[Node]:
    """The escaping nodes but for constants, which are made anew where they are used."""
    new = {}
    for x in () if "recompute" in current.off else found:
        if x.op == "constant":
            again = Node("constant", (), x.static, x.type)
            again.block = user
            user.nodes.insert(0, again)
            new[x] = again
    if new:
        substitute(user, new)
    return [x for x in found if x not in new]


def add_result(node: Node, type: Type, index: int) -> Node:
    """A further result of control flow, right behind it."""
    result = Node("result", (node,), index, type)
    result.block = node.block
    nodes = node.block.nodes if node.block is not None else []
    nodes.insert(nodes.index(node) + 1, result)
    return result


@between_turns
@contextmanager
def reopened(block: Block) -> Iterator[None]:
    """What is staged in here comes to the end of a block that was staged before.

    What the blocks around it hold may have come later than it: nothing is found there.
    """
    with building(block), without("cse"):
        yield


def prune(block: Block) -> None:
    """Drop the nodes of a block whose values nobody needs."""
    if "dce" in current.off:
        return
    live = set(block.results)
    kept = []
    for node in reversed(block.nodes):
        if node in live or must_run(node):
            kept.append(node)
            live.update(node.inputs)
            for inside in node.blocks:
                live.update(used_in(inside))
    block.nodes = kept[::-1]

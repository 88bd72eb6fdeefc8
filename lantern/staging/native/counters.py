"""How many turns a loop has at most, where a counter says so."""

from lantern.staging.ir import Node
from lantern.staging.types import INT

__all__ = ["ORDERS", "most_turns", "tests_of"]

ORDERS = {"less": 1, "greater": -1}


def tests_of(loop: Node) -> list[Node]:
    """What has to hold, each, if there is to be another turn."""
    tests = list(loop.blocks[0].results)
    for x in tests:
        if x.op == "and":
            tests += x.inputs
    return tests


def most_turns(loop: Node) -> int | None:
    """How many turns there are at most; None if that is known only when it runs."""
    counts = [n for x in tests_of(loop) if (n := _turns_of(loop, x)) is not None]
    return min(counts) if counts else None


def _turns_of(loop: Node, test: Node) -> int | None:
    """How many turns there are until a test of a counter and a constant fails."""
    if test.op not in ORDERS or any(x.type is not INT for x in test.inputs):
        return None
    header, body = loop.blocks
    i, end = test.inputs
    if i not in header.parameters or end.op != "constant":
        return None
    place = header.parameters.index(i)
    start, after = loop.inputs[place], body.results[place]
    if start.op != "constant" or after.op != "add" or after.inputs[0] is not i:
        return None
    step = after.inputs[1]
    if step.op != "constant" or step.static.value * ORDERS[test.op] <= 0:
        return None
    way: int = end.static.value - start.static.value
    turns: int = -(-way // step.static.value)
    return max(turns, 0)

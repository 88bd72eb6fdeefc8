"""Where tapes come from: which loop has written what a walk reads.

A tape is a result of its loop. It may have been handed out by a branch, or put on the
tape of the loop around, and the walk be inside of the walk along that one.
"""

from functools import cached_property

from lantern.staging.ir import Block, Function, Node, walk
from lantern.staging.types import TAPE

__all__ = ["Origins", "is_fixed", "rows"]


class Origins:
    """What the values on the way back of one function were on the way there.

    Attributes:
        nodes: all of the function's.
        places: of each node and parameter, its block and where it stands there.
        owners: of each block inside of another, the node that it belongs to.
        blocks: all of them, and the function's own.
    """

    def __init__(self, f: Function) -> None:
        self.nodes = walk(f.body)
        self.owners = {block: x for x in self.nodes for block in x.blocks}
        self.places: dict[Node, tuple[Block, int]] = {}
        self.blocks = f.body, *self.owners
        for block in self.blocks:
            self.places.update((p, (block, -1)) for p in block.parameters)
            self.places.update((x, (block, i)) for i, x in enumerate(block.nodes))

    def of_tape(
        self, tape: Node, through_branches: bool = True
    ) -> tuple[Node, int] | None:
        """The loop that has written a tape, and which of its tapes it is, if known.

        A tape that has come through a branch may be none, for the other way was taken.
        """
        while (before := self.there(tape)) is not tape:
            tape = before
        if tape.op != "result":
            return None
        source, index = tape.inputs[0], tape.static
        if source.op == "if" and through_branches:
            ways = [block.results[index] for block in source.blocks]
            found = {self.of_tape(x) for x in ways if x.op != "nothing"}
            return found.pop() if len(found) == 1 else None
        if source.op not in ("loop", "back"):
            return None
        k = index - state_of(source)
        return (source, k) if k >= 0 else None

    def users_of(self, values: list[Node]) -> list[Node | Block]:
        """The nodes that some values are operands of, and blocks that give them."""
        return [user for x in values for user in self._users.get(x, ())]

    @cached_property
    def _users(self) -> dict[Node, list[Node | Block]]:
        found: dict[Node, list[Node | Block]] = {}
        for node in self.nodes:
            for x in node.inputs:
                found.setdefault(x, []).append(node)
        for block in self.blocks:
            for x in block.results:
                found.setdefault(x, []).append(block)
        return found

    def there(self, x: Node) -> Node:
        """What a value that a walk reads was in the loop that put it on the tape."""
        if x.op != "parameter" or x not in self.places:
            return x
        owner = self.owners.get(self.places[x][0])
        if owner is None or owner.op != "back":
            return x
        i = owner.blocks[0].parameters.index(x)
        for tape, n in zip(owner.inputs, owner.static.read, strict=False):
            if i < n:
                source = self.of_tape(tape)
                return x if source is None else saved_on(*source)[i]
            i -= n
        return x

    def seen(self, node: Node, x: Node) -> Node:
        """What a value was where a node stands; itself if that is not known there."""
        now = x
        while not self.sees(node, now):
            before = self.there(now)
            if before is now:
                return x
            now = before
        return now

    def sees(self, node: Node, x: Node) -> bool:
        """Whether a value is known where a node stands: it comes before, or around."""
        if x.op == "constant":
            return True
        at: Node | None = node
        while at is not None:
            block, place = self.places[at]
            if self.places[x][0] is block:
                return self.places[x][1] < place
            at = self.owners.get(block)
        return False


def state_of(node: Node) -> int:
    """How many numbers a loop, or a walk, hands from turn to turn."""
    read: tuple[int, ...] = node.static.read
    return len(node.blocks[0].parameters) - sum(read)


def saved_on(node: Node, k: int) -> list[Node]:
    """What a loop puts on its k-th tape."""
    written = node.static.written
    start = state_of(node) + sum(written[:k])
    return node.blocks[-1].results[start : start + written[k]]


def is_fixed(node: Node) -> bool:
    """Whether nothing but its own tapes comes to the arena in a loop's turns."""
    inside = [x for block in node.blocks for x in walk(block)]
    moves = ("loop", "back")
    return not any(
        x.op in ("call", "pack") or (x.op in moves and x.static.written) for x in inside
    )


def rows(origins: Origins) -> set[Node]:
    """The loops whose turns lie in a row, and are walked by their places alone.

    Nobody has their tapes but walks that go along no others: no turn needs a pointer to
    the one before.
    """
    tapes: dict[Node, list[Node]] = {}
    for x in origins.nodes:
        if x.op == "result" and x.type is TAPE:
            tapes.setdefault(x.inputs[0], []).append(x)
    return {
        loop
        for loop, own in tapes.items()
        if loop.op == "loop"
        and is_fixed(loop)
        and any(loop.static.written)  # else all turns lie at one place
        and all(_goes_along(user, own) for user in origins.users_of(own))
    }


def _goes_along(user: Node | Block, tapes: list[Node]) -> bool:
    """Whether it is a walk along some tapes, and no others, that uses them."""
    if isinstance(user, Block) or user.op != "back":
        return False
    count = len(user.static.read)
    along, others = user.inputs[:count], user.inputs[count:]
    return {*along} <= {*tapes} and {*others}.isdisjoint(tapes)

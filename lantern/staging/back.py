"""The way back of control flow: of a branch a branch, of a loop a walk, of a call one.

Each has steps that wait, and what its results have received. ``way`` is the adjoint
that is being staged (``adjoint.py``).
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.closures import substitute, used_in
from lantern.staging.control import filler
from lantern.staging.ir import (
    Block,
    Function,
    Node,
    Tapes,
    building,
    constant,
    current,
    emit,
    results_of,
)
from lantern.staging.regions import (
    add_result,
    escaping,
    prune,
    reopened,
    replace_constants,
)
from lantern.staging.staged import node_of, staged
from lantern.staging.types import BOOL, FLOAT, NOTHING, RECORD, TAPE, Type

__all__ = [
    "Pair",
    "Received",
    "Shadow",
    "Slot",
    "Step",
    "back_call",
    "back_if",
    "back_loop",
    "zero",
]


class Step(NamedTuple):
    """One node on the way there, and what waits for the way back.

    Attributes:
        node: of the program that is differentiated.
        new: what stands for it on the way there.
        waiting: the suspended rule; of control flow, the steps inside, block by block.
    """

    node: Node
    new: Any
    waiting: Any


class Pair:
    """A function on the way there, and what it is on the way back."""

    def __init__(self, f: Function) -> None:
        self.there = Function(f"{f.name}_forward")
        self.back: Function | None = None
        self.steps: list[Step] = []


Received = dict[Node, Any]


class Slot(NamedTuple):
    """A place in a record of values of some types."""

    place: int
    types: tuple[Type, ...]


class Shadow(dict[int, Node]):
    """The cotangents of the values in a record, by their places."""

    types: tuple[Type, ...] = ()


def zero(like: Node) -> Node:
    """The cotangent of what has received nothing."""
    if like.type is FLOAT:
        return constant(0.0, FLOAT)
    return filler(like.type) if like.type.is_saved else node_of(staged(like) * 0)


def _all_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        for node in block.nodes:
            yield from _all_blocks(node.blocks)


def captured(way: Any, blocks: Iterable[Block]) -> list[Node]:
    """Active nodes outside of some blocks that are used in them."""
    blocks = tuple(blocks)
    inside = set(_all_blocks(blocks))
    found = dict.fromkeys(
        x
        for block in blocks
        for x in used_in(block)
        if x in way.active.nodes and x.block not in inside
    )
    return list(found)


@between_turns
def back_if(way: Any, step: Step, bars: dict[int, Node], received: Received) -> None:
    """The way back of a branch: the same branch again."""
    node, new = step.node, step.new
    outside = captured(way, node.blocks)
    blocks, totals = [], []
    for old, steps in zip(node.blocks, step.waiting, strict=True):
        block = Block("branch", current.blocks[-1])
        own = {x: _copied(received[x]) for x in outside if x in received}
        with building(block):
            if not old.stops:
                _must_be_alone([old], [old.results[i] for i in bars], own)
                for i, z_bar in bars.items():
                    way.give(own, old.results[i], staged(z_bar))
                way.backward(steps, own)
        blocks.append(block)
        totals.append(own)
    changed = [
        x
        for x in outside
        if any(not _is_as_before(own.get(x), received.get(x)) for own in totals)
    ]
    for block, own in zip(blocks, totals, strict=True):
        with building(block):
            block.results = [
                way.whole(own[x]) if x in own else zero(x) for x in changed
            ]
    _hand_out(new, blocks)
    back = emit("if", (way.there[node.inputs[0]],), NOTHING, (), tuple(blocks))
    types = [x.type for x in changed]
    for x, z in zip(changed, results_of(back, types), strict=True):
        z.example = x.example
        received[x] = staged(z)


def _must_be_alone(blocks: Iterable[Block], ends: list[Node], before: Received) -> None:
    """Refuse values that two variables stand for, if these would add up by themselves.

    The plain function has one cotangent for both, which all uses are added to in turn.

    Args:
        blocks: what has results.
        ends: the results that something has been received for.
        before: what has been received by now.
    """
    if not current.is_ordered:
        return
    ends = [x for x in ends if x.op != "constant"]
    inside = set(blocks)
    twice = len(set(ends)) < len(ends)
    if twice or any(x.block not in inside and x in before for x in ends):
        raise StagingError(
            "exact: a value that has two names, one of a variable that a branch or a "
            "loop assigns to, gets what they contribute in another order."
        )


def _copied(x_bar: Any) -> Any:
    """What has been received, for one way of a branch to add to."""
    if type(x_bar) is not Shadow:
        return x_bar
    shadow = Shadow(x_bar)
    shadow.types = x_bar.types
    return shadow


def _is_as_before(after: Any, before: Any) -> bool:
    if type(after) is Shadow and type(before) is Shadow:
        return after == before
    return after is before


def _hand_out(new: Node, blocks: list[Block]) -> None:
    """Make what the branches back use of those there results of the ``if``."""
    for k, block in enumerate(blocks):
        prune(block)
        inside = new.blocks[k]
        found = replace_constants(block, escaping(block, [inside]))
        handed = {}
        for x in found:
            index = len(inside.results)
            for i, branch in enumerate(new.blocks):
                with reopened(branch):
                    branch.results.append(x if i == k else filler(x.type))
            handed[x] = add_result(new, x.type, index)
            handed[x].example = x.example
        substitute(block, handed)


@between_turns
def back_loop(way: Any, step: Step, bars: dict[int, Node], received: Received) -> None:
    """The way back of a loop, or of a walk along tapes: newest turn first."""
    walk = _Walk(step)
    state = [p for p in walk.state if p in way.active.nodes]
    outside = captured(way, step.node.blocks)
    around = dict.fromkeys(outside)
    starts = [bars.get(walk.state.index(p)) or zero(p) for p in state]
    starts += [way.whole(received[x]) if x in received else zero(x) for x in outside]
    block = Block("back", current.blocks[-1])
    own: Received = {}
    with building(block):
        shadows = _shadows(way, walk, bars, own)
        parameters = [block.parameter(x.type, x.example) for x in (*state, *outside)]
        untouched = {
            x: staged(p) for x, p in zip(outside, parameters[len(state) :], strict=True)
        }
        own.update(untouched)
        for x, p in zip(state, parameters, strict=False):
            way.give(own, walk.after[walk.state.index(x)], staged(p))
        for steps in reversed(step.waiting):
            way.backward(steps, own)
        for x, z in untouched.items():
            if own[x] is z:  # it has received nothing: nothing is handed on
                place = parameters.index(z.node)
                del parameters[place], starts[place]
                outside.remove(x)
                block.parameters.remove(z.node)
        taken = {p: way.take(own, p) for p in state}
        block.results = [z or zero(p) for p, z in taken.items()]
        block.results += [way.whole(own[x]) for x in outside]
        written: list[tuple[Node, int]] = []
        for tape_node, slots in walk.read():
            if tape_node in way.active.nodes:
                slots = [p for p in slots if p.type.has_cotangent]
                block.results += [way.take(own, p) or zero(p) for p in slots]
                written.append((tape_node, len(slots)))
    tape, size = _save(step.new, block)
    tapes = Tapes((size, *(n for _, n in shadows)), tuple(n for _, n in written))
    inputs = [tape, *(z for z, _ in shadows), *starts]
    back = emit("back", inputs, NOTHING, tapes, (block,))
    types = [p.type for p in parameters] + [TAPE for _ in written]
    results = results_of(back, types)
    for p, z in zip((*state, *outside), results, strict=False):
        z.example = p.example
    for x, z in zip(outside, results[len(state) :], strict=False):
        received[x] = staged(z)  # with what it had received before
    used = [walk.state.index(p) for p, z in taken.items() if z is not None]
    used = sorted({*used, *bars.keys() & set(range(len(walk.state)))})
    _must_be_alone(step.node.blocks, [walk.after[i] for i in used], around)
    _must_be_alone((), [walk.inits[i] for i in used], received)
    for p, z in zip(state, results, strict=False):
        way.give(received, walk.inits[walk.state.index(p)], staged(z))
    for (tape_node, _), z in zip(written, results[len(parameters) :], strict=True):
        way.give(received, tape_node, staged(z))


def _shadows(
    way: Any, walk: "_Walk", bars: dict[int, Node], own: Received
) -> list[tuple[Node, int]]:
    """The tapes of cotangents that a walk goes along, and a turn's share of each."""
    shadows = []
    for i, saved in walk.written():
        if i in bars:
            _must_be_alone((), saved, dict.fromkeys(saved))
            saved = [x for x in saved if x.type.has_cotangent]
            slots = [current.blocks[-1].parameter(x.type, x.example) for x in saved]
            shadows.append((bars[i], len(slots)))
            for x, p in zip(saved, slots, strict=True):
                way.give(own, x, staged(p))
    return shadows


def _save(new: Node, block: Block) -> tuple[Node, int]:
    """Have the loop there put on a tape what the walk back uses of a turn."""
    prune(block)
    found = replace_constants(block, escaping(block, new.blocks))
    slots = []
    for x in found:
        p = Node("parameter", (), (), x.type)
        p.block, p.example = block, x.example
        slots.append(p)
    substitute(block, dict(zip(found, slots, strict=True)))
    block.parameters = slots + block.parameters
    new.blocks[-1].results += found
    read, written = new.static
    state = len(new.blocks[0].parameters) - sum(read)
    new.static = Tapes(read, (*written, len(found)))
    return add_result(new, TAPE, state + len(written)), len(found)


def back_call(way: Any, step: Step, bars: dict[int, Node], received: Received) -> None:
    """The way back of a call: a call of the function back, with the record."""
    f = step.node.static
    pair = way.pairs[f]
    active = sorted(way.active.results[f])
    given = [bars.get(i) or zero(f.body.results[i]) for i in active]
    if pair.back is None:
        _define_back(way, f, pair, active)
    back = pair.back
    assert back is not None  # it has just been defined
    count = len(f.body.results)
    record = _result(step.new, RECORD, count)
    node = emit("call", [record, *given], NOTHING, back)
    chosen = [p for p in f.body.parameters if p in way.active.nodes]
    positions = [f.body.parameters.index(p) for p in chosen]
    results = results_of(node, [p.type for p in chosen])
    for i, p, z in zip(positions, chosen, results, strict=True):
        z.example = p.example
        way.give(received, step.node.inputs[i], staged(z))


@between_turns
def _define_back(way: Any, f: Function, pair: Pair, active: list[int]) -> None:
    """A function's way back: from its record and its results' cotangents."""
    back = pair.back = Function(f"{f.name}_backward")
    back.body.keeps = False
    chosen = [p for p in f.body.parameters if p in way.active.nodes]
    back.types = [p.type for p in chosen]
    record = back.body.parameter(RECORD)
    own: Received = {}
    with building(back.body):
        for i in active:
            x = f.body.results[i]
            way.give(own, x, staged(back.body.parameter(x.type, x.example)))
        way.backward(pair.steps, own)
        back.body.results = [way.take(own, p) or zero(p) for p in chosen]
    _pack(pair.there, back.body, record)


@between_turns
def _pack(there: Function, body: Block, record: Node) -> None:
    """Have the function there return what the function back uses of it."""
    prune(body)
    found = replace_constants(body, escaping(body, [there.body]))
    new: dict[Node, Node] = {}
    added: list[Node] = []

    def add(op: str, source: Node, static: Any, type: Type) -> Node:
        node = Node(op, (source,), static, type)
        node.block = body
        added.append(node)
        return node

    thin = _thin(there.body, found)
    if thin is not None:
        branch, k = thin
        condition = branch.inputs[0]
        found = [x for x in found if x is not condition]
        none = add("is_nothing", record, (), BOOL)
        new[condition] = none if k == 0 else add("not", none, (), BOOL)
    types = tuple(x.type for x in found)
    for i, x in enumerate(found):
        new[x] = add("unpack", record, Slot(i, types), x.type)
        new[x].example = x.example
    substitute(body, new)
    body.nodes = [*added, *body.nodes]
    with building(there.body):
        there.body.keeps = False
        packed = emit("pack", found, RECORD) if thin is None else _in(branch, k, found)
        there.body.results.append(packed)


def _thin(body: Block, found: list[Node]) -> tuple[Node, int] | None:
    """A branch that all of some values come from, and which of its ways gives none.

    On that way nothing need be saved: that there is no record says which way it was.
    """
    branches = {x.inputs[0] for x in found if x.op == "result"}
    if len(branches) != 1:
        return None
    (branch,) = branches
    others = [x for x in found if x.op != "result" and x is not branch.inputs[0]]
    if branch.op != "if" or branch.block is not body or others:
        return None
    own = [x.static for x in found if x.op == "result"]
    for k, block in enumerate(branch.blocks):
        if all(_is_filler(block.results[i]) for i in own):
            return branch, k
    return None


def _is_filler(x: Node) -> bool:
    if x.op == "nothing":
        return True
    return x.op == "constant" and x.static.key == filler(x.type).static.key


def _in(branch: Node, k: int, found: list[Node]) -> Node:
    """A record that is packed on one way of a branch, and is nothing on the other."""
    index = len(branch.blocks[0].results)
    for i, block in enumerate(branch.blocks):
        with reopened(block):
            own = [block.results[x.static] for x in found]
            value = filler(RECORD) if i == k else emit("pack", own, RECORD)
        block.results.append(value)
    return add_result(branch, RECORD, index)


def _result(node: Node, type: Type, index: int) -> Node:
    """A result of control flow that has been staged before."""
    found = (x for x in node.block.nodes if x.op == "result") if node.block else ()
    for x in found:
        if x.inputs[0] is node and x.static == index:
            return x
    return add_result(node, type, index)


class _Walk:
    """A loop, or a walk along tapes: its state, and what is on its tapes."""

    def __init__(self, step: Step) -> None:
        node = self.node = step.node
        self.tapes: Tapes = node.static
        self.parameters = node.blocks[0].parameters
        slots = sum(self.tapes.read)
        self.state = self.parameters[slots:]
        self.inits = node.inputs[len(self.tapes.read) :]
        self.after = node.blocks[-1].results[: len(self.state)]

    def read(self) -> Iterator[tuple[Node, list[Node]]]:
        """The tapes that it reads, and the parameters for what is on them."""
        start = 0
        for tape, n in zip(self.node.inputs, self.tapes.read, strict=False):
            yield tape, self.parameters[start : start + n]
            start += n

    def written(self) -> Iterator[tuple[int, list[Node]]]:
        """The tapes that it writes, as numbers of results, and what it puts there."""
        saved = self.node.blocks[-1].results[len(self.state) :]
        for i, n in enumerate(self.tapes.written):
            yield len(self.state) + i, saved[:n]
            saved = saved[n:]

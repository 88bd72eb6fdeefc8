"""Forward mode on programs: each rule is resumed at once and tells how its value moves.

Every float that moves has a tangent, which is a node beside its own. A branch and a
call hand tangents on as further results, a loop as further state; what a forward pass
saves has a tape, or a record, of tangents beside it. So a derivative of a gradient in
one direction is one program of a small multiple of the gradient's size.

References:
    Griewank and Walther (2008), section 3.1.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.activity import Activity
from lantern.staging.back import Slot, zero
from lantern.staging.ir import (
    Block,
    Function,
    Node,
    Tapes,
    building,
    constant,
    current,
    emit,
)
from lantern.staging.regions import prune
from lantern.staging.rules import PASSED_ON, dense, operands_of, start
from lantern.staging.staged import node_of, staged
from lantern.staging.types import FLOAT, NOTHING, RECORD

__all__ = ["pushforward"]


@between_turns
def pushforward(main: Function, by: Iterable[int]) -> Function:
    """The function that computes another one's results and how they move.

    Args:
        main: a function of numbers, without free variables.
        by: positions of the parameters that move.

    Returns:
        A function of main's parameters and of a tangent for each that moves. Its
        results are main's, and a tangent for each that is a float.
    """
    chosen = [main.body.parameters[i] for i in by]
    way = _Tangents(Activity(main, chosen))
    found = Function(f"jvp_of_{main.name}")
    with building(found.body):
        for p in main.body.parameters:
            way.here[p] = found.body.parameter(p.type, p.example)
        for p in chosen:
            way.moves[p] = found.body.parameter(p.type, p.example)
        way.block(main.body)
        found.body.keeps = False
        floats = [x for x in main.body.results if x.type is FLOAT]
        sure = [emit("sure", (way.tangent(x),), FLOAT) for x in floats]
    found.body.results = [*(way.here[x] for x in main.body.results), *sure]
    prune(found.body)
    found.types = [x.type for x in found.body.results]
    return found


class _Tangents:
    """The state of one pushforward.

    Attributes:
        active: the nodes that move.
        here: by node, what stands for it in the new program.
        moves: by node, its tangent.
        functions: by function, the one that has tangents, too.
        places: by node of control flow, where its results and their tangents are.
    """

    def __init__(self, active: Activity) -> None:
        self.active = active
        self.here: dict[Node, Node] = {}
        self.moves: dict[Node, Node] = {}
        self.functions: dict[Function, Function] = {}
        self.places: dict[Node, tuple[dict[int, int], dict[int, int]]] = {}

    def tangent(self, x: Node) -> Node:
        """How a node moves: not at all, if nothing is known of it."""
        return self.moves[x] if x in self.moves else zero(x)

    def tangents(self, nodes: Iterable[Node]) -> list[Node]:
        """How those of some nodes move that can."""
        return [self.tangent(x) for x in nodes if x.type.has_cotangent]

    def block(self, block: Block) -> None:
        """Stage a block's nodes, and their tangents, into the current one."""
        for node in block.nodes:
            current.line = node.line
            current.blocks[-1].keeps = node.keeps
            special = _CONTROL.get(node.op)
            if special is not None:
                special(self, node)
            else:
                self._operation(node, [self.here[x] for x in node.inputs])

    def _operation(self, node: Node, inputs: list[Node]) -> None:
        if node not in self.active or node.op in PASSED_ON:
            new = emit(node.op, inputs, node.type, node.static, example=node.example)
            if node in self.active:
                self.moves[node] = self.tangent(node.inputs[0])
        else:
            if node.type is not FLOAT:
                raise StagingError(
                    f"jvp: {node.op} of {node.type} is not staged. Forward mode is "
                    f"staged on numbers."
                )
            value, rule = start(node, inputs)
            new = node_of(value)
            self._moved(node, rule)
        new.loose = node.loose
        self.here[node] = new

    def _moved(self, node: Node, rule: Any) -> None:
        """The sum of partial derivatives times tangents."""
        one, total = staged(constant(1.0, FLOAT)), None
        operands = operands_of(node)
        while operands and operands[-1] not in self.active.nodes:
            operands.pop()
        for x in operands:
            partial = rule.send(one)
            if x is None or x not in self.moves or partial is None:
                continue
            term = dense(partial, x) * staged(self.moves[x])
            total = term if total is None else total + term
        if total is not None:
            self.moves[node] = node_of(total)

    # Control flow: results as before, and then tangents.

    def _result(self, node: Node) -> None:
        source = self.here[node.inputs[0]]
        values, tangents = self.places[node.inputs[0]]
        i = node.static
        new = emit("result", (source,), node.type, values[i])
        new.loose, new.example = node.loose, node.example
        self.here[node] = new
        if node in self.active.nodes and i in tangents:
            moved = emit("result", (source,), node.type, tangents[i])
            moved.example = node.example
            self.moves[node] = moved

    @between_turns
    def _if(self, node: Node) -> None:
        old = node.blocks
        own = [
            i
            for i, x in enumerate(old[0].results)
            if x.type.has_cotangent
            and any(b.results[i] in self.active.nodes for b in old)
        ]
        blocks = []
        for each in old:
            new = Block("branch", current.blocks[-1])
            with building(new):
                self.block(each)
                new.results = [self.here[x] for x in each.results]
                new.results += [self.tangent(each.results[i]) for i in own]
            new.stops = each.stops
            blocks.append(new)
        condition = self.here[node.inputs[0]]
        made = emit("if", (condition,), NOTHING, node.static, tuple(blocks))
        self._note(node, made, range(len(old[0].results)), own)

    def _note(
        self, node: Node, made: Node, values: Sequence[int], own: Sequence[int]
    ) -> None:
        """Results stand where they stood, and tangents behind them."""
        self.here[node] = made
        tangents = {i: len(values) + k for k, i in enumerate(own)}
        self.places[node] = {i: i for i in values}, tangents

    def _call(self, node: Node) -> None:
        f = node.static
        moving = [p for p in f.body.parameters if p in self.active.nodes]
        places = [f.body.parameters.index(p) for p in moving]
        inputs = [self.here[x] for x in node.inputs]
        inputs += [self.tangent(node.inputs[i]) for i in places]
        made = emit("call", inputs, NOTHING, self._function(f, moving))
        self._note(node, made, range(len(f.types or ())), self._own(f))

    def _own(self, f: Function) -> list[int]:
        """Which results of a function move."""
        return sorted(self.active.results[f])

    def _function(self, f: Function, moving: list[Node]) -> Function:
        """A function with tangents, staged when it is first called."""
        if f in self.functions:
            return self.functions[f]
        made = self.functions[f] = Function(f"jvp_of_{f.name}")
        own = self._own(f)
        known = list(f.types or ())
        made.types = [*known, *(known[i] for i in own)]
        for p in f.body.parameters:
            self.here[p] = made.body.parameter(p.type, p.example)
        for p in moving:
            self.moves[p] = made.body.parameter(p.type, p.example)
        with building(made.body):
            self.block(f.body)
            made.body.results = [self.here[x] for x in f.body.results]
            made.body.results += [self.tangent(f.body.results[i]) for i in own]
        prune(made.body)
        return made

    @between_turns
    def _turns(self, node: Node) -> None:
        """A loop, or a walk along tapes, with tangents in its state and on tapes."""
        read, written = node.static
        tapes, inits = node.inputs[: len(read)], node.inputs[len(read) :]
        first, last = node.blocks[0], node.blocks[-1]
        slots, state = _parted(first.parameters, read)
        saved, _ = _parted(last.results[len(state) :], written)
        also_read = [j for j, tape in enumerate(tapes) if tape in self.active.nodes]
        also_written = [
            j
            for j, values in enumerate(saved)
            if any(x in self.active.nodes for x in values)
        ]
        moving = [k for k, p in enumerate(state) if p in self.active.nodes]
        inputs = [self.here[x] for x in tapes]
        inputs += [self.tangent(tapes[j]) for j in also_read]
        inputs += [self.here[x] for x in inits]
        inputs += [self.tangent(inits[k]) for k in moving]
        blocks: list[Block] = []
        for old in node.blocks:
            around = blocks[0] if blocks else current.blocks[-1]
            blocks.append(Block(old.kind, around))
        for group in slots:
            for p in group:
                self.here[p] = blocks[0].parameter(p.type, p.example)
        own_slots = [[p for p in slots[j] if p.type.has_cotangent] for j in also_read]
        for group in own_slots:
            for p in group:
                self.moves[p] = blocks[0].parameter(p.type, p.example)
        for p in state:
            self.here[p] = blocks[0].parameter(p.type, p.example)
            self.here[p].loose = p.loose
        for k in moving:
            p = state[k]
            self.moves[p] = blocks[0].parameter(p.type, p.example)
        for old, new in zip(node.blocks, blocks, strict=True):
            with building(new):
                self.block(old)
                new.results = [self.here[x] for x in old.results]
                if old is last:
                    after = old.results[: len(state)]
                    tangents = [self.tangents(saved[j]) for j in also_written]
                    new.results[len(state) : len(state)] = [
                        self.tangent(after[k]) for k in moving
                    ]
                    new.results += [x for group in tangents for x in group]
            new.stops = old.stops
        counts = tuple(len(group) for group in own_slots)
        more = tuple(len(group) for group in tangents)
        static = Tapes((*read, *counts), (*written, *more))
        made = emit(node.op, inputs, NOTHING, static, tuple(blocks))
        self.here[node] = made
        n, m = len(state), len(moving)
        values = {k: k for k in range(n)}
        values |= {n + j: n + m + j for j in range(len(written))}
        places = {k: n + i for i, k in enumerate(moving)}
        places |= {n + j: n + m + len(written) + i for i, j in enumerate(also_written)}
        self.places[node] = values, places

    # Records.

    def _pack(self, node: Node) -> None:
        inputs = [self.here[x] for x in node.inputs]
        self.here[node] = emit("pack", inputs, RECORD)
        if node in self.active.nodes:
            self.moves[node] = emit("pack", self.tangents(node.inputs), RECORD)

    def _unpack(self, node: Node) -> None:
        (record,), slot = node.inputs, node.static
        new = emit("unpack", (self.here[record],), node.type, slot)
        new.example = node.example
        self.here[node] = new
        if node in self.active.nodes and record in self.moves:
            own = tuple(t for t in slot.types if t.has_cotangent)
            place = sum(t.has_cotangent for t in slot.types[: slot.place])
            inputs = (self.moves[record],)
            self.moves[node] = emit("unpack", inputs, node.type, Slot(place, own))


def _parted(
    nodes: Sequence[Node], counts: Sequence[int]
) -> tuple[list[list[Node]], list[Node]]:
    """Nodes in groups of some sizes, and what is left."""
    groups, start = [], 0
    for n in counts:
        groups.append(list(nodes[start : start + n]))
        start += n
    return groups, list(nodes[start:])


_CONTROL = {
    "result": _Tangents._result,
    "if": _Tangents._if,
    "loop": _Tangents._turns,
    "back": _Tangents._turns,
    "call": _Tangents._call,
    "pack": _Tangents._pack,
    "unpack": _Tangents._unpack,
}

"""Reverse mode on programs: each rule there and back again, as nodes.

The way there starts the rule of each active node on staged operands and leaves it
suspended; the way back resumes the rules newest first with staged cotangents. A branch
goes back in a branch, a loop in a walk along its tape, a call in a call. Cotangents are
values like all others, handed from node to node, so that an adjoint is a program that
can be differentiated again.

References:
    Wang et al. (2019), section 4; Innes (2018), "Don't unroll adjoint".
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.activity import Activity
from lantern.staging.back import (
    Pair,
    Received,
    Shadow,
    Slot,
    Step,
    back_call,
    back_if,
    back_loop,
    zero,
)
from lantern.staging.control import filler
from lantern.staging.hoist import hoist
from lantern.staging.ir import (
    Block,
    Function,
    Node,
    building,
    constant,
    current,
    emit,
    walk,
)
from lantern.staging.regions import prune
from lantern.staging.rules import OWN, PASSED_ON, dense, operands_of, start
from lantern.staging.staged import node_of, staged
from lantern.staging.types import FLOAT, NOTHING, RECORD, Type

__all__ = ["adjoint"]


@between_turns
def adjoint(
    main: Function, by: Iterable[int], with_value: bool = True, seeded: bool = False
) -> Function:
    """The function that computes another one's value and gradient.

    Args:
        main: its first result is a float.
        by: positions of the parameters that it is differentiated by.
        with_value: whether its results come before the gradients.
        seeded: whether the cotangents of its results that are floats are parameters of
            the new function, its last ones. If not, that of the first is 1.
    """
    chosen = [main.body.parameters[i] for i in by]
    way = _Adjoint(Activity(main, chosen))
    name = f"{'value_and_' if with_value else ''}grad_of_{main.name}"
    found = Function(f"pullback_of_{main.name}" if seeded else name)
    with building(found.body):
        for p in main.body.parameters:
            way.there[p] = found.body.parameter(p.type, p.example)
        seeds = [
            (x, found.body.parameter(FLOAT) if seeded else constant(1.0, FLOAT))
            for x in main.body.results[: None if seeded else 1]
            if x.type is FLOAT
        ]
        steps = way.forward(main.body)
        found.body.keeps = False
        received: Received = {}
        for y, seed in seeds:
            way.give(received, y, staged(seed))
        way.backward(steps, received)
        gradients = [way.take(received, p) or zero(p) for p in chosen]
        sure = [emit("sure", (x,), x.type, example=x.example) for x in gradients]
        values = [way.there[x] for x in main.body.results] if with_value else []
    found.body.results = [*values, *sure]
    prune(found.body)
    hoist(found.body)
    found.is_closed = not any(x.op == "call" for x in walk(found.body))
    found.types = [x.type for x in found.body.results]
    return found


_NONE: dict[int, Node] = {}
_AS_THEY_ARE = PASSED_ON | {"result", "part", "pack", "unpack"}
_BACK = {"if": back_if, "loop": back_loop, "back": back_loop, "call": back_call}


class _Adjoint:
    """The state of one adjoint.

    Attributes:
        active: the nodes that have cotangents.
        there: by node, what stands for it on the way there.
    """

    def __init__(self, active: Activity) -> None:
        self.active = active
        self.there: dict[Node, Node] = {}
        self.pairs: dict[Function, Pair] = {}

    # The way there.

    def forward(self, block: Block) -> list[Step]:
        """Stage a block's nodes into the current one; their rules wait."""
        return [self._forward_node(node) for node in block.nodes]

    def _forward_node(self, node: Node) -> Step:
        inputs = [self.there[x] for x in node.inputs]
        current.line = node.line
        current.blocks[-1].keeps = node.keeps
        waiting: Any = None
        if node.op in ("if", "loop", "back"):
            new, waiting = self._forward_blocks(node, inputs)
        elif node.op == "call":
            there = self._pair(node.static).there
            new = emit("call", inputs, NOTHING, there)
        elif node in self.active and node.op not in _AS_THEY_ARE:
            value, waiting = start(node, inputs)
            several = isinstance(value, tuple)
            new = value[0].node.inputs[0] if several else node_of(value)
        else:
            new = emit(node.op, inputs, node.type, node.static, example=node.example)
        if not node.blocks:
            new.loose = node.loose
        self.there[node] = new
        return Step(node, new, waiting)

    def _forward_blocks(self, node: Node, inputs: list[Node]) -> tuple[Node, Any]:
        blocks: list[Block] = []
        waiting = []
        parent = current.blocks[-1]
        for old in node.blocks:
            is_inside = node.op == "loop" and blocks
            new = Block(old.kind, blocks[0] if is_inside else parent)
            blocks.append(new)
            for p in old.parameters:
                self.there[p] = new.parameter(p.type, p.example)
        for old, new in zip(node.blocks, blocks, strict=True):
            with building(new):
                waiting.append(self.forward(old))
            new.results = [self.there[x] for x in old.results]
            new.stops = old.stops
        made = emit(node.op, inputs, NOTHING, node.static, tuple(blocks))
        return made, waiting

    def _pair(self, f: Function) -> Pair:
        """A function's way there, staged when it is first needed."""
        if f in self.pairs:
            return self.pairs[f]
        pair = self.pairs[f] = Pair(f)
        there = pair.there
        there.types = [*(f.types or ()), RECORD]
        for p in f.body.parameters:
            self.there[p] = there.body.parameter(p.type, p.example)
        with building(there.body):
            pair.steps = self.forward(f.body)
        there.body.results = [self.there[x] for x in f.body.results]
        return pair

    # The way back.

    def give(self, received: Received, x: Node, x_bar: Any) -> None:
        """Add a contribution to what a node has received."""
        if x not in self.active.nodes or x_bar is None:
            return
        x_bar = dense(x_bar, x)
        total = received.get(x)
        if total is None:
            received[x] = x_bar
        elif x.type.is_saved:
            raise StagingError("grad: what a pass has saved is used twice.")
        elif x_bar is not None:
            received[x] = total + x_bar

    def take(self, received: Received, x: Node) -> Node | None:
        """What a node has received; None for nothing."""
        z_bar = received.pop(x, None)
        return None if z_bar is None else self.whole(z_bar)

    def whole(self, z_bar: Any) -> Node:
        """What a node has received as one node."""
        if type(z_bar) is not Shadow:
            return node_of(z_bar)
        own = [(i, t) for i, t in enumerate(z_bar.types) if t.has_cotangent]
        zeros = [z_bar[i] if i in z_bar else filler(t) for i, t in own]
        return emit("pack", zeros, RECORD)

    def backward(self, steps: Sequence[Step], received: Received) -> None:
        """Resume what waits, newest first."""
        results: dict[Node, dict[int, Node]] = {}
        for step in steps:
            if step.node.op in ("result", "part"):
                source = step.node.inputs[0]
                results.setdefault(source, {})[step.node.static] = step.node
        for step in reversed(steps):
            node = step.node
            if node not in self.active.nodes or node.op in ("result", "part"):
                continue
            current.line = node.line
            bars: dict[int, Node] = {}
            for i, x in results.get(node, _NONE).items():
                z_bar = self.take(received, x)
                if z_bar is not None:
                    bars[i] = z_bar
            self._back_node(step, bars, received)

    def _back_node(self, step: Step, bars: dict[int, Node], received: Received) -> None:
        """Hand on what the results of control flow, or one value, have received."""
        node = step.node
        if node.op in _BACK:
            if bars:
                _BACK[node.op](self, step, bars, received)
        elif node.op == "several":
            if bars:
                zeros = [x * 0 for x in node.example]
                full = [
                    staged(bars[i]) if i in bars else z for i, z in enumerate(zeros)
                ]
                self._resume(step, tuple(full), received)
        else:
            z_bar = self.take(received, node)
            if z_bar is None:
                return
            if node.op in OWN:
                self._back_record(node, z_bar, received)
            else:
                self._resume(step, staged(z_bar), received)

    def _back_record(self, node: Node, z_bar: Node, received: Received) -> None:
        """What is unpacked receives at its place; what is packed from a shadow."""
        if node.op == "unpack":
            (record,), (place, types) = node.inputs, node.static
            shadow = received.get(record)
            if type(shadow) is not Shadow:
                shadow = received[record] = self._shadow(shadow, types)
            if place in shadow:
                if not node.type.is_number:
                    raise StagingError("grad: what a pass has saved is used twice.")
                z_bar = node_of(staged(shadow[place]) + staged(z_bar))
            shadow[place] = z_bar
            return
        own = [x for x in node.inputs if x.type.has_cotangent]
        types = tuple(x.type for x in own)
        for i, x in enumerate(own):
            part = emit("unpack", (z_bar,), x.type, Slot(i, types), example=x.example)
            self.give(received, x, staged(part))

    def _shadow(self, whole: Any, types: tuple[Type, ...]) -> Shadow:
        """What has been received for a record, by places."""
        shadow = Shadow()
        shadow.types = types
        if whole is not None:
            own = [i for i, t in enumerate(types) if t.has_cotangent]
            known = tuple(types[i] for i in own)
            for k, i in enumerate(own):
                inputs = (node_of(whole),)
                shadow[i] = emit("unpack", inputs, types[i], Slot(k, known))
        return shadow

    def _resume(self, step: Step, z_bar: Any, received: Received) -> None:
        """Send a cotangent into a rule; give what it yields to its operands."""
        operands = operands_of(step.node)
        while operands and operands[-1] not in self.active.nodes:
            operands.pop()
        for x in operands:
            x_bar = z_bar if step.waiting is None else step.waiting.send(z_bar)
            if x is not None:
                self.give(received, x, x_bar)

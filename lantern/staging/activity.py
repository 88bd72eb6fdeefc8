"""Activity: the nodes that depend on what a derivative is taken by."""

from collections.abc import Iterable

from lantern.staging.ir import Block, Function, Node
from lantern.staging.rules import has_derivative

__all__ = ["Activity"]


class Activity:
    """The active nodes of a program, in all of its functions.

    Attributes:
        nodes: the active ones; of control flow those with an active result.
        results: by function, which of its results are active.
        _is_late: whether something was found behind what may use it.
    """

    def __init__(self, main: Function, parameters: Iterable[Node]) -> None:
        self.nodes = set(parameters)
        self.results: dict[Function, set[int]] = {}
        before, self._is_late = -1, True
        while self._is_late and before != self._size():
            before, self._is_late = self._size(), False
            self._seen: set[Function] = set()
            self._function(main)

    def _size(self) -> int:
        return len(self.nodes) + sum(map(len, self.results.values()))

    def __contains__(self, node: Node) -> bool:
        return node in self.nodes

    def _function(self, f: Function) -> None:
        if f in self._seen:
            self._is_late = True
            return
        self._seen.add(f)
        self._block(f.body)
        active = {i for i, x in enumerate(f.body.results) if x in self.nodes}
        self.results.setdefault(f, set()).update(active)

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            if node.op == "result":
                if node.type.has_cotangent and self._is_result(node):
                    self.nodes.update((node, node.inputs[0]))
            elif node.op == "call":
                self._pass(node.inputs, node.static.body.parameters)
                self._function(node.static)
            elif node.op in ("loop", "back"):
                self._loop(node)
            elif node.blocks:
                for inside in node.blocks:
                    self._block(inside)
            elif node in self.nodes or self.nodes.isdisjoint(node.inputs):
                continue
            elif has_derivative(node):
                self.nodes.add(node)

    def _pass(self, values: Iterable[Node], parameters: Iterable[Node]) -> None:
        for x, p in zip(values, parameters, strict=True):
            if x in self.nodes and p.type.has_cotangent:
                self.nodes.add(p)

    def _loop(self, node: Node) -> None:
        read = node.static.read
        parameters = node.blocks[0].parameters
        start = 0
        for tape, n in zip(node.inputs, read, strict=False):
            slots = parameters[start : start + n]
            if tape in self.nodes:
                self.nodes.update(p for p in slots if p.type.has_cotangent)
            start += n
        state = parameters[start:]
        self._pass(node.inputs[len(read) :], state)
        for block in node.blocks:
            self._block(block)
        before = len(self.nodes)
        self._pass(node.blocks[-1].results[: len(state)], state)
        self._is_late |= len(self.nodes) > before

    def _is_result(self, node: Node) -> bool:
        source, i = node.inputs[0], node.static
        if source.op == "call":
            return i in self.results.get(source.static, ())
        if source.op == "if":
            return any(block.results[i] in self.nodes for block in source.blocks)
        state = source.blocks[0].parameters[sum(source.static.read) :]
        if i < len(state):
            return state[i] in self.nodes
        saved = source.blocks[-1].results[len(state) :]
        start = sum(source.static.written[: i - len(state)])
        n = source.static.written[i - len(state)]
        return any(x in self.nodes for x in saved[start : start + n])

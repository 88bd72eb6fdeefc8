"""Operators that run graphs of their own, and the derivative that is an operator."""

from typing import Any

import numpy as np

import lantern
from lantern.core.value import base
from lantern.errors import FileFormatError
from lantern.onnx.extra import package
from lantern.onnx.operators.reduction import softmax
from lantern.onnx.plan import Graph, Names, Node, Setting, free_names

__all__ = ["CONTROL"]


def _graph(node: Node, name: str, setting: Setting, names: Names) -> Graph:
    """A graph among a node's attributes, planned; what it reads is the node's."""
    for attribute in node.proto.attribute:
        if attribute.name == name and attribute.HasField("g"):
            graph = Graph(attribute.g, setting, names)
            node.captured |= graph.captured
            return graph
    raise FileFormatError(f"onnx.load: {node} has no graph {name!r}.")


def _ints(node: Node, name: str) -> list[int] | None:
    for attribute in node.proto.attribute:
        if attribute.name == name:
            return [int(i) for i in attribute.ints]
    return None


def _truth(x: Any) -> bool:
    return bool(np.asarray(base(x)).reshape(()))


def _if(node: Node, setting: Setting, names: Names, graph: Graph) -> Any:
    """One of two graphs."""
    then = _graph(node, "then_branch", setting, names)
    other = _graph(node, "else_branch", setting, names)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        chosen = then if _truth(inputs[0]) else other
        return tuple(chosen.run(run, free_names(chosen, values)))

    return step


def _loop(node: Node, setting: Setting, names: Names, graph: Graph) -> Any:
    """A graph, as often as a number and a condition let it."""
    body = _graph(node, "body", setting, names)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        most, condition, *states = [*inputs, None, None][: max(len(inputs), 2)]
        count = len(states)
        scanned: list[list[Any]] = [[] for _ in body.outputs[1 + count :]]
        turn, goes_on = 0, condition is None or _truth(condition)
        while goes_on and (most is None or turn < int(np.asarray(most).reshape(()))):
            run.turn()
            own = free_names(body, values)
            given = [np.array(turn), np.array(goes_on), *states]
            own.update(zip(body.inputs, given, strict=False))
            ended, *results = body.run(run, own)
            goes_on, states = _truth(ended), results[:count]
            for parts, z in zip(scanned, results[count:], strict=True):
                parts.append(z)
            turn += 1
        return (*states, *[_stacked(parts, run, node) for parts in scanned])

    return step


def _stacked(parts: list[Any], run: Any, node: Node, axis: int = 0) -> Any:
    """What the turns of a loop gave, along a new axis."""
    if not parts:
        return np.zeros((0,), np.float32)
    run.check_size(node, len(parts) * base(parts[0]).size)
    return np.stack(parts, axis=axis)


def _scan(node: Node, setting: Setting, names: Names, graph: Graph) -> Any:
    """A graph for each element along an axis of some inputs."""
    body = _graph(node, "body", setting, names)
    given = {a.name: a for a in node.proto.attribute}
    if "num_scan_inputs" not in given:
        raise FileFormatError(f"onnx.load: {node} has no number of inputs to scan.")
    n = int(given["num_scan_inputs"].i)
    batched = setting.opsets[""] < 9

    def sweep(run: Any, values: Any, inputs: list[Any]) -> Any:
        count = len(inputs) - n
        states, xs = inputs[:count], inputs[count:]
        axes = _ints(node, "scan_input_axes") or [0] * n
        backward = _ints(node, "scan_input_directions") or [0] * n
        length = base(xs[0]).shape[axes[0]]
        scanned: list[list[Any]] = [[] for _ in body.outputs[count:]]
        for t in range(length):
            run.turn()
            own = free_names(body, values)
            parts = [
                np.take(x, length - 1 - t if back else t, axis)
                for x, axis, back in zip(xs, axes, backward, strict=True)
            ]
            own.update(zip(body.inputs, [*states, *parts], strict=True))
            results = body.run(run, own)
            states = results[:count]
            for found, z in zip(scanned, results[count:], strict=True):
                found.append(z)
        axes = _ints(node, "scan_output_axes") or [0] * len(scanned)
        turned = _ints(node, "scan_output_directions") or [0] * len(scanned)
        ends = [
            _stacked(parts[::-1] if back else parts, run, node, axis)
            for parts, axis, back in zip(scanned, axes, turned, strict=True)
        ]
        return (*states, *ends)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        if not batched:
            return sweep(run, values, inputs)
        _, *inputs = inputs  # of the first version: an axis of examples in front
        found = [
            sweep(run, values, [x[i] for x in inputs])
            for i in range(base(inputs[0]).shape[0])
        ]
        return tuple(np.stack(parts) for parts in zip(*found, strict=True))

    return step


def _sequence_map(node: Node, setting: Setting, names: Names, graph: Graph) -> Any:
    """A graph for each element of a sequence, and of others beside it."""
    body = _graph(node, "body", setting, names)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        found: list[list[Any]] = [[] for _ in body.outputs]
        for i in range(len(inputs[0])):
            run.turn()
            own = free_names(body, values)
            parts = [x[i] if isinstance(x, list) else x for x in inputs]
            own.update(zip(body.inputs, parts, strict=True))
            for parts, z in zip(found, body.run(run, own), strict=True):
                parts.append(z)
        return tuple(found)

    return step


def _flex_attention(node: Node, setting: Setting, names: Names, graph: Any) -> Any:
    """Attention, its scores and its shares changed by graphs."""
    given = {a.name: a for a in node.proto.attribute}
    changes = {
        name: _graph(node, name, setting, names)
        for name in ("score_mod", "prob_mod")
        if name in given
    }

    def changed(name: str, x: Any, run: Any, values: Any) -> Any:
        if name not in changes:
            return x
        own = free_names(changes[name], values)
        own.update(zip(changes[name].inputs, [x], strict=True))
        return changes[name].run(run, own)[0]

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        q, k, v = inputs
        groups = q.shape[1] // k.shape[1]
        if groups != 1:
            k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
        scale = given["scale"].f if "scale" in given else q.shape[-1] ** -0.5
        half = np.array(np.sqrt(np.float32(scale)), q.dtype)
        scores = np.matmul(q * half, np.swapaxes(k * half, -1, -2))
        kind = scores.dtype
        if "softmax_precision" in given:
            kind = package().helper.tensor_dtype_to_np_dtype(
                given["softmax_precision"].i
            )
        elif kind.itemsize < 4:
            kind = np.dtype(np.float32)
        scores = changed("score_mod", scores.astype(kind), run, values)
        shares = changed("prob_mod", softmax(scores), run, values)
        return np.matmul(shares, v.astype(kind)).astype(v.dtype)

    return step


def _gradient(node: Node, setting: Setting, names: Names, graph: Any) -> Any:
    """The derivative of what the graph computes before the node, by Lantern's own.

    What makes ``y`` of the ``xs`` and ``zs`` is run again on the node's inputs.
    """
    given = {a.name: a for a in node.proto.attribute}
    try:
        xs = [s.decode() for s in given["xs"].strings]
        zs = [s.decode() for s in given["zs"].strings] if "zs" in given else []
        y = given["y"].s.decode()
    except (KeyError, UnicodeDecodeError):
        raise FileFormatError(f"onnx.load: {node} does not say of what.") from None
    if len(node.inputs) != len(xs) + len(zs) or y not in names:
        raise FileFormatError(
            f"onnx.load: {node} of {y!r} by {xs} and {zs} has {len(node.inputs)} "
            f"inputs."
        )
    nodes, read = _between(graph.nodes, y, {*xs, *zs})
    outside = read - {*xs, *zs}
    node.captured |= outside & (names.own | outside)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        def value(*parts: Any) -> Any:
            own = {name: values[name] for name in outside if name in values}
            own.update(zip(xs, parts, strict=True))
            own.update(zip(zs, inputs[len(xs) :], strict=True))
            own[""] = None
            for inner in nodes:
                results = inner.step(run, own, [own[name] for name in inner.inputs])
                results = results if type(results) is tuple else (results,)
                own.update(zip(inner.outputs, results, strict=False))
            return lantern.sum(own[y])

        found = lantern.grad(value, argnums=tuple(range(len(xs))))(*inputs[: len(xs)])
        return tuple(found)

    return step


def _between(nodes: list[Node], y: str, ends: set[str]) -> tuple[list[Node], set[str]]:
    """The nodes that make a value of others, in their order, and what they read."""
    wanted, kept, read = {y}, [], set()
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            inputs = {*node.inputs, *node.captured} - {""}
            read |= inputs
            wanted |= inputs - ends
    made = {name for node in kept for name in node.outputs}
    return kept[::-1], (read | ({y} - made)) - (made - ends)


# How to plan operators with graphs of their own.
CONTROL = {
    "FlexAttention": _flex_attention,
    "Gradient": _gradient,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}

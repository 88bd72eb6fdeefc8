"""The interpreter: a program of nodes run on plain values, node by node.

It asks Python and NumPy for every operation, so that its results are theirs, to the
last bit and to the exception. It is what native code is compared with.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from lantern.staging.ir import BailOutError, Block, Function, Node, Tapes
from lantern.staging.operations import evaluate
from lantern.staging.trees import is_method
from lantern.staging.types import FLOAT

__all__ = ["run"]


def run(function: Function, arguments: Sequence[Any]) -> list[Any]:
    """The results of a function for plain arguments."""
    parameters = function.body.parameters
    values = dict(zip(parameters, arguments, strict=True))
    _run_block(function.body, values)
    return [values[x] for x in function.body.results]


def _run_block(block: Block, values: dict[Node, Any]) -> None:
    for node in block.nodes:
        special = _SPECIAL.get(node.op)
        if special is not None:
            values[node] = special(node, values)
        else:
            inputs = [values[x] for x in node.inputs]
            found = evaluate(node.op, node.static, inputs)
            if (
                type(found) is complex and node.type is FLOAT
            ):  # a power of a negative number
                raise BailOutError
            values[node] = found


def _run_if(node: Node, values: dict[Node, Any]) -> list[Any]:
    block = node.blocks[0 if values[node.inputs[0]] else 1]
    _run_block(block, values)
    return [values[x] for x in block.results]


def _run_loop(node: Node, values: dict[Node, Any]) -> list[Any]:
    header, body = node.blocks
    state = [values[x] for x in node.inputs]
    turns: list[list[Any]] = []
    while True:
        values.update(zip(header.parameters, state, strict=True))
        _run_block(header, values)
        if not values[header.results[0]]:
            return [*state, *_tapes(turns, node.static)]
        _run_block(body, values)
        found = [values[x] for x in body.results]
        state = found[: len(state)]
        turns.append(found[len(state) :])


def _run_back(node: Node, values: dict[Node, Any]) -> list[Any]:
    """Walk tapes from their newest turns to their oldest."""
    (block,) = node.blocks
    inputs = [values[x] for x in node.inputs]
    read = node.static.read
    state = inputs[len(read) :]
    zeros = [zero_of(p) for p in block.parameters]
    turns = []
    for k in reversed(range(len(inputs[0]))):
        slots: list[Any] = []
        for tape, n in zip(inputs, read, strict=False):
            start = len(slots)
            slots += zeros[start : start + n] if tape is None else tape[k]
        values.update(zip(block.parameters, [*slots, *state], strict=True))
        _run_block(block, values)
        found = [values[x] for x in block.results]
        state = found[: len(state)]
        turns.append(found[len(state) :])
    return [*state, *_tapes(turns, node.static)]


def _tapes(turns: list[list[Any]], tapes: Tapes) -> Iterator[list[Any]]:
    """What the turns have saved, tape by tape."""
    start = 0
    for n in tapes.written:
        yield [turn[start : start + n] for turn in turns]
        start += n


def zero_of(node: Node) -> Any:
    """What nothing is, in a node's type."""
    if node.type.is_number:
        return {"float": 0.0, "int": 0, "bool": False}[node.type.kind]
    return None if node.example is None else node.example * 0


def _unpack(node: Node, values: dict[Node, Any]) -> Any:
    record = values[node.inputs[0]]
    return zero_of(node) if record is None else record[node.static.place]


def _run_call(node: Node, values: dict[Node, Any]) -> list[Any]:
    return run(node.static, [values[x] for x in node.inputs])


def _get(node: Node, values: dict[Node, Any]) -> Any:
    """A part of an object, if it is what the program was staged for."""
    key, cls = node.static
    x = values[node.inputs[0]]
    if type(x) is not cls:
        raise BailOutError
    part = x[key] if node.op == "get" else getattr(x, key)
    return _as_staged(part, node)


def _get_at(node: Node, values: dict[Node, Any]) -> Any:
    """An item of a tuple or a list."""
    x, i = (values[y] for y in node.inputs)
    if type(x) is not node.static:
        raise BailOutError
    return _as_staged(x[i], node)


def _size(node: Node, values: dict[Node, Any]) -> int:
    x = values[node.inputs[0]]
    if type(x) is not node.static:
        raise BailOutError
    return len(x)


def _as_staged(x: Any, node: Node) -> Any:
    if node.type.is_number and type(x).__name__ != node.type.kind:
        raise BailOutError
    return x


def _sure(node: Node, values: dict[Node, Any]) -> Any:
    x = values[node.inputs[0]]
    if type(x) is float and x != x:
        raise BailOutError
    return x


def _stop(node: Node, values: dict[Node, Any]) -> Any:
    raise BailOutError


_SPECIAL = {
    "constant": lambda node, values: node.static.value,
    "result": lambda node, values: values[node.inputs[0]][node.static],
    "part": lambda node, values: values[node.inputs[0]][node.static],
    "unpack": _unpack,
    "pack": lambda node, values: [values[x] for x in node.inputs],
    "nothing": lambda node, values: None,
    "if": _run_if,
    "loop": _run_loop,
    "back": _run_back,
    "call": _run_call,
    "get": _get,
    "field": _get,
    "get_at": _get_at,
    "size": _size,
    "unbox": lambda node, values: _as_staged(values[node.inputs[0]], node),
    "is_exactly": lambda node, values: type(values[node.inputs[0]]) is node.static,
    "is_method": lambda node, values: is_method(values[node.inputs[0]], *node.static),
    "sure": _sure,
    "stop": _stop,
}

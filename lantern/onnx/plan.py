"""Graphs as programs: who reads which name, and which function computes each node.

A graph is planned once, when it is read; what it would come to run, it runs. Names are
those of the file. A value is a NumPy array, or what Lantern tracks in its place; a list
for a sequence; None for what is absent.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lantern.core.value import Value, base
from lantern.errors import EagerError, FileFormatError, LanternError
from lantern.onnx.extra import package
from lantern.onnx.limits import Limits, Run
from lantern.onnx.tensors import array_of

__all__ = [
    "Graph",
    "Names",
    "Node",
    "Setting",
    "attribute_value",
    "called",
    "free_names",
]

Step = Callable[[Run, dict[str, Any], list[Any]], Any]


class Names:
    """Names that a node may read: of its own graph, and of those around it."""

    __slots__ = ("around", "own")

    def __init__(self, own: Iterable[str], around: "Names | None" = None) -> None:
        self.own, self.around = set(own), around

    def __contains__(self, name: str) -> bool:
        scope: Names | None = self
        while scope is not None:
            if name in scope.own:
                return True
            scope = scope.around
        return False


class Setting:
    """What all graphs of one file share while they are planned.

    Attributes:
        opsets: versions of the operators' domains.
        functions: the file's own functions, by domain and name.
        folder: where other files of the model lie.
        limits: what may still be read and planned.
        planned: makes a ``Node`` of a message: ``nodes.py``.
        counts: of functions, how many nodes they come to; see ``functions.py``.
    """

    def __init__(
        self, opsets: Any, functions: Any, folder: str | None, limits: Limits,
        planned: Callable[..., "Node"],
    ) -> None:  # fmt: skip
        self.opsets, self.functions = opsets, functions
        self.folder, self.limits, self.planned = folder, limits, planned
        self.counts: dict[Any, int] = {}

    def inside(self, versions: dict[str, int]) -> "Setting":
        """For a function's body, whose domains may have other versions."""
        opsets = {**self.opsets, **versions}
        inner = Setting(opsets, self.functions, None, self.limits, self.planned)
        inner.counts = self.counts
        return inner


class Node:
    """One operator of a graph.

    Attributes:
        proto: the ``NodeProto``.
        schema: what the package knows of the operator; None for a function of the
            file, and where the operator runs graphs of its own.
        inputs: names that it reads; "" for what is absent.
        outputs: names of what it makes.
        captured: names that graphs inside of it read.
        drops: names that nobody reads behind it.
        step: what computes it.
        checked: the shapes that its results' sizes were last told for.
        sizes: those, by name.
    """

    __slots__ = (
        *("captured", "checked", "drops", "inputs", "opset_imports", "outputs"),
        *("proto", "schema", "sizes", "step"),
    )

    def __init__(self, proto: Any, schema: Any, captured: set[str], step: Step) -> None:
        self.proto, self.schema, self.step = proto, schema, step
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.captured = captured
        self.drops: list[str] = []
        self.checked: Any = None
        self.sizes: list[tuple[str, int]] = []
        self.opset_imports: Any = []

    def __str__(self) -> str:
        name = f" {self.proto.name!r}" if self.proto.name else ""
        return f"{self.proto.op_type}{name}"


class Graph:
    """A program: nodes in the order in which they run.

    Args:
        proto: a ``GraphProto`` without its weights, or a function's body.
        setting: what all graphs of the file share.
        around: the names of the graphs around it.
    """

    __slots__ = ("captured", "inputs", "nodes", "outputs", "weights")

    def __init__(self, proto: Any, setting: Setting, around: Names | None) -> None:
        function = not hasattr(proto, "initializer")
        tensors = () if function else proto.initializer
        self.weights = {tensor.name: tensor.doc_string for tensor in tensors}
        values = (lambda x: x) if function else (lambda x: x.name)
        self.inputs = [values(x) for x in proto.input]
        self.outputs = [values(x) for x in proto.output]
        names = Names([*self.inputs, *self.weights], around)
        self.captured: set[str] = set()
        self.nodes: list[Node] = []
        setting.limits.call(len(proto.node), "the graph")
        for one in proto.node:
            node = setting.planned(one, setting, names, self)
            for name in (*node.inputs, *node.captured):
                self._read(name, names, f"{node}")
            self.nodes.append(node)
            for name in filter(None, node.outputs):
                if name in names.own:
                    raise FileFormatError(
                        f"onnx.load: {node} makes {name!r}, which is there already. "
                        f"The file is damaged."
                    )
                names.own.add(name)
        if function:  # what a body does not make is absent
            self.outputs = [name if name in names.own else "" for name in self.outputs]
        for name in self.outputs:
            self._read(name, names, "the graph's end")
        self._forget()

    def _read(self, name: str, names: Names, reader: str) -> None:
        """Note that a name is read; whether it is made somewhere."""
        if not name or name in names.own:
            return
        if name not in names:
            raise FileFormatError(
                f"onnx.load: {reader} reads {name!r}, which nothing before it makes. "
                f"The graph has a cycle, or its nodes are out of order."
            )
        self.captured.add(name)

    def _forget(self) -> None:
        """Tell each node which names nobody reads behind it."""
        needed = set(self.outputs)
        for node in reversed(self.nodes):
            read = {*node.inputs, *node.captured, *node.outputs} - needed
            node.drops = [name for name in read if name]
            needed |= read

    def __deepcopy__(self, memo: Any) -> "Graph":
        return self  # a plan never changes

    def run(self, run: Run, values: dict[str, Any]) -> list[Any]:
        """What the graph gives.

        Args:
            run: the run that this is a part of.
            values: what it reads from outside, by name; names are added and dropped.
        """
        for name, key in self.weights.items():
            if name not in values:
                values[name] = run.weights[key]
        values[""] = None
        kept: dict[str, int] = {}
        for node in self.nodes:
            inputs = [values[name] for name in node.inputs]
            run.check_before(node, inputs)
            try:
                results = node.step(run, values, inputs)
            except (LanternError, MemoryError):
                raise
            except Exception as error:
                raise failure(node, inputs, error) from error
            if type(results) is not tuple:
                results = (results,)
            for name, z in zip(node.outputs, results, strict=False):
                z = np.asarray(z) if isinstance(z, np.generic) else z
                kept[name] = run.keep(node, z)
                values[name] = z
            for name in node.drops:
                values.pop(name, None)
                run.live -= kept.pop(name, 0)
        run.live -= sum(kept.values())  # what is handed out, the caller counts
        return [values[name] for name in self.outputs]


def failure(node: Node, inputs: list[Any], error: Exception) -> EagerError:
    """An error of an operator, with what it was given."""
    shapes = ", ".join(_described(x) for x in inputs)
    return EagerError(
        f"onnx: {node} failed on {shapes or 'no inputs'}: {error} Look whether the "
        f"inputs have the shapes and types that the file asks for."
    )


def _described(x: Any) -> str:
    plain = base(x)
    if isinstance(plain, np.ndarray):
        return f"{plain.dtype}{list(plain.shape)}"
    return type(plain).__name__ if not isinstance(x, Value) else "a tracked value"


def called(graph: Graph) -> Step:
    """How a function's body computes a node: in a scope of its own."""

    def step(run: Run, values: Any, inputs: list[Any]) -> Any:
        given = dict.fromkeys(graph.inputs)
        given.update(zip(graph.inputs, inputs, strict=False))
        return tuple(graph.run(run, given))

    return step


def free_names(graph: Graph, values: dict[str, Any]) -> dict[str, Any]:
    """What a graph inside of another reads of the values around it."""
    return {name: values[name] for name in graph.captured}


def attribute_value(proto: Any, setting: Setting) -> Any:
    """An attribute that is no graph, as Python has it."""
    kinds = package().AttributeProto
    kind = proto.type
    if kind == kinds.FLOAT:
        return float(proto.f)
    if kind == kinds.INT:
        return int(proto.i)
    if kind == kinds.STRING:
        return proto.s.decode("utf-8", "replace")
    if kind == kinds.FLOATS:
        return [float(x) for x in proto.floats]
    if kind == kinds.INTS:
        return [int(i) for i in proto.ints]
    if kind == kinds.STRINGS:
        return [s.decode("utf-8", "replace") for s in proto.strings]
    if kind == kinds.TENSOR:
        return array_of(proto.t, setting.folder, setting.limits)
    return proto  # sparse tensors and types, which few operators have

"""Models from files, as modules: the initialisers are their parameters."""

from typing import Any

import numpy as np

from lantern.core.value import Value, base
from lantern.errors import ArgumentError, TakenNameError
from lantern.onnx.extra import package
from lantern.onnx.functions import domain_versions, function_table
from lantern.onnx.limits import Limits, Run
from lantern.onnx.nodes import planned
from lantern.onnx.plan import Graph, Setting
from lantern.onnx.weights import put_weights, settings, take_weights
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.tensor import fresh, numpy_face, torch_face

__all__ = ["Model"]


class Model(Module):
    """A model from an ONNX file.

    ``lantern.onnx.load`` makes it. Its floating-point initialisers are parameters under
    their own names, a dot in a name leading into a module of that name; others, and
    what a file holds of batches' means and bounds, are buffers.

    Args:
        proto: the ``ModelProto``.
        folder: where other files of the model lie; None for nowhere.
        limits: what may be read.
        elements: how many elements one value may have in a run.

    Attributes:
        input_names: names of the inputs, in their order.
        output_names: names of the outputs.

    Example:
        >>> import lantern.onnx
        >>> from onnx.parser import parse_model
        >>> model = lantern.onnx.load(
        ...     parse_model('''
        ...     <ir_version: 10, opset_import: ["": 20]>
        ...     triple (float[N] x) => (float[N] y)
        ...     <float[1] w = {3}> { y = Mul(x, w) }''')
        ... )
        >>> [name for name, _ in model.named_parameters()]
        ['w']
    """

    def __init__(
        self, proto: Any, folder: str | None, limits: Limits, elements: int | None
    ) -> None:
        super().__init__()
        arrays = take_weights(proto, folder, limits)
        self._stripped = proto.SerializeToString()
        self.elements = elements
        self._make_plan(proto, limits)
        fixed = settings(proto)
        self._places: dict[str, Any] = {}
        for key, array in arrays.items():
            self._places[key] = self._enter(key, array, key in fixed)

    def _make_plan(self, proto: Any, limits: Limits) -> None:
        """Plan the program; note what it is called with."""
        functions = function_table(proto)
        setting = Setting(domain_versions(proto), functions, None, limits, planned)
        self._plan = Graph(proto.graph, setting, None)
        own = self._plan.weights
        self.input_names = [name for name in self._plan.inputs if name not in own]
        self.output_names = list(self._plan.outputs)
        self._kinds = {value.name: _kind(value) for value in proto.graph.input}

    def _enter(self, key: str, array: Any, setting: bool) -> Any:
        """Make a weight a parameter or a buffer: in which module, by which name.

        What is no array of a type that tensors have stays as it is.
        """
        if array.dtype not in dtypes.by_numpy:
            return array
        holder: Any = self
        *path, name = key.split(".") if all(key.split(".")) else [key.replace(".", "_")]
        x = fresh(array.copy())
        try:
            for part in path:
                if part not in dict(holder.named_children()):
                    holder.add_module(part, Module())
                holder = holder.get_submodule(part)
            if array.dtype.kind == "f" and not setting:
                holder.register_parameter(name, Parameter(x))
            else:
                holder.register_buffer(name, x)
        except TakenNameError:  # by a method, or by a module of that name
            return self._enter(f"{key}_".replace(".", "_"), array, setting)
        return ".".join(path), name

    def weights(self) -> dict[str, Any]:
        """The arrays of the initialisers as they are now, by their names in the file.

        Example:
            >>> import lantern.onnx
            >>> from onnx.parser import parse_model
            >>> lantern.onnx.load(
            ...     parse_model('''
            ...     <ir_version: 10, opset_import: ["": 20]>
            ...     triple (float[N] x) => (float[N] y)
            ...     <float[1] w = {3}> { y = Mul(x, w) }''')
            ... ).weights()
            {'w': NumpyFace(array([3.], dtype=float32), eager)}
        """
        found = {}
        for key, place in self._places.items():
            if isinstance(place, tuple):
                holder: Any = self.get_submodule(place[0])
                place = numpy_face(getattr(holder, place[1]))
            found[key] = place
        return found

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the model gives: a tensor, or a tuple of them.

        Args:
            inputs: tensors or arrays, in the order of ``input_names``; a list of them
                for a sequence, None for what is absent.
            named: inputs by name, and other values for initialisers.

        Raises:
            ArgumentError: if an input is missing, or not of the type it shall have.
        """
        if len(inputs) > len(self.input_names):
            raise ArgumentError(
                f"onnx: the model has {len(self.input_names)} inputs, "
                f"{self.input_names}, and was given {len(inputs)}."
            )
        given = dict(zip(self.input_names, inputs, strict=False))
        known = {*self.input_names, *self._plan.weights} - set(given)
        if not set(named) <= known:
            raise ArgumentError(
                f"onnx: the model has no input {sorted(set(named) - known)[0]!r}, or "
                f"it was given twice. Its inputs are {self.input_names}."
            )
        given.update(named)
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise ArgumentError(
                f"onnx: the input {missing[0]!r} of the model is missing."
            )
        values = {name: self._taken(name, x) for name, x in given.items()}
        run = Run(self.weights(), values.values(), self.elements)
        found = self._plan.run(run, values)
        shown = tuple(map(_given_back, found))
        return shown[0] if len(shown) == 1 else shown

    def _taken(self, name: str, x: Any) -> Any:
        """An input as programs have it."""
        if x is None or isinstance(x, list):
            return x if x is None else [self._taken("", y) for y in x]
        if isinstance(x, int | float | bool):
            x = np.array(x, self._kinds.get(name))
        face = numpy_face(x) if isinstance(x, Value) else np.asarray(x)
        kind, own = self._kinds.get(name), base(face).dtype
        if kind is not None and own != kind and {own.kind, kind.kind} != {"f"}:
            raise ArgumentError(
                f"onnx: the input {name!r} has to be of type {kind}, got {own}. "
                f"Convert it with x.to(...)."
            )
        return face

    def to_proto(self) -> Any:
        """The model as a ``ModelProto``, with the weights as they are now.

        Example:
            >>> import lantern.onnx
            >>> from onnx.parser import parse_model
            >>> proto = parse_model('''
            ...     <ir_version: 10, opset_import: ["": 20]>
            ...     triple (float[N] x) => (float[N] y)
            ...     <float[1] w = {3}> { y = Mul(x, w) }''')
            >>> proto = lantern.onnx.load(proto).to_proto()
            >>> proto.graph.initializer[0].name
            'w'
        """
        proto = package().ModelProto.FromString(self._stripped)
        put_weights(proto, {key: base(x) for key, x in self.weights().items()})
        return proto

    def __getstate__(self) -> dict[str, Any]:
        """As of any module; the plan is made again."""
        state = super().__getstate__()
        del state["_plan"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As of any module."""
        super().__setstate__(state)
        proto = package().ModelProto.FromString(self._stripped)
        self._make_plan(proto, Limits(len(self._stripped)))

    def extra_repr(self) -> str:
        """The names of what goes in and comes out.

        Example:
            >>> import lantern.onnx
            >>> from onnx.parser import parse_model
            >>> lantern.onnx.load(
            ...     parse_model('''
            ...     <ir_version: 10, opset_import: ["": 20]>
            ...     positive (float[N] x) => (float[N] y) { y = Relu(x) }''')
            ... )
            Model(input_names=['x'], output_names=['y'])
        """
        return f"input_names={self.input_names}, output_names={self.output_names}"


def _kind(value: Any) -> Any:
    """The type of an input's elements; None where it says none."""
    onnx = package()
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.elem_type:
        return None
    try:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    except KeyError:
        return None
    return None if kind.kind == "O" else kind


def _given_back(z: Any) -> Any:
    """A result as users have it: a tensor where tensors have the type."""
    if isinstance(z, list):
        return [_given_back(part) for part in z]
    if isinstance(z, Value):
        return torch_face(z)
    plain = isinstance(z, np.ndarray) and z.dtype in dtypes.by_numpy
    return fresh(z) if plain else z

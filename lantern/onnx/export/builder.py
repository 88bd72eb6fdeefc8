"""A graph under construction: names of tensors, nodes, initialisers."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.errors import EagerError
from lantern.onnx.extra import package
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPSET", "Builder"]

# The version of the format's operators that is written, and that of its messages.
OPSET, VERSION = 18, 8


class Builder:
    """What has been written down so far.

    Args:
        weights: names and arrays of the module's parameters and buffers, by the
            arrays' identities.
    """

    def __init__(self, weights: dict[int, tuple[str, Any]]) -> None:
        self.weights = weights
        self.names: dict[int, str] = {}
        self.alive: list[Any] = []  # so that no identity is given twice
        self.nodes: list[Any] = []
        self.initialisers: dict[str, Any] = {}
        self.constants: set[str] = set()
        self.count = 0

    def fresh(self, hint: str) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"{hint.lower()}_{self.count}"

    def bind(self, x: Any, name: str) -> None:
        """Know a tensor, and whatever else shows its whole array, by a name."""
        array = base(x)
        self.alive.append(array)
        self.names[id(array)] = name

    def depends(self, x: Any) -> bool:
        """Whether a tensor comes from what goes in, or may."""
        name = self.names.get(id(base(x)))
        return name is not None and name not in self.initialisers

    def name(self, x: Any, like: Any = None) -> str:
        """The name of a tensor, or of a constant.

        Args:
            x: a tensor, an array or a number.
            like: a tensor whose type a number takes.
        """
        if isinstance(x, Tensor | np.ndarray):
            key = id(base(x))
            if key in self.names:
                return self.names[key]
            if key in self.weights:
                name, array = self.weights[key]
                self.initialisers[name] = array
            else:
                name = self.constant(base(x))
            self.bind(x, name)
            return name
        return self.constant(np.asarray(x, None if like is None else base(like).dtype))

    def constant(self, array: Any) -> str:
        """An array that nobody trains."""
        name = self.weight(array, "constant")
        self.constants.add(name)
        return name

    def weight(self, array: Any, hint: str = "weight") -> str:
        """An array made of weights."""
        name = self.fresh(hint)
        self.initialisers[name] = np.array(array)
        return name

    def ints(self, numbers: Any) -> str:
        """Places or lengths."""
        return self.constant(np.array([int(n) for n in numbers], np.int64))

    def emit(
        self, operator: str, *inputs: Any, outputs: int = 1, **attributes: Any
    ) -> Any:
        """A node; the name of what it makes, or the names.

        Args:
            operator: its name in the format.
            inputs: names; tensors and arrays; "" or None for what is absent.
            outputs: how many results it has.
            attributes: as the format has them; those that are None are left out.
        """
        names = [
            x if isinstance(x, str) else "" if x is None else self.name(x)
            for x in inputs
        ]
        while names and not names[-1]:
            names.pop()
        made = [self.fresh(operator) for _ in range(outputs)]
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(package().helper.make_node(operator, names, made, **given))
        return made[0] if outputs == 1 else made

    def cast(self, x: Any, kind: Any, like: Any = None) -> str:
        """A tensor in one of NumPy's types."""
        if not isinstance(x, Tensor):
            return self.constant(np.asarray(x, kind))
        if base(x).dtype == kind:
            return self.name(x)
        to = package().helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.emit("Cast", x, to=to)

    def reshaped(self, name: Any, shape: Any) -> str:
        """In another form."""
        return self.emit("Reshape", name, self.ints(shape))

    def model(self, inputs: list[Any], outputs: list[Any], names: Any) -> Any:
        """The ``ModelProto``.

        Args:
            inputs: tensors that go in, in their order.
            outputs: tensors that come out.
            names: the names of both.
        """
        onnx = package()
        for x, name in zip(outputs, names[1], strict=True):
            if not isinstance(x, Tensor):
                raise EagerError(
                    f"onnx.export: the module gives a {type(x).__name__}. Let it give "
                    f"tensors, alone or in tuples, lists and dictionaries."
                )
            self.nodes.append(onnx.helper.make_node("Identity", [self.name(x)], [name]))

        def info(x: Any, name: str) -> Any:
            kind = onnx.helper.np_dtype_to_tensor_dtype(base(x).dtype)
            return onnx.helper.make_tensor_value_info(name, kind, base(x).shape)

        used = {name for node in self.nodes for name in node.input}
        arrays = {
            name: onnx.numpy_helper.from_array(
                np.ascontiguousarray(array).reshape(array.shape), name
            )
            for name, array in self.initialisers.items()
            if name in used
        }
        # What is no weight stays as it is when the file is trained further.
        constants = [
            onnx.helper.make_node("Constant", [], [name], value=arrays[name])
            for name in arrays
            if name in self.constants
        ]
        graph = onnx.helper.make_graph(
            constants + self.nodes,
            "lantern",
            [info(x, name) for x, name in zip(inputs, names[0], strict=True)],
            [info(x, name) for x, name in zip(outputs, names[1], strict=True)],
            [arrays[name] for name in arrays if name not in self.constants],
        )
        return onnx.helper.make_model(
            graph,
            producer_name="lantern",
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=VERSION,
        )

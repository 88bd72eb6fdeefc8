"""How much a file may ask for: nothing is read, planned or computed beyond it.

A file of a few bytes can ask for any amount of memory: by a shape, by functions that
call others twice, by a loop. So sizes are known before anything is allocated. What a
node gives is told by the package's own shape inference, from the shapes of what it gets
and from the values of what is small.
"""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.errors import FileFormatError, OptionError
from lantern.onnx.extra import package

__all__ = ["Limits", "Run"]

# A value may have this many elements, and for each one that went in as many more.
_ELEMENTS, _FOR_EACH = 1 << 23, 64
# All that live at a time may have so many times as many elements as one.
_AT_A_TIME = 4
_TURNS = 1 << 14
# Operators of which an input says how large an output becomes; it has few elements.
_TOLD = frozenset(
    (
        "AffineGrid BlackmanWindow CenterCropPad Col2Im ConstantOfShape DFT Expand "
        "HammingWindow HannWindow MaxUnpool MelWeightMatrix OneHot Pad Range Reshape "
        "Resize STFT Slice Split SplitToSequence Squeeze Tile TopK Unsqueeze Upsample"
    ).split()
)
_SMALL = 64


class Limits:
    """What the file itself may ask for.

    Args:
        size: the bytes of the file and of those that it names.
        nodes: the operators of the program, with those of its functions, each counted
            as often as it is called.
    """

    __slots__ = ("left", "nodes", "size")

    def __init__(self, size: int, nodes: int = 1 << 20) -> None:
        if size < 0:
            raise OptionError(f"onnx.load: size is {size}. Give a number of bytes.")
        self.size = self.left = size
        self.nodes = nodes

    def take(self, size: int, what: str) -> None:
        """Count bytes that are about to be read.

        Raises:
            FileFormatError: if they are more than what is left.
        """
        if size > self.left:
            raise FileFormatError(
                f"onnx.load: {what} has {size:,} bytes, and {self.left:,} of the "
                f"{self.size:,} that may be read are left. Give a larger size, "
                f"load(path, size=...), if you trust the file."
            )
        self.left -= size

    def call(self, count: int, what: str) -> None:
        """Count nodes that are about to be planned.

        Raises:
            FileFormatError: if they are more than what is left.
        """
        self.nodes -= count
        if self.nodes < 0:
            raise FileFormatError(
                f"onnx.load: the program has more than a million operators, once "
                f"{what} is written out. Such a file is refused."
            )


class Run:
    """One run of a program: what it may use, and the weights that it uses.

    Attributes:
        weights: arrays by the names of the initialisers.
        elements: how many elements one value may have.
        live: how many elements are alive.
        turns: how many turns its loops may still take.
    """

    __slots__ = ("elements", "live", "turns", "weights")

    def __init__(self, weights: Any, inputs: Any, elements: int | None) -> None:
        self.weights = weights
        self.live, self.turns = 0, _TURNS
        if elements is None:
            known = [base(x).size for x in (*inputs, *weights.values()) if _sized(x)]
            elements = _ELEMENTS + _FOR_EACH * sum(known)
        self.elements = elements

    def turn(self) -> None:
        """Count a turn of a loop.

        Raises:
            FileFormatError: if there were too many.
        """
        self.turns -= 1
        if self.turns < 0:
            raise FileFormatError(
                f"onnx: the loops of this program took more than {_TURNS:,} turns. "
                f"Such a program is stopped, since it may never end."
            )

    def keep(self, node: Any, result: Any) -> int:
        """The elements of a new value, which is alive now.

        Raises:
            FileFormatError: if it has more than it may, or all have.
        """
        if isinstance(result, list):
            return sum(self.keep(node, part) for part in result)
        size = int(base(result).size) if _sized(result) else 1
        self.check_size(node, size)
        self.live += size
        if self.live > _AT_A_TIME * self.elements:
            raise _too_large(node, self.live, _AT_A_TIME * self.elements, "values")
        return size

    def check_size(self, node: Any, size: int) -> None:
        """Refuse a value of so many elements."""
        if size > self.elements:
            raise _too_large(node, size, self.elements)

    def check_before(self, node: Any, inputs: Any) -> None:
        """Refuse a node whose result would be larger than any may be.

        Args:
            node: the node; what was found for it last is kept there.
            inputs: its inputs.
        """
        if node.schema is None:
            return
        plain = [base(x) for x in inputs]
        if any(not (x is None or isinstance(x, np.ndarray)) for x in plain):
            return
        told = node.proto.op_type in _TOLD
        key: list[Any] = [x is not None and (x.shape, x.dtype) for x in plain]
        if told:
            key += [x.tobytes() for x in plain if _tells(x)]
        if node.checked != key:
            node.sizes = _result_sizes(node, plain, told)
            node.checked = key
        for name, size in node.sizes:
            if size > self.elements:
                raise _too_large(node, size, self.elements, name)


def _sized(x: Any) -> bool:
    return hasattr(base(x), "size") and hasattr(base(x), "dtype")


def _tells(x: Any) -> bool:
    """Whether the values of an input may say how large an output becomes."""
    return (
        x is not None
        and x.size <= _SMALL
        and x.dtype.kind in "iuf"
        and x.dtype.isbuiltin == 1
    )


def _too_large(node: Any, size: int, limit: int, name: str = "") -> FileFormatError:
    return FileFormatError(
        f"onnx: {node} would make {name or 'a value'} of {size:,} elements, and "
        f"{limit:,} are allowed here. Give load(path, elements=...) a larger number, "
        f"if you trust the file."
    )


def _result_sizes(node: Any, inputs: Any, told: bool) -> list[tuple[str, int]]:
    """What is known of the sizes of a node's results, by their names."""
    onnx = package()
    types, data = {}, {}
    for name, x in zip(node.inputs, inputs, strict=False):
        if x is None or name in types:
            continue
        try:
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
        except KeyError:  # a type of the format's that NumPy has no name for
            return []
        types[name] = onnx.helper.make_tensor_type_proto(kind, x.shape)
        if told and _tells(x):
            data[name] = onnx.numpy_helper.from_array(x)
    inference = package("onnx.shape_inference")
    invalid = package("onnx.checker").ValidationError
    try:
        found = inference.infer_node_outputs(
            node.schema, node.proto, types, data, opset_imports=node.opset_imports
        )
    except (inference.InferenceError, invalid, RuntimeError, ValueError, KeyError):
        # What does not fit, the operator will say.
        return []
    sizes = []
    for name, proto in found.items():
        if proto.HasField("tensor_type") and proto.tensor_type.HasField("shape"):
            size = 1
            for length in proto.tensor_type.shape.dim:
                size *= length.dim_value if length.HasField("dim_value") else 1
            sizes.append((name, size))
    return sizes

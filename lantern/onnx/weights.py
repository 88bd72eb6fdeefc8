"""The initialisers of a model, taken out of its message and put back into it.

What is left in their place has a name and, where a description would stand, the key
that the array is known by: the name, with a number where two graphs use the same.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lantern.errors import FileFormatError
from lantern.onnx.extra import package
from lantern.onnx.limits import Limits
from lantern.onnx.tensors import array_of

__all__ = ["put_weights", "settings", "take_weights"]


def take_weights(model: Any, folder: str | None, limits: Limits) -> dict[str, Any]:
    """The arrays of all initialisers, by their keys; the message is left without.

    Raises:
        FileFormatError: if one of them is damaged, or two have the same name.
    """
    found: dict[str, Any] = {}
    for graph in _graphs(model):
        names: dict[str, str] = {}
        for tensor in graph.initializer:
            key = _key(tensor.name, names, found)
            found[key] = array_of(tensor, folder, limits)
        for tensor in graph.sparse_initializer:
            key = _key(tensor.values.name, names, found)
            found[key] = _from_sparse(tensor, folder, limits)
        del graph.initializer[:]
        del graph.sparse_initializer[:]
        for name, key in names.items():
            graph.initializer.add(name=name, doc_string=key)
    return found


def put_weights(model: Any, arrays: dict[str, Any]) -> None:
    """Put arrays in the places that ``take_weights`` has left."""
    from_array = package().numpy_helper.from_array
    for graph in _graphs(model):
        for tensor in graph.initializer:
            tensor.CopyFrom(from_array(arrays[tensor.doc_string], tensor.name))


def _key(name: str, names: dict[str, str], found: dict[str, Any]) -> str:
    if not name or name in names:
        raise FileFormatError(
            f"onnx.load: two initialisers are called {name!r}. The file is damaged."
        )
    key, number = name, 1
    while key in found:
        number += 1
        key = f"{name}_{number}"
    names[name] = key
    return key


def _graphs(model: Any) -> Iterator[Any]:
    """All graphs of a model, those inside of others too."""
    yield model.graph
    yield from _inner(model.graph.node)
    for function in model.functions:
        yield from _inner(function.node)


def _inner(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            graphs = list(attribute.graphs)
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            for graph in graphs:
                yield graph
                yield from _inner(graph.node)


def _from_sparse(tensor: Any, folder: str | None, limits: Limits) -> Any:
    """The dense array of a sparse one."""
    shape = tuple(tensor.dims)
    values = array_of(tensor.values, folder, limits)
    places = array_of(tensor.indices, folder, limits)
    size = values.itemsize
    for length in shape:
        size *= max(length, 0)
    limits.take(size, "a sparse initialiser")
    try:
        if places.ndim == 2:
            places = np.ravel_multi_index(tuple(places.T), shape)
        dense = np.zeros(size // values.itemsize, values.dtype)
        dense[places] = values
        return dense.reshape(shape)
    except (ValueError, IndexError, TypeError) as error:
        raise FileFormatError(
            f"onnx.load: a sparse initialiser of shape {shape} is damaged: {error}"
        ) from None


# Inputs that are settings, or are followed and not learnt: by operator, which.
_NO_PARAMETERS = {
    "BatchNormalization": (3, 4),
    "Clip": (1, 2),
    "DequantizeLinear": (1, 2),
    "Dropout": (1, 2),
    "Pad": (2,),
    "QuantizeLinear": (1, 2),
    "Range": (0, 1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
}


def settings(model: Any) -> set[str]:
    """The keys of initialisers that no training changes."""
    found: set[str] = set()
    for graph in _graphs(model):
        own = {tensor.name: tensor.doc_string for tensor in graph.initializer}
        for node in graph.node:
            for i in _NO_PARAMETERS.get(node.op_type, ()):
                if i < len(node.input) and node.input[i] in own:
                    found.add(own[node.input[i]])
    return found

"""How forms are written down: turned, joined, split, repeated."""

from typing import Any

import numpy as np

import lantern.torch as torch
from lantern.core.value import base
from lantern.onnx.export.basic import Tensors, first
from lantern.onnx.export.table import translation

__all__: list[str] = []


@translation(
    torch.reshape, Tensors.view, torch.flatten, torch.squeeze, torch.unsqueeze,
    torch.unflatten,
)  # fmt: skip
def _form(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.reshaped(first(a), base(z).shape)


@translation(Tensors.contiguous, torch.clone, Tensors.detach)
def _same(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.name(first(a))


@translation(torch.transpose)
def _transpose(g: Any, a: dict[str, Any], z: Any) -> Any:
    order = list(range(base(z).ndim))
    i, j = a["dim0"], a["dim1"]
    order[i], order[j] = order[j], order[i]
    return g.emit("Transpose", first(a), perm=order)


@translation(torch.permute)
def _permute(g: Any, a: dict[str, Any], z: Any) -> Any:
    dims = a["axes"] if a["dims"] is None else a["dims"]
    dims = dims[0] if isinstance(dims[0], list | tuple) else dims
    return g.emit("Transpose", first(a), perm=[int(d) % len(dims) for d in dims])


@translation(Tensors.mT.fget, Tensors.T.fget, torch.t)
def _turned(g: Any, a: dict[str, Any], z: Any) -> Any:
    order = list(range(base(z).ndim))
    order[-2:] = order[:-3:-1]
    return g.emit("Transpose", first(a), perm=order)


@translation(Tensors.expand, torch.broadcast_to)
def _expand(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Expand", first(a), g.ints(base(z).shape))


@translation(torch.cat)
def _cat(g: Any, a: dict[str, Any], z: Any) -> Any:
    parts = [g.cast(x, base(z).dtype) for x in a["tensors"] if base(x).shape != (0,)]
    return g.emit("Concat", *parts, axis=int(a["dim"]))


@translation(torch.stack)
def _stack(g: Any, a: dict[str, Any], z: Any) -> Any:
    axis = int(a["dim"]) % base(z).ndim
    shape = list(base(z).shape)
    shape[axis] = 1
    parts = [g.reshaped(g.cast(x, base(z).dtype), shape) for x in a["tensors"]]
    return g.emit("Concat", *parts, axis=axis)


@translation(torch.split, torch.chunk, torch.unbind)
def _split(g: Any, a: dict[str, Any], z: Any) -> Any:
    axis = int(a.get("dim", 0))
    x, parts = first(a), [base(part) for part in z]
    alone = parts[0].ndim < base(x).ndim
    lengths = [1 if alone else part.shape[axis] for part in parts]
    made = g.emit("Split", x, g.ints(lengths), outputs=len(parts), axis=axis)
    made = [made] if isinstance(made, str) else made
    return [g.reshaped(m, parts[0].shape) for m in made] if alone else made


@translation(torch.hstack, torch.vstack)
def _joined(g: Any, a: dict[str, Any], z: Any) -> Any:
    parts, z = list(a["tensors"]), base(z)
    rows = a["name"] == "vstack"
    axis = 0 if rows or z.ndim == 1 else 1
    made = [g.cast(x, z.dtype) for x in parts]
    if rows:
        made = [g.reshaped(m, (-1, *z.shape[1:])) for m in made]
    return g.emit("Concat", *made, axis=axis)


@translation(Tensors.repeat, torch.tile)
def _tile(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, shape = first(a), base(z).shape
    old = (1,) * (len(shape) - base(x).ndim) + base(x).shape
    counts = [n // max(m, 1) for n, m in zip(shape, old, strict=True)]
    return g.emit("Tile", g.reshaped(x, old), g.ints(counts))


for _function in (torch.tril, torch.triu):

    @translation(_function)
    def _triangle(
        g: Any, a: dict[str, Any], z: Any, upper: int = int(_function is torch.triu)
    ) -> Any:
        return g.emit("Trilu", first(a), np.array(int(a["diagonal"])), upper=upper)


@translation(torch.einsum)
def _einsum(g: Any, a: dict[str, Any], z: Any) -> Any:
    operands = a["operands"]
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = operands[0]
    parts = [g.cast(x, base(z).dtype) for x in operands]
    return g.emit("Einsum", *parts, equation=a["equation"])

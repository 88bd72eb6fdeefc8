"""How functions of elements, axes and forms are written down."""

from typing import Any

import numpy as np

import lantern.torch as torch
from lantern.core.value import base
from lantern.errors import MissingRuleError
from lantern.onnx.export.table import in_place, translation
from lantern.torch.methods.inplace import write
from lantern.torch.tensor.tensor import Tensor

__all__: list[str] = []

Tensors: Any = torch.Tensor
_BINARY: dict[str, Any] = {
    "Add": Tensors.__add__,
    "Sub": Tensors.__sub__,
    "Mul": Tensors.__mul__,
    "Div": Tensors.__truediv__,
    "Pow": Tensors.__pow__,
}
_UNARY: dict[str, Any] = {
    "Abs": torch.abs,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Log": torch.log,
    "Neg": torch.neg,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Sqrt": torch.sqrt,
    "Tanh": torch.tanh,
}
_COMPARISONS: dict[str, Any] = {
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Equal": torch.eq,
}
_REDUCTIONS: dict[str, Any] = {
    "ReduceSum": torch.sum,
    "ReduceMean": torch.mean,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
}


def first(a: dict[str, Any]) -> Any:
    """The first argument, whatever it is called."""
    return next(a[name] for name in ("input", "self", "tensor", "x") if name in a)


def refuse(what: str) -> MissingRuleError:
    """The error of what has no operator to be written as."""
    return MissingRuleError(
        f"onnx.export: {what} is not written as an operator of ONNX. Compute it with "
        f"other functions, or outside of the module."
    )


def _both(g: Any, x: Any, y: Any, z: Any) -> list[str]:
    """Two operands in the type of their result."""
    kind = base(z).dtype
    return [g.cast(x, kind), g.cast(y, kind)]


def _binary(name: str) -> Any:
    return lambda g, a, z: g.emit(name, *_both(g, a["x"], a["y"], z))


def _reflected(name: str) -> Any:
    return lambda g, a, z: g.emit(name, *_both(g, a["y"], a["x"], z))


def _alone(name: str) -> Any:
    return lambda g, a, z: g.emit(name, first(a))


for _name, _function in _BINARY.items():
    translation(_function)(_binary(_name))
    _own = _function.__name__.strip("_")
    translation(getattr(Tensors, f"__r{_own}__"))(_reflected(_name))
    translation(getattr(Tensors, f"__i{_own}__"))(_binary(_name))
for _name, _function in _UNARY.items():
    translation(_function)(_alone(_name))


def _compared(name: str) -> Any:
    def translate(g: Any, a: dict[str, Any], z: Any) -> Any:
        x, y = a["input"], a["other"]
        kind = torch.result_type(x, y)
        kind = base(torch.zeros((), dtype=kind)).dtype
        return g.emit(name, g.cast(x, kind), g.cast(y, kind))

    return translate


for _name, _function in _COMPARISONS.items():
    translation(_function)(_compared(_name))


@translation(Tensors.__matmul__)
def _product(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("MatMul", a["x"], a["y"])


@translation(torch.matmul, torch.bmm, torch.mm)
def _matmul(g: Any, a: dict[str, Any], z: Any) -> Any:
    other = "other" if "other" in a else "mat2"
    return g.emit("MatMul", first(a), a[other])


@translation(torch.maximum)
def _maximum(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Max", *_both(g, a["input"], a["other"], z))


@translation(torch.minimum)
def _minimum(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Min", *_both(g, a["input"], a["other"], z))


@translation(torch.square)
def _square(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Mul", first(a), first(a))


@translation(torch.reciprocal)
def _reciprocal(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Reciprocal", first(a))


@translation(torch.rsqrt)
def _rsqrt(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Reciprocal", g.emit("Sqrt", first(a)))


@translation(torch.clamp)
def _clamp(g: Any, a: dict[str, Any], z: Any) -> Any:
    bounds = [
        None if a[end] is None else g.cast(a[end], base(z).dtype)
        for end in ("min", "max")
    ]
    return g.emit("Clip", first(a), *bounds)


@translation(torch.where)
def _where(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, y = a.get("input"), a.get("other")
    if not isinstance(z, Tensor):
        raise refuse("where(condition)")
    return g.emit("Where", a["condition"], *_both(g, x, y, z))


@translation(torch.masked_fill)
def _masked_fill(g: Any, a: dict[str, Any], z: Any) -> Any:
    value = g.cast(a["value"], base(z).dtype)
    return g.emit("Where", a["mask"], value, first(a))


# --- along axes -----------------------------------------------------------------------


def _axes(dim: Any) -> Any:
    if dim is None:
        return None
    return [dim] if isinstance(dim, int) else list(dim) or None


def _reduced(name: str) -> Any:
    def translate(g: Any, a: dict[str, Any], z: Any) -> Any:
        keep = int(bool(a.get("keepdim", False)))
        x = g.cast(first(a), base(z).dtype)
        axes = _axes(a.get("dim"))
        return g.emit(name, x, None if axes is None else g.ints(axes), keepdims=keep)

    return translate


for _name, _function in _REDUCTIONS.items():
    translation(_function)(_reduced(_name))


@translation(torch.argmax)
def _argmax(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a.get("dim") is None:
        flat = g.reshaped(first(a), [-1])
        return g.emit("ArgMax", flat, axis=0, keepdims=0)
    return g.emit("ArgMax", first(a), axis=a["dim"], keepdims=int(bool(a["keepdim"])))


@translation(torch.softmax, torch.nn.functional.softmax)
def _softmax(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Softmax", g.cast(first(a), base(z).dtype), axis=_one(a))


@translation(torch.log_softmax, torch.nn.functional.log_softmax)
def _log_softmax(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("LogSoftmax", g.cast(first(a), base(z).dtype), axis=_one(a))


def _one(a: dict[str, Any]) -> int:
    if a.get("dim") is None:
        raise refuse("softmax without dim")
    return int(a["dim"])


@translation(torch.cumsum)
def _cumsum(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("CumSum", g.cast(first(a), base(z).dtype), np.array(a["dim"]))


# --- forms ----------------------------------------------------------------------------


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


@translation(Tensors.mT.fget, Tensors.T.fget)
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


@translation(Tensors.__getitem__)
def _item(g: Any, a: dict[str, Any], z: Any) -> Any:
    x = first(a)
    index: Any = a["index"] if isinstance(a["index"], tuple) else (a["index"],)
    shape = base(x).shape
    count = sum(i is not None and i is not Ellipsis for i in index)
    at = index.index(Ellipsis) if any(i is Ellipsis for i in index) else len(index)
    rest = (slice(None),) * (len(shape) - count)
    index = [i for i in (*index[:at], *rest, *index[at + 1 :]) if i is not None]
    tensors = [k for k, i in enumerate(index) if isinstance(i, Tensor)]
    if any(not isinstance(i, int | slice | Tensor) for i in index) or len(tensors) > 1:
        raise refuse("an index of several tensors, lists or masks")
    name = g.name(x)
    if tensors:
        (axis,) = tensors
        if base(index[axis]).dtype.kind not in "iu":
            raise refuse("an index that is a mask")
        if any(i != slice(None) for k, i in enumerate(index) if k != axis):
            raise refuse("an index of a tensor beside slices")
        return g.reshaped(g.emit("Gather", name, index[axis], axis=axis), base(z).shape)
    limits = []
    for axis, i in enumerate(index):
        if isinstance(i, int):
            i = slice(i, i + 1 or None)
        if i != slice(None):
            limits.append((axis, *i.indices(shape[axis])))
    if limits:
        axes, starts, ends, steps = map(g.ints, zip(*limits, strict=True))
        name = g.emit("Slice", name, starts, ends, axes, steps)
    return g.reshaped(name, base(z).shape)


@translation(Tensors.float, Tensors.long, Tensors.double, Tensors.to, Tensors.type_as)
def _to(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.cast(first(a), base(z).dtype)


in_place(write)

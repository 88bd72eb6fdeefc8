"""How functions of elements, axes and forms are written down."""

from typing import Any

import numpy as np

import lantern.torch as torch
from lantern.core.value import base
from lantern.errors import MissingRuleError
from lantern.onnx.export.table import in_place, translation
from lantern.onnx.extra import package
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
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "IsInf": torch.isinf,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Neg": torch.neg,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
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
    "ReduceProd": torch.prod,
    "ReduceLogSumExp": torch.logsumexp,
}


def first(a: dict[str, Any]) -> Any:
    """The first argument, whatever it is called."""
    return next(
        a[name] for name in ("input", "self", "tensor", "x", "array") if name in a
    )


def _kind(dtype: Any) -> int:
    """One of NumPy's types as the format counts them."""
    return int(package().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


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


def _one(g: Any, z: Any) -> str:
    return str(g.constant(np.ones((), base(z).dtype)))


@translation(torch.expm1)
def _expm1(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Sub", g.emit("Exp", first(a)), _one(g, z))


@translation(torch.log1p)
def _log1p(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Log", g.emit("Add", first(a), _one(g, z)))


@translation(torch.erfc)
def _erfc(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Sub", _one(g, z), g.emit("Erf", first(a)))


@translation(torch.exp2)
def _exp2(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Pow", g.cast(2, base(z).dtype), first(a))


for _base, _function in ((2.0, torch.log2), (10.0, torch.log10)):

    @translation(_function)
    def _log(
        g: Any, a: dict[str, Any], z: Any, scale: float = 1 / np.log(_base)
    ) -> Any:
        return g.emit("Mul", g.emit("Log", first(a)), g.cast(scale, base(z).dtype))


@translation(torch.round)
def _round(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["decimals"]:
        raise refuse("round(decimals=...)")
    return g.emit("Round", first(a))


@translation(torch.trunc)
def _trunc(g: Any, a: dict[str, Any], z: Any) -> Any:
    x = first(a)
    return g.emit("Mul", g.emit("Sign", x), g.emit("Floor", g.emit("Abs", x)))


@translation(torch.fmod)
def _fmod(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Mod", *_both(g, a["input"], a["other"], z), fmod=1)


@translation(torch.remainder, Tensors.__mod__)
def _remainder(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, y = _both(g, first(a), a["other"] if "other" in a else a["y"], z)
    if base(z).dtype.kind in "iu":
        return g.emit("Mod", x, y)
    whole = g.emit("Floor", g.emit("Div", x, y))
    return g.emit("Sub", x, g.emit("Mul", whole, y))


@translation(torch.floor_divide)
def _floor_divide(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, y = _both(g, a["input"], a["other"], z)
    if base(z).dtype.kind in "iu":  # the format's quotients are cut towards 0
        return g.emit("Div", g.emit("Sub", x, g.emit("Mod", x, y)), y)
    return g.emit("Floor", g.emit("Div", x, y))


# --- what holds -----------------------------------------------------------------------

_TRUTH = np.dtype(bool)
_LOGIC: dict[Any, str] = {
    torch.logical_and: "And",
    torch.logical_or: "Or",
    torch.logical_xor: "Xor",
    torch.bitwise_and: "And",
    torch.bitwise_or: "Or",
    torch.bitwise_xor: "Xor",
}
for _function, _name in _LOGIC.items():

    @translation(_function)
    def _logic(g: Any, a: dict[str, Any], z: Any, name: str = _name) -> Any:
        x, y = a["input"], a["other"]
        if base(z).dtype.kind != "b":
            return g.emit(f"Bitwise{name}", *_both(g, x, y, z))
        return g.emit(name, g.cast(x, _TRUTH), g.cast(y, _TRUTH))


@translation(torch.logical_not, torch.bitwise_not, Tensors.__invert__)
def _not(g: Any, a: dict[str, Any], z: Any) -> Any:
    if base(z).dtype.kind != "b":
        return g.emit("BitwiseNot", first(a))
    return g.emit("Not", g.cast(first(a), _TRUTH))


@translation(torch.ne)
def _unequal(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Not", _compared("Equal")(g, a, z))


for _function, _name in ((torch.any, "ReduceMax"), (torch.all, "ReduceMin")):

    @translation(_function)
    def _held(g: Any, a: dict[str, Any], z: Any, name: str = _name) -> Any:
        count = g.emit("Cast", g.cast(first(a), _TRUTH), to=_kind(np.int32))
        found = _over(g, name, count, a["dim"], a["keepdim"])
        return g.emit("Cast", found, to=_kind(base(z).dtype))


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


def _over(g: Any, name: str, x: Any, dim: Any, keep: Any) -> Any:
    """A reduction over axes, or over all."""
    axes = _axes(dim)
    where = None if axes is None else g.ints(axes)
    return g.emit(name, x, where, keepdims=int(bool(keep)))


def _reduced(name: str) -> Any:
    def translate(g: Any, a: dict[str, Any], z: Any) -> Any:
        x = g.cast(first(a), base(z).dtype)
        return _over(g, name, x, a.get("dim"), a.get("keepdim"))

    return translate


for _name, _function in _REDUCTIONS.items():
    translation(_function)(_reduced(_name))


for _name, _function in (("Max", torch.max), ("Min", torch.min)):

    @translation(_function)
    def _extreme(g: Any, a: dict[str, Any], z: Any, name: str = _name) -> Any:
        x, dim, keep = first(a), a["dim"], a["keepdim"]
        other = dim if a["other"] is None else a["other"]
        if isinstance(other, Tensor):
            return g.emit(name, *_both(g, x, other, z))
        best = _over(g, f"Reduce{name}", x, dim, keep)
        if dim is None:
            return best
        return [best, g.emit(f"Arg{name}", x, axis=int(dim), keepdims=int(bool(keep)))]


for _name, _function in (("ArgMax", torch.argmax), ("ArgMin", torch.argmin)):

    @translation(_function)
    def _position(g: Any, a: dict[str, Any], z: Any, name: str = _name) -> Any:
        if a.get("dim") is None:
            flat = g.reshaped(first(a), [-1])
            return g.emit(name, flat, axis=0, keepdims=0)
        keep = int(bool(a["keepdim"]))
        return g.emit(name, first(a), axis=int(a["dim"]), keepdims=keep)


for _name, _function in (("Identity", torch.var), ("Sqrt", torch.std)):

    @translation(_function)
    def _moment(g: Any, a: dict[str, Any], z: Any, name: str = _name) -> Any:
        x, dim, unbiased = first(a), a["dim"], a["unbiased"]
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        less = int(bool(unbiased)) if a["correction"] is None else a["correction"]
        off = g.emit("Sub", x, _over(g, "ReduceMean", x, dim, True))
        total = _over(g, "ReduceSum", g.emit("Mul", off, off), dim, a["keepdim"])
        count = base(x).size // max(base(z).size, 1) - less
        mean = g.emit("Div", total, g.cast(count, base(z).dtype))
        return g.emit(name, mean)


_NORMS = {1: "ReduceL1", 2: "ReduceL2", np.inf: "ReduceMax"}


@translation(torch.linalg.vector_norm)
def _norm(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["ord"] not in _NORMS:
        raise refuse(f"a norm of order {a['ord']}")
    x = g.cast(first(a), base(z).dtype)
    x = g.emit("Abs", x) if a["ord"] == np.inf else x
    return _over(g, _NORMS[a["ord"]], x, a["dim"], a["keepdim"])


@translation(torch.softmax, torch.nn.functional.softmax)
def _softmax(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Softmax", g.cast(first(a), base(z).dtype), axis=_axis(a))


@translation(torch.log_softmax, torch.nn.functional.log_softmax)
def _log_softmax(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("LogSoftmax", g.cast(first(a), base(z).dtype), axis=_axis(a))


def _axis(a: dict[str, Any]) -> int:
    if a.get("dim") is None:
        raise refuse("softmax without dim")
    return int(a["dim"])


@translation(torch.cumsum)
def _cumsum(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("CumSum", g.cast(first(a), base(z).dtype), np.array(a["dim"]))


@translation(Tensors.float, Tensors.long, Tensors.double, Tensors.to, Tensors.type_as)
def _to(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.cast(first(a), base(z).dtype)


in_place(write)

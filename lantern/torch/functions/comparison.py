"""Functions of each element that compare, ask or round: derivative zero."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.errors import EagerError
from lantern.op import elementwise
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.error_messages import again, check_together
from lantern.torch.tensor.operators import refuse_numbers, unary
from lantern.torch.tensor.tensor import Tensor, fresh


def _signs(array: Any) -> Any:
    """1, 0 or -1; 0 for nan, as PyTorch has it."""
    z = np.sign(array)
    return np.where(array == array, z, z.dtype.type(0)) if z.dtype.kind == "f" else z


# Zero derivative: what rounds is tracked in PyTorch, with a gradient of zeros.
_ROUNDING = {
    "ceil": np.ceil,
    "floor": np.floor,
    "sign": _signs,
    "trunc": np.trunc,
    "fix": np.trunc,
    "sgn": _signs,
}
_ASKING = {
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "isneginf": np.isneginf,
    "isposinf": np.isposinf,
    "isreal": np.isreal,
    "logical_not": np.logical_not,
    "signbit": np.signbit,
}


@elementwise
def _independent(x: Any, /, value: Any) -> Rule:
    """A value that stands for a function of x whose derivative is 0.

    Shapes:
        x: (...); value: (...); result: (...)

    Rule:
        x_bar = 0
    """
    del x
    z_bar = yield value
    yield namespace(z_bar).zeros_like(z_bar)


_tracked = unary(_independent)


def tracked_like(z: Tensor, *operands: Any) -> Tensor:
    """A plain result as a tracked one with derivative 0, if an operand is tracked.

    To add 0 times the operand would make nothing of infinities.
    """
    value = base(z)
    for x in operands:
        if isinstance(x, Tensor) and x.requires_grad:
            part = _tracked(x.expand(base(z).shape), value=value)
            z = z + part if z.requires_grad else part
            value = np.zeros_like(value)
    return z


def _rounding(function: Any) -> Any:
    def operate(input: Any) -> Any:
        array = base(input)
        if array.dtype.kind in "iub":
            signs = function is _signs and array.dtype.kind != "b"
            return fresh(function(array) if signs else array.copy())
        return tracked_like(fresh(function(array)), input)

    return operate


def _asking(function: Any) -> Any:
    def operate(input: Tensor) -> Tensor:
        return fresh(function(base(input)))

    return operate


functions = {name: _rounding(f) for name, f in _ROUNDING.items()}
functions |= {name: _asking(f) for name, f in _ASKING.items()}


def _comparing(name: str, function: Any, numbers: str = "") -> Any:
    """A comparison, or another function with a plain result."""

    def operate(input: Any, other: Any) -> Any:
        a, b = base(input), base(other)
        if b is None or isinstance(b, str | list | tuple | dict):
            return NotImplemented
        refuse_numbers(name, input, other, numbers)
        try:
            if getattr(a, "dtype", None) is getattr(b, "dtype", None):
                return fresh(function(a, b))
            return fresh(function(a, _beside(a, b)))
        except (ValueError, TypeError) as error:
            return again(operate, function, error, input, other)

    return operate


def _beside(a: Any, b: Any) -> Any:
    """A number next to an array: Python's stay as they are."""
    if isinstance(b, float) and getattr(a, "dtype", None) in (dtypes.F32,):
        return a.dtype.type(b)
    return b


COMPARISONS = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "ne": np.not_equal,
}
_LOGICAL = {
    "bitwise_and": np.bitwise_and,
    "bitwise_left_shift": np.left_shift,
    "bitwise_or": np.bitwise_or,
    "bitwise_right_shift": np.right_shift,
    "bitwise_xor": np.bitwise_xor,
    "gcd": np.gcd,
    "lcm": np.lcm,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
functions |= {name: _comparing(name, f, "second") for name, f in COMPARISONS.items()}
functions |= {
    name: _comparing(name, f, "either" if "bitwise" in name else "")
    for name, f in _LOGICAL.items()
}
functions["bitwise_not"] = _asking(np.invert)
functions |= {
    "greater": functions["gt"],
    "greater_equal": functions["ge"],
    "less": functions["lt"],
    "less_equal": functions["le"],
    "not_equal": functions["ne"],
}


def isclose(
    input: Any,
    other: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Any:
    """Where the elements are close: ``|input - other| <= atol + rtol * |other|``."""
    refuse_numbers("isclose", input, other)
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise EagerError(
                f"{name} must be greater than or equal to zero, but got {bound}"
            )
    a, b = base(input), base(other)
    if a.dtype != b.dtype:
        raise EagerError(f"{input.dtype} did not match {other.dtype}")
    if type(a) is not type(b):
        check_together(input, other)  # a GPU's library would move one of them
    return fresh(as_array(np.isclose(a, b, rtol, atol, equal_nan)))


def allclose(
    input: Any,
    other: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close: ``|input - other| <= atol + rtol * |other|``."""
    return bool(base(isclose(input, other, rtol, atol, equal_nan)).all())


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have one shape and the same elements."""
    a, b = base(input), base(other)
    return a.shape == b.shape and bool((a == b).all())


functions |= {"allclose": allclose, "equal": equal, "isclose": isclose}

"""Functions of each element, under PyTorch's names."""

from typing import Any

import numpy as np

from lantern.core.value import Value
from lantern.core.value import base as value_of
from lantern.errors import EagerError
from lantern.rules import arithmetic, exponential, selection, special, trigonometry
from lantern.tensor.ops import elementwise, floating
from lantern.tensor.ops import special as tensor_special
from lantern.torch.functions import comparison
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_differentiated
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.error_messages import again, refuse_zero
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.operators import (
    as_kind,
    as_tensor,
    call,
    joining,
    promote,
    refuse_numbers,
    result_dtype,
    unary,
)
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face
from lantern.torch.tensor.views import view_if_shared

# PyTorch's name: our operation. Integers become numbers of the default type first.
_FLOATING = {
    "acos": trigonometry.acos,
    "acosh": trigonometry.acosh,
    "asin": trigonometry.asin,
    "asinh": trigonometry.asinh,
    "atan": trigonometry.atan,
    "atanh": trigonometry.atanh,
    "cos": trigonometry.cos,
    "cosh": trigonometry.cosh,
    "deg2rad": elementwise.deg2rad,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": tensor_special.erfinv,
    "exp": exponential.exp,
    "exp2": elementwise.exp2,
    "expm1": exponential.expm1,
    "lgamma": special.lgamma,
    "log": exponential.log,
    "log10": exponential.log10,
    "log1p": exponential.log1p,
    "log2": exponential.log2,
    "rad2deg": elementwise.rad2deg,
    "reciprocal": elementwise.reciprocal,
    "sigmoid": special.sigmoid,
    "sin": trigonometry.sin,
    "sinh": trigonometry.sinh,
    "sqrt": exponential.sqrt,
    "tan": trigonometry.tan,
    "tanh": trigonometry.tanh,
}
_SAME_TYPE = {
    "abs": selection.abs,
    "relu": special.relu,
    "square": arithmetic.square,
}
_SYNONYMS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "negative": "neg",
}  # fmt: skip
functions: dict[str, Any] = {
    **{name: unary(op, floating=True) for name, op in _FLOATING.items()},
    **{name: unary(op) for name, op in _SAME_TYPE.items()},
}


_DIVIDING = (arithmetic.remainder, floating.fmod)


def _binary(function: Any, numbers: str = "", floating: bool = False) -> Any:
    """An operation of two tensors of any types; ``numbers``: which may be one."""
    name = function.__name__

    def operate(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return into(operate(input, other), out)
        refuse_numbers(name, input, other, numbers)
        x, y = as_tensor(input), as_tensor(other)
        x, y = promote(x, y, floating=floating)
        if function in _DIVIDING:
            refuse_zero(value_of(x), value_of(y))
        try:
            return torch_face(function(numpy_face(x), numpy_face(y)))
        except (ValueError, TypeError) as error:
            return again(operate, function, error, x, y)

    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = (function.__doc__ or "").partition("Example:")[0].rstrip()
    return operate


functions |= {
    "atan2": _binary(trigonometry.atan2, floating=True),
    "copysign": _binary(elementwise.copysign, "second", floating=True),
    "fmod": _binary(floating.fmod, "second"),
    "hypot": _binary(trigonometry.hypot),
    "logaddexp": _binary(tensor_special.logaddexp),
    "logaddexp2": _binary(tensor_special.logaddexp2),
    "maximum": _binary(selection.maximum),
    "minimum": _binary(selection.minimum),
    "nextafter": _binary(floating.nextafter),
    "remainder": _binary(arithmetic.remainder, "either"),
    "xlogy": _binary(tensor_special.xlogy, "either", floating=True),
}
_SYNONYMS |= {"arctan2": "atan2"}


def add(
    input: Any, other: Any, former: Any = None, *, alpha: Any = 1, out: Any = None
) -> Any:
    """``input + alpha * other``; formerly ``add(input, alpha, other)``."""
    if former is not None:
        alpha, other = other, former
    z = input + (other if alpha == 1 else other * alpha)
    return z if out is None else into(z, out)


def sub(
    input: Any, other: Any, former: Any = None, *, alpha: Any = 1, out: Any = None
) -> Any:
    """``input - alpha * other``; formerly ``sub(input, alpha, other)``."""
    if former is not None:
        alpha, other = other, former
    z = input - (other if alpha == 1 else other * alpha)
    return z if out is None else into(z, out)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * input``."""
    refuse_numbers("rsub", input, other, "second")
    return other - (input if alpha == 1 else input * alpha)


def mul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The product of each two elements."""
    return input * other if out is None else into(input * other, out)


def div(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None
) -> Any:
    """The quotient of each two elements, rounded if that is asked for."""
    if out is not None:
        return into(div(input, other, rounding_mode=rounding_mode), out)
    if rounding_mode is None:
        return input / other
    if rounding_mode not in ("floor", "trunc"):
        raise EagerError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
            f"found '{rounding_mode}'"
        )
    if rounding_mode == "floor":
        return floor_divide(input, other)
    kind = result_dtype(as_tensor(input), as_tensor(other))
    plain = value_of(input), value_of(other)
    if kind.kind in "iu":  # exactly: quotients of numbers below 0 are one too low
        refuse_zero(*plain)
        z = np.floor_divide(*plain)
        return fresh(as_array(z + ((z < 0) & (z * plain[1] != plain[0])), kind))
    z = fresh(as_array(np.trunc(np.true_divide(*plain)), kind))
    return comparison.tracked_like(z, input, other)


def floor_divide(input: Any, other: Any) -> Any:
    """The largest integer not above the quotient."""
    x, y = promote(as_tensor(input), as_tensor(other))
    refuse_zero(value_of(x), value_of(y))
    z = fresh(np.floor_divide(value_of(x), value_of(y)))
    return comparison.tracked_like(z, x, y)


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Each element of one to the power of the other's."""
    refuse_numbers("pow", input, exponent, "either")
    return input**exponent if out is None else into(input**exponent, out)


_neg = unary(arithmetic.negative)


def neg(input: Any) -> Any:
    """Each element with the other sign."""
    if input.primal.dtype.kind == "b":
        raise EagerError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return _neg(input)


def rsqrt(input: Any) -> Any:
    """1 divided by the square root."""
    return functions["reciprocal"](functions["sqrt"](input))


_where = joining(selection._where)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """The elements of one where a condition holds, else those of the other."""
    if input is None:
        return tuple(fresh(i) for i in base(condition).nonzero())
    if base(condition).dtype.kind not in "bu":
        raise EagerError(
            f"where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {dtypes.type_name(base(condition).dtype)}"
        )
    x, y = as_tensor(input), as_tensor(other)
    if not (
        isinstance(x, Tensor)
        and isinstance(y, Tensor)
        and x.primal.dtype is y.primal.dtype
    ):
        kind = result_dtype(x, y)
        x, y = as_kind(x, kind), as_kind(y, kind)
    try:
        return _where([x, y], base(condition))
    except (ValueError, TypeError) as error:
        return again(where, None, error, condition, x, y)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Each element rounded to a number of decimals, halves to even; derivative zero."""
    z = fresh(as_array(np.round(base(input), decimals)))
    return comparison.tracked_like(z, input)


def frac(input: Any) -> Any:
    """What follows the decimal point, with the element's sign."""
    return input - fresh(np.trunc(base(input)))


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """``input + weight * (end - input)``: on the way from one to the other.

    From the end that is nearer, which is met exactly.
    """
    varied = isinstance(weight, Value)
    if varied:
        late = fresh(as_array(np.abs(value_of(weight)) >= 0.5))
        way = end - input
        return where(late, end - way * (1 - weight), input + way * weight)
    if abs(weight) < 0.5:
        return input + (end - input) * weight
    return end - (end - input) * (1 - weight)


def addcmul(
    input: Any, tensor1: Any, tensor2: Any, former: Any = None, *, value: Any = 1
) -> Any:
    """``input + value * tensor1 * tensor2``; formerly the value came second."""
    if former is not None:
        value, tensor1, tensor2 = tensor1, tensor2, former
    return input + tensor1 * tensor2 * value


def addcdiv(
    input: Any, tensor1: Any, tensor2: Any, former: Any = None, *, value: Any = 1
) -> Any:
    """``input + value * tensor1 / tensor2``; formerly the value came second."""
    if former is not None:
        value, tensor1, tensor2 = tensor1, tensor2, former
    return input + tensor1 / tensor2 * value


def nan_to_num(
    input: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Each element, with numbers for what is none."""
    if base(input).dtype.kind in "iub":
        return input.clone()
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    fixed = {k: None if is_differentiated(x) else x for k, x in given.items()}
    fixed["nan"] = 0.0 if fixed["nan"] is None else fixed["nan"]
    z = call(elementwise.nan_to_num, input, **fixed)
    for name, found in _NO_NUMBERS.items():
        if is_differentiated(given[name]):
            z = where(fresh(as_array(found(base(input)))), given[name], z)
    return z


_NO_NUMBERS: dict[str, Any] = {
    "nan": np.isnan,
    "posinf": np.isposinf,
    "neginf": np.isneginf,
}


def digamma(input: Any) -> Any:
    """The logarithmic derivative of the gamma function."""
    return call(special.digamma, promote(input, floating=True)[0])


def logit(input: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid."""
    input = promote(input, floating=True)[0]
    input = input if eps is None else input.clamp(eps, 1 - eps)
    return functions["log"](input / (1 - input))


def sinc(input: Any) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    return call(tensor_special.sinc, promote(input, floating=True)[0])


def angle(input: Any) -> Any:
    """The angle of complex numbers; 0 or pi of real ones."""
    (input,) = promote(input, floating=True)
    z = call(elementwise.angle, input)
    return z if z.requires_grad else comparison.tracked_like(z, input)


def real(input: Any) -> Any:
    """The real part."""
    if base(input).dtype.kind != "c":
        return input
    return view_if_shared(call(arithmetic.real, input), input)


def imag(input: Any) -> Any:
    """The imaginary part."""
    return view_if_shared(call(arithmetic.imag, input), input)


def sgn(input: Any) -> Any:
    """The sign; of complex numbers the direction, 0 at 0."""
    if base(input).dtype.kind != "c":
        return comparison.functions["sign"](input)
    zero = fresh(as_array(base(input) == 0))
    kept = where(zero, 1.0, input)
    return where(zero, 0.0, kept / functions["abs"](kept))


def conj(input: Any) -> Any:
    """The complex conjugate."""
    return call(arithmetic.conj, input) if base(input).dtype.kind == "c" else input


functions |= {
    function.__name__: function
    for function in (
        add, addcdiv, addcmul, angle, conj, digamma, div,
        floor_divide, frac, imag, lerp, logit, mul, nan_to_num, neg, pow, real, round,
        rsqrt, rsub, sgn, sinc, sub, where,
    )
}  # fmt: skip
_SYNONYMS |= {
    "divide": "div", "expit": "sigmoid", "multiply": "mul",
    "subtract": "sub", "true_divide": "div",
}  # fmt: skip
functions |= {name: functions[target] for name, target in _SYNONYMS.items()}
NO_METHODS = ("rsub", "expit")

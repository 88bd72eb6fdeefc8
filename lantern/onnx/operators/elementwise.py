"""Operators of each element."""

from functools import reduce
from typing import Any

import numpy as np

import lantern
from lantern.core.value import Value
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator, rows
from lantern.torch.nn import functional

__all__: list[str] = []

rows(
    {
        "Abs": np.abs,
        "Acos": np.arccos,
        "Acosh": np.arccosh,
        "Asin": np.arcsin,
        "Asinh": np.arcsinh,
        "Atan": np.arctan,
        "Atanh": np.arctanh,
        "Cos": np.cos,
        "Cosh": np.cosh,
        "Exp": np.exp,
        "Identity": lambda x: x,
        "Log": np.log,
        "Neg": np.negative,
        "Reciprocal": lambda x: x.dtype.type(1) / x,
        "Sin": np.sin,
        "Sinh": np.sinh,
        "Sqrt": np.sqrt,
        "Tan": np.tan,
        "Tanh": np.tanh,
    }
)
rows(
    {
        "Add": np.add,
        "Mul": np.multiply,
        "Sub": np.subtract,
    },
    since=7,
)
rows(
    {
        "Erf": lantern.erf,
        "HardSwish": lambda x: on_arrays(functional.hardswish, x),
        "Mish": lambda x: on_arrays(functional.mish, x),
        "Relu": lambda x: on_arrays(functional.relu, x),
        "Sigmoid": lambda x: on_arrays(functional.sigmoid, x),
        "Softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
        "Softsign": lambda x: x / (1 + np.abs(x)),
    },
    reals_only=True,
)


def _typed(z: Any, kind: Any) -> Any:
    return z if z.dtype == kind else z.astype(kind)


@operator("Div", since=7)
def divide(x: Any, y: Any) -> Any:
    """``x / y``; of integers, rounded towards zero."""
    if x.dtype.kind not in "iu":
        return x / y
    if x.dtype.kind == "u":
        return x // y
    quotient = np.abs(x) // np.abs(y)
    return (quotient * np.sign(x) * np.sign(y)).astype(x.dtype)


@operator("Pow", since=7)
def power(x: Any, y: Any) -> Any:
    """``x`` to the power ``y``, in the type of ``x``."""
    if x.dtype.kind == "f" and y.dtype.kind in "iu":
        y = y.astype(x.dtype)
    if not isinstance(y, Value) and y.size == 1 and y.ndim == 0:
        y = y.item()
    return _typed(x**y, x.dtype)


@operator("Mod", since=10)
def modulo(x: Any, y: Any, fmod: int = 0) -> Any:
    """The remainder: with the sign of ``y``, or of ``x`` if ``fmod``."""
    return np.fmod(x, y) if fmod else np.mod(x, y)


@operator("Max", since=8)
def largest(*xs: Any) -> Any:
    """The largest of several."""
    return reduce(np.maximum, xs)


@operator("Min", since=8)
def smallest(*xs: Any) -> Any:
    """The smallest of several."""
    return reduce(np.minimum, xs)


@operator("Sum", since=8)
def total(*xs: Any) -> Any:
    """The sum of several."""
    return reduce(np.add, xs)


@operator("Mean", since=8)
def mean(*xs: Any) -> Any:
    """The mean of several."""
    return reduce(np.add, xs) / len(xs)


@operator("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    """The elements of ``x`` where the condition holds, of ``y`` elsewhere."""
    return np.where(condition, x, y)


@operator("Clip", since=11)
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """``x`` between two bounds, each of which may be absent."""
    if min is not None:
        x = np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


@operator("Clip", since=6)
def clip_to_numbers(x: Any, min: float = -np.inf, max: float = np.inf) -> Any:
    """``x`` between two numbers."""
    return np.minimum(np.maximum(x, x.dtype.type(min)), x.dtype.type(max))


@operator("LeakyRelu", since=6, reals_only=True)
def leaky_relu(x: Any, alpha: float = 0.01) -> Any:
    """``x`` where it is positive, ``alpha x`` elsewhere."""
    return on_arrays(functional.leaky_relu, x, negative_slope=alpha)


@operator("PRelu", since=9, reals_only=True)
def parametric_relu(x: Any, slope: Any) -> Any:
    """``x`` where it is positive, ``slope x`` elsewhere."""
    return np.where(x >= 0, x, slope * x)


@operator("ThresholdedRelu", since=10, reals_only=True)
def thresholded_relu(x: Any, alpha: float = 1.0) -> Any:
    """``x`` where it is larger than ``alpha``, and 0 elsewhere."""
    return np.where(x > alpha, x, np.zeros_like(x))


@operator("Elu", since=6, reals_only=True)
def elu(x: Any, alpha: float = 1.0) -> Any:
    """``x`` where it is positive, ``alpha (exp(x) - 1)`` elsewhere."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@operator("Celu", since=12, reals_only=True)
def celu(x: Any, alpha: float = 1.0) -> Any:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


@operator("Selu", since=6, reals_only=True)
def selu(
    x: Any, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> Any:
    """``gamma x`` where it is positive, ``gamma alpha (exp(x) - 1)`` elsewhere."""
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@operator("HardSigmoid", since=6, reals_only=True)
def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """``alpha x + beta``, between 0 and 1."""
    return np.minimum(np.maximum(alpha * x + beta, 0), 1)


@operator("Shrink", since=9, reals_only=True)
def shrink(x: Any, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """``x`` drawn towards 0 by ``bias``, and 0 near it."""
    zero = np.zeros_like(x)
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, zero))


@operator("Gelu", since=20, reals_only=True)
def gelu(x: Any, approximate: str = "none") -> Any:
    """``x`` times the chance that a normal number is smaller."""
    return on_arrays(functional.gelu, x, approximate=approximate)


@operator("Swish", since=24, reals_only=True)
def swish(x: Any, alpha: float = 1.0) -> Any:
    """``x sigmoid(alpha x)``."""
    return x * on_arrays(functional.sigmoid, alpha * x)

"""Functions of each element, and shares along an axis."""

import math
from functools import wraps
from typing import Any

import numpy as np

from lantern import special
from lantern.errors import EagerError, OptionError
from lantern.torch import methods
from lantern.torch.draws import rng
from lantern.torch.dtypes import as_numpy_dtype, type_name
from lantern.torch.nn import rules
from lantern.torch.operators import cast, unary
from lantern.torch.places import as_array, beside
from lantern.torch.tensor import Tensor, fresh
from lantern.torch.writing import write
from lantern.value import base

__all__ = [
    "alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu",
    "elu_", "feature_alpha_dropout", "gelu", "glu", "gumbel_softmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "leaky_relu_", "log_softmax",
    "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "selu", "sigmoid",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold",
]  # fmt: skip

_F = methods.FUNCTIONS
where, clamp, exp = _F["where"], _F["clamp"], _F["exp"]
sigmoid, tanh = _F["sigmoid"], _F["tanh"]
_relu = _F["relu"]


def may_write(function: Any) -> Any:
    """A function whose last argument, ``inplace``, has the result written back."""
    place = function.__code__.co_varnames.index("inplace")

    @wraps(function)
    def either(input: Tensor, *args: Any, **options: Any) -> Any:
        if len(args) >= place:
            *args, options["inplace"] = args  # type: ignore[assignment]
        if options.pop("inplace", False):
            return write(input, function, *args, **options)
        return function(input, *args, **options)

    return either


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``."""
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """``max(x, 0)``, in the tensor's own memory."""
    return input.relu_()


@may_write
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``."""
    return hardtanh(input, 0.0, 6.0)


@may_write
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Each element limited to an interval, where its derivative is 1."""
    if min_val > max_val:
        raise OptionError("min_val cannot be greater than max_val")
    x = base(input)
    inside = (x > min_val) & (x < max_val)
    if x.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return where(fresh(as_array(inside)), input, fresh(x.clip(min_val, max_val)))


@may_write
def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """x above a threshold, else a value."""
    return where(input > threshold, input, value)


@may_write
def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """x, and a small part of it where it is negative."""
    x = base(input)
    slopes = np.where(x > 0, x.dtype.type(1), x.dtype.type(negative_slope))
    return input * fresh(slopes)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """As ``leaky_relu``, in the tensor's own memory."""
    return leaky_relu(input, negative_slope, True)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, and where it is negative x times a weight, one for each channel or for all."""
    count, shape = base(weight).size, base(input).shape
    if base(weight).ndim > 1:
        raise EagerError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{base(weight).ndim}"
        )
    if count == 1:
        weight = weight.reshape(())
    elif not shape:
        raise EagerError("Not allow zero-dim input tensor.")
    elif count != (channels := shape[1] if len(shape) > 1 else 1):
        raise EagerError(
            f"Mismatch of parameter numbers and input channel size. Found parameter "
            f"numbers = {count} and channel size = {channels}."
        )
    else:
        weight = weight.reshape(-1, *[1] * (len(shape) - 2))
    return where(input > 0, input, input * weight)


@may_write
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """As ``leaky_relu``, with random slopes while training."""
    if lower > upper:
        raise EagerError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    x = base(input)
    slopes = beside(rng().uniform(lower, upper, x.shape).astype(x.dtype), x)
    z = input * fresh(np.where(x >= 0, x.dtype.type(1), slopes))
    return z


def _negative_part(input: Tensor) -> Tensor:
    """x where it is negative, else 0: so that no exponential overflows."""
    return clamp(input, max=0)


@may_write
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and ``alpha * (exp(x) - 1)`` where it is negative."""
    z = where(input > 0, input, _negative_part(input).expm1() * alpha)
    return z


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """As ``elu``, in the tensor's own memory."""
    return elu(input, alpha, True)


@may_write
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and ``alpha * (exp(x / alpha) - 1)`` where it is negative."""
    z = where(input > 0, input, (_negative_part(input) / alpha).expm1() * alpha)
    return z


_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@may_write
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The exponential unit that keeps mean 0 and variance 1."""
    return elu(input, _SELU[0]) * _SELU[1]


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the chance that a standard normal draw is below it."""
    if approximate == "none":
        return rules.gelu(input)
    if approximate != "tanh":
        raise EagerError("approximate argument must be either none or tanh.")
    inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
    return (tanh(inner) + 1) * input * 0.5


@may_write
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return input * sigmoid(input)


@may_write
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return input * tanh(softplus(input))


_softplus = unary(special.softplus, floating=True)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; x itself, where that is all but equal."""
    z = _softplus(input) if beta == 1 else _softplus(input * beta) / beta
    above = base(input) * beta > threshold
    if isinstance(above, np.ndarray | np.generic) and not above.any():
        return z
    return where(fresh(as_array(above)), input, z)


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))``."""
    return rules.logsigmoid(input)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + abs(x))``."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - tanh(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, and 0 where it is small."""
    return where((input > lambd) | (input < -lambd), input, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0, and 0 where it is small."""
    if lambd < 0:
        kind = base(input).dtype
        raise EagerError(
            f"lambda must be in range [0, {np.finfo(kind).max:g}] for input dtype "
            f"{type_name(kind)}, but found {lambd:g}"
        )
    low = where(input < -lambd, input + lambd, 0.0)
    return where(input > lambd, input - lambd, low)


@may_write
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``."""
    return hardtanh(input + 3, 0.0, 6.0) / 6


@may_write
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``."""
    return input * hardtanh(input + 3, 0.0, 6.0) / 6


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half along an axis, times the sigmoid of the other."""
    if input.shape[dim] % 2:
        raise EagerError(
            f"Halving dimension must be even, but dimension {dim} is size "
            f"{input.shape[dim]}"
        )
    a, b = input.chunk(2, dim)
    return a * sigmoid(b)


def _implicit(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Each exponential's share of their sum along an axis."""
    x = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    return x.softmax(_implicit(x.dim()) if dim is None else dim)


def log_softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of ``softmax``."""
    x = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    return x.log_softmax(_implicit(x.dim()) if dim is None else dim)


def softmin(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax`` of the negative."""
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Tensor:
    """``softmax`` of noisy logits; if hard, 1 at its largest element."""
    x = base(logits)
    noise = -np.log(rng().standard_exponential(x.shape)).astype(x.dtype)
    soft = ((logits + fresh(beside(noise, x))) / tau).softmax(dim)
    if not hard:
        return soft
    top = base(soft).argmax(axis=dim, keepdims=True)
    one = np.zeros_like(x)
    np.put_along_axis(one, top, 1, axis=dim)
    return fresh(one) - soft.detach() + soft


def _kept(input: Tensor, shape: Any, p: float, training: bool) -> Tensor:
    """The tensor, with parts of a shape 0 by chance."""
    if p < 0 or p > 1:
        raise OptionError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    x = base(input)
    scale = x.dtype.type(0 if p == 1 else 1 / (1 - p))
    kept = (rng().random(shape, np.float32) >= p) * scale
    return input * fresh(beside(kept.astype(x.dtype, copy=False), x))


@may_write
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Each element 0 with chance p while training, the others scaled up."""
    return _kept(input, base(input).shape, p, training)


def _of_channels(batched: int) -> Any:
    @may_write
    def function(
        input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        shape = base(input).shape
        whole = 2 if len(shape) == batched else 1
        ones = (1,) * (len(shape) - whole)
        return _kept(input, shape[:whole] + ones, p, training)

    function.__doc__ = "Each channel 0 with chance p while training."
    return function


dropout1d, dropout2d, dropout3d = map(_of_channels, (3, 4, 5))


@may_write
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """As ``dropout``, keeping mean and variance behind ``selu``."""
    return _alpha(input, base(input).shape, p, training)


@may_write
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """As ``alpha_dropout``, of whole channels."""
    shape = base(input).shape
    ones = (1,) * (len(shape) - 2)
    return _alpha(input, shape[:2] + ones, p, training)


def _alpha(input: Tensor, shape: Any, p: float, training: bool) -> Any:
    if p < 0 or p > 1:
        raise OptionError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    low = -_SELU[0] * _SELU[1]
    a = 0.0 if p == 1 else ((1 - p) * (1 + p * low * low)) ** -0.5
    x = base(input)
    kept = beside((rng().random(shape) >= p).astype(x.dtype), x)
    z = (input * fresh(kept) + fresh((1 - kept) * kept.dtype.type(low))) * a
    return z - a * low * p

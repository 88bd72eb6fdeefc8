"""Functions of each element."""

import math
from functools import wraps
from typing import Any

import numpy as np

from lantern.core.value import Value
from lantern.errors import EagerError, OptionError
from lantern.rules import special
from lantern.torch.functions.limits import limited
from lantern.torch.methods import table
from lantern.torch.methods.inplace import write
from lantern.torch.methods.sampling import rng
from lantern.torch.nn import rules
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_differentiated
from lantern.torch.tensor.devices import as_array, beside
from lantern.torch.tensor.dtypes import type_name
from lantern.torch.tensor.halves import single
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.operators import unary
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu",
    "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "threshold_",
]  # fmt: skip

_F = table.FUNCTIONS
where, clamp, exp, _relu = _F["where"], _F["clamp"], _F["exp"], _F["relu"]
sigmoid, tanh = _F["sigmoid"], _F["tanh"]


def may_write(function: Any) -> Any:
    """A function whose last argument, ``inplace``, has the result written back.

    Of 16 bits, it computes in float32.
    """
    place = function.__code__.co_varnames.index("inplace")
    function = single(function)

    @wraps(function)
    def either(input: Tensor, *args: Any, **options: Any) -> Any:
        if len(args) >= place:
            *args, options["inplace"] = args  # type: ignore[assignment]
        if options.pop("inplace", False):
            return write(input, function, *args, **options)
        return function(input, *args, **options)

    return either


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """``max(x, 0)``, in the tensor's own memory.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> _ = torch.nn.functional.relu_(x)
        >>> x
        tensor([0., 2.])
    """
    return input.relu_()


@may_write
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0)


@may_write
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Each element limited to an interval, where its derivative is 1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise OptionError("min_val cannot be greater than max_val")
    kind = base(input).dtype.kind
    if kind == "u" and (min_val < 0 or max_val < 0):
        raise EagerError("cannot do hardtanh on an unsigned type with negative limits")
    if kind in "iu":
        return clamp(input, int(min_val), int(max_val))
    if isinstance(min_val, Value) or isinstance(max_val, Value):  # they may be tracked
        inside = (input > min_val) & (input < max_val)
        return where(inside, input, clamp(input.detach(), min_val, max_val))
    return limited(input, min_val, max_val)


@may_write
def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """x above a threshold, else a value.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.threshold(torch.tensor([1.0, 3.0]), 2.0, -1.0)
        tensor([-1.,  3.])
    """
    return where(input <= threshold, value, input)  # nan stays nan


@may_write
def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """x, and a small part of it where it is negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    if base(input).dtype.kind != "f" or is_differentiated(negative_slope):
        return where(input > 0, input, input * negative_slope)
    return rules.leaky_relu(input, float(negative_slope))


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """As ``leaky_relu``, in the tensor's own memory.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> _ = torch.nn.functional.leaky_relu_(x, 0.1)
        >>> x
        tensor([-0.1000,  2.0000])
    """
    return leaky_relu(input, negative_slope, True)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, and where it is negative x times a weight, one for each channel or for all.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.prelu(torch.tensor([-2.0, 2.0]), torch.tensor([0.25]))
        tensor([-0.5000,  2.0000])
    """
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
    """As ``leaky_relu``, with random slopes while training.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import rrelu
        >>> rrelu(torch.tensor([-24.0, 2.0]))  # by the mean slope, 11 / 48
        tensor([-5.5000,  2.0000])
    """
    if lower > upper:
        raise EagerError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    x = base(input)
    slopes = beside(rng().uniform(lower, upper, x.shape).astype(x.dtype), x)
    return input * fresh(np.where(x >= 0, x.dtype.type(1), slopes))


def _negative_part(input: Tensor) -> Tensor:
    """x where it is negative, else 0: so that no exponential overflows."""
    return clamp(input, max=0)


@may_write
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and ``alpha * (exp(x) - 1)`` where it is negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    if isinstance(alpha, int | float) and isinstance(input, Tensor):
        return rules.elu(input, alpha)
    return where(input > 0, input, _negative_part(input).expm1() * alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """As ``elu``, in the tensor's own memory.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> _ = torch.nn.functional.elu_(x)
        >>> x
        tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, True)


@may_write
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and ``alpha * (exp(x / alpha) - 1)`` where it is negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]), 2.0)
        tensor([-0.7869,  2.0000])
    """
    return where(input > 0, input, (_negative_part(input) / alpha).expm1() * alpha)


_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@may_write
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The exponential unit that keeps mean 0 and variance 1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.selu(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return elu(input, _SELU[0]) * _SELU[1]


def gelu(input: Tensor, approximate: str = "none", *, out: Any = None) -> Tensor:
    """x times the chance that a standard normal draw is below it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """
    if approximate == "none":
        return into(rules.gelu(input), out)
    if approximate != "tanh":
        raise EagerError("approximate argument must be either none or tanh.")
    inner = (input + input * input * input * 0.044715) * math.sqrt(2 / math.pi)
    return into((tanh(inner) + 1) * input * 0.5, out)


@may_write
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """
    return rules.silu(input)


@may_write
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """
    return input * tanh(softplus(input))


_softplus = unary(special.softplus, floating=True)


def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None
) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; x itself, where that is all but equal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softplus(torch.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
    """
    z = _softplus(input) if beta == 1 else _softplus(input * beta) / beta
    above = base(input) * beta > threshold
    if not isinstance(above, np.ndarray | np.generic) or above.any():
        z = where(fresh(as_array(above)), input, z)
    return into(z, out)


def logsigmoid(input: Tensor, *, out: Any = None) -> Tensor:
    """``log(sigmoid(x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.logsigmoid(torch.tensor([-1000.0, 0.0]))
        tensor([-1.0000e+03, -6.9315e-01])
    """
    return into(rules.logsigmoid(input), out)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + abs(x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])
    """
    return input - tanh(input)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Tensor:
    """x, and 0 where it is small.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-1.,  0.,  2.])
    """
    z = where((input >= -lambd) & (input <= lambd), 0.0, input)  # nan stays nan
    return into(z, out)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Tensor:
    """x moved towards 0, and 0 where it is small.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """
    if lambd < 0:
        kind = base(input).dtype
        raise EagerError(
            f"lambda must be in range [0, {np.finfo(kind).max:g}] for input dtype "
            f"{type_name(kind)}, but found {lambd:g}"
        )
    moved = where(input > lambd, input - lambd, input + lambd)
    z = where((input >= -lambd) & (input <= lambd), 0.0, moved)  # nan stays nan
    return into(z, out)


@may_write
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """
    return hardtanh(input + 3, 0.0, 6.0) / 6


@may_write
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
    """
    return rules.hardswish(input)


def _in_place(function: Any, example: str) -> Any:
    """A function that writes its result to the memory of its first operand."""

    def operate(*args: Any, **options: Any) -> Tensor:
        return function(*args, **options, inplace=True)

    name = function.__name__
    operate.__name__ = operate.__qualname__ = f"{name}_"
    operate.__doc__ = f"As ``{name}``, in the tensor's own memory."
    shown = parameters(function).replace(", inplace=False", "")
    return documented(takes(operate, shown), example)


celu_ = _in_place(
    celu,
    """
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.nn.functional.celu_(x, 2.0)
    tensor([-0.7869,  2.0000])
    """,
)
hardtanh_ = _in_place(
    hardtanh,
    """
    >>> x = torch.tensor([-2.0, 0.5, 2.0])
    >>> torch.nn.functional.hardtanh_(x)
    tensor([-1.0000,  0.5000,  1.0000])
    """,
)
rrelu_ = _in_place(
    rrelu,
    """
    >>> x = torch.tensor([-24.0, 2.0])
    >>> torch.nn.functional.rrelu_(x)
    tensor([-5.5000,  2.0000])
    """,
)
selu_ = _in_place(
    selu,
    """
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.nn.functional.selu_(x)
    tensor([-1.1113,  2.1014])
    """,
)
threshold_ = _in_place(
    threshold,
    """
    >>> x = torch.tensor([1.0, 3.0])
    >>> torch.nn.functional.threshold_(x, 2.0, -1.0)
    tensor([-1.,  3.])
    """,
)

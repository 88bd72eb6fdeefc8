"""Values that parameters start with, written in place."""

import math
import warnings
from typing import Any

import numpy as np

from lantern.eager.versions import written
from lantern.errors import OptionError
from lantern.torch.methods.sampling import rng
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_",
    "kaiming_uniform_", "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_",
    "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def _filled(tensor: Tensor, values: Any) -> Tensor:
    """The tensor with values in its memory; no derivative knows."""
    array = in_memory(tensor)
    array[...] = beside(values, array)
    written(array)
    return tensor


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None
) -> Tensor:
    """Uniform draws.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.uniform_(torch.empty(100), -1.0, 1.0)
        >>> bool(x.min() >= -1.0), bool(x.max() <= 1.0)
        (True, True)
    """
    return _filled(tensor, rng(generator).uniform(a, b, base(tensor).shape))


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> Tensor:
    """Normal draws.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.normal_(torch.empty(10000), mean=5.0, std=0.1)
        >>> bool((x - 5.0).abs().max() < 1.0)
        True
    """
    if tensor.dtype.is_complex:
        tensor.detach().normal_(mean, std, generator=generator)
        return tensor
    return _filled(tensor, rng(generator).normal(mean, std, base(tensor).shape))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normal draws, drawn again while they are outside of an interval.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.trunc_normal_(torch.empty(1000), a=0.0, b=1.0)
        >>> bool(x.min() >= 0.0), bool(x.max() <= 1.0)
        (True, True)
    """
    random = rng(generator)
    values = random.normal(mean, std, base(tensor).shape)
    outside = (values < a) | (values > b)
    for _ in range(1000):
        if not outside.any():
            break
        values[outside] = random.normal(mean, std, int(outside.sum()))
        outside = (values < a) | (values > b)
    return _filled(tensor, values.clip(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    return _filled(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return _filled(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return _filled(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if base(tensor).ndim != 2:
        raise OptionError("Only tensors with 2 dimensions are supported")
    return _filled(tensor, np.eye(*base(tensor).shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weights of a convolution that changes nothing.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.init import dirac_
        >>> x, weight = torch.tensor([[[1.0, 2.0, 3.0]]]), dirac_(torch.empty(1, 1, 3))
        >>> torch.nn.functional.conv1d(x, weight, padding=1)
        tensor([[[1., 2., 3.]]])
    """
    shape = base(tensor).shape
    if len(shape) not in (3, 4, 5):
        raise OptionError("Only tensors with 3, 4, or 5 dimensions are supported")
    values = np.zeros(shape)
    middle = tuple(n // 2 for n in shape[2:])
    each = shape[0] // groups
    for g in range(groups):
        for d in range(min(each, shape[1])):
            values[(g * each + d, d, *middle)] = 1
    return _filled(tensor, values)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs and outputs a weight connects to one of the other side."""
    shape = base(tensor).shape
    if len(shape) < 2:
        raise OptionError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The number of inputs or of outputs, as a mode says."""
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise OptionError(f"Mode {mode} not supported, please use one of {modes}")
    return _fans(tensor)[modes.index(mode.lower())]


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which weights before a nonlinearity are to be larger.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise OptionError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3 / 4
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1
    raise OptionError(f"Unsupported nonlinearity {nonlinearity}")


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform draws whose variance suits both ways (Glorot and Bengio, 2010).

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.xavier_uniform_(torch.empty(3, 3))
        >>> bool(x.abs().max() <= 1.0)  # the root of 6 / (3 + 3)
        True
    """
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal draws whose variance suits both ways (Glorot and Bengio, 2010).

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.xavier_normal_(torch.empty(100, 100))
        >>> bool(0.09 < x.std() < 0.11)  # the root of 2 / (100 + 100)
        True
    """
    return normal_(tensor, 0, gain * math.sqrt(2 / sum(_fans(tensor))), generator)


def _is_empty(tensor: Tensor) -> bool:
    """Whether there is nothing to draw, with a word about it."""
    if 0 not in base(tensor).shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def _deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise OptionError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform draws whose variance suits one way (He et al., 2015).

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.kaiming_uniform_(torch.empty(3, 6), nonlinearity="relu")
        >>> bool(x.abs().max() <= 1.0)  # the root of 6 / 6
        True
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3) * _deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal draws whose variance suits one way (He et al., 2015).

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.kaiming_normal_(torch.empty(200, 50), nonlinearity="relu")
        >>> bool(0.18 < x.std() < 0.22)  # the root of 2 / 50
        True
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0, _deviation(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthogonal rows or columns (Saxe et al., 2014).

    Example:
        >>> import lantern.torch as torch
        >>> q = torch.nn.init.orthogonal_(torch.empty(3, 3))
        >>> torch.allclose(q @ q.T, torch.eye(3), atol=1e-6)
        True
    """
    shape = base(tensor).shape
    if len(shape) < 2:
        raise OptionError("Only tensors with 2 or more dimensions are supported")
    rows, columns = shape[0], math.prod(shape[1:])
    draws = rng(generator).normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(draws)
    q = q * np.sign(np.diag(r))
    return _filled(tensor, gain * (q if rows >= columns else q.T).reshape(shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None
) -> Tensor:
    """Normal draws, with a share of each column 0.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.init.sparse_(torch.empty(10, 4), sparsity=0.3)
        >>> (x == 0).sum(dim=0)
        tensor([3, 3, 3, 3])
    """
    if base(tensor).ndim != 2:
        raise OptionError("Only tensors with 2 dimensions are supported")
    random = rng(generator)
    rows, columns = base(tensor).shape
    values = random.normal(0, std, (rows, columns))
    for j in range(columns):
        values[random.permutation(rows)[: math.ceil(sparsity * rows)], j] = 0
    return _filled(tensor, values)


def _former(name: str) -> Any:
    """A function by the name that it had when names did not tell what writes."""
    function = globals()[f"{name}_"]

    def former(*args: Any, **options: Any) -> Any:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **options)

    former.__name__ = former.__qualname__ = name
    former.__doc__ = f"As ``{name}_``: an older name."
    return former


# By the names under which nothing of it is tracked: as here.
_no_grad_uniform_, _no_grad_normal_ = uniform_, normal_
_no_grad_trunc_normal_, _no_grad_fill_, _no_grad_zero_ = (
    trunc_normal_,
    constant_,
    zeros_,
)

_FORMER = (
    "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse "
    "uniform xavier_normal xavier_uniform"
).split()
globals().update({name: _former(name) for name in _FORMER})

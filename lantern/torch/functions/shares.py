"""Each exponential's share of their sum along an axis, and logarithms of both."""

from typing import Any

import numpy as np

from lantern.tensor.ops import softmax as exponential
from lantern.torch.functions.reduction import axes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.dtypes import as_numpy_dtype
from lantern.torch.tensor.halves import in_single, is_half
from lantern.torch.tensor.operators import call, cast, promote, unary
from lantern.torch.tensor.tensor import Tensor, fresh

_log_softmax = unary(exponential.log_softmax, floating=True)
_softmax = unary(exponential.softmax, floating=True)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials over axes, without overflow.

    Shapes:
        input: (..., n, ...); result: (..., ...), with keepdim (..., 1, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.logsumexp(torch.tensor([[0.0, 0.0], [1000.0, 0.0]]), dim=1)
        tensor([6.9315e-01, 1.0000e+03])
    """
    (input,) = promote(input, floating=True)
    if base(input).dtype.kind == "c":  # an angle from -pi to pi
        top = as_array(np.max(base(input).real, axes(dim, input), keepdims=True))
        top = fresh(np.where(np.isinf(top), 0, top).astype(top.dtype))
        z = (input - top).exp().sum(dim, keepdim=True).log() + top
        return z if keepdim else z.squeeze(axes(dim, input))
    return call(exponential.logsumexp, input, axes(dim, input), keepdims=keepdim)


def softmax(input: Tensor, dim: Any, dtype: Any = None) -> Any:
    """Exponentials, divided by their sum along an axis; without overflow.

    Shapes:
        input: (..., n, ...); result: (..., n, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.softmax(torch.tensor([[0.0, 0.0], [0.0, 1.0]]), dim=1)
        tensor([[0.5000, 0.5000],
                [0.2689, 0.7311]])
    """
    input = _typed(input, dtype)
    if input.primal.dtype.itemsize == 2 and is_half(input):
        return in_single(softmax, input, dim)
    full = input.primal.size
    return _softmax(input, _one_axis(dim, input)) if full else input.clone()


def log_softmax(input: Tensor, dim: Any, dtype: Any = None) -> Any:
    """The logarithm of ``softmax``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])
    """
    input = _typed(input, dtype)
    if input.primal.dtype.itemsize == 2 and is_half(input):
        return in_single(log_softmax, input, dim)
    full = input.primal.size
    return _log_softmax(input, _one_axis(dim, input)) if full else input.clone()


def softmin(input: Tensor, dim: Any = None, dtype: Any = None) -> Any:
    """``softmax`` of the negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softmin(torch.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    if dtype is None:
        (input,) = promote(input, floating=True)
    return softmax(-input, dim, dtype)


def _typed(input: Tensor, dtype: Any) -> Any:
    x = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    flags = getattr(x.primal, "flags", None)
    return x if flags is None or flags.c_contiguous else x.contiguous()


def _one_axis(dim: Any, input: Tensor) -> Any:
    """The axis of a softmax; by default as old PyTorch chose it."""
    if not input.primal.shape:
        return axes(dim, input)
    return int(base(input).ndim not in (1, 3)) if dim is None else dim


functions = {f.__name__: f for f in (log_softmax, logsumexp, softmax, softmin)}

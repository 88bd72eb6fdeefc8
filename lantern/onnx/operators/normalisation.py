"""Normalisations, and what is left out by chance."""

from typing import Any

import numpy as np

from lantern.core.value import Value, base
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator
from lantern.torch.nn import functional

__all__: list[str] = []


def _by_channel(x: Any, n: int) -> Any:
    return x.reshape(-1, *[1] * (n - 2))


@operator("BatchNormalization", since=9, reals_only=True)
def batch_normalization(
    x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1,
) -> Any:  # fmt: skip
    """Each channel with another mean and variance.

    In ``training_mode`` by the batch's own, and the running ones follow.
    """
    kind, n = x.dtype, x.ndim
    if not training_mode:
        tracked = any(isinstance(y, Value) for y in (mean, var))
        if not tracked and n > 1 and {scale.dtype, bias.dtype, var.dtype} == {kind}:
            return on_arrays(_normalised, x, mean, var, scale, bias, eps=epsilon)
        mean, var = _by_channel(mean, n), _by_channel(var, n)
        z = (x - mean) / np.sqrt(var + epsilon)
        z = z * _by_channel(scale, n) + _by_channel(bias, n)
        return z.astype(kind) if z.dtype != kind else z
    axes = (0, *range(2, n))
    m = np.mean(x, axis=axes, keepdims=True)
    v = np.mean((x - m) ** 2, axis=axes, keepdims=True)
    z = (x - m) / np.sqrt(v + epsilon) * _by_channel(scale, n) + _by_channel(bias, n)
    new_mean = mean * momentum + m.reshape(-1) * (1 - momentum)
    new_var = var * momentum + v.reshape(-1) * (1 - momentum)
    z = z.astype(kind) if z.dtype != kind else z
    return z, new_mean, new_var


def _normalised(x: Any, mean: Any, var: Any, scale: Any, bias: Any, eps: float) -> Any:
    return functional.batch_norm(x, mean, var, scale, bias, training=False, eps=eps)


@operator("InstanceNormalization", since=6, reals_only=True)
def instance_normalization(x: Any, scale: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Each channel of each example with mean 0 and variance 1."""
    axes = tuple(range(2, x.ndim))
    m = np.mean(x, axis=axes, keepdims=True)
    v = np.mean((x - m) ** 2, axis=axes, keepdims=True)
    z = (x - m) / np.sqrt(v + epsilon)
    return z * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


@operator("LayerNormalization", since=17, reals_only=True)
def layer_normalization(
    x: Any, scale: Any, bias: Any = None, axis: int = -1, epsilon: float = 1e-5,
    stash_type: int = 1, outputs: int = 1,
) -> Any:  # fmt: skip
    """The last axes with mean 0 and variance 1; and what those were."""
    axis = axis % x.ndim
    shape = tuple(x.shape[axis:])
    if outputs == 1 and scale.shape == shape and (bias is None or bias.shape == shape):
        return on_arrays(functional.layer_norm, x, shape, scale, bias, eps=epsilon)
    axes = tuple(range(axis, x.ndim))
    m = np.mean(x, axis=axes, keepdims=True)
    v = np.mean((x - m) ** 2, axis=axes, keepdims=True)
    scaling = 1 / np.sqrt(v + epsilon)
    z = (x - m) * scaling * scale
    return (z if bias is None else z + bias), m, scaling


@operator("LRN", reals_only=True)
def lrn(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:
    """Each element over the squares of its neighbours in other channels."""
    before, after = (size - 1) // 2, size // 2
    squares = np.pad(x * x, [(0, 0), (before, after)] + [(0, 0)] * (x.ndim - 2))
    n = x.shape[1]
    total = sum(squares[:, i : i + n] for i in range(size))
    return x / (bias + alpha / size * total) ** beta


@operator("LpNormalization", reals_only=True)
def lp_normalization(x: Any, axis: int = -1, p: int = 2) -> Any:
    """Over its norm along an axis; 0 where that is 0."""
    if p == 1:
        size = np.sum(np.abs(x), axis=axis, keepdims=True)
    else:
        squares = np.sum(x * x, axis=axis, keepdims=True)
        size = np.sqrt(np.where(base(squares) == 0, 1, squares))
        size = np.where(base(squares) == 0, 0, size)
    nothing = base(size) == 0
    return np.where(nothing, 0 * x, x / np.where(nothing, 1, size))


@operator("Dropout")
def dropout(
    x: Any, ratio: Any = 0.5, training_mode: Any = None, seed: int | None = None,
    outputs: int = 1, opset: int = 12,
) -> Any:  # fmt: skip
    """``x``, and what of it is kept: in ``training_mode``, elements by chance."""
    share = 0.5 if ratio is None else float(np.asarray(base(ratio)).reshape(()))
    training = training_mode is not None and bool(np.asarray(training_mode))
    if not training or not share:
        return x, np.ones(x.shape, np.bool_)
    kept = np.random.RandomState(seed).uniform(0.0, 1.0, x.shape) >= share
    return np.where(kept, x / (1 - share), 0 * x), kept


@operator("MeanVarianceNormalization", reals_only=True)
def mean_variance_normalization(x: Any, axes: Any = (0, 2, 3)) -> Any:
    """Some axes with mean 0 and variance 1."""
    axes = tuple(axes)
    m = np.mean(x, axis=axes, keepdims=True)
    squares = np.mean(x * x, axis=axes, keepdims=True)
    return (x - m) / (np.sqrt(squares - m * m) + 1e-9)

"""A convolution or a linear layer with the normalisation behind it, as one layer."""

import copy
from typing import Any

from lantern.torch.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fused(
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    eps: float,
    w: Any,
    b: Any,
    axis: int,
) -> Any:
    """Weights that do what two layers did, for the outputs along an axis."""
    bias = mean * 0 if bias is None else bias
    w = mean * 0 + 1 if w is None else w
    b = mean * 0 if b is None else b
    scale = w * (variance + eps).rsqrt()
    shape = [1] * weight.dim()
    shape[axis] = -1
    made = (weight * scale.reshape(shape), (bias - mean) * scale + b)
    flags = weight.requires_grad, bias.requires_grad
    return tuple(
        Parameter(x.detach(), flag) for x, flag in zip(made, flags, strict=True)
    )


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> Any:
    """The weights of a convolution that does its normalisation as well.

    Example:
        >>> import lantern.torch as torch
        >>> one, zero = torch.ones(1), torch.zeros(1)
        >>> from lantern.torch.nn.utils.fusion import fuse_conv_bn_weights
        >>> fuse_conv_bn_weights(torch.ones(1, 1, 1), None, one, one, 0.0, one, zero)[1]
        Parameter containing:
        tensor([-1.])
    """
    axis = 1 if transpose else 0
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, axis)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution and the normalisation behind it, both evaluating, as one.

    Example:
        >>> import lantern.torch as torch
        >>> conv, bn = torch.nn.Conv1d(2, 3, 1).eval(), torch.nn.BatchNorm1d(3).eval()
        >>> x = torch.ones(1, 2, 4)
        >>> both = torch.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> torch.allclose(both(x), bn(conv(x)), atol=1e-6)
        True
    """
    made = copy.deepcopy(conv)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, *_of(bn), transpose
    )
    return made


def fuse_linear_bn_weights(
    linear_w: Any,
    linear_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
) -> Any:
    """The weights of a linear layer that does its normalisation as well.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.utils.fusion import fuse_linear_bn_weights
        >>> one, zero = torch.ones(1), torch.zeros(1)
        >>> fuse_linear_bn_weights(torch.ones(1, 1), zero, one, one, 0.0, one, zero)[1]
        Parameter containing:
        tensor([-1.])
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer and the normalisation behind it, both evaluating, as one.

    Example:
        >>> import lantern.torch as torch
        >>> linear, bn = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
        >>> both = torch.nn.utils.fusion.fuse_linear_bn_eval(linear, bn)
        >>> x = torch.ones(4, 2)
        >>> torch.allclose(both(x), bn(linear(x)), atol=1e-6)
        True
    """
    made = copy.deepcopy(linear)
    made.weight, made.bias = fuse_linear_bn_weights(made.weight, made.bias, *_of(bn))
    return made


def _of(bn: Any) -> tuple[Any, Any, Any, Any, Any]:
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias

"""Convolutions whose kernels are deformed: each point is moved by an offset."""

from typing import Any

from lantern.torch.functions.join_repeat import stack
from lantern.torch.functions.ranges import arange
from lantern.torch.nn.functional.sampling import grid_sample
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPERATIONS"]


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution each of whose points is read where an offset moves it to.

    The channels are in ``offset_groups``, each with offsets (and factors) of its own.
    (Dai et al. 2017; with factors, ``mask``, Zhu et al. 2019.)

    Shapes:
        input: (n, c, height, width); weight: (channels, c / groups, kh, kw);
        offset: (n, offset_groups · kh · kw · 2, h, w), down and right;
        mask: (n, offset_groups · kh · kw, h, w); bias: (channels,);
        result: (n, channels, h, w)
    """
    n, c, height, width = input.shape
    channels, _, kh, kw = weight.shape
    h, w = offset.shape[2:]
    many = n * offset_groups
    moved = offset.reshape(many, kh, kw, 2, h, w)
    like: Any = {"dtype": input.dtype, "device": input.device}
    down, right = arange(kh, **like) * dilation_h, arange(kw, **like) * dilation_w
    y = moved[:, :, :, 0] + down[:, None, None, None] - pad_h
    x = moved[:, :, :, 1] + right[:, None, None] - pad_w
    y = y + (arange(h, **like) * stride_h)[:, None]
    x = x + arange(w, **like) * stride_w
    # from -1 to 1 between the outer edges of the pixels, as ``grid_sample`` takes them
    grid = stack(((2 * x + 1) / width - 1, (2 * y + 1) / height - 1), -1)
    sampled = grid_sample(
        input.reshape(many, c // offset_groups, height, width),
        grid.reshape(many, kh * kw * h, w, 2),
        align_corners=False,
    ).reshape(many, c // offset_groups, kh * kw, h, w)
    if use_mask:
        sampled = sampled * mask.reshape(many, 1, kh * kw, h, w)
    columns = sampled.reshape(n, groups, (c // groups) * kh * kw, h * w)
    kernels = weight.reshape(groups, channels // groups, -1)
    z = (kernels @ columns).reshape(n, channels, h, w)
    return z if bias is None else z + bias.reshape(-1, 1, 1)


OPERATIONS = {"deform_conv2d": deform_conv2d}

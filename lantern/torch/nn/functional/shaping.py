"""Images with edges, and with channels as pixels or in another order."""

from typing import Any

import numpy as np

from lantern.errors import EagerError, MissingRuleError
from lantern.tensor.ops.pad import pad as our_pad
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.operators import call
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face
from lantern.torch.tensor.views import alone

__all__ = ["channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The tensor with more elements at its ends.

    Args:
        input: the tensor.
        pad: how many before and behind: of the last axis, of the one before, ...
        mode: "constant", "reflect", "replicate" or "circular".
        value: of the constant; 0 by default.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import pad
        >>> pad(torch.tensor([1.0, 2.0]), (1, 2))
        tensor([0., 1., 2., 0., 0.])
        >>> pad(torch.tensor([[1.0, 2.0, 3.0]]), (1, 1), mode="reflect")
        tensor([[2., 1., 2., 3., 2.]])
    """
    ndim = base(input).ndim
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise EagerError(
            "Padding length must be divisible by 2"
            if len(pad) % 2
            else f"Padding length should be less than or equal to two times the input "
            f"dimension but got padding length {len(pad)} and input of dimension {ndim}"
        )
    widths = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        widths[ndim - 1 - i] = (int(pad[2 * i]), int(pad[2 * i + 1]))
    cut = tuple(
        slice(max(0, -a), n - max(0, -b))
        for (a, b), n in zip(widths, base(input).shape, strict=True)
    )
    if mode != "constant":
        _check(base(input).shape, widths, mode)
    if any(a < 0 or b < 0 for a, b in widths):
        if mode == "replicate":
            return _taken(input, widths)
        input = input[cut]
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    if mode == "constant":
        return call(
            our_pad,
            input,
            widths,
            constant_values=0 if value is None else numpy_face(value),
        )
    return call(our_pad, input, widths, mode=_MODES[mode])


def _taken(input: Tensor, widths: Any) -> Tensor:
    """With the elements at the ends repeated, or left out where a width is negative."""
    for axis, (a, b) in enumerate(widths):
        n = base(input).shape[axis]
        where = beside(np.clip(np.arange(-a, n + b), 0, n - 1), base(input))
        input = input.index_select(axis, fresh(where))
    return input


def _check(lengths: Any, widths: Any, mode: str) -> None:
    """Raise if there is not enough to take the padding from."""
    if mode not in _MODES:
        raise MissingRuleError(f"Unrecognised padding mode {mode}")
    for axis, (n, width) in enumerate(zip(lengths, widths, strict=True)):
        if mode == "reflect" and max(width) >= max(n, 1):
            raise EagerError(
                f"Argument #4: Padding size should be less than the corresponding "
                f"input dimension, but got: padding {width} at dimension {axis} of "
                f"input {list(lengths)}"
            )
        if mode == "circular" and max(width) > n:
            raise EagerError("Padding value causes wrapping around more than once.")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (..., c r², h, w) to (..., c, h r, w r).

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.pixel_shuffle(torch.arange(4.0).reshape(1, 4, 1, 1), 2)
        tensor([[[[0., 1.],
                  [2., 3.]]]])
    """
    r = upscale_factor
    *lead, c, h, w = base(input).shape
    x = input.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return alone(x.reshape(*lead, c // r**2, h * r, w * r), input)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: the inverse of ``pixel_shuffle``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import pixel_unshuffle
        >>> pixel_unshuffle(torch.arange(4.0).reshape(1, 1, 2, 2), 2).flatten()
        tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    *lead, c, h, w = base(input).shape
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return alone(x.reshape(*lead, c * r**2, h // r, w // r), input)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels in groups, dealt out: the first of each group, then the second, ...

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import channel_shuffle
        >>> channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])
    """
    n, c, *rest = base(input).shape
    x = input.reshape(n, groups, c // groups, *rest)
    return x.transpose(1, 2).reshape(n, c, *rest)

"""Images with edges, and with channels as pixels or in another order."""

from typing import Any

import numpy as np

from lantern.errors import EagerError, MissingRuleError
from lantern.tensor.ops.pad import pad as our_pad
from lantern.torch.nn.edges import surrounded
from lantern.torch.nn.laying import as_laid
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
    shape = base(input).shape
    ndim = len(shape)
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
    if mode != "constant":
        _check(shape, widths, len(pad) // 2, mode)
    lengths = [n + a + b for n, (a, b) in zip(shape, widths, strict=True)]
    if min(lengths, default=0) < 0:
        raise EagerError(
            f"The input size {list(shape)}, plus negative padding {tuple(pad)}, "
            f"resulted in a negative output size, which is invalid."
        )
    if any(a < 0 or b < 0 for a, b in widths):
        if mode == "replicate":
            return _taken(input, widths)
        cut = tuple(
            slice(max(0, -a), n - max(0, -b))
            for (a, b), n in zip(widths, shape, strict=True)
        )
        input = input[cut]
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    if mode == "constant":
        value = 0 if value is None else numpy_face(value)
        z = call(our_pad, input, widths, constant_values=value)
        return as_laid(z, input)
    return surrounded(input, widths=widths, mode=_MODES[mode])


def _taken(input: Tensor, widths: Any) -> Tensor:
    """With the elements at the ends repeated, or left out where a width is negative."""
    for axis, (a, b) in enumerate(widths):
        n = base(input).shape[axis]
        where = beside(np.clip(np.arange(-a, n + b), 0, n - 1), base(input))
        input = input.index_select(axis, fresh(where))
    return input


def _check(lengths: Any, widths: Any, axes: int, mode: str) -> None:
    """Raise if there is not enough to take the padding from."""
    if mode not in _MODES:
        raise MissingRuleError(f"Unrecognised padding mode {mode}")
    if axes not in (1, 2, 3) or len(lengths) not in (axes + 1, axes + 2):
        raise MissingRuleError(
            f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for "
            f"now, of the last one to three axes: not {axes} of {len(lengths)}"
        )
    if 0 in lengths[-axes - 1 :] and mode != "circular":
        raise EagerError(
            f"Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with possibly 0 "
            f"batch size and other non-zero dimensions for input, but got: "
            f"{list(lengths)}"
        )
    for axis, (n, width) in enumerate(zip(lengths, widths, strict=True)):
        if mode == "reflect" and max(width) >= max(n, 1):
            raise EagerError(
                f"Argument #4: Padding size should be less than the corresponding "
                f"input dimension, but got: padding {width} at dimension {axis} of "
                f"input {list(lengths)}"
            )
        if mode == "circular" and max(width) > n:
            raise EagerError("Padding value causes wrapping around more than once.")


def _image(name: str, input: Tensor, option: str, factor: int) -> Any:
    """The lengths of images whose pixels are moved by a factor, both checked."""
    shape = base(input).shape
    if len(shape) < 3:
        raise EagerError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise EagerError(f"{name} expects a positive {option}, but got {factor}")
    return shape


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (..., c r², h, w) to (..., c, h r, w r).

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.pixel_shuffle(torch.arange(4.0).reshape(1, 4, 1, 1), 2)
        tensor([[[[0., 1.],
                  [2., 3.]]]])
    """
    r = upscale_factor
    *lead, c, h, w = _image("pixel_shuffle", input, "upscale_factor", r)
    if c % r**2:
        raise EagerError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by "
            f"the square of upscale_factor, but input.size(-3)={c} is not divisible by "
            f"{r**2}"
        )
    x = input.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return alone(as_laid(x.reshape(*lead, c // r**2, h * r, w * r), input), input)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: the inverse of ``pixel_shuffle``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import pixel_unshuffle
        >>> pixel_unshuffle(torch.arange(4.0).reshape(1, 1, 2, 2), 2).flatten()
        tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    *lead, c, h, w = _image("pixel_unshuffle", input, "downscale_factor", r)
    for name, n in (("height", h), ("width", w)):
        if n % r:
            raise EagerError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but {n} is not divisible by {r}"
            )
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    z = x.reshape(*lead, c * r**2, h // r, w // r)
    return alone(as_laid(z, input), input)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels in groups, dealt out: the first of each group, then the second, ...

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import channel_shuffle
        >>> channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])
    """
    shape = base(input).shape
    if len(shape) < 3:
        raise EagerError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(shape)}"
        )
    n, c, *rest = shape
    if groups <= 0 or c % groups:
        raise EagerError(
            f"Number of channels must be divisible by groups. Got {c} channels and "
            f"{groups} groups."
        )
    x = input.reshape(n, groups, c // groups, *rest)
    return x.transpose(1, 2).reshape(n, c, *rest)

"""Images of other sizes: padded, scaled, with channels as pixels."""

import math
from typing import Any

import numpy as np

from lantern.errors import MissingRuleError
from lantern.tensor.padding import pad as our_pad
from lantern.torch.operators import call
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = ["interpolate", "pad", "pixel_shuffle", "pixel_unshuffle", "upsample"]

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The tensor with more elements at its ends.

    Args:
        input: the tensor.
        pad: how many before and behind: of the last axis, of the one before, ...
        mode: "constant", "reflect", "replicate" or "circular".
        value: of the constant; 0 by default.
    """
    ndim = base(input).ndim
    widths = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        widths[ndim - 1 - i] = (int(pad[2 * i]), int(pad[2 * i + 1]))
    cut = tuple(
        slice(max(0, -a), n - max(0, -b))
        for (a, b), n in zip(widths, base(input).shape, strict=True)
    )
    if any(a < 0 or b < 0 for a, b in widths):
        input = input[cut]
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    if mode == "constant":
        return call(
            our_pad, input, widths, constant_values=0 if value is None else value
        )
    if mode not in _MODES:
        raise MissingRuleError(f"Unrecognised padding mode {mode}")
    return call(our_pad, input, widths, mode=_MODES[mode])


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (..., c r², h, w) to (..., c, h r, w r)."""
    r = upscale_factor
    *lead, c, h, w = base(input).shape
    x = input.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*lead, c // r**2, h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: the inverse of ``pixel_shuffle``."""
    r = downscale_factor
    *lead, c, h, w = base(input).shape
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*lead, c * r**2, h // r, w // r)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Tensor:
    """Images of another size: nearest or (bi-, tri-)linear."""
    lengths = base(input).shape[2:]
    axes = len(lengths)
    factors: Any = [None] * axes
    if size is None:
        factors = scale_factor
        if not isinstance(factors, tuple | list):
            factors = [factors] * axes
        sizes = [math.floor(n * f) for n, f in zip(lengths, factors, strict=True)]
    else:
        sizes = list(size) if isinstance(size, tuple | list) else [size] * axes
    z = input
    for i, (n, m, f) in enumerate(zip(lengths, sizes, factors, strict=True)):
        step = n / m if f is None or recompute_scale_factor else 1 / f
        if mode in ("nearest", "area") and (mode == "nearest" or n % m == 0):
            if mode == "area":
                z = z.unflatten(2 + i, (m, n // m)).mean(3 + i)
                continue
            where = np.minimum((np.arange(m) * step).astype(int), n - 1)
            z = z.index_select(2 + i, fresh(where))
        elif mode in ("linear", "bilinear", "trilinear") and not antialias:
            z = _linearly(z, 2 + i, n, m, step, bool(align_corners))
        else:
            raise MissingRuleError(
                f"interpolate: mode {mode!r} is not supported. Choose nearest, linear, "
                f"bilinear or trilinear."
            )
    return z


def _linearly(z: Tensor, axis: int, n: int, m: int, step: float, corners: bool) -> Any:
    """One axis in another length, by a matrix of weights."""
    if corners:
        at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0)
    else:
        at = np.maximum((np.arange(m) + 0.5) * step - 0.5, 0)
    low = np.minimum(at.astype(int), n - 1)
    high, part = np.minimum(low + 1, n - 1), at - low
    weights = np.zeros((n, m), base(z).dtype)
    np.add.at(weights, (low, np.arange(m)), 1 - part)
    np.add.at(weights, (high, np.arange(m)), part)
    return (z.movedim(axis, -1) @ fresh(weights)).movedim(-1, axis)


upsample = interpolate

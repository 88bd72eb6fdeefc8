"""Arrays less their means, over their deviations, by cuDNN.

Its batch normalisation has a mean for each channel, its layer normalisation one for
each row. Both keep one over the deviation, which is handed to the way back as a third
moment.
"""

import math
from functools import lru_cache
from typing import Any

from lantern.engines.gpu import kernels
from lantern.engines.gpu.arrays import dense, device, empty, fits, row, single
from lantern.engines.gpu.cudnn import (
    ONE,
    ZERO,
    Graph,
    call,
    graph,
    is_on,
    layout,
    library,
    tensor,
)

__all__ = ["follow", "normalised", "pulled_back"]

_PER_ELEMENT, _PER_CHANNEL = 0, 2
_CHANNELS, _ROWS = "channels", "rows"


def normalised(
    x: Any, weight: Any, bias: Any, axes: Any, eps: float, shape: Any
) -> Any:
    """As ``engines.normalisation.normalised``, with one over the deviations as well."""
    kind = _kind(x, axes, shape)
    if kind is None or not (fits(weight, shape) and fits(bias, shape)):
        return None
    x, width = dense(x), math.prod(shape)
    scale, shift = row(weight, width, 1), row(bias, width, 0)
    z = empty(x.shape)
    count = x.shape[1] if kind == _CHANNELS else x.size // width
    mean, variance, inverse = empty(count), empty(count), empty(count)
    if kind == _CHANNELS:
        mode, lies, numbers = _form(x)
        call(
            "BatchNormalizationForwardTraining", mode, ONE, ZERO, lies, x.data.ptr,
            lies, z.data.ptr, numbers, scale.data.ptr, shift.data.ptr, 1.0, None, None,
            eps, mean.data.ptr, inverse.data.ptr,
        )  # fmt: skip
    else:
        made = _forward(count, width, eps, device())
        if made is None:
            return None
        made.run(x, scale, shift, z, mean, inverse)
    kernels.run("variance_of", count, inverse, variance, eps)
    return z, mean, variance, inverse


def pulled_back(
    z_bar: Any, x: Any, moments: Any, weight: Any, axes: Any, eps: float, shape: Any
) -> Any:
    """As ``engines.normalisation.pulled_back``."""
    kind = _kind(x, axes, shape)
    if kind is None or not single(z_bar) or z_bar.shape != x.shape:
        return None
    z_bar, x, width = dense(z_bar), dense(x), math.prod(shape)
    (mean, _, inverse), scale = moments, row(weight, width, 1)
    x_bar, weight_bar, bias_bar = empty(x.shape), empty(width), empty(width)
    if kind == _CHANNELS:
        mode, lies, numbers = _form(x)
        call(
            "BatchNormalizationBackward", mode, ONE, ZERO, ONE, ZERO, lies, x.data.ptr,
            lies, z_bar.data.ptr, lies, x_bar.data.ptr, numbers, scale.data.ptr,
            weight_bar.data.ptr, bias_bar.data.ptr, eps, mean.data.ptr,
            inverse.data.ptr,
        )  # fmt: skip
    else:
        made = _backward(x.size // width, width, device())
        if made is None:
            return None
        made.run(z_bar, x, scale, mean, inverse, x_bar, weight_bar, bias_bar)
    return x_bar, weight_bar, bias_bar


def follow(running: Any, now: Any, momentum: float, factor: float) -> bool:
    """Let running means and variances follow those of a batch; False if not done.

    Args:
        running: the means and the variances, which are written to.
        now: those of the batch.
        momentum: how far they go there.
        factor: of the variances of the batch.
    """
    if not single(*running, *now) or not all(p.flags.c_contiguous for p in running):
        return False
    count = running[0].size
    kernels.run("follow", count, *running, *map(dense, now), momentum, factor)
    return True


def _kind(x: Any, axes: Any, shape: Any) -> str | None:
    """Whose means they are; None where that is not for the engine."""
    if not (single(x) and is_on()):
        return None
    axes = tuple(sorted(axis % x.ndim for axis in axes))
    if 2 <= x.ndim <= 5 and axes == (0, *range(2, x.ndim)):
        return _CHANNELS if math.prod(shape) == x.shape[1] else None
    first = x.ndim - len(axes)
    last = axes and axes == tuple(range(first, x.ndim))
    return _ROWS if last and tuple(shape) == x.shape[first:] else None


def _form(x: Any) -> Any:
    """How channels are told apart, and how the array and a row of numbers lie."""
    mode = _PER_ELEMENT if x.ndim == 2 else _PER_CHANNEL
    return mode, layout(x.shape), layout((1, x.shape[1]))


@lru_cache(512)
def _forward(count: int, width: int, eps: float, _: int) -> Graph | None:
    matrix, numbers, means = _lengths(count, width)

    def describe(begun: Any) -> Any:
        x, scale, shift = (tensor(begun, s) for s in (matrix, numbers, numbers))
        least = tensor(begun, (1, 1, 1, 1), number=True)
        made = begun.layernorm(
            norm_forward_phase=library()[0].norm_forward_phase.TRAINING,
            input=x,
            scale=scale,
            bias=shift,
            epsilon=least,
        )
        shapes = matrix, means, means
        results = [tensor(begun, s, y) for s, y in zip(shapes, made, strict=True)]
        return [x, scale, shift, *results], [(least, eps)]

    return graph(describe)


@lru_cache(512)
def _backward(count: int, width: int, _: int) -> Graph | None:
    matrix, numbers, means = _lengths(count, width)

    def describe(begun: Any) -> Any:
        operands = matrix, matrix, numbers, means, means
        given = [tensor(begun, s) for s in operands]
        names = "grad", "input", "scale", "mean", "inv_variance"
        made = begun.layernorm_backward(**dict(zip(names, given, strict=True)))
        shapes = matrix, numbers, numbers
        results = [tensor(begun, s, y) for s, y in zip(shapes, made, strict=True)]
        return [*given, *results], []

    return graph(describe)


def _lengths(count: int, width: int) -> Any:
    """The shapes of rows, of numbers for their elements, and of their means."""
    return (count, width, 1, 1), (1, width, 1, 1), (count, 1, 1, 1)

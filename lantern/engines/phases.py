"""The transpose of a convolution with strides, as a convolution without.

Elements of the result that are a stride apart, a phase, receive by the same taps of the
weights: a convolution of the cotangent by those. All phases, as channels beside one
another, are one convolution (Shi et al. 2016, "Real-time single image and video
super-resolution", section 3).

oneDNN computes 16 channels of a result at a time, be they ever so few: a picture's
cotangent of three took it 33 ms, and takes 11 by phases (7 by 7 windows, 3 to 64
channels, 64 by 64, stride 2, batch 32; AMD EPYC with AVX-512, one thread).
"""

import math
from typing import Any, NamedTuple

from lantern.engines.arrays import LAST, empty, in_rows

__all__ = ["gathered", "phased"]


class _Axis(NamedTuple):
    """What happens along an axis.

    Attributes:
        taps: for each phase, which taps meet the window of the cotangent, in order; the
            one behind all is zero.
        padding: of the cotangent, before and behind.
    """

    taps: list[list[int]]
    padding: tuple[int, int]


def phased(w: Any, form: Any) -> tuple[Any, Any] | None:
    """The weights and the form of the convolution; None if there is none.

    Args:
        w: the weights of the convolution with strides.
        form: its form.

    Shapes:
        w: (k, c, ...); result: (strides * c, k, ...), and how the windows lie
    """
    if form.groups != 1 or set(form.dilation) != {1}:
        return None
    parts = form.lengths, form.steps, form.size, form.stride, form.padding
    axes = [_along(*part) for part in zip(*parts, strict=True)]
    if any(min(axis.padding) < 0 for axis in axes):
        return None
    new = form._replace(
        lengths=form.steps,
        size=tuple(len(axis.taps[0]) for axis in axes),
        stride=(1,) * len(axes),
        padding=tuple(axis.padding for axis in axes),
    )
    return _taken(w, [axis.taps for axis in axes]), new


def gathered(z: Any, form: Any) -> Any:
    """The phases, put in their places.

    Shapes:
        z: (n, strides * c, ...); result: (n, c, ...)
    """
    (n, channels, *counts), stride = z.shape, form.stride
    c, ndim = channels // math.prod(stride), len(stride)
    places = (axis for i in range(ndim) for axis in (2 + ndim + i, 1 + i))
    z = z.reshape(n, *stride, c, *counts).transpose(0, *places, 1 + ndim)
    z = z.reshape(n, *(a * b for a, b in zip(counts, stride, strict=True)), c)
    z = in_rows(z[(slice(None), *map(slice, form.lengths))])
    return z.transpose(0, 1 + ndim, *range(1, 1 + ndim))


def _along(n: int, steps: int, size: int, stride: int, padding: Any) -> _Axis:
    before = padding[0]
    low, high = -((size - 1 - before) // stride), (stride - 1 + before) // stride
    taps = [
        [_tap(phase + before - stride * m, size) for m in range(low, high + 1)]
        for phase in range(stride)
    ]
    return _Axis(taps, (-low, high + -(-n // stride) - steps))


def _tap(i: int, size: int) -> int:
    return i if 0 <= i < size else size


def _taken(w: Any, taps: Any) -> Any:
    """Weights with the phases and channels first, the taps of each behind."""
    k, c, *size = w.shape
    known = empty((c, k, *(n + 1 for n in size)), LAST)
    known[...] = 0
    known[(..., *map(slice, size))] = w.swapaxes(0, 1)
    ndim = len(size)
    for i in reversed(range(ndim)):
        known = known.take(taps[i], axis=2 + i)
    phases, behind = range(2, 2 + 2 * ndim, 2), range(3, 3 + 2 * ndim, 2)
    known = known.transpose(*phases, 0, 1, *behind)
    return known.reshape(-1, *known.shape[1 + ndim :])

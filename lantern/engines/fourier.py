"""Convolutions by large windows, as products of frequencies.

Images and weights are brought to frequencies, where a convolution is a product over
channels for each, however large its windows are (Mathieu, Henaff, LeCun 2014, "Fast
training of convolutional networks through FFTs"). The transforms are products of
matrices, too: they leave out the zeros around images and weights, and what is not asked
of a result. Elements a stride apart become channels, as in ``phases.py``.

The rule: two axes, one group, at least 2 ** 30 operations, and four times as many as
this way takes; and enough examples that weights, whose frequencies are as many as an
image's, need no more memory than images. For 32 examples Deep Speech 2's windows of 21
by 11 take 0.3 of oneDNN's time, windows of 7 by 7 for 64 channels of 32 by 32 0.4 (AMD
EPYC, one thread). Rounding errors are a tenth of oneDNN's, but of one size in all of an
image: where a result is 0 by its windows alone, it is 1e-7 of the largest instead.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

from lantern.engines.arrays import all_finite, empty_rows, in_rows, waves
from lantern.engines.products import matmul, product

__all__ = ["correlate", "match", "spread"]

_LEAST, _GAIN = 1 << 30, 4
_SMALL = 4  # windows that are not looked at
_LANES = 16  # filters that oneDNN computes at a time, be there fewer
_MOST, _LONGEST = 1 << 25, 512  # elements of the frequencies, and of their axes
_WEIGHTS = 1  # elements of their frequencies, in those of images and results


class _Axis(NamedTuple):
    """What is known of an axis; lengths are counted in strides.

    Attributes:
        stride: how many phases there are.
        lead: how many zeros stand before the array's first element in its stride.
        at: where the array begins in what has padding around it.
        length: of the array.
        window: of the weights.
        steps: of the windows.
        n: of the frequencies.
    """

    stride: int
    lead: int
    at: int
    length: int
    window: int
    steps: int
    n: int


def correlate(x: Any, w: Any, form: Any) -> Any:
    """As ``convolution.correlate`` has it, without a bias."""
    axes = _axes_of(form, len(x), x.shape[1], len(w))
    if axes is None:
        return None
    given = _there(_of_images(x, axes), axes, [a.at for a in axes])
    z = _times(given, _there(_of_weights(w, axes), axes).mT, conj=True)
    z = in_rows(_back(z, axes, [a.steps for a in axes]).transpose(2, 0, 1, 3))
    return _if_finite(z.transpose(0, 3, 1, 2))


def spread(z: Any, w: Any, form: Any) -> Any:
    """As ``convolution.spread`` has it."""
    axes = _axes_of(form, len(z), w.shape[1], len(w))
    if axes is None:
        return None
    x = _times(_there(_of_results(z), axes), _there(_of_weights(w, axes), axes))
    x = _back(x, axes, [a.length for a in axes], [a.at for a in axes])
    return _if_finite(_apart(x, axes, form.lengths, [a.lead for a in axes]))


def match(x: Any, z: Any, form: Any) -> Any:
    """As ``convolution.match`` has it."""
    axes = _axes_of(form, len(x), x.shape[1], z.shape[1])
    if axes is None:
        return None
    given = _there(_of_images(x, axes), axes, [a.at for a in axes])
    w = _times(given.mT, _there(_of_results(z), axes), conj=True)
    w = _back(w, axes, [a.window for a in axes]).mT
    return _if_finite(in_rows(_apart(w, axes, form.size, (0, 0))))


def _if_finite(found: Any) -> Any:
    """A result; None where what is not finite has got into all of an image."""
    return found if all_finite(found) else None


def _axes_of(form: Any, n: int, c: int, k: int) -> list[_Axis] | None:
    """What is known of the axes; None where the rule above leaves a convolution."""
    return _axes(form, n, c, k) if max(form.size) > _SMALL else None


@lru_cache(512)
def _axes(form: Any, n: int, c: int, k: int) -> list[_Axis] | None:
    if len(form.size) != 2 or form.groups != 1 or set(form.dilation) != {1}:
        return None
    parts = form.lengths, form.size, form.stride, form.padding, form.steps
    axes = [_along(*part) for part in zip(*parts, strict=True)]
    high, wide = axes
    lanes = -(-k // _LANES) * _LANES
    direct = 2 * n * lanes * c * math.prod((*form.size, *form.steps))
    half, c = wide.n // 2 + 1, c * high.stride * wide.stride
    transforms = (
        n * c * high.length * (wide.length + 2 * high.n)
        + k * c * high.window * (wide.window + 2 * high.n)
        + n * k * high.steps * (wide.steps + 2 * high.n)
    )
    ours = 4 * half * (transforms + 2 * n * k * c * high.n)
    largest = max(n * c, k * c, n * k) * high.n * wide.n
    fits = largest <= _MOST and max(high.n, wide.n) <= _LONGEST
    fits &= k * c <= _WEIGHTS * n * (k + c)
    return axes if fits and direct >= max(_LEAST, _GAIN * ours) else None


def _along(length: int, size: int, stride: int, padding: Any, steps: int) -> _Axis:
    at, lead = divmod(padding[0], stride)
    count, window = -(-(lead + length) // stride), -(-size // stride)
    n = max(at + count, steps + window - 1)
    return _Axis(stride, lead, at, count, window, steps, n)


def _of_images(x: Any, axes: Any) -> Any:
    """(n, c, ...) as (..., n, strides * c), the axes counted in strides."""
    return _together(x, axes, [a.length for a in axes], [a.lead for a in axes])


def _of_weights(w: Any, axes: Any) -> Any:
    """(k, c, ...) as (..., k, strides * c), likewise."""
    return _together(w, axes, [a.window for a in axes], (0, 0))


def _of_results(z: Any) -> Any:
    """(n, k, ...) as (..., n, k)."""
    return in_rows(z.transpose(2, 3, 0, 1))


def _together(x: Any, axes: Any, counts: Any, leads: Any) -> Any:
    """The phases of an array beside one another, as channels."""
    (h, w), (s, t), (n, c, *lengths) = counts, [a.stride for a in axes], x.shape
    x = x.transpose(0, 2, 3, 1)
    if [h * s, w * t] != lengths:
        whole = empty_rows((n, h * s, w * t, c))
        whole[...] = 0
        whole[:, *(slice(a, a + m) for a, m in zip(leads, lengths, strict=True))] = x
        x = whole
    x = x.reshape(n, h, s, w, t, c).transpose(1, 3, 0, 2, 4, 5)
    return in_rows(x).reshape(h, w, n, s * t * c)


def _apart(x: Any, axes: Any, lengths: Any, leads: Any) -> Any:
    """The inverse of ``_together``, with the channels last in memory."""
    (h, w, n, c), (s, t) = x.shape, [a.stride for a in axes]
    x = x.reshape(h, w, n, s, t, c // (s * t)).transpose(2, 0, 3, 1, 4, 5)
    x = in_rows(x).reshape(n, h * s, w * t, -1)
    x = x[:, *(slice(a, a + m) for a, m in zip(leads, lengths, strict=True))]
    return in_rows(x).transpose(0, 3, 1, 2)


def _there(x: Any, axes: Any, at: Any = (0, 0)) -> Any:
    """The frequencies of an array, the second axis of which is real and imaginary.

    Shapes:
        x: (h, w, n, c); result: (n of the first axis, 2, half of the second, n, c)
    """
    (h, w, *rest), (high, wide) = x.shape, axes
    half = wide.n // 2 + 1
    x = _each(_real(wide.n, w, at[1]), x.reshape(h, w, -1))
    x = _dot(_complex(high.n, h, at[0]), x.reshape(2 * h, -1))
    return x.reshape(high.n, 2, half, *rest)


def _back(x: Any, axes: Any, counts: Any, at: Any = (0, 0)) -> Any:
    """The inverse, as far as it is asked for.

    Shapes:
        x: as the result of ``_there``; result: (*counts, n, c)
    """
    rest, (high, wide), (h, w) = x.shape[3:], axes, counts
    x = _dot(_complex(high.n, h, at[0]).T, x.reshape(2 * high.n, -1))
    real = _real_back(wide.n, w, at[1], high.n)
    return _each(real, x.reshape(h, real.shape[1], -1)).reshape(h, w, *rest)


def _times(x: Any, y: Any, conj: bool = False) -> Any:
    """The products of matrices of complex numbers, or with the second ones' conjugates.

    Shapes:
        x: (m, 2, half, n, k); y: (m, 2, half, k, l); result: (m, 2, half, n, l)
    """
    z = empty_rows((*x.shape[:-1], y.shape[-1]))
    real, imaginary = z[:, 0], z[:, 1]
    real[...] = matmul(x[:, 0], y[:, 0])
    imaginary[...] = matmul(x[:, 1], y[:, 0])
    if conj:
        real += matmul(x[:, 1], y[:, 1])
        imaginary -= matmul(x[:, 0], y[:, 1])
    else:
        real -= matmul(x[:, 1], y[:, 1])
        imaginary += matmul(x[:, 0], y[:, 1])
    return z


def _dot(x: Any, y: Any) -> Any:
    """``x @ y`` of two matrices."""
    z = product(x, y)
    return x @ y if z is None else z


def _each(x: Any, y: Any) -> Any:
    """A matrix times each of many."""
    z = empty_rows((len(y), len(x), y.shape[2]))
    done = (product(x, y[i], z[i]) is not None for i in range(len(y)))
    return z if all(done) else x @ y


@lru_cache(64)
def _real(n: int, count: int, at: int) -> Any:
    """What brings real numbers to frequencies, of which half are enough.

    Shapes:
        result: (2 * (n // 2 + 1), count), real parts and then imaginary ones
    """
    half = n // 2 + 1
    out = empty_rows((2, half, count))
    out[0], out[1] = (part[:half] for part in waves(n, count, at))
    return out.reshape(2 * half, count)


@lru_cache(64)
def _real_back(n: int, count: int, at: int, other: int) -> Any:
    """The inverse of ``_real``, and of the other axis's ``_complex`` but transposed."""
    both = _real(n, count, at).reshape(2, -1, count) * (2 / (n * other))
    both[:, 0] /= 2
    if n % 2 == 0:
        both[:, -1] /= 2
    return both.reshape(-1, count).T


@lru_cache(64)
def _complex(n: int, count: int, at: int) -> Any:
    """What brings complex numbers to frequencies, as real and imaginary parts.

    Shapes:
        result: (2 * n, 2 * count)
    """
    real, imaginary = waves(n, count, at)
    out = empty_rows((n, 2, count, 2))
    out[:, 0, :, 0] = out[:, 1, :, 1] = real
    out[:, 1, :, 0], out[:, 0, :, 1] = imaginary, -imaginary
    return out.reshape(2 * n, 2 * count)

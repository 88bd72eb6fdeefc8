"""Normalisation of plain NumPy arrays in blocks that stay in the processor's cache.

An array goes through memory two or three times, where one step after another over all
of it takes six. The means of channels or of groups of them make of each channel of an
example ``x * scale + shift``; what has rows of parameters is done row by row.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from lantern import engines
from lantern.tensor.backend.numpy_namespace import REAL

__all__ = ["normalised", "pulled_back"]

_BLOCK = 1 << 16  # elements that are worked on at a time
_PIECE = 1 << 15  # elements of a row that are added up at once
_BUFFER = 128  # the fewest elements for which NumPy's buffers are worth avoiding


def _kind(x: Any, axes: Any, shape: Any) -> tuple[str, int, int] | None:
    """Whose means they are, and how many groups of how many channels an example has.

    None for what is not done here.
    """
    if type(x) is not np.ndarray or x.dtype not in REAL or not x.flags.c_contiguous:
        return None
    return _kind_of(x.shape, tuple(axes), tuple(shape))


@lru_cache(512)
def _kind_of(lengths: Any, axes: Any, shape: Any) -> tuple[str, int, int] | None:
    ndim = len(lengths)
    axes = tuple(sorted(axis % ndim for axis in axes))
    first = ndim - len(axes)
    if ndim > 2 and axes == (0, *range(2, ndim)):
        return ("batch", 1, lengths[1]) if math.prod(shape) == lengths[1] else None
    if not axes or axes != tuple(range(first, ndim)):
        return None
    if shape == lengths[first:]:
        return "rows", 1, math.prod(shape)
    lead = len(shape) - len(axes)  # the axes of the groups
    if lead < 0 or ndim - len(shape) != 1:
        return None
    groups = math.prod(shape[:lead])
    return "groups", groups, math.prod(shape) // groups


def _cubes(kind: Any, *arrays: Any) -> list[Any]:
    """Arrays as (examples, channels, elements)."""
    _, groups, channels = kind
    examples = arrays[0].shape[0]
    return [x.reshape(examples, groups * channels, -1) for x in arrays]


def normalised(
    x: Any, weight: Any, bias: Any, axes: Any, eps: float, shape: Any
) -> Any:
    """The normalised array, its means and its variances; None if it is not for this.

    Args:
        x: an array.
        weight: what it is multiplied by then; None for nothing.
        bias: what is added then; None for nothing.
        axes: those that means are taken over.
        eps: is added to the variance.
        shape: the form in which weight and bias broadcast.

    Shapes:
        x: (...); weight, bias: any; results: (...), and two rows of means
    """
    kind = _kind(x, axes, shape)
    plain = (p is None or type(p) is np.ndarray for p in (weight, bias))
    if kind is None or not all(plain) or not x.size:
        return None
    if kind[0] == "rows":
        return _rows(x, weight, bias, eps, kind[2])
    (cube,) = _cubes(kind, x)
    means, variances = _moments(kind, cube)
    mean, scale = (
        _spread(kind, m, len(cube)) for m in (means, (variances + eps) ** -0.5)
    )
    if weight is not None:
        scale = scale * weight.reshape(-1)
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias.reshape(-1)
    scale, shift = scale.astype(x.dtype), shift.astype(x.dtype)
    z = engines.affine.scaled(cube.reshape(-1, cube.shape[2]), scale, shift)
    if z is None:
        z = _scaled(cube, scale[:, :, None], shift[:, :, None])
    rows = (m.reshape(-1).astype(x.dtype) for m in (means, variances))
    return z.reshape(x.shape), *rows


def _scaled(x: Any, scale: Any, shift: Any) -> Any:
    """``x * scale + shift``."""
    z = np.empty_like(x)
    with _in_place(x.shape[2]):
        for part in _blocks(len(x), _step(x[0].size)):
            out = np.multiply(x[part], scale[part], out=z[part])
            out += shift[part]
    return z


def _scaled_both(x: Any, y: Any, scale: Any, slope: Any, shift: Any) -> Any:
    """``x * scale + y * slope + shift``."""
    z, step = np.empty_like(x), _step(x[0].size)
    room = np.empty_like(x[:step])
    with _in_place(x.shape[2]):
        for part in _blocks(len(x), step):
            out = np.multiply(x[part], scale[part], out=z[part])
            inner = np.multiply(y[part], slope[part], out=room[: len(out)])
            inner += shift[part]
            out += inner
    return z


@contextmanager
def _in_place(width: int) -> Iterator[None]:
    """A block in which rows of so many elements meet a number each where they lie.

    NumPy would copy both into buffers of 8,192 elements first, in three times the time.
    """
    with np.errstate():  # which puts the size of buffers back, too
        if width >= _BUFFER:
            np.setbufsize(_BUFFER)
        yield


def _sums(cube: Any) -> Any:
    """The sum of each channel of each example."""
    return _in_pieces(_added, cube)


def _added(cube: Any) -> Any:
    """The same, of short rows: NumPy's by a product with ones, in less time."""
    sums = engines.sums.of_rows(cube.reshape(-1, cube.shape[2]))
    if sums is None:
        return cube @ np.ones(cube.shape[2], cube.dtype)
    return sums.reshape(cube.shape[:2])


def _products(x: Any, y: Any) -> Any:
    """The product of each row with its partner."""
    return _in_pieces(_multiplied_up, x, y)


def _multiplied_up(x: Any, y: Any) -> Any:
    """The same, of short rows."""
    width = x.shape[-1]
    sums = engines.sums.of_products(x.reshape(-1, width), y.reshape(-1, width))
    return np.vecdot(x, y) if sums is None else sums.reshape(x.shape[:-1])


def _in_pieces(add: Any, *rows: Any) -> Any:
    """What adds up rows, on pieces of them where they are long.

    A sum of millions of terms in single precision would have few right digits.
    """
    size = rows[0].shape[-1]
    if size <= _PIECE:
        return add(*rows)
    places = range(0, size, _PIECE)
    sums = [add(*(x[..., i : i + _PIECE] for x in rows)) for i in places]
    return np.sum(sums, axis=0, dtype=np.float64).astype(rows[0].dtype)


def _moments(kind: Any, cube: Any) -> tuple[Any, Any]:
    """The means and the variances, in double precision.

    A variance is that of the squares less the square of the mean, unless the mean is so
    large beside it that the difference would have few digits.
    """
    means = _averaged(kind, _sums(cube), cube.size)
    squares = _averaged(kind, _products(cube, cube), cube.size)
    variances = squares - means * means
    if not (squares <= 8 * variances).all():
        found = np.empty(cube.shape[:2], cube.dtype)
        for i, mean in enumerate(_spread(kind, means, len(cube)).astype(cube.dtype)):
            centred = cube[i] - mean[:, None]
            found[i] = _products(centred, centred)
        variances = _averaged(kind, found, cube.size)
    return means, variances


def _averaged(kind: Any, sums: Any, size: int) -> Any:
    """The means over the elements of each channel or group, from sums of channels."""
    name, groups, channels = kind
    sums = sums.astype(np.float64).reshape(-1, groups, channels)
    total = sums.sum(axis=0 if name == "batch" else 2, keepdims=True)
    return total * (total.size / size)


def _spread(kind: Any, means: Any, examples: int) -> Any:
    """Means of channels or groups, for each channel of each example."""
    name, _, channels = kind
    axis, times = (0, examples) if name == "batch" else (2, channels)
    return means.repeat(times, axis).reshape(examples, -1)


def pulled_back(
    z_bar: Any,
    x: Any,
    moments: tuple[Any, Any],
    weight: Any,
    axes: Any,
    eps: float,
    shape: Any,
) -> Any:
    """The cotangents of the array, of weight and of bias; None if it is not for this.

    Args:
        z_bar: the cotangent of the normalised array.
        x: the array, which ``normalised`` has taken.
        moments: the rows of means and variances that it found.
        weight: as there.
        axes: as there.
        eps: as there.
        shape: as there.

    Rule:
        x_bar = z_bar * scale + x * slope + rest, with the last three for each channel
    """
    kind = _kind(x, axes, shape)
    if kind is None or type(z_bar) is not np.ndarray or z_bar.dtype != x.dtype:
        return None
    z_bar = np.ascontiguousarray(z_bar)
    if kind[0] == "rows":
        return _rows_back(z_bar, x, moments, weight, eps, kind[2])
    back, cube = _cubes(kind, z_bar, x)
    name, groups, channels = kind
    form = (1, groups, channels) if name == "batch" else (len(cube), groups, 1)
    mean, scale = (
        _spread(kind, m.astype(np.float64).reshape(form), len(cube))
        for m in (moments[0], (moments[1] + x.dtype.type(eps)) ** -0.5)
    )
    total = _sums(back).astype(np.float64)
    along = (_products(back, cube) - total * mean) * scale
    factor = 1.0 if weight is None else weight.reshape(-1)
    first, second = (
        _spread(kind, _averaged(kind, s * factor, cube.size), len(cube))
        for s in (total, along)
    )
    slope = -scale * scale * second
    rest = -mean * slope - scale * first
    factor, slope, rest = (p.astype(x.dtype) for p in (scale * factor, slope, rest))
    rows, others = (a.reshape(-1, cube.shape[2]) for a in (back, cube))
    x_bar = engines.affine.scaled_both(rows, factor, others, slope, rest)
    if x_bar is None:
        parts = (p[:, :, None] for p in (factor, slope, rest))
        x_bar = _scaled_both(back, cube, *parts)
    sums = (s.sum(axis=0).astype(x.dtype) for s in (along, total))
    return x_bar.reshape(x.shape), *sums


def _step(width: int) -> int:
    """How many rows of so many elements stay in the cache."""
    return max(1, _BLOCK // width)


def _blocks(count: int, step: int) -> Any:
    """Parts of so many rows."""
    return (slice(i, i + step) for i in range(0, count, step))


def _rows(x: Any, weight: Any, bias: Any, eps: float, width: int) -> Any:
    """As ``normalised``, with a mean for each row, and parameters for its elements."""
    rows = x.reshape(-1, width)
    z = np.empty_like(rows)
    means, variances = np.empty((2, len(rows)), x.dtype)
    for part in _blocks(len(rows), _step(width)):
        block, out = rows[part], z[part]
        np.add.reduce(block, axis=1, out=means[part])
        means[part] /= width
        np.subtract(block, means[part, None], out=out)
        variances[part] = _products(out, out)
        variances[part] /= width
        out *= (variances[part, None] + x.dtype.type(eps)) ** -0.5
        if weight is not None:
            out *= weight.reshape(-1)
        if bias is not None:
            out += bias.reshape(-1)
    return z.reshape(x.shape), means, variances


def _rows_back(
    z_bar: Any, x: Any, moments: tuple[Any, Any], weight: Any, eps: float, width: int
) -> Any:
    """As ``pulled_back``, likewise."""
    rows, back = x.reshape(-1, width), z_bar.reshape(-1, width)
    x_bar = np.empty_like(rows)
    weight_bar, bias_bar = np.zeros((2, width), x.dtype)
    for part in _blocks(len(rows), _step(width)):
        g, out = back[part], x_bar[part]
        scale = (moments[1][part, None] + x.dtype.type(eps)) ** -0.5
        n = rows[part] - moments[0][part, None]
        n *= scale
        np.multiply(g, n, out=out)
        ones = np.ones(len(g), x.dtype)
        weight_bar += ones.dot(out)
        bias_bar += ones.dot(g)
        if weight is not None:
            np.multiply(g, weight.reshape(-1), out=out)
        else:
            out[...] = g
        both = _products(out, n)[:, None] / x.dtype.type(width)
        out -= np.add.reduce(out, axis=1, keepdims=True) / x.dtype.type(width)
        n *= both
        out -= n
        out *= scale
    return x_bar.reshape(x.shape), weight_bar, bias_bar

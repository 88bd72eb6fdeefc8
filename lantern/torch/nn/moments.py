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
    """Arrays as (examples, groups, channels, elements)."""
    _, *parts = kind
    return [x.reshape(len(x), *parts, -1) for x in arrays]


def _flat(cube: Any) -> Any:
    """The same as a matrix, with a row for each channel of each example."""
    return cube.reshape(-1, cube.shape[-1])


def _full(cube: Any, numbers: Any) -> Any:
    """A number for each channel of each example, in the type of the elements."""
    return np.full(cube.shape[:-1], numbers, cube.dtype)


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
    scale = (variances + eps) ** -0.5 * _own(kind, weight, 1)
    z = _scaled(cube, scale, _own(kind, bias, 0) - means * scale)
    rows = (m.reshape(-1).astype(x.dtype) for m in (means, variances))
    return z.reshape(x.shape), *rows


def _own(kind: Any, p: Any, value: float) -> Any:
    """A number for each channel; a value where there are none."""
    return value if p is None else p.reshape(kind[1:])


def _scaled(x: Any, scale: Any, shift: Any) -> Any:
    """``x * scale + shift``."""
    scale, shift = _full(x, scale), _full(x, shift)
    z = engines.affine.scaled(_flat(x), scale, shift)
    if z is not None:
        return z
    z, scale, shift = np.empty_like(x), scale[..., None], shift[..., None]
    with _in_place(x.shape[-1]):
        for part in _blocks(len(x), _step(x[0].size)):
            out = np.multiply(x[part], scale[part], out=z[part])
            out += shift[part]
    return z


def _scaled_both(x: Any, y: Any, scale: Any, slope: Any, shift: Any) -> Any:
    """``x * scale + y * slope + shift``."""
    scale, slope, shift = (_full(x, p) for p in (scale, slope, shift))
    z = engines.affine.scaled_both(_flat(x), scale, _flat(y), slope, shift)
    if z is not None:
        return z
    scale, slope, shift = (p[..., None] for p in (scale, slope, shift))
    z, step = np.empty_like(x), _step(x[0].size)
    room = np.empty_like(x[:step])
    with _in_place(x.shape[-1]):
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


def _sums_and_products(x: Any, y: Any) -> Any:
    """The sums of rows, and their products with their partners, in double precision."""
    rows, both = (_flat(x), _flat(y)), None
    if x.shape[-1] <= _PIECE:
        both = engines.sums.with_products(*rows)
    if both is None:
        both = _in_pieces(_added, rows[0]), _products(*rows)
    return (sums.reshape(x.shape[:-1]).astype(np.float64) for sums in both)


def _added(x: Any) -> Any:
    """The sums of short rows: NumPy's by a product with ones, in less time."""
    sums = engines.sums.of_rows(x)
    return x @ np.ones(x.shape[1], x.dtype) if sums is None else sums


def _products(x: Any, y: Any) -> Any:
    """The product of each row with its partner."""
    return _in_pieces(np.vecdot, x, y)


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
    means, squares = (_averaged(kind, s, cube) for s in _sums_and_products(cube, cube))
    variances = squares - means * means
    if not (squares <= 8 * variances).all():
        found, less = np.empty(cube.shape[:-1]), _full(cube, means)[..., None]
        for i, example in enumerate(cube):
            centred = example - less[i]
            found[i] = _products(centred, centred)
        variances = _averaged(kind, found, cube)
    return means, variances


def _averaged(kind: Any, sums: Any, cube: Any) -> Any:
    """The means over the elements of each channel or group, from sums of channels."""
    axis = 0 if kind[0] == "batch" else 2
    total = sums.sum(axis=axis, keepdims=True)
    return total * (total.size / cube.size)


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
    form = (1, 1, kind[2]) if kind[0] == "batch" else (len(cube), kind[1], 1)
    mean, variance = (m.reshape(form).astype(np.float64) for m in moments)
    scale = (variance + eps) ** -0.5
    total, along = _sums_and_products(back, cube)
    along -= total * mean
    along *= scale
    factor = _own(kind, weight, 1)
    first, second = (_averaged(kind, s * factor, cube) for s in (total, along))
    slope = -scale * scale * second
    rest = -mean * slope - scale * first
    x_bar = _scaled_both(back, cube, scale * factor, slope, rest)
    sums = (s.sum(axis=0).reshape(-1).astype(x.dtype) for s in (along, total))
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

"""Operators that change parts, or put parts into places."""

from typing import Any

import numpy as np

import lantern.torch as torch
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator

__all__: list[str] = []

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _placed(x: Any, axis: int, places: Any, updates: Any, reduction: str) -> Any:
    """``x`` with updates at places along an axis, alone or combined with what is there.

    Of several updates for one place, the last one counts.
    """
    places = places.astype(np.int64)
    if reduction != "none":
        how = _REDUCTIONS[reduction]
        return on_arrays(
            lambda x, i, u: torch.scatter_reduce(x, axis, i, u, how), x, places, updates
        )
    return on_arrays(lambda x, i, u: torch.scatter(x, axis, i, u), x, places, updates)


@operator("ScatterElements", since=11)
@operator("Scatter", since=9)
def scatter_elements(
    x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none"
) -> Any:
    """``x`` with updates at their places along an axis."""
    length = x.shape[axis]
    places = np.where(indices < 0, indices + length, indices)
    return _placed(x, axis % x.ndim, places, updates, reduction)


@operator("ScatterND", since=11)
def scatter_nd(x: Any, indices: Any, updates: Any, reduction: str = "none") -> Any:
    """``x`` with parts replaced, by their places along the first axes."""
    n = indices.shape[-1]
    lengths = x.shape[:n]
    rows = int(np.prod(lengths, dtype=np.int64))
    wide = int(np.prod(x.shape[n:], dtype=np.int64))
    parts = np.moveaxis(indices, -1, 0)
    sizes = np.array(lengths).reshape(-1, *[1] * (indices.ndim - 1))
    parts = np.where(parts < 0, parts + sizes, parts)
    flat = np.ravel_multi_index(tuple(parts), lengths).reshape(-1, 1)
    places = np.broadcast_to(flat, (flat.size, wide))
    updates = updates.reshape(flat.size, wide)
    z = _placed(x.reshape(rows, wide), 0, places, updates, reduction)
    return z.reshape(x.shape)


@operator("TensorScatter", since=24)
def tensor_scatter(
    x: Any, update: Any, write_indices: Any = None, axis: int = -2, mode: str = "linear"
) -> Any:
    """A cache with new elements along an axis, from a place of each example on."""
    axis = axis % x.ndim
    length, new = x.shape[axis], update.shape[axis]
    first = np.zeros(x.shape[0], np.int64) if write_indices is None else write_indices
    places = first[:, None] + np.arange(new)
    if mode == "circular":
        places = places % length
    form = [1] * x.ndim
    form[0], form[axis] = places.shape
    places = np.broadcast_to(places.reshape(form), update.shape)
    return _placed(x, axis, places, update, "none")


@operator("OneHot", since=9)
def one_hot(indices: Any, depth: Any, values: Any, axis: int = -1) -> Any:
    """One of two values: the second where the place is the index."""
    count = int(np.asarray(depth).reshape(()))
    n = indices.ndim + 1
    form = [1] * n
    form[axis] = count
    numbers = np.arange(count).reshape(form)
    wanted = np.expand_dims(np.mod(indices, count), axis)
    inside = np.expand_dims((indices >= -count) & (indices < count), axis)
    hit = (wanted == numbers) & inside
    return np.where(hit, values[1], values[0])


@operator("MaxUnpool", since=9, reals_only=True)
def max_unpool(
    x: Any, indices: Any, output_shape: Any = None, kernel_shape: Any = None,
    pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    """Elements back in the places where a pool has found them, zeros elsewhere."""
    n = x.ndim - 2
    strides, pads = strides or [1] * n, pads or [0] * (2 * n)
    sizes = zip(x.shape[2:], strides, kernel_shape, pads[:n], pads[n:], strict=True)
    own = (*x.shape[:2], *[(m - 1) * s + k - b - a for m, s, k, b, a in sizes])
    shape = own if output_shape is None else tuple(int(i) for i in output_shape)
    whole = np.zeros(int(np.prod(own)), x.dtype)
    z = _placed(whole, 0, indices.reshape(-1), x.reshape(-1), "none").reshape(own)
    if shape == own:
        return z
    return np.pad(z, [(0, m - k) for m, k in zip(shape, own, strict=True)])


@operator("Col2Im", since=18, reals_only=True)
def col2im(
    x: Any, image_shape: Any, block_shape: Any, dilations: Any = None, pads: Any = None,
    strides: Any = None,
) -> Any:  # fmt: skip
    """Blocks added up in their places in a picture."""
    image = [int(i) for i in image_shape]
    block = [int(i) for i in block_shape]
    n = len(image)
    dilations, strides = dilations or [1] * n, strides or [1] * n
    pads = pads or [0] * (2 * n)
    whole = [m + pads[i] + pads[n + i] for i, m in enumerate(image)]
    flat: Any = 0
    for i in range(n):
        count = (whole[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        form = [1] * (2 * n)
        places = np.arange(block[i])[:, None] * dilations[i]
        places = places + np.arange(count) * strides[i]
        form[i], form[n + i] = places.shape
        flat = flat * whole[i] + places.reshape(form)
    batch, channels = x.shape[0], x.shape[1] // int(np.prod(block))
    parts = x.reshape(batch, channels, -1)
    target = np.zeros((batch, channels, int(np.prod(whole))), x.dtype)
    places = np.broadcast_to(flat.reshape(-1), parts.shape)
    z = _placed(target, 2, places, parts, "add").reshape(batch, channels, *whole)
    inside = [slice(pads[i], pads[i] + image[i]) for i in range(n)]
    return z[(slice(None), slice(None), *inside)]

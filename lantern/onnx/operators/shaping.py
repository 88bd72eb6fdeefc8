"""Operators that arrange elements: forms, parts, joints."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.errors import ShapeError
from lantern.onnx.operators.table import operator

__all__: list[str] = []


def _ints(x: Any) -> list[int]:
    return [int(i) for i in np.asarray(x).reshape(-1)]


@operator("Reshape")
def reshape(x: Any, shape: Any, allowzero: int = 0) -> Any:
    """Other lengths of the axes; 0 stands for what it was, -1 for what is left."""
    lengths = _ints(shape)
    if not allowzero:
        lengths = [x.shape[i] if n == 0 else n for i, n in enumerate(lengths)]
    return x.reshape(tuple(lengths))


@operator("Transpose")
def transpose(x: Any, perm: Any = None) -> Any:
    """Axes in another order."""
    return np.transpose(x, perm)


@operator("Flatten")
def flatten(x: Any, axis: int = 1) -> Any:
    """A matrix: the axes before one, and those from it on."""
    axis = axis + x.ndim if axis < 0 else axis
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    columns = int(np.prod(x.shape[axis:], dtype=np.int64))
    return x.reshape(rows, columns)


@operator("Squeeze")
def squeeze(x: Any, axes: Any = None) -> Any:
    """Without axes of length 1."""
    return np.squeeze(x, axis=None if axes is None else tuple(_ints(axes)))


@operator("Unsqueeze")
def unsqueeze(x: Any, axes: Any) -> Any:
    """With new axes of length 1, as they are counted in the result."""
    return np.expand_dims(x, tuple(_ints(axes)))


@operator("Concat", since=4)
def concat(*xs: Any, axis: int) -> Any:
    """Arrays one behind the other."""
    return np.concatenate(xs, axis=axis)


@operator("Split")
def split(
    x: Any, split: Any = None, axis: int = 0, num_outputs: int = 0, outputs: int = 1
) -> tuple[Any, ...]:
    """Parts along an axis, of given lengths or of equal ones."""
    length = x.shape[axis]
    if split is None:
        count = num_outputs or outputs
        each = -(-length // count)
        split = [max(min(each, length - i * each), 0) for i in range(count)]
    lengths = _ints(split)
    if sum(lengths) != length or min(lengths, default=0) < 0:
        raise ShapeError(
            f"onnx: Split into {lengths} of an axis of length {length}. The lengths "
            f"have to sum to it."
        )
    ends = np.cumsum(lengths)
    parts = []
    for n, end in zip(lengths, ends, strict=True):
        index = [slice(None)] * x.ndim
        index[axis] = slice(int(end) - n, int(end))
        parts.append(x[tuple(index)])
    return tuple(parts)


@operator("Slice")
def slice_(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """A part along some axes."""
    starts, ends = _ints(starts), _ints(ends)
    along = _ints(axes) if axes is not None else list(range(len(starts)))
    steps = _ints(steps) if steps is not None else [1] * len(starts)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, along, steps, strict=True):
        index[axis] = _range(start, end, step, x.shape[axis])
    return x[tuple(index)]


def _range(start: int, end: int, step: int, length: int) -> slice:
    """As the format counts: what is beyond an end is cut off."""
    start = start + length if start < 0 else start
    end = end + length if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    end = min(max(end, -1), length - 1)
    start = min(max(start, -1), length - 1)
    return (
        slice(start if start >= 0 else 0, None if end < 0 else end, step)
        if (start >= 0)
        else slice(0, 0)
    )


@operator("Gather")
def gather(x: Any, indices: Any, axis: int = 0) -> Any:
    """Rows, or whatever lies along an axis, by their numbers."""
    return np.take(x, indices, axis=axis)


@operator("GatherElements", since=11)
def gather_elements(x: Any, indices: Any, axis: int = 0) -> Any:
    """Elements by their places along an axis."""
    index = list(np.indices(indices.shape, sparse=True))
    if index:
        index[axis] = indices
    return x[tuple(index)] if index else x


@operator("GatherND", since=11)
def gather_nd(x: Any, indices: Any, batch_dims: int = 0) -> Any:
    """Parts by their places along the first axes."""
    batch = indices.shape[:batch_dims]
    places = np.indices(batch)
    lengths = indices.shape[batch_dims:-1]
    first = [place.reshape(batch + (1,) * len(lengths)) for place in places]
    return x[(*first, *np.moveaxis(indices, -1, 0))]


@operator("Expand", since=8)
def expand(x: Any, shape: Any) -> Any:
    """Repeated along axes of length 1."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(shape))))


@operator("Tile", since=6)
def tile(x: Any, repeats: Any) -> Any:
    """Repeated as a whole."""
    return np.tile(x, tuple(_ints(repeats)))


@operator("Shape")
def shape(x: Any, start: int = 0, end: int | None = None) -> Any:
    """The lengths of the axes."""
    lengths = base(x).shape
    return np.array(lengths[start : len(lengths) if end is None else end], np.int64)


@operator("DepthToSpace")
def depth_to_space(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """Channels as blocks of a picture."""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        parts = x.reshape(n, b, b, c // (b * b), h, w)
        parts = np.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = x.reshape(n, c // (b * b), b, b, h, w)
        parts = np.transpose(parts, (0, 1, 4, 2, 5, 3))
    return parts.reshape(n, c // (b * b), h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    """Blocks of a picture as channels."""
    n, c, h, w = x.shape
    b = blocksize
    parts = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return np.transpose(parts, order).reshape(n, c * b * b, h // b, w // b)


@operator("Pad", since=11)
def pad(
    x: Any, pads: Any, constant_value: Any = None, axes: Any = None,
    mode: str = "constant",
) -> Any:  # fmt: skip
    """Elements around it, or fewer where a number is negative."""
    lengths = _ints(pads)
    along = [a % x.ndim for a in _ints(axes)] if axes is not None else range(x.ndim)
    widths = [(0, 0)] * x.ndim
    half = len(lengths) // 2
    for axis, before, after in zip(along, lengths[:half], lengths[half:], strict=True):
        widths[axis] = (before, after)
    if any(min(pair) < 0 for pair in widths):
        x = x[tuple(slice(max(-b, 0), n - max(-a, 0) or None)
                    for (b, a), n in zip(widths, x.shape, strict=True))]  # fmt: skip
        widths = [(max(b, 0), max(a, 0)) for b, a in widths]
    if mode != "constant":
        return np.pad(x, widths, mode=mode)  # type: ignore[call-overload]
    value = 0 if constant_value is None else constant_value.reshape(())
    return np.pad(x, widths, constant_values=value)


@operator("Trilu", since=14)
def trilu(x: Any, k: Any = None, upper: int = 1) -> Any:
    """The elements above a diagonal, or below."""
    diagonal = 0 if k is None else int(np.asarray(k).reshape(()))
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


@operator("ReverseSequence", since=10)
def reverse_sequence(
    x: Any, sequence_lens: Any, batch_axis: int = 1, time_axis: int = 0
) -> Any:
    """Each example's first elements in time, backwards."""
    times = np.arange(x.shape[time_axis])[:, None]
    places = np.where(times < sequence_lens, sequence_lens - 1 - times, times)
    if batch_axis < time_axis:
        places = places.T
    places = places.reshape(places.shape + (1,) * (x.ndim - 2))
    return np.take_along_axis(x, np.broadcast_to(places, x.shape), time_axis)

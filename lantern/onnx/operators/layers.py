"""Convolutions and pools."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.errors import ShapeError
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator
from lantern.torch.nn import functional

__all__: list[str] = []

_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}
_MEANS = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


def _few(x: Any) -> int:
    """The number of axes in space: the functions know one to three."""
    axes = int(x.ndim) - 2
    if axes not in _CONVOLUTIONS:
        raise ShapeError(
            f"onnx: a convolution or pool of shape {tuple(x.shape)}. Only those of one "
            f"to three axes in space are computed."
        )
    return axes


def padding(
    auto_pad: str, pads: Any, lengths: Any, kernel: Any, strides: Any, dilations: Any
) -> list[tuple[int, int]]:
    """How many zeros stand before and behind each axis in space."""
    n = len(lengths)
    if auto_pad == "VALID":
        return [(0, 0)] * n
    if auto_pad.startswith("SAME"):
        found = []
        for length, k, s, d in zip(lengths, kernel, strides, dilations, strict=True):
            total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
            less, more = total // 2, total - total // 2
            found.append((less, more) if auto_pad == "SAME_UPPER" else (more, less))
        return found
    pads = pads or [0] * (2 * n)
    return list(zip(pads[:n], pads[n:], strict=True))


def padded(x: Any, pairs: Any, value: float = 0.0) -> Any:
    """An array with a constant around its axes in space."""
    if not any(map(any, pairs)):
        return x
    return np.pad(x, [(0, 0), (0, 0), *pairs], constant_values=value)


@operator("Conv", reals_only=True)
def conv(
    x: Any, weight: Any, bias: Any = None, auto_pad: str = "NOTSET",
    dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
    strides: Any = None,
) -> Any:  # fmt: skip
    """A convolution, as PyTorch has it, with zeros on each side as they are given."""
    axes = _few(x)
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    pairs = padding(auto_pad, pads, x.shape[2:], weight.shape[2:], strides, dilations)
    if all(before == after for before, after in pairs):
        zeros = tuple(before for before, _ in pairs)
    else:
        x, zeros = padded(x, pairs), (0,) * axes
    return on_arrays(
        _CONVOLUTIONS[axes], x, weight, bias, stride=tuple(strides), padding=zeros,
        dilation=tuple(dilations), groups=group,
    )  # fmt: skip


@operator("ConvTranspose", reals_only=True)
def conv_transpose(
    x: Any, weight: Any, bias: Any = None, auto_pad: str = "NOTSET",
    dilations: Any = None, group: int = 1, kernel_shape: Any = None,
    output_padding: Any = None, output_shape: Any = None, pads: Any = None,
    strides: Any = None,
) -> Any:  # fmt: skip
    """The transpose of a convolution, cut off on each side as it is given."""
    axes = _few(x)
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    more = output_padding or [0] * axes
    kernel = weight.shape[2:]
    steps = zip(x.shape[2:], strides, kernel, dilations, strict=True)
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in steps]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    if output_shape is not None:
        pairs = []
        sizes = zip(whole, more, output_shape[-axes:], strict=True)
        for total in (n + m - out for n, m, out in sizes):
            less, upper = max(total, 0) // 2, auto_pad == "SAME_UPPER"
            more_than_half = total - less
            if total < 0:  # what no element reaches stands behind
                pairs.append((0, total))
            elif upper:
                pairs.append((less, more_than_half))
            else:
                pairs.append((more_than_half, less))
    else:
        pairs = list(zip((pads or [0] * 2 * axes)[:axes],
                         (pads or [0] * 2 * axes)[axes:], strict=True))  # fmt: skip
    z = on_arrays(
        _TRANSPOSED[axes], x, weight, bias, stride=tuple(strides),
        dilation=tuple(dilations), groups=group,
    )  # fmt: skip
    grown = [(0, max(m, 0)) for m in more]
    if any(m for m in more):
        z = _with_bias_around(z, grown, bias)
    index = [slice(None), slice(None)]
    missing = []
    for (before, after), n in zip(pairs, z.shape[2:], strict=True):
        index.append(slice(max(before, 0), n - max(after, 0)))
        missing.append((max(-before, 0), max(-after, 0)))
    z = z[tuple(index)]
    return _with_bias_around(z, missing, bias)


def _with_bias_around(z: Any, pairs: Any, bias: Any) -> Any:
    """Places that no element reaches: nothing, and the bias."""
    if not any(map(any, pairs)):
        return z
    if bias is None:
        return padded(z, pairs)
    bias = bias.reshape(-1, *[1] * (z.ndim - 2))
    return padded(z - bias, pairs) + bias


def _pool_form(
    x: Any, kernel: Any, strides: Any, dilations: Any, auto_pad: str, pads: Any,
    ceil_mode: int,
) -> Any:  # fmt: skip
    """Strides, dilations, zeros on each side, and those that rounding up adds."""
    axes = x.ndim - 2
    strides, dilations = strides or [1] * axes, dilations or [1] * axes
    pairs = padding(auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    extra = [0] * axes
    if ceil_mode and not auto_pad.startswith("SAME"):
        for i, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
            room = x.shape[2 + i] + sum(pairs[i]) - (k - 1) * d - 1
            count = -(-room // s) + 1
            if (count - 1) * s >= x.shape[2 + i] + pairs[i][0]:
                count -= 1  # a window that begins behind the end
            extra[i] = max((count - 1) * s - room, 0)
    return strides, dilations, pairs, extra


def _windows(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """The elements of each window on one new last axis: a read, so differentiable."""
    n = len(kernel)
    index: list[Any] = []
    for i in range(n):
        room = x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1
        starts = np.arange(0, room + 1, strides[i])
        places = starts[:, None] + np.arange(kernel[i]) * dilations[i]
        form = [1] * (2 * n)
        form[i], form[n + i] = places.shape
        index.append(places.reshape(form))
    z = x[(slice(None), slice(None), *index)]
    return z.reshape(*z.shape[: 2 + n], -1)


@operator("MaxPool", reals_only=True)
def max_pool(
    x: Any, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Any = None, pads: Any = None, storage_order: int = 0,
    strides: Any = None, outputs: int = 1,
) -> Any:  # fmt: skip
    """The largest of each window; and where it stood."""
    strides, dilations, pairs, extra = _pool_form(
        x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode
    )
    pairs = [(b, a + e) for (b, a), e in zip(pairs, extra, strict=True)]
    if outputs == 1 and x.ndim in (3, 4, 5):
        pool = {
            3: functional.max_pool1d,
            4: functional.max_pool2d,
            5: functional.max_pool3d,
        }[x.ndim]
        full = padded(x, pairs, -np.inf)
        return on_arrays(
            pool, full, tuple(kernel_shape), stride=tuple(strides),
            dilation=tuple(dilations),
        )  # fmt: skip
    parts = _windows(padded(x, pairs, -np.inf), kernel_shape, strides, dilations)
    where = np.argmax(base(parts), -1)
    z = np.take_along_axis(parts, where[..., None], -1)[..., 0]
    return z, _positions(x.shape, where, kernel_shape, strides, dilations, pairs,
                         storage_order)  # fmt: skip


def _positions(
    shape: Any, where: Any, kernel: Any, strides: Any, dilations: Any, pairs: Any,
    by_columns: int,
) -> Any:  # fmt: skip
    """Where the largest elements stand in the whole array, counted as it is stored."""
    n = len(kernel)
    inside = np.unravel_index(where, kernel)
    places = []
    for i in range(n):
        form = [1] * where.ndim
        form[2 + i] = -1
        starts = np.arange(where.shape[2 + i]).reshape(form) * strides[i]
        places.append(starts + inside[i] * dilations[i] - pairs[i][0])
    order = range(n) if not by_columns else reversed(range(n))
    flat: Any = 0
    for i in order:
        flat = flat * shape[2 + i] + places[i]
    first = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *[1] * n)
    return (flat + first * int(np.prod(shape[2:]))).astype(np.int64)


@operator("AveragePool", reals_only=True)
def average_pool(
    x: Any, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Any = None, pads: Any = None,
    strides: Any = None,
) -> Any:  # fmt: skip
    """The mean of each window; of the zeros around, those count that shall."""
    strides, dilations, pairs, extra = _pool_form(
        x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode
    )
    form = (kernel_shape, strides, dilations)
    plain = not any(map(any, pairs)) and not any(extra) and set(dilations) == {1}
    if plain and x.ndim - 2 in _MEANS:
        pool = _MEANS[x.ndim - 2]
        return on_arrays(pool, x, tuple(kernel_shape), stride=tuple(strides))
    behind = [(0, e) for e in extra]
    counted = np.ones((1, 1, *x.shape[2:]), x.dtype)
    counted = padded(counted, pairs, 1.0 if count_include_pad else 0.0)
    counts = _windows(padded(counted, behind), *form).sum(-1)
    return _windows(padded(padded(x, pairs), behind), *form).sum(-1) / counts


@operator("LpPool", since=2, reals_only=True)
def lp_pool(
    x: Any, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Any = None, p: int = 2, pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    """The p-norm of each window."""
    strides, dilations, pairs, extra = _pool_form(
        x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode
    )
    x = padded(padded(x, pairs), [(0, e) for e in extra])
    parts = _windows(np.abs(x) ** p, kernel_shape, strides, dilations)
    return parts.sum(-1) ** (1 / p)


@operator("GlobalAveragePool", reals_only=True)
def global_average_pool(x: Any) -> Any:
    """The mean over all axes in space."""
    return np.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@operator("GlobalMaxPool", reals_only=True)
def global_max_pool(x: Any) -> Any:
    """The largest over all axes in space."""
    return np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@operator("GlobalLpPool", since=2, reals_only=True)
def global_lp_pool(x: Any, p: int = 2) -> Any:
    """The p-norm over all axes in space."""
    axes = tuple(range(2, x.ndim))
    return np.sum(np.abs(x) ** p, axis=axes, keepdims=True) ** (1 / p)

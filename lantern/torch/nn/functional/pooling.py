"""The largest element, or the mean, of windows; and other sizes of images."""

import math
from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.windows import Form, gather_windows, sum_windows
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip


def _form(
    lengths: Any, size: Any, stride: Any, padding: Any, dilation: Any, up: bool
) -> Form:
    """How the windows of a pool lie; with up, the last may reach over the edge."""
    axes = len(lengths)
    size = each(size, axes)
    stride = size if stride is None or stride == [] else each(stride, axes)
    padding, dilation = each(padding, axes), each(dilation, axes)
    if any(2 * p > k for p, k in zip(padding, size, strict=True)):
        raise EagerError(
            f"pad should be at most half of effective kernel size, but got "
            f"pad={max(padding)}, kernel_size={max(size)} and dilation={max(dilation)}"
        )
    sides = []
    for n, k, s, p, d in zip(lengths, size, stride, padding, dilation, strict=True):
        behind = p
        if up:
            reach = n + 2 * p - d * (k - 1) - 1
            steps = -(-reach // s) + 1
            if (steps - 1) * s >= n + p:
                steps -= 1
            behind = max(p, (steps - 1) * s + d * (k - 1) + 1 - n - p)
        sides.append((p, behind))
    form = Form(tuple(lengths), size, stride, tuple(sides), dilation)
    if any(n < 1 for n in form.steps):
        raise EagerError(
            f"Given input size: {list(lengths)}. Calculated output size: "
            f"{list(form.steps)}. Output size is too small"
        )
    return form


def _positions(form: Form) -> Any:
    """For each window and element of it, its place in a flat array; -1 for padding."""
    places = np.arange(math.prod(form.lengths)).reshape(1, 1, *form.lengths)
    return gather_windows(places, form, -1)[0, 0]


def _max_pool(axes: int) -> Any:
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x = input if base(input).ndim == axes + 2 else input.unsqueeze(0)
        array = base(x)
        form = _form(array.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
        low = -math.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).min
        first = gather_windows(array, form, low).argmax(axis=-1)
        where = np.take_along_axis(_positions(form)[None, None], first[..., None], -1)
        z, indices = _picked(x, where[..., 0])
        if x is not input:
            z, indices = z.squeeze(0), indices.squeeze(0)
        return (z, indices) if return_indices else z

    function.__name__ = function.__qualname__ = f"max_pool{axes}d"
    function.__doc__ = f"The largest element of each window, along {axes} axes."
    return function


def _picked(x: Tensor, where: Any) -> tuple[Tensor, Tensor]:
    """The elements at flat places behind the first two axes, and the places."""
    flat = x.reshape(*base(x).shape[:2], -1)
    index = where.reshape(*where.shape[:2], -1)
    z = flat.gather(2, fresh(index)).reshape(where.shape)
    return z, fresh(where.astype(np.int64))


def _avg_pool(axes: int) -> Any:
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Tensor:
        x = input if base(input).ndim == axes + 2 else input.unsqueeze(0)
        array = base(x)
        form = _form(array.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
        z = sum_windows(x, form=form)
        count: Any = math.prod(form.size)
        if divisor_override is not None:
            count = divisor_override
        elif any(map(any, form.padding)):
            count = fresh(_counts(form, each(padding, axes), count_include_pad, array))
        z = z / count
        return z if x is input else z.squeeze(0)

    function.__name__ = function.__qualname__ = f"avg_pool{axes}d"
    function.__doc__ = f"The mean of each window, along {axes} axes."
    return function


def _counts(form: Form, padding: Any, with_padding: bool, array: Any) -> Any:
    """How many elements of each window count."""
    if with_padding:  # what reaches over the padding never does
        lengths = tuple(n + 2 * p for n, p in zip(form.lengths, padding, strict=True))
        rest = tuple(
            (0, max(0, b - p)) for (_, b), p in zip(form.padding, padding, strict=True)
        )
        form = form._replace(lengths=lengths, padding=rest)
    ones = fresh(np.ones((1, 1, *form.lengths), array.dtype))
    return base(sum_windows(ones, form=form))


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))


def _sizes(output_size: Any, lengths: Any) -> tuple[int, ...]:
    sizes = output_size if isinstance(output_size, tuple | list) else [output_size] * 3
    return tuple(
        n if size is None else int(size)
        for size, n in zip(sizes, lengths, strict=False)
    )


def _edges(n: int, parts: int) -> list[tuple[int, int]]:
    """The beginnings and ends of parts of n elements, all but equal."""
    return [(i * n // parts, -(-(i + 1) * n // parts)) for i in range(parts)]


def _adaptive_mean(axes: int) -> Any:
    def function(input: Tensor, output_size: Any) -> Tensor:
        lengths = base(input).shape[-axes:]
        sizes = _sizes(output_size, lengths)
        if sizes == (1,) * axes:
            return input.mean(tuple(range(-axes, 0)), keepdim=True)
        z = input
        for i, (n, m) in enumerate(zip(lengths, sizes, strict=True)):
            weights = np.zeros((n, m), base(input).dtype)
            for j, (a, b) in enumerate(_edges(n, m)):
                weights[a:b, j] = 1 / (b - a)
            z = (z.movedim(i - axes, -1) @ fresh(weights)).movedim(-1, i - axes)
        return z.contiguous()

    function.__name__ = function.__qualname__ = f"adaptive_avg_pool{axes}d"
    function.__doc__ = f"The means of as many parts as asked for, along {axes} axes."
    return function


def _adaptive_max(axes: int) -> Any:
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        x = input if base(input).ndim == axes + 2 else input.unsqueeze(0)
        array = base(x)
        lengths = array.shape[2:]
        sizes = _sizes(output_size, lengths)
        where = np.empty((*array.shape[:2], *sizes), np.int64)
        places = np.arange(math.prod(lengths)).reshape(lengths)
        cuts = [_edges(n, m) for n, m in zip(lengths, sizes, strict=True)]
        for cell in np.ndindex(*sizes):
            part = tuple(slice(*cuts[i][j]) for i, j in enumerate(cell))
            inside = array[(..., *part)].reshape(*array.shape[:2], -1)
            where[(..., *cell)] = places[part].reshape(-1)[inside.argmax(-1)]
        z, indices = _picked(x, where)
        if x is not input:
            z, indices = z.squeeze(0), indices.squeeze(0)
        return (z, indices) if return_indices else z

    function.__name__ = function.__qualname__ = f"adaptive_max_pool{axes}d"
    function.__doc__ = f"The largest of as many parts as asked for, along {axes} axes."
    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(
    _adaptive_mean, (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d = map(_adaptive_max, (1, 2))


def _norm_pool(axes: int) -> Any:
    def function(
        input: Tensor,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        lengths = base(input).shape[-axes:]
        form = _form(lengths, kernel_size, stride, 0, 1, ceil_mode)
        return sum_windows(input**norm_type, form=form) ** (1 / norm_type)

    function.__name__ = function.__qualname__ = f"lp_pool{axes}d"
    function.__doc__ = f"The norm of each window, along {axes} axes."
    return function


lp_pool1d, lp_pool2d = map(_norm_pool, (1, 2))

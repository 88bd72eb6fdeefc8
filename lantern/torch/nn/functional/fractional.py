"""The largest element of windows that lie at random."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, OptionError
from lantern.torch.methods.sampling import rng
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.functional.pooling import _batched, _picked, with_indices
from lantern.torch.tables import documented
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
]  # fmt: skip


def _starts(samples: Any, n: int, size: int, count: int) -> Any:
    """Where the windows along an axis begin: evenly, but for a random offset.

    Shapes:
        samples: (...); result: (..., count)

    References:
        Graham, Fractional max-pooling, 2014, section 2.
    """
    last = np.full((*samples.shape, min(count, 1)), n - size)
    if count < 2:
        return last
    step = samples.dtype.type((n - size) / (count - 1))
    u, steps = samples[..., None], np.arange(count - 1, dtype=samples.dtype)
    first = ((steps + u) * step).astype(np.int64) - (u * step).astype(np.int64)
    return np.concatenate([first, last], -1)


def _fractional(axes: int) -> Any:
    name = f"fractional_max_pool{axes}d"

    def function(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        if 0 in base(input).shape[-axes - 1 :]:
            raise EagerError(
                f"{name}: Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(input.shape)}"
            )
        x = _batched(input, axes)
        array = base(x)
        rows, lengths = array.shape[:2], array.shape[2:]
        sizes, steps = _checked(name, array, kernel_size, output_size, output_ratio)
        if _random_samples is None:
            samples = rng().random((*rows, axes)).astype(array.dtype)
        else:
            samples = np.asarray(base(_random_samples))[: rows[0]]  # of more examples
        if samples.shape != (*rows, axes):
            raise EagerError(
                f"Expect _random_samples of shape {[*rows, axes]}, got "
                f"{list(samples.shape)}"
            )
        if axes == 2:
            samples = samples[..., ::-1]  # PyTorch's first number is for the last axis
        places: Any = 0
        for i, (n, size, count) in enumerate(zip(lengths, sizes, steps, strict=True)):
            along = _starts(samples[..., i], n, size, count)[..., None] + np.arange(
                size
            )
            shape = [1] * (2 * axes)
            shape[i], shape[axes + i] = count, size
            places = places * n + along.reshape(*rows, *shape)
        places = beside(places.reshape(*rows, *steps, math.prod(sizes)), array)
        xp = namespace(array)
        flat = array.reshape(*rows, math.prod(lengths))
        windows = xp.take_along_axis(
            flat, places.reshape(*rows, math.prod(places.shape[2:])), -1
        )
        best = windows.reshape(places.shape).argmax(-1)
        z, indices = _picked(x, xp.take_along_axis(places, best[..., None], -1)[..., 0])
        if x is not input:
            z, indices = z.squeeze(0), indices.squeeze(0)
        return (z, indices) if return_indices else z

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The largest of windows that lie at random, along {axes} axes."
    return function


def _checked(name: str, x: Any, size: Any, output: Any, ratio: Any) -> Any:
    """The lengths of the windows, and how many there are."""
    lengths = x.shape[2:]
    axes = len(lengths)
    if (output is None) == (ratio is None):
        raise OptionError(
            f"{name} requires specifying either an output_size or an output_ratio"
        )
    sizes = _several(f"{name}: kernel_size", size, axes)
    if output is None:
        ratios = (ratio,) * axes if isinstance(ratio, float) else tuple(ratio)
        if len(ratios) != axes:
            raise OptionError(
                f"{name} requires output_ratio to either be a single Int or tuple of "
                f"Ints."
            )
        steps = tuple(int(n * r) for n, r in zip(lengths, ratios, strict=True))
    else:
        steps = _several(f"{name}: output_size", output, axes)
    words = ("time", "height", "width")[-axes:]
    for word, n, k, m in zip(words, lengths, sizes, steps, strict=True):
        if m + k - 1 > n:
            raise EagerError(
                f"{name}: pool {word} {k} too large relative to input {word} {n}, for "
                f"{m} windows."
            )
    return sizes, steps


def _several(name: str, value: Any, axes: int) -> tuple[int, ...]:
    """A number for each axis, from one or from just as many."""
    if not hasattr(value, "__index__") and len(value) != axes:
        raise EagerError(f"{name} must either be a single int or a tuple of {axes}")
    return each(value, axes)


fractional_max_pool2d = documented(
    _fractional(2),
    """
    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> torch.nn.functional.fractional_max_pool2d(x, 2, output_size=2)
    tensor([[[[4., 5.],
              [7., 8.]]]])
    """,
)
fractional_max_pool3d = documented(
    _fractional(3),
    """
    >>> x = torch.ones(1, 2, 6, 6, 6)
    >>> torch.nn.functional.fractional_max_pool3d(x, 2, output_ratio=0.5).shape
    torch.Size([1, 2, 3, 3, 3])
    """,
)
fractional_max_pool2d_with_indices = with_indices(
    fractional_max_pool2d,
    """
    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> torch.nn.functional.fractional_max_pool2d_with_indices(x, 2, output_size=2)[1]
    tensor([[[[4, 5],
              [7, 8]]]])
    """,
)
fractional_max_pool3d_with_indices = with_indices(
    fractional_max_pool3d,
    """
    >>> from lantern.torch.nn.functional import fractional_max_pool3d_with_indices
    >>> x = torch.ones(1, 2, 6, 6, 6)
    >>> fractional_max_pool3d_with_indices(x, 2, output_ratio=0.5)[1].shape
    torch.Size([1, 2, 3, 3, 3])
    """,
)

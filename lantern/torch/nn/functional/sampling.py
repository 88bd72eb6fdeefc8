"""Images read between their pixels: of other sizes, or at any positions."""

import math
import operator
import warnings
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from lantern.errors import (
    ArgumentError,
    EagerError,
    LanternError,
    MissingRuleError,
    OptionError,
)
from lantern.torch.functions.indexing import gathered, selected
from lantern.torch.methods import table
from lantern.torch.nn import rules
from lantern.torch.nn.functional import pooling
from lantern.torch.nn.laying import as_laid
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.dtypes import FLOATING
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "affine_grid",
    "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# Their numbers, as PyTorch's inner functions take them.
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

where = table.FUNCTIONS["where"]
_OF_BYTES = ("nearest", "nearest-exact", "bilinear", "bicubic")
_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


def _check_lengths(old: Any, new: Any) -> None:
    if min(*old, *new) < 1 or math.prod(new) >= 1 << 48:
        raise EagerError(
            f"Input and output sizes should be greater than 0 and possible, but got "
            f"input {list(old)} and output {new}"
        )


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Tensor:
    """Images of another size.

    Args:
        input: the images.
        size: the new lengths; or
        scale_factor: what the lengths are multiplied by.
        mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "trilinear" or
            "bicubic".
        align_corners: whether the outermost pixels keep their places, not the edges.
        recompute_scale_factor: whether the factor follows from the rounded lengths.
        antialias: whether a smaller image is made of means, not of some pixels.

    Shapes:
        input: (n, c, ...); result: (n, c, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), (6, 8)).shape
        torch.Size([1, 1, 6, 8])
    """
    lengths = base(input).shape[2:]
    axes = len(lengths)
    _check(mode, axes, align_corners, antialias)
    kind = base(input).dtype
    if kind.kind in "ib" or (kind.kind == "u" and mode not in _OF_BYTES):
        raise refuse_type(f"upsample_{mode}{axes}d", input)
    row = _given(lengths, size, scale_factor)
    asked = size is None and not recompute_scale_factor
    factors: Any = row if asked else [None] * axes
    if size is None:
        row = [math.floor(n * f) for n, f in zip(lengths, row, strict=True)]
    _check_lengths(lengths, row)
    if mode == "area":
        return getattr(pooling, f"adaptive_avg_pool{axes}d")(input, tuple(row))
    given = input
    order = list(enumerate(zip(lengths, row, factors, strict=True), 2))
    for axis, (n, m, f) in reversed(order) if kind.kind == "u" else order:
        step = 1 / f if f else n / m
        if mode.startswith("nearest"):
            nearest = _nearest(n, m, step, mode)
            input = selected(input, axis, beside(nearest, base(input)))
            continue
        if align_corners:
            step = (n - 1) / (m - 1) if m > 1 else 0
        make = _means if antialias else _between
        weights = make(n, m, step, mode == "bicubic", bool(align_corners))
        input = _weighted(input, weights, axis)
    return as_laid(input, given)


def _weighted(input: Tensor, weights: Any, axis: int) -> Tensor:
    """Sums along an axis with weights; of bytes, unless their number stays."""
    x = base(input)
    if x.dtype.kind != "u":
        weights = beside(weights.astype(x.dtype), x)
        return rules.mixed(input, weights=weights, axis=axis - x.ndim)
    n, m = weights.shape
    return _of_bytes(input, weights, axis) if n != m else input


def _of_bytes(input: Tensor, weights: Any, axis: int) -> Tensor:
    """Pixels along an axis, of weights in whole numbers, as PyTorch rounds them."""
    bits = 0
    while bits < 22 and weights.max() * 2 ** (bits + 1) + 0.5 < 1 << 15:
        bits += 1
    array = base(input)
    whole = beside(np.trunc(weights * 2**bits + np.copysign(0.5, weights)), array)
    total = np.moveaxis(array, axis, -1).astype(np.int64) @ whole.astype(np.int64)
    rounded = (total + (1 << (bits - 1))) >> bits
    return fresh(np.moveaxis(rounded.clip(0, 255).astype(array.dtype), -1, axis))


def _given(lengths: Any, size: Any, scale_factor: Any) -> list[Any]:
    """New lengths, or factors: one for each axis."""
    if (size is None) == (scale_factor is None):
        few = "either" if size is None else "only one of"
        raise OptionError(f"{few} size or scale_factor should be defined")
    given = size if scale_factor is None else scale_factor
    if scale_factor is None:
        given = _whole(size)
    row = list(given) if isinstance(given, tuple | list) else [given] * len(lengths)
    if len(row) != len(lengths):
        raise OptionError(
            f"Input and output must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(lengths)} and {given}."
        )
    return row


def _whole(size: Any) -> Any:
    """Lengths as whole numbers."""
    several = isinstance(size, tuple | list)
    try:
        found = [operator.index(n) for n in (size if several else [size])]
    except (TypeError, LanternError):
        kinds = [type(n) for n in size] if several else type(size)
        raise ArgumentError(
            f"expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {kinds}"
        ) from None
    return found if several else found[0]


def _check(mode: str, axes: int, align_corners: Any, antialias: bool) -> None:
    known = _LINEAR.get(mode)
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise OptionError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    elif known != axes:
        raise MissingRuleError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{axes + 2}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | area | nearest-exact (got {mode})"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise OptionError(
            "Anti-alias option is restricted to bilinear and bicubic modes and "
            "requires a 4-D tensor as input"
        )


def _nearest(n: int, m: int, step: float, mode: str) -> Any:
    """Which of n pixels is nearest to each of m, in PyTorch's single precision."""
    at = np.arange(m, dtype=np.float32)
    at = at + np.float32(0.5) if mode == "nearest-exact" else at
    return np.minimum(np.floor(at * np.float32(step)).astype(np.int64), n - 1)


def _cubic(x: Any, a: float = -0.75) -> Any:
    """The weight of a pixel at a distance, in a cubic convolution.

    References:
        Keys (1981), equation 15.
    """
    x = abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return (
        where(x <= 1, near, far)
        if isinstance(x, Tensor)
        else np.where(x <= 1, near, np.where(x < 2, far, 0))
    )


def _between(n: int, m: int, step: float, cubic: bool, corners: bool) -> Any:
    """The weights (n, m) that read m pixels between n."""
    at = np.arange(m) * step if corners else (np.arange(m) + 0.5) * step - 0.5
    at = at if cubic else np.maximum(at, 0)
    low = np.floor(at).astype(int)
    weights = np.zeros((n, m))
    for tap in (-1, 0, 1, 2) if cubic else (0, 1):
        distance = at - low - tap
        share = _cubic(distance) if cubic else 1 - abs(distance)
        np.add.at(weights, (np.clip(low + tap, 0, n - 1), np.arange(m)), share)
    return weights


def _means(n: int, m: int, step: float, cubic: bool, corners: bool) -> Any:
    """The weights (n, m) of means over all pixels that a new one covers."""
    wide = max(step, 1)
    reach = wide * (2 if cubic else 1)
    centre = step * (np.arange(m) + 0.5)
    places = np.arange(n)[:, None]
    distance = (places + 0.5 - centre) / wide
    weights = _cubic(distance, -0.5) if cubic else np.maximum(1 - abs(distance), 0)
    first = np.maximum((centre - reach + 0.5).astype(int), 0)
    last = np.minimum((centre + reach + 0.5).astype(int), n)
    weights = weights * ((places >= first) & (places < last))
    return weights / weights.sum(axis=0)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
) -> Tensor:
    """As ``interpolate``, which has more options.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate`` with the nearest pixels.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), 4)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    """``interpolate`` between four pixels, where corners keep their places.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import upsample_bilinear
        >>> upsample_bilinear(torch.tensor([[[[0.0, 2.0], [4.0, 6.0]]]]), 3)
        tensor([[[[0., 1., 2.],
                  [2., 3., 4.],
                  [4., 5., 6.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def affine_grid(theta: Tensor, size: Any, align_corners: Any = None) -> Tensor:
    """Positions for ``grid_sample``: a regular grid, moved by affine maps.

    Shapes:
        theta: (n, axes, axes + 1); size: (n, c, ...); result: (n, ..., axes)

    Example:
        >>> import lantern.torch as torch
        >>> identity = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
        tensor([[[[-0.5000,  0.0000],
                  [ 0.5000,  0.0000]]]])
    """
    lengths = tuple(size)[2:]
    axes = len(lengths)
    if axes not in (2, 3):
        raise MissingRuleError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {list(size)}."
        )
    if base(theta).dtype.kind not in FLOATING:
        raise OptionError(
            f"Expected theta to have floating point type, but got {theta.dtype}"
        )
    if base(theta).shape != (size[0], axes, axes + 1):
        raise OptionError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} "
            f"for size {list(size)}. Got {list(theta.shape)}."
        )
    if min(*lengths, size[0]) < 1:
        raise OptionError(f"Expected non-zero, positive output size. Got {list(size)}")
    if align_corners and 1 in lengths:
        warnings.warn(
            "With align_corners=True, an axis of one pixel has its place at 0. See the "
            "documentation of affine_grid for details.",
            stacklevel=2,
        )
    rows = []
    for n in lengths:
        row = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        rows.append(row if align_corners else row * (n - 1) / n)
    grid = np.meshgrid(*rows, indexing="ij")[::-1]
    flat = np.stack([*map(np.ravel, grid), np.ones(math.prod(lengths))], axis=1)
    flat = beside(flat.astype(base(theta).dtype), base(theta))
    z = rules.mixed(theta, weights=flat.T, axis=-1)
    return z.transpose(1, 2).reshape(size[0], *lengths, axes)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Tensor:
    """Images read at the positions of a grid, which may lie between pixels.

    Args:
        input: the images.
        grid: positions from -1 to 1, the last axis first (x, y; or x, y, z).
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: what lies outside: "zeros", the "border", or its "reflection".
        align_corners: whether -1 and 1 are the outermost pixels, not the edges.

    Shapes:
        input: (n, c, ...); grid: (n, ..., axes); result: (n, c, ...)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> middle = torch.zeros(1, 1, 1, 2)
        >>> torch.nn.functional.grid_sample(x, middle, align_corners=False)
        tensor([[[[1.5000]]]])
    """
    shape, places = base(input).shape, base(grid).shape
    axes = len(shape) - 2
    _check_grid(shape, places, mode, padding_mode)
    taps = [
        _taps(grid[..., axes - 1 - i], shape[2 + i], mode, padding_mode, align_corners)
        for i in range(axes)
    ]
    flat = input.reshape(*shape[:2], math.prod(shape[2:]))
    count = math.prod(places[1:-1])
    total: Any = None
    for corner in product(*taps):
        index: Any = 0
        for (at, _), n in zip(corner, shape[2:], strict=True):
            index = index * n + at
        index = np.broadcast_to(index.reshape(shape[0], 1, count), (*shape[:2], count))
        part = gathered(flat, 2, index)
        share = reduce(operator.mul, [w for _, w in corner])
        part = part * share.reshape(shape[0], 1, count)
        total = part if total is None else total + part
    return total.reshape(*shape[:2], *places[1:-1])


def _check_grid(shape: Any, places: Any, mode: str, padding_mode: str) -> None:
    axes = len(shape) - 2
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise OptionError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
            f"or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise OptionError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
            f"'border', or 'reflection', but got: '{padding_mode}'"
        )
    found = f"but got input with sizes {list(shape)} and grid with sizes {list(places)}"
    if places[:1] != shape[:1]:
        raise EagerError(
            f"grid_sampler(): expected grid and input to have same batch size, {found}"
        )
    if places[-1] != axes:
        raise EagerError(
            f"grid_sampler(): expected grid to have size {axes} in last dimension, "
            f"{found}"
        )
    if axes not in (2, 3) or len(places) != len(shape):
        raise EagerError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of "
            f"dimensions, {found}"
        )
    if 0 in shape[2:]:
        raise EagerError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, "
            f"but input has sizes {list(shape)}"
        )
    if mode == "bicubic" and axes == 3:
        raise EagerError("grid_sampler(): bicubic interpolation only supports 4D input")


def _taps(x: Tensor, n: int, mode: str, padding: str, corners: bool) -> list[Any]:
    """Along one axis: which pixels are read, and with which weights."""
    x = (x + 1) * ((n - 1) / 2) if corners else ((x + 1) * n - 1) / 2
    cubic = mode == "bicubic"
    if not cubic:
        x = _inside(x, n, padding, corners)
    kind = base(x).dtype
    low = np.rint(base(x)) if mode == "nearest" else np.floor(base(x))
    found = []
    for tap in {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}[mode]:
        place = low + tap
        if mode == "nearest":  # a position has a gradient, which is 0
            never = fresh(np.zeros_like(low, bool))
            weight = where(never, x, fresh(np.ones_like(low)))
        else:
            distance = x - fresh(place.astype(kind))
            weight = _cubic(distance) if cubic else 1 + (distance if tap else -distance)
        if cubic:
            place = base(_inside(fresh(place), n, padding, corners))
        there = (place >= 0) & (place <= n - 1)
        if not (isinstance(there, np.ndarray) and there.all()):
            weight = weight * fresh(there.astype(kind))
        found.append((np.clip(np.nan_to_num(place), 0, n - 1).astype(int), weight))
    return found


def _inside(x: Tensor, n: int, padding: str, corners: bool) -> Tensor:
    """Positions outside as those that stand for them; outside they are constants."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        first, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
        if span == 0:
            return x * 0
        x = x - first
        x = where(x < 0, -x, x)
        flips = np.floor(base(x) / span)
        rest = x - fresh(flips * span).to(x.dtype)
        x = where(fresh(flips % 2 == 0), rest, span - rest) + first
    bound = np.clip(base(x), 0, n - 1)
    return where(fresh((base(x) > 0) & (base(x) < n - 1)), x, fresh(bound))

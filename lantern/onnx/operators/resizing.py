"""Pictures of other sizes: each axis in turn, as a sum over a few neighbours."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator
from lantern.torch.nn import functional

__all__: list[str] = []


def _sources(
    mode: str, new: int, length: int, scale: float, roi: tuple[float, float]
) -> Any:
    """Where each new element lies among the old ones."""
    y = np.arange(new, dtype=np.float64)
    exact = scale * length
    if mode == "align_corners":
        return y * (length - 1) / (exact - 1) if exact != 1 else 0 * y
    if mode == "asymmetric":
        return y / scale
    if mode == "tf_half_pixel_for_nn":
        return (y + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if exact == 1:
            return 0 * y + 0.5 * (start + end) * (length - 1)
        return start * (length - 1) + y * (end - start) * (length - 1) / (exact - 1)
    if mode == "pytorch_half_pixel" and exact == 1:
        return 0 * y - 0.5
    shift = 0.0
    if mode == "half_pixel_symmetric":
        shift = length / 2 * (1 - new / exact)
    elif mode not in ("half_pixel", "pytorch_half_pixel"):
        raise OptionError(f"onnx: Resize has no coordinates {mode!r}.")
    return shift + (y + 0.5) / scale - 0.5


def _nearest(x: Any, rounding: str) -> Any:
    if rounding == "floor":
        return np.floor(x)
    if rounding == "ceil":
        return np.ceil(x)
    if rounding == "round_prefer_ceil":
        return np.floor(x + 0.5)
    return np.ceil(x - 0.5)


def _triangle(x: Any) -> Any:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(a: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> Any:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return weight


def _taps(
    x: Any, length: int, scale: float, weight: Any, reach: int, exclude: bool
) -> tuple[Any, Any]:
    """The neighbours of each place, and their weights, which sum to 1.

    Args:
        scale: below 1 where the weights are stretched, so that none is left out.
        reach: how far a weight reaches on either side.
    """
    wide = int(np.ceil(reach / scale))
    places = np.floor(x)[:, None] + np.arange(1 - wide, wide + 1)
    weights = weight((places - x[:, None]) * scale)
    if exclude:
        weights = np.where((places >= 0) & (places < length), weights, 0)
    weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, length - 1).astype(np.int64), weights


def _along(x: Any, axis: int, places: Any, weights: Any) -> Any:
    """The sum of neighbours along an axis."""
    form = [1] * x.ndim
    form[axis] = -1
    z: Any = 0
    for k in range(places.shape[1]):
        factor = weights[:, k].astype(x.dtype).reshape(form)
        z = z + np.take(x, places[:, k], axis=axis) * factor
    return z


@operator("Resize", since=11, reals_only=True)
def resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Any = None,
    antialias: int = 0, axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:  # fmt: skip
    """Another size of some axes, by scales or by lengths."""
    along = [a % x.ndim for a in axes] if axes else list(range(x.ndim))
    old = [x.shape[a] for a in along]
    if sizes is not None and len(sizes):
        factors = [int(n) / m for n, m in zip(sizes, old, strict=True)]
        new = [int(n) for n in sizes]
        if keep_aspect_ratio_policy != "stretch":
            pick = max if keep_aspect_ratio_policy == "not_smaller" else min
            factors = [pick(factors)] * len(factors)
            new = [
                int(np.floor(f * m + 0.5)) for f, m in zip(factors, old, strict=True)
            ]
    else:
        factors = [float(s) for s in scales]
        new = [int(np.floor(f * m)) for f, m in zip(factors, old, strict=True)]
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    outside: Any = False
    for i, axis in enumerate(along):
        if factors[i] == 1 and new[i] == old[i] and not crop:
            continue
        part = (float(roi[i]), float(roi[len(along) + i])) if crop else (0.0, 1.0)
        source = _sources(
            coordinate_transformation_mode, new[i], old[i], factors[i], part
        )
        if crop:
            form = [1] * x.ndim
            form[axis] = -1
            outside = outside | ((source < 0) | (source > old[i] - 1)).reshape(form)
        if mode == "nearest":
            places = np.clip(_nearest(source, nearest_mode), 0, old[i] - 1)
            x = np.take(x, places.astype(np.int64), axis=axis)
            continue
        weight, reach = (
            (_triangle, 1) if mode == "linear" else (_cubic(cubic_coeff_a), 2)
        )
        scale = min(factors[i], 1.0) if antialias else 1.0
        taps = _taps(source, old[i], scale, weight, reach, bool(exclude_outside))
        x = _along(x, axis, *taps)
    return np.where(outside, x.dtype.type(extrapolation_value), x) if crop else x


@operator("Upsample", since=7, reals_only=True)
@operator("Resize", since=10, reals_only=True)
def upsample(x: Any, scales: Any, mode: str = "nearest") -> Any:
    """Another size by scales, as the first versions counted."""
    return resize(
        x, scales=scales, mode=mode, nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip


_MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest"}
_MODES |= {"bicubic": "bicubic", "cubic": "bicubic"}


@operator("GridSample", since=16, reals_only=True)
def grid_sample(
    x: Any, grid: Any, align_corners: int = 0, mode: str = "linear",
    padding_mode: str = "zeros",
) -> Any:  # fmt: skip
    """The elements at places between -1 and 1."""
    return on_arrays(
        functional.grid_sample, x, grid, mode=_MODES[mode], padding_mode=padding_mode,
        align_corners=bool(align_corners),
    )  # fmt: skip

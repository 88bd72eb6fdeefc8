"""examples/paper_staging.py: its listings are those that the library is held to."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.staging.test_listings import CPS

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "examples" / "paper_staging.py"

spec = importlib.util.spec_from_file_location("example_paper_staging", PAPER)
paper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(paper)


@pytest.mark.parametrize("section", paper.LISTINGS)
def test_listing(section):
    *_, expected = CPS[section]
    expected = textwrap.dedent(expected).strip().replace("x1.left", "x1.0")
    expected = expected.replace("x1.right", "x1.1").replace("x1.value", "x1.2")
    assert paper.listing(section) == expected


@pytest.mark.parametrize("section", paper.LISTINGS)
def test_gradients(section):
    staged, compiled, expected = paper.gradients(section)
    assert staged == compiled == expected


def test_prints_the_listings():
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    result = subprocess.run(
        [sys.executable, str(PAPER)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("# Section 4.") == 4
    assert "k0(x4, d4)" in result.stdout

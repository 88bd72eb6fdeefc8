"""examples/fused_optimiser.py: both ways of training give the same."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "fused_optimiser.py"

spec = importlib.util.spec_from_file_location("example_fused_optimiser", PROGRAM)
fused_optimiser = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fused_optimiser)


def test_the_same_weights_in_less_memory():
    plain, losses, peak = fused_optimiser.train(fused_optimiser.plain_step, 2, 0)
    fused, fused_losses, less = fused_optimiser.train(fused_optimiser.fused_step, 2, 0)
    assert losses == fused_losses
    for a, b in zip(plain, fused, strict=True):
        np.testing.assert_array_equal(a, b)
    assert less < 0.8 * peak


def test_runs_as_a_reader_would_run_it():
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    result = subprocess.run(
        [sys.executable, str(PROGRAM), "--steps", "6"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    first, last = map(float, re.findall(r"([\d.]+) (?:at first|after)", result.stdout))
    assert last < first
    assert "the same to the last bit" in result.stdout

"""What ``import lantern`` costs where NumPy is imported already."""

import os
import subprocess
import sys
from importlib.util import find_spec

from benchmarks.harness import LANTERN, Times
from benchmarks.table import Row, Target

LIMIT = Target(60, at_most=True)
# Not longer than autograd, which of the peers imports the least.
BESIDE = {"autograd": Target(1.0)}
MODULES = {LANTERN: "lantern", "PyTorch": "torch", "autograd": "autograd", "JAX": "jax"}

_PROGRAM = """
import sys, time
import numpy
start = time.process_time()
__import__(sys.argv[1])
print(time.process_time() - start)
"""
# As for whoever imports it a second time, also where nothing compiled is kept.
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}


def rows(quick: bool) -> list[Row]:
    """One row for Lantern, with its limit, one per peer, and what ours takes of it."""
    samples: dict[str, list[float]] = {
        name: [] for name, module in MODULES.items() if find_spec(module)
    }
    for turn in range(4 if quick else 24):
        for name, taken in samples.items():
            seconds = _import(MODULES[name])
            if turn > 0:  # the first one may still compile
                taken.append(seconds)
    table = [_row(name, samples.get(name)) for name in MODULES]
    return table + [_beside(name, samples) for name in BESIDE]


def _import(module: str) -> float:
    """Processor seconds of the import in a fresh interpreter, after NumPy's."""
    command = [sys.executable, "-c", _PROGRAM, module]
    return float(subprocess.check_output(command, text=True, env=ENVIRONMENT))


def _row(name: str, samples: list[float] | None) -> Row:
    figure = f"import {MODULES[name]}, beyond NumPy"
    target = LIMIT if name == LANTERN else None
    if samples is None:
        return Row("import_time", figure, None, "ms", target, f"{name} is missing here")
    times = Times(samples)
    return Row("import_time", figure, 1e3 * times.median, "ms", target, str(times))


def _beside(name: str, samples: dict[str, list[float]]) -> Row:
    figure, target = f"times as fast as import {MODULES[name]}", BESIDE[name]
    if name not in samples:
        return Row("import_time", figure, None, "×", target, f"{name} is missing here")
    ours, theirs = Times(samples[LANTERN]), Times(samples[name])
    detail = f"import {MODULES[LANTERN]} {ours}, import {MODULES[name]} {theirs}"
    return Row("import_time", figure, theirs.median / ours.median, "×", target, detail)

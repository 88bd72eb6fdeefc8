"""Compares the same program in several libraries, fairly: results first, then times.

The libraries take turns, so that other load on the computer meets all of them.
"""

import gc
import statistics
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.entrant import Entrant, Maker, Program
from benchmarks.table import Row, Target

LANTERN = "Lantern"


class DisagreementError(RuntimeError):
    """Two libraries gave different results for the same program."""


@dataclass(frozen=True)
class Times:
    """Several timings of one program, in seconds per operation."""

    samples: list[float]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.samples)

    def __str__(self) -> str:
        scale, unit = (1e6, "µs") if self.median < 1e-3 else (1e3, "ms")
        low, mid, high = (
            f"{scale * t:.3g}"
            for t in (min(self.samples), self.median, max(self.samples))
        )
        return f"{mid} {unit} ({low} to {high})"


def race(
    benchmark: str,
    operations: int,
    makers: Mapping[str, Maker],
    targets: Mapping[str, Target],
    *,
    quick: bool = False,
    rtol: float = 1e-9,
    rounds: int = 0,
) -> list[Row]:
    """Compare the results of all, time them in turns, and give a row per peer.

    A peer that is missing, or cannot run the program, says so in its row. Programs that
    take seconds are timed once a round, for as many ``rounds`` as are given.
    """
    quick = quick or rounds > 0
    budget = 0.05 if quick else 0.2
    entrants = {name: Entrant(name, make, budget) for name, make in makers.items()}
    absent = {name: _why_not(name, entrant) for name, entrant in entrants.items()}
    if absent[LANTERN]:
        raise RuntimeError(absent[LANTERN])
    present = {name: e for name, e in entrants.items() if not absent[name]}
    agree(benchmark, {name: entrant.result for name, entrant in present.items()}, rtol)
    peaks = {name: entrant.peak for name, entrant in present.items()}
    times = take_turns(present, operations, rounds or (3 if quick else 11))
    return [
        _versus(benchmark, name, times, targets.get(name), absent[name], peaks)
        for name in entrants
        if name != LANTERN
    ]


def agree(benchmark: str, results: Mapping[str, Any], rtol: float) -> None:
    """Check that all programs gave the same numbers."""
    import numpy as np

    first, expected = next(iter(results.items()))
    atol = rtol * np.max(np.abs(expected))
    for name, result in results.items():
        if not np.allclose(result, expected, rtol=rtol, atol=atol):
            raise DisagreementError(f"{benchmark}: {name} and {first} disagree.")


def take_turns(
    entrants: Mapping[str, Entrant], operations: int, rounds: int
) -> dict[str, Times]:
    """Time every program once per round, each round starting with another one."""
    samples: dict[str, list[float]] = {name: [] for name in entrants}
    names = list(entrants)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            samples[name].append(entrants[name].seconds() / operations)
    return {name: Times(taken) for name, taken in samples.items()}


def peak_memory(program: Program) -> int:
    """The most bytes that Python and NumPy held at once while ``program`` ran."""
    gc.collect()
    tracemalloc.start()
    program()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _why_not(name: str, entrant: Entrant) -> str:
    """Why an entrant does not take part, in one line; empty if it does."""
    if entrant.result is None:
        return f"{name} is missing here"
    if isinstance(entrant.result, Exception):
        return " ".join(str(entrant.result).split())[:200]
    return ""


def _versus(
    benchmark: str,
    name: str,
    times: Mapping[str, Times],
    target: Target | None,
    absent: str,
    peaks: Mapping[str, int | None],
) -> Row:
    """The row that says how much faster than ``name`` Lantern is."""
    figure = f"times as fast as {name}"
    if absent:
        return Row(benchmark, figure, None, "×", target, absent)
    ours, theirs = times[LANTERN], times[name]
    detail = f"{LANTERN} {ours}, {name} {theirs}"
    sizes = [peaks[LANTERN], peaks[name]]
    if None not in sizes:
        at_most = ", ".join(f"{(size or 0) / 2**20:.0f}" for size in sizes)
        detail += f"; processes of at most {at_most} MiB"
    return Row(benchmark, figure, theirs.median / ours.median, "×", target, detail)

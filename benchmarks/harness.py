"""Compares the same program in several libraries, fairly: results first, then times.

How much faster one is, is the median of the ratios of the turns: a computer that others
use, too, may be half as fast a second later.

The libraries take turns, so that other load on the computer meets all of them, in two
heats or more: a process that was started first finds other memory than one started
last, and keeps it.
"""

import gc
import statistics
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    turns: int = 0,
    heats: int = 2,
    budget: float = 0.0,
    by_least: bool = False,
) -> list[Row]:
    """Compare the results of all, time them in turns, and give a row per peer.

    A peer that is missing, or cannot run the program, says so in its row. Programs that
    take seconds are timed once a turn, for as many ``turns`` a heat as are given. In
    each heat all have processes of their own; a timing takes ``budget`` seconds, or as
    long as one call does. The figure is the median of the turns' ratios; ``by_least``,
    the ratio of the medians, over all heats, of a process's least time.
    """
    budget = budget or (0.05 if quick or turns else 0.2)
    turns = turns or (2 if quick else 6)
    shown: dict[str, _Shown] = {name: _Shown() for name in makers}
    for heat in range(heats):
        names = list(makers)[:: -1 if heat % 2 else 1]
        entrants = {name: Entrant(name, makers[name], budget) for name in names}
        _heat(benchmark, entrants, operations, turns, rtol, shown)
        del entrants  # which ends their processes
    return [
        _versus(benchmark, name, shown[LANTERN], peer, targets.get(name), by_least)
        for name, peer in shown.items()
        if name != LANTERN
    ]


@dataclass
class _Shown:
    """What a library has shown: times and memory, or why it takes no part."""

    samples: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)  # of each heat
    peak: int | None = None
    absent: str = ""


def _heat(
    benchmark: str,
    entrants: Mapping[str, Entrant],
    operations: int,
    turns: int,
    rtol: float,
    shown: Mapping[str, _Shown],
) -> None:
    """Compare the results of those that can run the program, and time them in turns."""
    for name, entrant in entrants.items():
        shown[name].absent, shown[name].peak = _why_not(name, entrant), entrant.peak
    if shown[LANTERN].absent:
        raise RuntimeError(shown[LANTERN].absent)
    present = {name: e for name, e in entrants.items() if not shown[name].absent}
    agree(benchmark, {name: entrant.result for name, entrant in present.items()}, rtol)
    for name, times in take_turns(present, operations, turns).items():
        shown[name].samples += times.samples
        shown[name].least.append(min(times.samples))


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
    lantern: _Shown,
    peer: _Shown,
    target: Target | None,
    by_least: bool,
) -> Row:
    """The row that says how much faster than ``name`` Lantern is."""
    figure = f"times as fast as {name}"
    if peer.absent:
        return Row(benchmark, figure, None, "×", target, peer.absent)
    ours, theirs = Times(lantern.samples), Times(peer.samples)
    detail = f"{LANTERN} {ours}, {name} {theirs}"
    if lantern.peak is not None and peer.peak is not None:
        sizes = f"{lantern.peak / 2**20:.0f}, {peer.peak / 2**20:.0f}"
        detail += f"; processes of at most {sizes} MiB"
    if by_least:
        ratio = statistics.median(peer.least) / statistics.median(lantern.least)
    else:
        pairs = zip(peer.samples, lantern.samples, strict=True)  # of the same turn
        ratio = statistics.median(slower / faster for slower, faster in pairs)
    return Row(benchmark, figure, ratio, "×", target, detail)

"""A long loop in little memory: what its checkpoints save, and what they cost.

``y = tanh(y * y)`` on 10,000 numbers, n times, forward and backward.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Times
from benchmarks.table import Row, Target

POLICIES: dict[str, tuple[str | int, Target | None]] = {
    "nothing recomputed": (0, None),
    "sqrt": ("sqrt", Target(5, at_most=True, note=" (√16 = 4)")),
    "log": ("log", Target(2, at_most=True)),
}
X = np.linspace(-1.0, 1.0, 10_000)


def rows(quick: bool) -> list[Row]:
    """Peak memory at n, 4n and 16n steps, its growth, and the time beside no policy."""
    sizes = tuple(n * (16 if quick else 64) for n in (1, 4, 16))
    found = []
    for name, (policy, target) in POLICIES.items():
        peaks = [_peak(_program(n, policy)) for n in sizes]
        found += [
            Row("checkpointing", f"{name}: {n:,} steps, peak", peak / 2**20, "MiB")
            for n, peak in zip(sizes, peaks, strict=True)
        ]
        figure = f"{name}: peak, {sizes[-1]:,} ÷ {sizes[0]:,} steps"
        found.append(Row("checkpointing", figure, peaks[-1] / peaks[0], "", target))
    return found + _time_rows(sizes[1], rounds=3 if quick else 7)


def _program(n: int, policy: str | int) -> Callable[[], Any]:
    import lantern

    def loss(x: Any) -> Any:
        def step(y: Any, i: int) -> Any:
            return lantern.tanh(y * y)

        return lantern.sum(lantern.remat_loop(step, x, n, policy))

    return lambda: lantern.grad(loss)(X)


def _peak(program: Callable[[], Any]) -> int:
    """The most bytes that are held at once."""
    program()
    tracemalloc.start()
    try:
        program()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _time_rows(n: int, rounds: int) -> list[Row]:
    programs = {name: _program(n, policy) for name, (policy, _) in POLICIES.items()}
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.process_time()
            program()
            taken[name].append(time.process_time() - start)
    times = {name: Times(samples) for name, samples in taken.items()}
    plain = times["nothing recomputed"].median
    return [
        Row(
            "checkpointing",
            f"{name}: time, {n:,} steps, beside nothing recomputed",
            t.median / plain,
            "",
            None,
            str(t),
        )
        for name, t in times.items()
        if name != "nothing recomputed"
    ]

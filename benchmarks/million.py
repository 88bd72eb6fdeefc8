"""A million operations: time stays linear, memory stays small and comes back.

Every figure is taken in a fresh interpreter: ``python -m benchmarks.million FIGURE``.
"""

import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from benchmarks.entrant import peak_resident
from benchmarks.harness import Times
from benchmarks.scalar_chain import X, chain
from benchmarks.table import Row, Target

LINEAR = Target(1.3, at_most=True)
BYTES = Target(500, at_most=True)
KEPT = Target(1, at_most=True)
DONE = Target(1, note=" (it works)")


def rows(quick: bool) -> list[Row]:
    """Rows for time, memory and depth; Lantern alone."""
    sizes = (10_000, 30_000, 100_000) if quick else (100_000, 300_000, 1_000_000)
    return [
        *_time_rows(sizes, rounds=2 if quick else 5),
        *_memory_rows(sizes[-1]),
        _depth_row(900, "the default recursion limit"),
        _depth_row(10_000, "a higher recursion limit"),
    ]


def _time_rows(sizes: tuple[int, ...], rounds: int) -> list[Row]:
    samples: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size, taken in samples.items():
            taken += _fresh("seconds_per_operation", size)
    times = {size: Times(taken) for size, taken in samples.items()}
    found = [
        Row("million", f"{size:,} operations", 1e6 * t.median, "µs each", None, str(t))
        for size, t in times.items()
    ]
    paused = Times([_fresh("seconds_uncollected", sizes[-1])[0] for _ in range(rounds)])
    figure = f"{sizes[-1]:,} operations, collection paused"
    found.append(
        Row("million", figure, 1e6 * paused.median, "µs each", None, str(paused))
    )
    growth = times[sizes[-1]].median / times[sizes[0]].median
    figure = f"time of each, {sizes[-1]:,} ÷ {sizes[0]:,}"
    return [*found, Row("million", figure, growth, "", LINEAR)]


def _memory_rows(size: int) -> list[Row]:
    peak, kept = _fresh("traced_bytes_per_operation", size)
    (resident,) = _fresh("resident_bytes_per_operation", size)
    at = f"{size:,} operations"
    return [
        Row("million", f"memory, {at} (tracemalloc)", peak, "B each", BYTES),
        Row("million", f"memory, {at} (resident peak)", resident, "B each", BYTES),
        Row("million", f"memory kept afterwards, {at}", kept, "B each", KEPT),
    ]


def _depth_row(depth: int, limit: str) -> Row:
    figure = f"recursion {depth:,} deep, {limit}"
    try:
        (worked,) = _fresh("recursion", depth)
    except RuntimeError as error:
        return Row("million", figure, 0, "", DONE, str(error))
    return Row("million", figure, worked, "", DONE)


def _fresh(figure: str, size: int) -> list[float]:
    """The figure from a fresh interpreter; a failure there raises its last line."""
    command = [sys.executable, "-m", "benchmarks.million", figure, str(size)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{figure} at {size:,}: {lines[-1]}")
    return [float(word) for word in done.stdout.split()]


def seconds_per_operation(size: int) -> list[float]:
    """Forward and backward, once."""
    import lantern

    gradient = lantern.grad(chain)
    gradient(X, 1000)
    start = time.process_time()
    gradient(X, size)
    return [(time.process_time() - start) / size]


def seconds_uncollected(size: int) -> list[float]:
    """The same without the collector, which walks through what is suspended."""
    gc.disable()
    return seconds_per_operation(size)


def traced_bytes_per_operation(size: int) -> list[float]:
    """What Python holds at the end of the forward pass, and what it still holds."""
    import lantern

    held = []

    def program(x: Any) -> Any:
        y = chain(x, size)
        held.append(tracemalloc.get_traced_memory()[0])
        return y

    gradient = lantern.grad(program)
    lantern.grad(chain)(X, 1000)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    gradient(X)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    return [(held[0] - before) / size, (after - before) / size]


def resident_bytes_per_operation(size: int) -> list[float]:
    """How far the process's highest resident size grows, both passes included."""
    import lantern

    gradient = lantern.grad(chain)
    gradient(X, 1000)
    before = peak_resident()
    gradient(X, size)
    return [(peak_resident() - before) / size]


def recursion(depth: int) -> list[float]:
    """1 if a function that calls itself ``depth`` times is differentiated rightly."""
    import lantern

    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    if depth > 900:
        sys.setrecursionlimit(2 * depth)
    return [float(lantern.grad(power)(1.0, depth) == depth + 1)]


FIGURES: tuple[Callable[[int], list[float]], ...] = (
    seconds_per_operation,
    seconds_uncollected,
    traced_bytes_per_operation,
    resident_bytes_per_operation,
    recursion,
)

if __name__ == "__main__":
    wanted = {figure.__name__: figure for figure in FIGURES}[sys.argv[1]]
    print(*wanted(int(sys.argv[2])))

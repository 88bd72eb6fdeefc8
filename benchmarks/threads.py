"""A map over large matrix products in two threads: the gradient, so both passes.

It needs two cores, and takes the time on the clock. BLAS uses one thread on both sides.
"""

import os
import statistics
import subprocess
import sys
import time

from benchmarks.environment import use_all_cores
from benchmarks.table import Row, Target

SIZE, PARTS = 700, 8
TARGET = Target(1.5)
NAME, FIGURE = "threads", "speed-up of parallel_map on two cores"


def rows(quick: bool) -> list[Row]:
    """How many times as fast two threads are as the sequential program."""
    if (os.cpu_count() or 1) < 2 or not hasattr(os, "sched_setaffinity"):
        return [Row(NAME, FIGURE, None, "×", TARGET, "needs two cores, on Linux")]
    command = [sys.executable, "-m", "benchmarks.threads", str(3 if quick else 9)]
    lines = subprocess.check_output(command, text=True).splitlines()
    columns = zip(*(map(float, line.split()) for line in lines), strict=True)
    one, two, busy_one, busy_two = map(statistics.median, columns)
    detail = (
        f"one thread {one:.3g} s on the clock ({busy_one:.2f} cores busy), two threads "
        f"{two:.3g} s ({busy_two:.2f}); results identical to the last bit"
    )
    return [Row(NAME, FIGURE, one / two, "×", TARGET, detail)]


def _measure(rounds: int) -> None:
    """Print a line for each round; in a process of its own, which may use all cores."""
    use_all_cores()
    import numpy as np

    import lantern

    random = np.random.default_rng(0)
    w = random.standard_normal((SIZE, SIZE)) / SIZE**0.5
    batches = random.standard_normal((PARTS, SIZE, SIZE))

    def one(w: lantern.Tensor) -> lantern.Tensor:
        return sum(lantern.sum(lantern.tanh(x @ w) @ w) for x in batches)

    def two(w: lantern.Tensor) -> lantern.Tensor:
        parts = lantern.parallel_map(
            lambda x: lantern.sum(lantern.tanh(x @ w) @ w), batches, workers=2
        )
        return sum(parts)

    gradients = [lantern.grad(f) for f in (one, two)]
    if gradients[0](w).tobytes() != gradients[1](w).tobytes():
        raise RuntimeError("threads: the two gradients differ.")
    for _ in range(rounds):
        seconds, busy = [], []
        for gradient in gradients:
            start, processors = time.perf_counter(), time.process_time()
            gradient(w)
            seconds.append(time.perf_counter() - start)
            busy.append((time.process_time() - processors) / seconds[-1])
        print(*seconds, *busy)


if __name__ == "__main__":
    _measure(int(sys.argv[1]))

"""Element by element: the time of a write to a buffer does not grow with their number.

Neither does that of a read of one element, in first and in second derivatives.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Times
from benchmarks.table import Row, Target

LINEAR = Target(1.5, at_most=True)
SIZES = (1_000, 4_000)


def writes(n: int) -> Callable[[Any], Any]:
    """n elements written, and the array read once."""
    import lantern

    def f(x: Any) -> Any:
        b = lantern.Buffer(np.zeros(n))
        for i in range(n):
            b[i] = x[0]
        return lantern.sum(lantern.square(b))

    return f


def recurrence(n: int) -> Callable[[Any], Any]:
    """n elements, each written after the one before was read."""
    import lantern

    def f(x: Any) -> Any:
        b = lantern.Buffer(np.ones(n))
        for i in range(1, n):
            b[i] = b[i - 1] * x[0]
        return lantern.sum(b)

    return f


def reads(n: int) -> Callable[[Any], Any]:
    """n elements of an array that depends on x, read one by one."""

    def f(x: Any) -> Any:
        y = x[0] * np.linspace(0.1, 1.0, n)
        return sum(y[i] * y[i] for i in range(n))

    return f


def second(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of the gradient's sum."""
    import lantern

    gradient = lantern.grad(f)
    return lantern.grad(lambda x: lantern.sum(gradient(x)))


def rows(quick: bool) -> list[Row]:
    """For each program the time per element, and how it grows; Lantern alone."""
    import lantern

    found = []
    for program in (writes, recurrence, reads):
        for name, derivative in (("grad", lantern.grad), ("grad of grad", second)):
            short, long = _times(program, derivative, rounds=3 if quick else 7)
            figure = (
                f"{program.__name__}, {name}: time of each, {SIZES[1]} ÷ {SIZES[0]}"
            )
            growth, detail = min(long.samples) / min(short.samples), f"{short}, {long}"
            found.append(Row("buffer", figure, growth, "", LINEAR, detail))
    return found


def _times(program: Any, derivative: Any, rounds: int) -> list[Times]:
    x = np.array([0.999])
    samples: dict[int, list[float]] = {n: [] for n in SIZES}
    for _ in range(rounds):
        for n, taken in samples.items():
            run = derivative(program(n))
            start = time.process_time()
            run(x)
            taken.append((time.process_time() - start) / n)
    return [Times(taken) for taken in samples.values()]

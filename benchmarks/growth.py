"""Twice, four and eight times the work: what each unit of it costs, beside the first.

Lantern alone. A figure of 1 is linear; below it, what is paid once weighs less.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.entrant import Entrant, Program
from benchmarks.harness import Times, take_turns
from benchmarks.table import Row, Target

FACTORS = (1, 2, 4, 8)
LINEAR = Target(1.3, at_most=True)


def scalar_loop(factor: int) -> Program:
    """1,000 operations on one number."""
    import lantern

    def f(x: Any) -> Any:
        y = x
        for _ in range(500 * factor):
            y = y * x + x
        return y

    return partial(lantern.grad(f), 0.5)


def array_chain(factor: int) -> Program:
    """300 operations on 1,000 elements."""
    import lantern

    def f(x: Any) -> Any:
        y = x
        for _ in range(100 * factor):
            y = lantern.tanh(y * x + x)
        return y.sum()

    return partial(lantern.grad(f), np.linspace(0.1, 0.9, 1_000))


def wider_arrays(factor: int) -> Program:
    """30 operations on 50,000 elements."""
    import lantern

    def f(x: Any) -> Any:
        y = x
        for _ in range(10):
            y = lantern.tanh(y * x + x)
        return y.sum()

    return partial(lantern.grad(f), np.linspace(0.1, 0.9, 50_000 * factor))


def tree_recursion(factor: int) -> Program:
    """A recursive function on a tree of 256 leaves."""
    import lantern

    def fold(x: Any, leaves: int) -> Any:
        if leaves == 1:
            return lantern.sin(x)
        half = leaves // 2
        return lantern.tanh(fold(x, half) + x * fold(x, half))

    derivative = lantern.grad(lambda x: fold(x, 256 * factor))
    return partial(derivative, 0.7)


def batched_examples(factor: int) -> Program:
    """16 examples of up to 8 steps, each step run for all who wait at it."""
    import lantern

    @lantern.batched
    def cell(state: Any, *, weight: Any) -> Any:
        return lantern.tanh(state @ weight)

    def loss(weight: Any) -> Any:
        def run(steps: int) -> Any:
            state = np.ones(32)
            for _ in range(steps):
                state = cell(state, weight=weight)
            return state.sum()

        return sum(lantern.batch(run, [1 + i % 8 for i in range(16 * factor)]))

    return partial(lantern.grad(loss), np.eye(32) * 0.9)


def dense_jacobian(factor: int) -> Program:
    """The Jacobian of 40 outputs by 1,000 inputs.

    Inputs are added, not outputs: of m outputs by n inputs the work is m * m * n.
    """
    import lantern

    matrix = np.linspace(-1.0, 1.0, 40 * 1_000 * factor).reshape(40, -1)
    derivative = lantern.jacobian(lambda x: lantern.tanh(matrix @ x))
    return partial(derivative, np.linspace(0.0, 0.1, 1_000 * factor))


PROGRAMS: tuple[Callable[[int], Program], ...] = (
    scalar_loop,
    array_chain,
    wider_arrays,
    tree_recursion,
    batched_examples,
    dense_jacobian,
)


def rows(quick: bool) -> list[Row]:
    """For each program, and each factor, the time of a unit of work beside ×1's."""
    return [row for make in PROGRAMS for row in _rows(make, quick)]


def _rows(make: Callable[[int], Program], quick: bool) -> list[Row]:
    rounds, budget = (3, 0.05) if quick else (9, 0.2)
    entrants = {f: Entrant(make.__name__, partial(make, f), budget) for f in FACTORS}
    for entrant in entrants.values():
        if isinstance(entrant.result, Exception):
            raise entrant.result
    turns = take_turns({str(f): entrants[f] for f in FACTORS}, 1, rounds)
    times = {f: Times([t / f for t in turns[str(f)].samples]) for f in FACTORS}
    program = (make.__doc__ or "").splitlines()[0].rstrip(".")
    return [
        Row(
            "growth",
            f"{program}: time of each, ×{factor} ÷ ×1",
            min(times[factor].samples) / min(times[1].samples),
            "",
            LINEAR,
            f"{times[factor]} beside {times[1]}",
        )
        for factor in FACTORS[1:]
    ]

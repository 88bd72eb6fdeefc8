"""What the short ways into a rule, and back out of it, save beside the general ones.

Lantern alone: one operation, there and back, by the least of many runs of a chain.
``tests/every_op/test_short_ways.py`` holds the results of both to the same bits.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.table import Row

LENGTH = 500
TEN = np.linspace(0.1, 0.9, 10)
SQUARE = 0.5 * np.eye(3)
# An operation by its name, and the first operand; all further ones are the same.
NUMBERS: dict[str, Any] = {"multiply": 0.5, "sin": 0.5}
ARRAYS: dict[str, Any] = {
    "multiply": TEN,
    "sin": TEN,
    "matmul": SQUARE,
    "matrix_transpose": SQUARE,
}
SHORT: dict[str, Callable[[Any], Any]] = {
    "multiply": lambda x: x * x,
    "sin": lambda x: _lantern().sin(x),
    "matmul": lambda x: x @ x,
    "matrix_transpose": lambda x: x.mT,
}


def rows(quick: bool) -> list[Row]:
    """For each operation, what it takes, and what the general ways would add."""
    cases = [("a number", _gradient, *case) for case in NUMBERS.items()]
    cases += [("an array", _gradient, *case) for case in ARRAYS.items()]
    cases += [("an eager tensor", _backward, *case) for case in ARRAYS.items()]
    return [row for case in cases for row in _rows(5 if quick else 60, *case)]


def _rows(
    runs: int, of: str, derivative: Callable[..., Any], name: str, x: Any
) -> Iterator[Row]:
    from lantern.core.dispatch import start

    rule, short = _lantern().op.registry[name].rule, SHORT[name]

    def general(x: Any) -> Any:
        return start(rule, (x, x) if name in ("multiply", "matmul") else (x,), (), {})

    usual = derivative(short, x)
    usual()
    took, into, back = [], [], []
    for _ in range(runs):
        took.append(_time(usual))
        into.append(_time(derivative(general, x)))
        with _by_the_general_way_back():
            back.append(_time(usual))
    least = min(took)
    yield Row("short_ways", f"{name}, {of}", least, "ns")
    yield Row("short_ways", f"{name}, {of}: into it", min(into) - least, "ns more")
    yield Row("short_ways", f"{name}, {of}: back", min(back) - least, "ns more")


def _gradient(f: Callable[[Any], Any], x: Any) -> Callable[[], Any]:
    def chain(x: Any) -> Any:
        for _ in range(LENGTH):
            x = f(x)
        return x.sum() if hasattr(x, "sum") else x

    g = _lantern().grad(chain)
    return lambda: g(x)


def _backward(f: Callable[[Any], Any], x: Any) -> Callable[[], Any]:
    import lantern.torch as torch

    leaf = torch.tensor(x, requires_grad=True)

    def run() -> None:
        z = leaf
        for _ in range(LENGTH):
            z = f(z)
        z.sum().backward()
        leaf.grad = None

    return run


def _time(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return (time.perf_counter() - begun) / LENGTH * 1e9


@contextmanager
def _by_the_general_way_back() -> Iterator[None]:
    from lantern.core.value import Receiver
    from lantern.rules.number import Number
    from lantern.tensor.accumulate.accumulator import Accumulator

    short: list[Any] = [(cls, cls.resume) for cls in (Number, Accumulator)]
    try:
        for cls, _ in short:
            cls.resume = Receiver.resume
        yield
    finally:
        for cls, resume in short:
            cls.resume = resume


def _lantern() -> Any:
    import lantern

    return lantern

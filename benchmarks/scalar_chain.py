"""A long chain of cheap operations on one float: what each operation costs."""

import sys
from typing import Any

from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target

OPERATIONS = 10_000
X = 0.999  # y tends to x / (1 − x): neither it nor its derivative leaves the floats
TARGETS = {"PyTorch": Target(8), "autograd": Target(30), "micrograd": Target(2.5)}


def chain(x: Any, operations: int = OPERATIONS) -> Any:
    """The program, the same for every library."""
    y = x
    for _ in range(operations // 2):
        y = y * x
        y = y + x
    return y


def rows(quick: bool) -> list[Row]:
    """One row per peer."""
    makers = {
        LANTERN: _lantern,
        "PyTorch": _torch,
        "autograd": _autograd,
        "micrograd": _micrograd,
        "JAX": _jax,
    }
    return race("scalar_chain", OPERATIONS, makers, TARGETS, quick=quick)


def _lantern() -> Program:
    import lantern

    gradient = lantern.grad(chain)
    return lambda: gradient(X)


def _torch() -> Program | None:
    torch = peer("torch")
    if torch is None:
        return None

    def run() -> Any:
        x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
        chain(x).backward()
        return x.grad.item()

    return run


def _autograd() -> Program | None:
    autograd = peer("autograd")
    if autograd is None:
        return None
    gradient = autograd.grad(chain)
    return lambda: gradient(X)


def _micrograd() -> Program | None:
    engine = peer("micrograd.engine")
    if engine is None:
        return None

    def run() -> Any:
        x = engine.Value(X)
        y = chain(x)
        limit = sys.getrecursionlimit()
        # Its sort recurses once per operation. Python calls use no C stack since
        # 3.11, so a higher limit is all it needs to run unchanged.
        sys.setrecursionlimit(limit + 3 * OPERATIONS)
        try:
            y.backward()
        finally:
            sys.setrecursionlimit(limit)
        return x.grad

    return run


def _jax() -> Program | None:
    jax = peer("jax")
    if jax is None:
        return None
    gradient = jax.grad(chain)
    return lambda: gradient(X).block_until_ready()

"""One call of the smallest gradient: what starting and ending a derivative costs."""

from functools import partial
from typing import Any

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target

X = 3.0
TARGETS = {"PyTorch": Target(5)}


def square(x: Any) -> Any:
    """The program, the same for every library."""
    return x * x


def rows(quick: bool) -> list[Row]:
    """One row per peer."""
    makers: dict[str, Maker] = {
        LANTERN: partial(_grad, "lantern"),
        "PyTorch": _torch,
        "autograd": partial(_grad, "autograd"),
        "micrograd": _micrograd,
        "JAX": _jax,
    }
    return race("one_call", 1, makers, TARGETS, quick=quick)


def _grad(module: str) -> Program | None:
    """``grad(square)(3.0)``, spelled alike in Lantern and in autograd."""
    library = peer(module)
    if library is None:
        return None
    return lambda: library.grad(square)(X)


def _torch() -> Program | None:
    torch = peer("torch")
    if torch is None:
        return None

    def run() -> Any:
        x = torch.tensor(X, requires_grad=True)
        square(x).backward()
        return x.grad.item()

    return run


def _micrograd() -> Program | None:
    engine = peer("micrograd.engine")
    if engine is None:
        return None

    def run() -> Any:
        x = engine.Value(X)
        square(x).backward()
        return x.grad

    return run


def _jax() -> Program | None:
    jax = peer("jax")
    if jax is None:
        return None
    return lambda: jax.grad(square)(X).block_until_ready()

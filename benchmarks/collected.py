"""A recurrent network's weight, used 300 times: its products collected, and one by one.

Also against the other gradients of one weight: PyTorch adds a matrix for each use.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, peak_memory, race
from benchmarks.table import Row

STEPS, HIDDEN = 300, 256


def run(weight: Any, inputs: Any, state: Any, tanh: Any) -> Any:
    """The program, the same for every library."""
    for x in inputs:
        state = tanh(state @ weight + x)
    return (state * state).sum()


def data() -> tuple[Any, Any, Any]:
    """The weight, the inputs and the first state, in single precision."""
    random = np.random.default_rng(0)
    weight = 0.05 * random.standard_normal((HIDDEN, HIDDEN), dtype=np.float32)
    inputs = random.standard_normal((STEPS, 1, HIDDEN), dtype=np.float32)
    return weight, inputs, np.zeros((1, HIDDEN), np.float32)


def rows(quick: bool) -> list[Row]:
    """Time for each step beside the peers, and the peaks of memory."""
    makers: dict[str, Maker] = {
        LANTERN: partial(_lantern, 1.0),
        "Lantern, one by one": partial(_lantern, 0.0),
        "PyTorch": _torch,
    }
    found = race("collected", STEPS, makers, {}, quick=quick, rtol=1e-3)
    together, apart = (peak_memory(_lantern(share)) for share in (1.0, 0.0))
    detail = f"{together / 1e6:.2f} MB, one by one {apart / 1e6:.2f} MB"
    figure = "peak memory ÷ one by one's"
    return [*found, Row("collected", figure, together / apart, "", detail=detail)]


def _lantern(share: float) -> Program:
    import lantern
    from lantern.tensor.accumulate.deferred_products import Collector

    gradient = lantern.grad(partial(run, tanh=lantern.tanh))

    def program() -> Any:
        Collector.share = share
        return gradient(*data())

    return program


def _torch() -> Program | None:
    torch = peer("torch")
    if torch is None:
        return None

    def program() -> Any:
        weight, inputs, state = map(torch.from_numpy, data())
        weight.requires_grad_()
        run(weight, inputs, state, torch.tanh).backward()
        return weight.grad

    return program

"""A long chain of operations on arrays: small ones, medium ones, large ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, peak_memory, race
from benchmarks.table import Row, Target

TRIPLES = 333  # and the sum at the end: 1,000 operations
OPERATIONS = 3 * TRIPLES + 1
BY_HAND = "NumPy by hand"
TARGETS: dict[int, dict[str, Target]] = {
    10: {"PyTorch": Target(1 / 0.5, note=" (≤ 0.5 of its time)")},
    1_000: {"PyTorch": Target(1 / 0.6, note=" (≤ 0.6 of its time)")},
    100_000: {BY_HAND: Target(1 / 1.1, note=" (≤ 1.1 of its time)")},
}


def chain(x: Any, tanh: Callable[[Any], Any]) -> Any:
    """The program, the same for every library."""
    y = x
    for _ in range(TRIPLES):
        y = y * x
        y = y + x
        y = tanh(y)
    return y


def start(size: int) -> np.ndarray:
    """An x for which y stays finite and its derivative clear of the subnormals."""
    return np.linspace(-1.5, -0.8, size)


def rows(quick: bool) -> list[Row]:
    """A row per size and peer, and what the largest size takes in memory."""
    found = []
    for size, targets in TARGETS.items():
        x = start(size)
        makers: dict[str, Maker] = {
            LANTERN: partial(_lantern, x),
            "PyTorch": partial(_torch, x),
            "autograd": partial(_autograd, x),
            "JAX": partial(_jax, x),
            BY_HAND: partial(_numpy, x),
        }
        name = f"tensor_chain, {size:,} elements"
        found += race(name, OPERATIONS, makers, targets, quick=quick)
    return [*found, _memory_row(name, x)]


def by_hand(x: np.ndarray) -> np.ndarray:
    """The gradient as one would write it out: only what is needed is kept."""
    y = x
    kept = [y]
    for _ in range(TRIPLES):
        y = np.tanh(y * x + x)
        kept.append(y)
    x_bar = np.zeros_like(x)
    y_bar = np.ones_like(x)
    while len(kept) > 1:
        y = kept.pop()
        y_bar = y_bar * (1 - y * y)
        x_bar += y_bar
        x_bar += y_bar * kept[-1]
        y_bar = y_bar * x
    return x_bar + y_bar


def _memory_row(name: str, x: np.ndarray) -> Row:
    ours, theirs = (peak_memory(run) / 1e6 for run in (_lantern(x), _numpy(x)))
    detail = f"{LANTERN} {ours:.0f} MB, {BY_HAND} {theirs:.0f} MB"
    return Row(name, f"peak memory ÷ {BY_HAND}'s", ours / theirs, "", None, detail)


def _numpy(x: np.ndarray) -> Program:
    return lambda: by_hand(x)


def _lantern(x: np.ndarray) -> Program:
    import lantern

    gradient = lantern.grad(lambda x: lantern.sum(chain(x, lantern.tanh)))
    return lambda: gradient(x)


def _torch(values: np.ndarray) -> Program | None:
    torch = peer("torch")
    if torch is None:
        return None

    def run() -> Any:
        x = torch.from_numpy(values).requires_grad_()
        chain(x, torch.tanh).sum().backward()
        return x.grad

    return run


def _autograd(x: np.ndarray) -> Program | None:
    autograd, xp = peer("autograd"), peer("autograd.numpy")
    if autograd is None or xp is None:
        return None
    gradient = autograd.grad(lambda x: xp.sum(chain(x, xp.tanh)))
    return lambda: gradient(x)


def _jax(values: np.ndarray) -> Program | None:
    jax, xp = peer("jax"), peer("jax.numpy")
    if jax is None or xp is None:
        return None
    x = xp.asarray(values)
    gradient = jax.grad(lambda x: xp.sum(chain(x, xp.tanh)))
    return lambda: gradient(x).block_until_ready()

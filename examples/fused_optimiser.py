"""Train a deep perceptron without ever holding its whole gradient.

The backward pass is a loop of the program's own. As soon as the gradient of one weight
is complete it is clipped by its own norm, used for the update, and dropped; then the
pass goes on. The result is that of the plain way to the last bit, in less memory.
"""

import argparse
import itertools
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lantern

DATA = Path(__file__).with_name("digits.npz")
WIDTH, DEPTH, BATCH_SIZE, LIMIT, RATE = 256, 16, 32, 0.5, 0.03

Array = NDArray[Any]
Weights = list[Array]
Step = Callable[[Weights, Array, Array], float]


def initial(rng: np.random.Generator) -> Weights:
    """Return one matrix for each layer: 64 pixels, DEPTH times WIDTH, 10 digits."""
    sizes = [64, *[WIDTH] * DEPTH, 10]
    return [rng.normal(size=(n, m)) / np.sqrt(n) for n, m in itertools.pairwise(sizes)]


def loss(weights: Weights, x: Array, labels: Array) -> Any:
    """Return the mean of -log p(label). x: (n, 64); labels: (n,)."""
    h = x
    for w in weights[:-1]:
        step = np.tanh(h @ w)
        h = step if h is x else h + 0.5 * step
    log_p = lantern.log_softmax(h @ weights[-1])
    return -log_p[np.arange(len(labels)), labels].mean()


def clipped(g: Array) -> Array:
    """Return a gradient that is no longer than LIMIT."""
    norm = np.linalg.norm(g)
    return g if norm <= LIMIT else g * (LIMIT / norm)


def plain_step(weights: Weights, x: Array, labels: Array) -> float:
    """Take one step in the usual way: first the whole gradient, then the update."""
    value, gradient = lantern.value_and_grad(loss)(weights, x, labels)
    for w, g in zip(weights, gradient, strict=True):
        w -= RATE * clipped(g)
    return float(value)


def fused_step(weights: Weights, x: Array, labels: Array) -> float:
    """Take one step inside the backward pass: each weight as its gradient is born."""
    steps = lantern.backward_steps(loss, weights, x, labels)
    for op, cotangents in steps:
        if op.is_input:
            weights[op.path[0]] -= RATE * clipped(cotangents[0])
    return float(steps.value)


def train(step: Step, count: int, seed: int) -> tuple[Weights, list[float], float]:
    """Return the weights, the losses, and the peak memory of a step in MiB."""
    rng = np.random.default_rng(seed)
    with np.load(DATA) as data:
        x, labels = data["images"].reshape(-1, 64) / 16.0, data["labels"]
    weights, losses = initial(rng), []
    tracemalloc.start()
    for _ in range(count):
        chosen = rng.integers(len(x), size=BATCH_SIZE)
        losses.append(step(weights, x[chosen], labels[chosen]))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return weights, losses, peak


def main() -> None:
    """Train in both ways, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="of each training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    plain, losses, peak = train(plain_step, options.steps, options.seed)
    fused, fused_losses, fused_peak = train(fused_step, options.steps, options.seed)
    print(f"loss: {losses[0]:.3f} at first, {losses[-1]:.3f} after {len(losses)} steps")
    print(f"peak memory of a step: {peak:.1f} MiB plain, {fused_peak:.1f} MiB fused")
    same = losses == fused_losses and all(map(np.array_equal, plain, fused))
    print(f"the weights are {'the same to the last bit' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()

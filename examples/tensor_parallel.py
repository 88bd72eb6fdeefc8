"""Megatron's block: one matrix by columns, the next by rows, on every process a part.

``python -m lantern.distributed.run --nproc_per_node 2 examples/tensor_parallel.py``
trains it and compares with one process that has everything.
"""

import argparse

import numpy as np

import lantern
import lantern.distributed as dist

WIDTH, HIDDEN, STEPS = 8, 24, 20


def block(p, x):
    """Each process has some columns of ``a``, and these rows of ``b``."""
    x = dist.replicated(x)
    return dist.all_reduce(np.tanh(x @ p["a"]) @ p["b"], loss="replicated")


def whole(p, x):
    """The same, in one process."""
    return np.tanh(x @ p["a"]) @ p["b"]


def train(model, p, x, y):
    """The losses of some steps of gradient descent, and the parameters then."""
    losses = []
    for _ in range(STEPS):
        loss, g = lantern.value_and_grad(lambda p: ((model(p, x) - y) ** 2).mean())(p)
        p = {k: p[k] - 0.5 * g[k] for k in p}
        losses.append(float(loss))
    return losses, p


def main():
    """Train both ways, and compare."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    dist.init()
    rank, size = dist.rank(), dist.world_size()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 32, WIDTH))
    p = {"a": rng.normal(size=(WIDTH, HIDDEN)), "b": rng.normal(size=(HIDDEN, WIDTH))}
    p = {k: v / 5 for k, v in p.items()}
    mine = slice(rank * HIDDEN // size, (rank + 1) * HIDDEN // size)
    part = {"a": p["a"][:, mine], "b": p["b"][mine]}
    losses, part = train(block, part, x, y)
    true, p = train(whole, p, x, y)
    apart = max(abs(a - b) for a, b in zip(losses, true, strict=True))
    apart = max(apart, float(abs(part["a"] - p["a"][:, mine]).max()))
    apart = dist.all_reduce(apart, "max")
    if rank == 0:
        print(
            f"{size} processes: the loss goes from {losses[0]:.3f} to {losses[-1]:.3f}"
        )
        print(f"at most 1e-12 from one process: {apart <= 1e-12}")


if __name__ == "__main__":
    main()

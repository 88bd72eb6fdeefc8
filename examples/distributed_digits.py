"""Digits, learned by one process or by several: the script is the same.

``python examples/distributed_digits.py``, ``mpiexec -n 2 python examples/
distributed_digits.py`` and ``python -m lantern.distributed.run --nproc_per_node 2
examples/distributed_digits.py`` come to the same weights, up to rounding: each process
has its part of every batch.
"""

import argparse
from pathlib import Path

import numpy as np

import lantern
import lantern.distributed as dist

EPOCHS, BATCH = 12, 96


def logits(p, x):
    """Of the ten digits."""
    return np.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def loss(p, x, y):
    """The cross entropy of this process's examples, as a share of the whole batch."""
    log_shares = lantern.log_softmax(logits(p, x), axis=1)
    return -log_shares[np.arange(len(y)), y].sum() / BATCH


def main():
    """Train, and let the first process say what came of it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    dist.init()
    rank, size = dist.rank(), dist.world_size()
    with np.load(Path(__file__).with_name("digits.npz")) as data:
        x, y = data["images"].reshape(-1, 64) / 16.0, data["labels"]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    x, y = x[order].astype(np.float64), y[order].astype(np.int64)
    p = {
        "w1": rng.normal(0, 0.2, (64, 32)),
        "b1": np.zeros(32),
        "w2": rng.normal(0, 0.2, (32, 10)),
        "b2": np.zeros(10),
    }
    train = len(x) * 4 // 5 // BATCH * BATCH
    for _ in range(EPOCHS):
        for start in range(0, train, BATCH):
            mine = slice(start + rank, start + BATCH, size)
            g = dist.psum(lantern.grad(loss)(p, x[mine], y[mine]))
            p = {k: p[k] - 0.5 * g[k] for k in p}
    right = (logits(p, x[train:]).argmax(1) == y[train:]).mean()
    if rank == 0:
        print(f"{100 * right:.1f} % of unseen digits are read right")
        print(f"all weights add up to {sum(v.sum() for v in p.values()):.9f}")


if __name__ == "__main__":
    main()

"""A pipeline, one forward and one backward in turn (1F1B), as paused backward passes.

A stage receives what the stage before it sends, and sends what it makes of it. That is
its forward pass; its way back is an iterator, ``backward_steps``, which waits until the
schedule says that its turn has come. The schedule is a loop.

``python -m lantern.distributed.run --nproc_per_node 3 examples/pipeline.py`` compares
with one process, and with ``--picture FILE`` draws who did what when.
"""

import argparse
import time
from collections import deque

import numpy as np

import lantern
import lantern.distributed as dist

WIDTH, MICRO, BATCH = 64, 8, 64


def stage(p, x):
    """A layer."""
    return np.tanh(x @ p["w"] + p["b"])


def loss(y, target):
    """Of one micro-batch."""
    return ((y - target) ** 2).mean() / MICRO


def pipeline(p, xs, targets, note):
    """The gradient of this process's stage, for all micro-batches together."""
    rank, last = dist.rank(), dist.world_size() - 1
    nothing = np.zeros_like(xs[0])

    def micro_batch(p, like, m):
        x = dist.recv(like, rank - 1, tag=m) if rank else xs[m] + like
        y = stage(p, x)
        return loss(y, targets[m]) if rank == last else dist.send(y, rank + 1, tag=m)

    paused, total = deque(), lantern.tree_map(np.zeros_like, p)

    def back():
        steps, m = paused.popleft()
        with note("backward", m):
            for op, (g, *_) in steps:
                if op.is_input and op.path[0] == 0:
                    total[op.path[1]] += g

    for m in range(MICRO):
        with note("forward", m):
            steps = lantern.backward_steps(micro_batch, p, nothing, m, argnums=(0, 1))
        paused.append((steps, m))
        if m >= last - rank:
            back()
    while paused:
        back()
    return total


class Note:
    """When this process did what: (what, micro-batch, from, to)."""

    def __init__(self):
        self.events = []

    def __call__(self, what, m):
        self.what = what, m
        return self

    def __enter__(self):
        self.began = time.time()

    def __exit__(self, *error):
        self.events.append((*self.what, self.began, time.time()))


def main(arguments=None):
    """Compute the gradients both ways, compare, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to draw the timeline")
    options = parser.parse_args(arguments)
    dist.init()
    rank, size = dist.rank(), dist.world_size()
    rng = np.random.default_rng(0)
    xs, targets = rng.normal(size=(2, MICRO, BATCH, WIDTH))
    stages = [
        {"w": rng.normal(size=(WIDTH, WIDTH)) / 8, "b": np.zeros(WIDTH)}
        for _ in range(size)
    ]

    def whole(stages):
        total = 0.0
        for x, target in zip(xs, targets, strict=True):
            for p in stages:
                x = stage(p, x)
            total = total + loss(x, target)
        return total

    note = Note()
    pipeline(stages[rank], xs, targets, Note())  # once, to warm up
    dist.barrier()
    mine, true = pipeline(stages[rank], xs, targets, note), lantern.grad(whole)(stages)
    apart = max(float(abs(mine[k] - true[rank][k]).max()) for k in mine)
    apart = dist.all_reduce(apart, "max")
    if rank == 0:
        print(f"{size} stages: at most 1e-12 from one process: {apart <= 1e-12}")
    if options.picture:
        rows = np.array([[w == "forward", m, a, b] for w, m, a, b in note.events])
        draw(options.picture, dist.gather(rows), rank)


def draw(path, rows, rank):
    """A bar for every pass: blue there, orange back."""
    if rank:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.6 * len(rows) + 1.2))
    start = rows[..., 2].min()
    for r, row in enumerate(rows):
        for forward, m, a, b in row:
            colour = "tab:blue" if forward else "tab:orange"
            axes.barh(
                r, 1e3 * (b - a), left=1e3 * (a - start), color=colour, edgecolor="w"
            )
            axes.text(1e3 * ((a + b) / 2 - start), r, int(m), ha="center", va="center")
    axes.set(yticks=range(len(rows)), xlabel="ms; blue forward, orange backward")
    axes.set_yticklabels([f"stage {r}" for r in range(len(rows))])
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()

"""One training program for PyTorch and for Lantern: its losses are to be the same.

It covers small buckets, ``no_sync``, Adam, an uneven last batch, unused parameters,
buffers and ``Join``. Data and parameters come from NumPy, so that both have the same.
"""

import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    """Two ways from the hidden layer; a pass may take one of them."""

    def __init__(self):
        super().__init__()
        # A bias in front of a norm has no gradient but rounding, which Adam enlarges.
        self.first, self.norm = nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16)
        self.left, self.right = nn.Linear(16, 3), nn.Linear(16, 3)

    def forward(self, x, way):
        """Of the left way, the right one, or both."""
        h = torch.tanh(self.norm(self.first(x)))
        if way == 0:
            return self.left(h)
        return self.right(h) if way == 1 else self.left(h) - self.right(h)


def filled(model, seed):
    """The model with parameters that NumPy draws."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
    return model


def main():
    """Train, and let the first process print every loss of every process."""
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(7)
    x = torch.from_numpy(rng.normal(size=(10, 4 * size + 1, 6)))
    y = torch.from_numpy(rng.normal(size=(10, 4 * size + 1, 3)))
    losses = []

    def step(model, i, way):
        loss = (model(x[i, rank::size], way) - y[i, rank::size]).pow(2).mean()
        loss.backward()
        losses.append(loss.item())

    model = DistributedDataParallel(
        filled(Model(), rank), bucket_cap_mb=0.0005, find_unused_parameters=True
    )
    adam = torch.optim.Adam(model.parameters(), lr=0.02)
    for i in range(10):
        adam.zero_grad()
        if i % 3 == 2:
            with model.no_sync():
                step(model, i - 1, 2)
        step(model, i, (i + rank) % 3 if i % 2 else 2)
        adam.step()
    model.eval()
    losses.append(model(x[0], 2).sum().item())
    model.train()
    other = DistributedDataParallel(filled(Model(), 5), bucket_cap_mb=0.0005)
    sgd = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    with Join([other]):
        for i in range(3 + 2 * rank):
            sgd.zero_grad()
            step(other, i, 2)
            sgd.step()
    losses += [p.sum().item() for p in other.parameters()]
    everyone = [None] * size
    dist.all_gather_object(everyone, losses)
    if rank == 0:
        text = "\n".join(f"{loss!r}" for part in everyone for loss in part)
        sys.stdout.write(f"{text}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""What scripts of ``torch_ddp_scripts.py`` find: two "GPUs" that are the processor,
numbers that NumPy draws, and a note of every loss whose backward pass begins.

It is the first import of each script, under PyTorch and under Lantern.
"""

import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import distributed

RANKS = 2
_rng = {}


def rng():
    """This process's numbers, as a rank has them from the moment that it is one."""
    rank = dist.get_rank() if dist.is_initialized() else -1
    return _rng.setdefault(rank, np.random.default_rng(rank + 1))


def drawn(name):
    def draw(*shape, **options):
        shape = shape[0] if shape and not isinstance(shape[0], int) else shape
        values = getattr(rng(), {"rand": "random", "randn": "standard_normal"}[name])
        return torch.tensor(values(tuple(shape)), dtype=torch.get_default_dtype())

    return draw


def on_processor(method):
    def to(self, *where, **options):
        kept = [w for w in where if not isinstance(w, int | torch.device)]
        return method(self, *kept) if kept else self

    return to


def noted(method):
    def backward(self, *arguments, **options):
        with open(os.environ["LOSSES"], "a") as file:
            file.write(f"{dist.get_rank()} {float(self.detach())!r}\n")
        return method(self, *arguments, **options)

    return backward


class Parallel(nn.parallel.DistributedDataParallel):
    """Without devices, and with parameters that NumPy draws."""

    def __init__(self, module, device_ids=None, output_device=None, **options):
        rng = np.random.default_rng(dist.get_rank())
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
        super().__init__(module, **options)


def init_process_group(backend=None, **options):
    _init("gloo", **options)


class Sampler(distributed.DistributedSampler):
    """In order: shuffles draw other numbers in each library."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{**options, "shuffle": False})


class Loader(torch.utils.data.DataLoader):
    """Without the memory that only a GPU reads from."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{**options, "pin_memory": False})


_init = dist.init_process_group
dist.init_process_group = init_process_group
torch.set_default_dtype(torch.float64)
torch.rand, torch.randn = drawn("rand"), drawn("randn")
torch.Tensor.to, nn.Module.to = map(on_processor, (torch.Tensor.to, nn.Module.to))
torch.Tensor.backward = noted(torch.Tensor.backward)
nn.parallel.DistributedDataParallel = Parallel
distributed.DistributedSampler = torch.utils.data.DistributedSampler = Sampler
torch.utils.data.DataLoader = Loader
torch.cuda.device_count = lambda: RANKS
torch.cuda.set_device = lambda device: None
if hasattr(torch, "accelerator"):
    torch.accelerator.is_available = lambda: True
    torch.accelerator.device_count = lambda: RANKS
    torch.accelerator.current_accelerator = lambda *rest: torch.device("cpu")
    torch.accelerator.set_device_index = lambda device: None

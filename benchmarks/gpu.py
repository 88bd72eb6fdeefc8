"""Gradients of arrays on a GPU, from a thousand elements to a hundred million.

And training steps of networks. Needs CuPy and a GPU, and is not among the benchmarks
that run by themselves. What is taken is the time on the clock, until the GPU has done
all it was given.
"""

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from benchmarks import networks
from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target
from benchmarks.training import MODULES, draws, gpt_step, same_start, training_step

SIZES = [10**n for n in range(3, 9)]
STEPS = 10


def chain(xp: Any, x: Any) -> Any:
    """Thirty elementwise operations, and a sum."""
    y = x
    for _ in range(STEPS):
        y = y * x
        y = y + x
        y = xp.tanh(y)
    return y.sum()


def matmul(xp: Any, x: Any) -> Any:
    """A product of two square matrices, and a sum."""
    return (x @ (x + 1.0)).sum()


def softmax(xp: Any, x: Any) -> Any:
    """The softmax of each row, and the mean of its squares."""
    return (xp.softmax(x, -1) ** 2).mean()


def reduction(xp: Any, x: Any) -> Any:
    """Sums over rows, and the sum of their squares."""
    return (x.sum(1) ** 2).sum()


PROGRAMS = {f.__name__: f for f in (chain, matmul, softmax, reduction)}


def start(name: str, size: int) -> np.ndarray:
    """The argument, in single precision."""
    rows = round(size**0.5) if name == "matmul" else max(1, size // 1000)
    shape = (rows, rows) if name == "matmul" else (rows, size // rows)
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def rows(quick: bool) -> list[Row]:
    """A row per program and size."""
    found = []
    for name in PROGRAMS:
        for size in SIZES:
            makers = {
                LANTERN: partial(_lantern, name, size),
                "PyTorch": partial(_torch, name, size),
            }
            title = f"gpu {name}, 10^{len(str(size)) - 1} elements"
            found += race(title, 1, makers, {}, quick=quick, rtol=1e-3)
    for title, make in STEPS_OF.items():
        makers = {who: partial(_step, make, MODULES[who]) for who in MODULES}
        target = {"PyTorch": Target(1 / 1.1)}
        found += race(f"gpu step: {title}", 1, makers, target, quick=quick, rtol=5e-2)
    return found


def _step(make: Any, module: str) -> Program | None:
    cupy, torch = peer("cupy"), peer("torch")
    if cupy is None or torch is None or not torch.cuda.is_available():
        return None
    library = import_module(module)
    step = make(library)
    return OnDevice(lambda: step()[0], torch.cuda.synchronize, lambda z: z.cpu())


def _classifier(batch: int, torch: Any, device: str = "cuda", side: int = 224) -> Any:
    """A step of ResNet-50, whose layers have the same names in both libraries."""
    ours = torch.__name__.startswith("lantern")
    models = import_module("lantern.models" if ours else "torchvision.models")
    model = same_start(torch, models.resnet50()).to(device)
    x = draws(torch, batch, 3, side, side).to(device)
    y = draws(torch, batch, classes=1000).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    loss = torch.nn.functional.cross_entropy
    return training_step(model, optimiser, lambda: loss(model(x), y))


def _gpt(sizes: Any, batch: int, torch: Any, device: str = "cuda") -> Any:
    """A step of a network of ``networks.gpt``."""
    *_, context, words = sizes
    model = networks.gpt(torch, *sizes).to(device)
    return gpt_step(model, batch, context, words, torch, device)


STEPS_OF = {
    **{f"ResNet-50, batch {n}": partial(_classifier, n) for n in (32, 64, 128)},
    "GPT-2, 124 million weights": partial(_gpt, (12, 768, 12, 512, 50257), 8),
    "GPT, 4 layers, 128 wide": partial(_gpt, (4, 128, 4, 128, 65), 16),
}


class OnDevice:
    """A program that is timed by the clock, and gives the first numbers it found."""

    clock: ClassVar[Callable[[], float]] = time.perf_counter

    def __init__(self, run: Callable[[], Any], wait: Any, host: Any) -> None:
        self.run, self.wait, self.host = run, wait, host

    def __call__(self) -> "First":
        """Run, and wait for the GPU."""
        z = self.run()
        self.wait()
        return First(z, self.host)


class First:
    """The first elements of an array on a device, when somebody looks."""

    def __init__(self, x: Any, host: Any) -> None:
        self.x, self.host = x, host

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.host(self.x.reshape(-1)[:1000]), dtype)


def _lantern(name: str, size: int) -> Program | None:
    cupy = peer("cupy")
    if cupy is None:
        return None
    import lantern

    gradient = lantern.grad(partial(PROGRAMS[name], lantern))
    x = cupy.asarray(start(name, size))
    wait = cupy.cuda.get_current_stream().synchronize
    return OnDevice(lambda: gradient(x), wait, lambda z: z.get())


def _torch(name: str, size: int) -> Program | None:
    torch = peer("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    x = torch.from_numpy(start(name, size)).cuda().requires_grad_()
    program = PROGRAMS[name]

    def run() -> Any:
        program(torch, x).backward()
        gradient, x.grad = x.grad, None
        return gradient

    return OnDevice(run, torch.cuda.synchronize, lambda z: z.cpu())

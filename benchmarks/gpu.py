"""Gradients of arrays on a GPU, from a thousand elements to a hundred million.

Needs CuPy and a GPU, and is not among the benchmarks that run by themselves. What is
taken is the time on the clock, until the GPU has done all it was given.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row

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
    return found


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

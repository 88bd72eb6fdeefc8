"""Programs of Lantern alone, beside an earlier state of it: for those who change it.

``LANTERN_BEFORE`` is a folder with the earlier ``lantern`` package, such as a worktree.
A figure below one says that the program has become slower.

Where its arrays come to lie decides about 4 % of the time of a short program, and is
the same each time that it is started. So it runs in several processes, each of which
finds its memory in another state; and in many short turns, for who shares a computer
with others finds it at another speed a moment later. That only adds to a time: each
process counts with its least one, and the figure is the ratio of their medians.
"""

import os
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import jacobians, mlp_step, training, zygote_table
from benchmarks.entrant import Program
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target
from benchmarks.training import draws, same_start, training_step

BEFORE = "LANTERN_BEFORE"
HEATS, TURNS, BUDGET = 11, 40, 0.01


def rows(quick: bool) -> list[Row]:
    """A row for each program."""
    folder = os.environ.get(BEFORE)
    if not folder:
        told = f"set {BEFORE} to the folder of an earlier state"
        return [Row("before", "times as fast as before", None, "×", detail=told)]
    table = []
    for name in PROGRAMS:
        makers = {LANTERN: partial(_now, name), "before": partial(_then, name, folder)}
        target = {"before": Target(0.98)}
        table += race(
            f"before: {name}", 1, makers, target, rtol=1e-4,
            turns=TURNS, heats=2 if quick else HEATS, budget=BUDGET, by_least=True,
        )  # fmt: skip
    return [*table, _start_up(folder, 2 if quick else HEATS)]


def _start_up(folder: str, heats: int) -> Row:
    """A program that imports all it needs, takes one step, and ends."""
    here = os.path.dirname(os.path.dirname(__file__))  # where it finds the package
    starts = {LANTERN: ("lantern.torch", here), "before": ("lantern.torch", folder)}
    times = training.start_times(starts, heats, tries=5)
    ratio = times["before"].median / times[LANTERN].median
    detail = ", ".join(f"{who} {taken}" for who, taken in times.items())
    return Row(
        "before: start-up", "times as fast as before", ratio, "×", Target(0.98), detail
    )


_held: list[Any] = []


def _stir() -> None:
    """Take memory in pieces of all sizes, and give every other one back."""
    pieces = [np.empty(random.randrange(16, 6000), np.uint8) for _ in range(300)]
    _held.append(pieces[::2])


def _now(name: str) -> Program:
    _stir()
    return PROGRAMS[name]()


def _then(name: str, folder: str) -> Program:
    """The program in a process that finds the earlier package first."""
    assert "lantern" not in sys.modules
    sys.path.insert(0, folder)
    _stir()
    program = PROGRAMS[name]()
    assert str(sys.modules["lantern"].__file__).startswith(os.path.realpath(folder))
    return program


def _grad(f: Callable[[Any], Any], x: Any) -> Program:
    import lantern

    gradient = lantern.grad(f)
    return lambda: gradient(x)


def _number_chain() -> Program:
    def f(x: Any) -> Any:
        y = x
        for _ in range(500):
            y = y * x
            y = y + x
        return y

    return _grad(f, 0.5)


def _sines() -> Program:
    import lantern

    def f(x: Any) -> Any:
        for _ in range(500):
            x = lantern.sin(x)
        return x

    return _grad(f, 0.5)


def _array_chain() -> Program:
    def f(x: Any) -> Any:
        y = x
        for _ in range(300):
            y = np.tanh(y * x + x)
        return y.sum()

    return _grad(f, np.linspace(0.1, 0.9, 10))


def _layer() -> Program:
    x = np.linspace(-1, 1, 12).reshape(3, 4)
    return _grad(lambda w: np.tanh(x @ w).sum(), np.ones((4, 2)))


def _two_dimensional() -> Program:
    import lantern

    f = lantern.vmap(lantern.grad(lambda x: (x * lantern.sin(x)).sum()))
    return lambda: f(np.linspace(0, 1, 24).reshape(8, 3))


def _jacobian() -> Program:
    import lantern

    x, *weights = jacobians.data("jacobian", True)
    f = lantern.jacobian(lambda x: jacobians.network(lantern, x, *weights))
    return lambda: f(x)


def _small_backward() -> Program:
    import lantern.torch as torch

    x = torch.linspace(0.1, 0.9, 10).requires_grad_()

    def run() -> Any:
        x.grad = None
        (x * x).sum().backward()
        return x.grad

    return run


def _eager_chain() -> Program:
    import lantern.torch as torch

    leaf = torch.linspace(0.1, 0.9, 10).requires_grad_()

    def run() -> Any:
        leaf.grad, z = None, leaf
        for _ in range(300):
            z = torch.tanh(z * leaf + leaf)
        z.sum().backward()
        return leaf.grad

    return run


def _double_backward() -> Program:
    import lantern.torch as torch

    x = torch.linspace(0.1, 0.9, 10).requires_grad_()

    def run() -> Any:
        y = (torch.tanh(x) * x * x).sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        return torch.autograd.grad((slope * slope).sum(), x)[0]

    return run


def _views() -> Program:
    import lantern.torch as torch

    x = torch.ones(8, 6).requires_grad_()

    def run() -> Any:
        x.grad = None
        y = x.view(6, 8).transpose(0, 1)[2:].unsqueeze(0).reshape(-1)
        (y * y).sum().backward()
        return x.grad

    return run


def _forward_alone() -> Program:
    import lantern.torch as torch

    layers = torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    model = same_start(torch, torch.nn.Sequential(*layers))
    x = draws(torch, 64, 64)

    def run() -> Any:
        with torch.no_grad():
            return model(x)

    return run


def _transformer() -> Program:
    import lantern.torch as torch

    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model, x = same_start(torch, layer), draws(torch, 4, 16, 32)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    return training_step(model, optimiser, lambda: (model(x) ** 2).mean())


def _recurrent() -> Program:
    import lantern.torch as torch

    parts = torch.nn.Embedding(50, 16), torch.nn.GRU(16, 32)
    model = same_start(torch, torch.nn.ModuleList(parts))
    text = draws(torch, 10, 4, classes=50)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def loss() -> Any:
        return (model[1](model[0](text))[0] ** 2).mean()

    return training_step(model, optimiser, loss)


def _script(name: str) -> Program:
    import lantern.torch as torch

    return training.SCRIPTS[name][0](torch)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "one call": lambda: _grad(lambda x: x * x, 3.0),
    "numbers": _number_chain,
    "sines": _sines,
    "arrays": _array_chain,
    "np.tanh(x @ w)": _layer,
    "vmap of grad": _two_dimensional,
    "jacobian": _jacobian,
    "hessian": partial(jacobians.of_lantern, "hessian", False),
    "per example": partial(jacobians.of_lantern, "per_example", False),
    "logistic regression": partial(zygote_table.of_lantern, "logistic regression"),
    "perceptron, batch 1": partial(zygote_table.of_lantern, "MLP 784-32-10, batch 1"),
    "mlp step": mlp_step.of_lantern,
    "small backward": _small_backward,
    "eager chain": _eager_chain,
    "double backward": _double_backward,
    "views": _views,
    "forward alone": _forward_alone,
    "transformer layer": _transformer,
    "embedding and GRU": _recurrent,
    **{f"training {name}": partial(_script, name) for name in training.SCRIPTS},
}

"""Training steps of the same script under ``lantern.torch`` and under PyTorch.

The script is given once, for a ``torch`` that is either of them; both start from the
same weights and see the same data. In single precision, as such scripts are.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks import networks
from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, Times, race
from benchmarks.import_time import ENVIRONMENT
from benchmarks.table import Row, Target

MODULES = {LANTERN: "lantern.torch", "PyTorch": "torch"}


def rows(quick: bool) -> list[Row]:
    """One row for each script, and one for the start of a program."""
    table = []
    for name, (make, times) in SCRIPTS.items():
        makers = {who: partial(program_of, make, MODULES[who]) for who in MODULES}
        target = {"PyTorch": Target(1 / times)}
        table += race(f"training {name}", 1, makers, target, quick=quick, rtol=1e-3)
    return [*table, _start_up(3 if quick else 9)]


def program_of(make: Callable[[Any], Program], module: str) -> Program | None:
    """The program for one of the libraries; None where it is missing."""
    torch = peer(module)
    return None if torch is None else make(torch)


def same_start(torch: Any, model: Any) -> Any:
    """Weights that do not depend on the library's own random numbers."""
    import numpy as np

    random = np.random.default_rng(0)
    with torch.no_grad():
        for p in model.parameters():
            values = 0.05 * random.standard_normal(tuple(p.shape))
            p.copy_(torch.from_numpy(values.astype(np.float32)))
    return model


def draws(torch: Any, *shape: int, classes: int = 0) -> Any:
    """Normal draws, or classes, that do not depend on the library."""
    import numpy as np

    random = np.random.default_rng(1)
    if classes:
        return torch.from_numpy(random.integers(0, classes, shape))
    return torch.from_numpy(random.standard_normal(shape).astype(np.float32))


def training_step(model: Any, optimiser: Any, loss_of: Callable[[], Any]) -> Program:
    """One step of training; it gives the loss and the first parameter."""
    first = next(iter(model.parameters()))

    def run() -> list[Any]:
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        optimiser.step()
        return [loss.detach(), first.detach()]

    return run


def _mlp(torch: Any, batch: int = 64) -> Program:
    nn = torch.nn
    layers = (nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    model = same_start(torch, nn.Sequential(*layers))
    x, y = draws(torch, batch, 784), draws(torch, batch, classes=10)
    optimiser, loss = (
        torch.optim.SGD(model.parameters(), lr=0.01),
        nn.CrossEntropyLoss(),
    )
    return training_step(model, optimiser, lambda: loss(model(x), y))


def _char_lstm(torch: Any) -> Program:
    nn, n, hidden, steps = torch.nn, 64, 128, 50
    parts = {
        "embed": nn.Embedding(n, 32),
        "cell": nn.LSTMCell(32, hidden),
        "out": nn.Linear(hidden, n),
    }
    model = same_start(torch, nn.ModuleDict(parts))
    embed, cell, out = model["embed"], model["cell"], model["out"]
    text = draws(torch, 8, steps + 1, classes=n)
    criterion = nn.CrossEntropyLoss()

    def loss() -> Any:
        state = torch.zeros(8, hidden), torch.zeros(8, hidden)
        total = 0
        for t in range(steps):
            state = cell(embed(text[:, t]), state)
            total = total + criterion(out(state[0]), text[:, t + 1])
        return total / steps

    return training_step(model, torch.optim.Adam(model.parameters(), lr=1e-3), loss)


def gpt_step(
    model: Any, batch: int, context: int, words: int, torch: Any, device: str = "cpu"
) -> Program:
    """A step of training a network of ``networks.gpt`` on drawn words."""
    model = same_start(torch, model)
    text = draws(torch, batch, context + 1, classes=words).to(device)
    x, y = text[:, :-1].contiguous(), text[:, 1:].contiguous().view(-1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.nn.functional.cross_entropy
    return training_step(model, optimiser, lambda: loss(model(x).view(-1, words), y))


def _gpt(torch: Any) -> Program:
    model = networks.gpt(torch, layers=4, wide=128, heads=4, context=64, words=65)
    return gpt_step(model, 8, 64, 65, torch)


def _word2vec(torch: Any) -> Program:
    nn, functional, n, wide = torch.nn, torch.nn.functional, 2000, 64
    tables = [nn.Embedding(n, wide), nn.Embedding(n, wide)]
    model = same_start(torch, nn.ModuleList(tables))
    word, near = draws(torch, 64, classes=n), draws(torch, 64, classes=n)
    far = draws(torch, 64, 5, classes=n)

    def loss() -> Any:
        u, v = model[0](word), model[1](near)
        good = functional.logsigmoid((u * v).sum(1))
        bad = torch.bmm(model[1](far), u.unsqueeze(2)).squeeze(2)
        return -(good + functional.logsigmoid(-bad).sum(1)).mean()

    return training_step(model, torch.optim.SGD(model.parameters(), lr=0.1), loss)


def _adam(torch: Any) -> Program:
    values = draws(torch, 100, 64, 64)
    parameters = [torch.nn.Parameter(x.clone()) for x in values]
    optimiser = torch.optim.Adam(parameters)
    for p, x in zip(parameters, values, strict=True):
        p.grad = x * x

    def run() -> list[Any]:
        optimiser.step()
        return [parameters[0].detach()]

    return run


# What is trained, and how long a step may take in times of PyTorch's.
SCRIPTS: dict[str, tuple[Callable[[Any], Program], float]] = {
    "MLP 784-128-10, batch 64": (_mlp, 1.0),
    "MLP 784-128-10, batch 1": (partial(_mlp, batch=1), 0.6),
    "character LSTM, 50 steps": (_char_lstm, 0.7),
    "GPT, 4 layers, 128 wide": (_gpt, 1 / 0.95),
    "word2vec": (_word2vec, 0.7),
    "Adam, 100 tensors": (_adam, 1.0),
}

_FIRST_STEP = """
import importlib, sys
torch = importlib.import_module(sys.argv[1])
nn = torch.nn
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
loss = nn.functional.cross_entropy(model(torch.ones(4, 8)), torch.arange(4) % 2)
loss.backward()
optimiser.step()
"""


def start_times(
    starts: Mapping[str, tuple[str, str | None]], rounds: int, tries: int = 1
) -> dict[str, Times]:
    """Processor times of programs that import all they need, take a step, and end.

    Args:
        starts: by name, the module that a program takes, and the folder it starts in.
        rounds: how many times there are.
        tries: of how many, taken in turns, each is the least.
    """
    samples: dict[str, list[float]] = {who: [] for who in starts}
    for turn in range(rounds + 1):
        least = dict.fromkeys(starts, float("inf"))
        for who, (module, folder) in tries * [*starts.items()]:
            least[who] = min(least[who], _seconds(module, folder))
        if turn > 0:  # the first one may still compile
            for who, taken in samples.items():
                taken.append(least[who])
    return {who: Times(taken) for who, taken in samples.items()}


def _seconds(module: str, folder: str | None) -> float:
    """Processor seconds of one such program."""
    command = [sys.executable, "-c", _FIRST_STEP, module]
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=ENVIRONMENT, cwd=folder)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def _start_up(rounds: int) -> Row:
    """A program that imports all it needs, takes one step, and ends."""
    figure, target = "start-up: times as fast as PyTorch", Target(5)
    if not find_spec("torch"):
        return Row("training", figure, None, "×", target, "PyTorch is missing here")
    times = start_times({who: (name, None) for who, name in MODULES.items()}, rounds)
    detail = ", ".join(f"{who} {taken}" for who, taken in times.items())
    ratio = times["PyTorch"].median / times[LANTERN].median
    return Row("training", figure, ratio, "×", target, detail)

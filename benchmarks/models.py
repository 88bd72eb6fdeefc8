"""Training steps of the papers' networks beside PyTorch: their time, and their memory.

In single precision. The networks are those of ``networks.py``, each with a batch that
takes a fraction of a second, and with larger ones.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from benchmarks import networks
from benchmarks.entrant import Program, peak_resident
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target
from benchmarks.training import (
    MODULES,
    draws,
    gpt_step,
    program_of,
    same_start,
    training_step,
)

TURNS = 4  # in a heat
SECONDS = 0.3  # a timing: several steps of the small networks
MEMORY = Target(1.15, at_most=True)


def rows(quick: bool) -> list[Row]:
    """Two rows for each network and batch."""
    table = []
    for name, (make, batches, most) in MODELS.items():
        for batch in batches[:1] if quick else batches:
            program = partial(make, batch)
            makers = {w: partial(program_of, program, MODULES[w]) for w in MODULES}
            table += race(
                f"step: {name}, batch {batch}",
                1,
                makers,
                {"PyTorch": Target(1 / most)},
                rtol=2e-3,
                turns=1 if quick else TURNS,
                budget=0.0 if quick else SECONDS,
            )
            table.append(_memory(name, batch))
    return table


def _memory(name: str, batch: int) -> Row:
    """The most memory that three steps take beyond what the library takes.

    In the middle of three processes: of the same steps of SqueezeNet, PyTorch's take 57
    to 72 MiB.
    """
    figure = "peak memory, times that of PyTorch"
    found = {
        who: int(median(_asked(name, batch, module) for _ in range(3)))
        for who, module in MODULES.items()
    }
    ours, theirs = found[LANTERN], found["PyTorch"]
    ratio = ours / theirs if ours and theirs else None
    detail = ", ".join(f"{who} {size / 2**20:.0f} MiB" for who, size in found.items())
    return Row(f"step: {name}, batch {batch}", figure, ratio, "×", MEMORY, detail)


def _asked(name: str, batch: int, module: str) -> int:
    """What ``peak`` says in a process of its own; 0 where the library is missing."""
    program = f"from benchmarks.models import peak; print(peak(*{name, batch, module}))"
    command = [sys.executable, "-c", program]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def peak(name: str, batch: int, module: str) -> int:
    """By how many bytes three steps raise the highest resident size of this process."""
    tiny = program_of(partial(_classifier, networks.squeezenet, 1), module)
    if tiny is None:
        return 0
    tiny()  # so that all is loaded
    before = peak_resident()
    program = program_of(partial(MODELS[name][0], batch), module)
    for _ in range(3):
        program()  # type: ignore[misc]
    return peak_resident() - before


def _classifier(build: Callable[[Any], Any], batch: int, torch: Any) -> Program:
    model = same_start(torch, build(torch))
    x, y = draws(torch, batch, 3, 32, 32), draws(torch, batch, classes=10)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss = torch.nn.CrossEntropyLoss()
    return training_step(model, optimiser, lambda: loss(model(x), y))


def _speech(batch: int, torch: Any) -> Program:
    model = same_start(torch, networks.deepspeech(torch))
    x, y = draws(torch, batch, 1, 161, 100), draws(torch, batch, 10, classes=28) + 1
    lengths = torch.full((batch,), 50), torch.full((batch,), 10)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
    loss = torch.nn.CTCLoss()
    return training_step(model, optimiser, lambda: loss(model(x), y, *lengths))


def _gpt(batch: int, torch: Any, context: int, words: int, **sizes: int) -> Program:
    model = networks.gpt(torch, context=context, words=words, **sizes)
    return gpt_step(model, batch, context, words, torch)


# What makes a step of a batch, the batches, and how long it may take in times of
# PyTorch's.
MODELS: dict[str, tuple[Callable[[int, Any], Program], tuple[int, ...], float]] = {
    "SqueezeNet": (partial(_classifier, networks.squeezenet), (16, 32, 64), 0.9),
    "ResNet-18": (
        partial(_classifier, partial(networks.resnet, counts=(2, 2, 2, 2), wide=False)),
        (8, 32, 64),
        1.05,
    ),
    "ResNet-50": (
        partial(_classifier, partial(networks.resnet, counts=(3, 4, 6, 3), wide=True)),
        (4, 32),
        1.05,
    ),
    "DeepSpeech2, reduced": (_speech, (4, 32, 64), 0.95),
    "minGPT, 6 layers, 192 wide": (
        partial(_gpt, layers=6, wide=192, heads=6, context=128, words=65),
        (16, 32),
        1 / 0.9,
    ),
    "GPT-2, 124 million weights": (
        partial(_gpt, layers=12, wide=768, heads=12, context=256, words=50257),
        (2,),
        1 / 0.9,
    ),
}

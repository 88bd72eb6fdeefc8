"""One training step of the digits example's perceptron, 64-64-10, 64 images at once.

Each library takes the cross entropy that its users would take.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row

RATE = 0.1
BATCH, INPUTS, HIDDEN, CLASSES = 64, 64, 64, 10

Arrays = list[Any]


def loss(
    parameters: Arrays,
    images: Any,
    tanh: Callable[[Any], Any],
    cross_entropy: Callable[[Any], Any],
) -> Any:
    """The program, the same for every library."""
    w1, b1, w2, b2 = parameters
    return cross_entropy(tanh(images @ w1 + b1) @ w2 + b2)


def data() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Parameters, images and labels of the right sizes, in single precision."""
    random = np.random.default_rng(0)
    shapes = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
    parameters = [0.1 * random.standard_normal(s, dtype=np.float32) for s in shapes]
    images = random.random((BATCH, INPUTS), dtype=np.float32)
    return parameters, images, random.integers(CLASSES, size=BATCH)


def rows(quick: bool) -> list[Row]:
    """One row per peer; there is no target."""
    makers = {LANTERN: of_lantern, "PyTorch": _torch, "autograd": _autograd}
    return race("mlp_step", 1, makers, {}, quick=quick, rtol=1e-4)


def _one_hot(labels: np.ndarray) -> np.ndarray:
    return np.eye(CLASSES, dtype=np.float32)[labels]


def of_lantern() -> Program:
    """The step by Lantern."""
    import lantern

    parameters, images, labels = data()
    expected = _one_hot(labels) / np.float32(BATCH)

    def cross_entropy(logits: Any) -> Any:
        return -lantern.sum(expected * lantern.log_softmax(logits, axis=1))

    gradient = lantern.value_and_grad(
        lambda parameters: loss(parameters, images, lantern.tanh, cross_entropy)
    )

    def run() -> Arrays:
        value, gradients = gradient(parameters)
        moved = [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]
        return [value, *moved]

    return run


def _torch() -> Program | None:
    torch = peer("torch")
    if torch is None:
        return None
    arrays, pixels, classes = data()
    parameters = [torch.from_numpy(array).requires_grad_() for array in arrays]
    images, labels = torch.from_numpy(pixels), torch.from_numpy(classes)

    def cross_entropy(logits: Any) -> Any:
        return torch.nn.functional.cross_entropy(logits, labels)

    def run() -> Arrays:
        value = loss(parameters, images, torch.tanh, cross_entropy)
        value.backward()
        with torch.no_grad():
            moved = [p - RATE * p.grad for p in parameters]
        for parameter in parameters:
            parameter.grad = None
        return [value.detach(), *moved]

    return run


def _autograd() -> Program | None:
    autograd, xp = peer("autograd"), peer("autograd.numpy")
    if autograd is None or xp is None:
        return None
    parameters, images, labels = data()
    expected = _one_hot(labels) / np.float32(BATCH)

    def cross_entropy(logits: Any) -> Any:
        shifted = logits - xp.max(logits, axis=1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
        return -xp.sum(expected * (shifted - total))

    gradient = autograd.value_and_grad(
        lambda parameters: loss(parameters, images, xp.tanh, cross_entropy)
    )

    def run() -> Arrays:
        value, gradients = gradient(parameters)
        moved = [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]
        return [value, *moved]

    return run

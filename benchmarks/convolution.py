"""Convolutional layers and single operators beside PyTorch, there and back.

With oneDNN, where it is installed, and without, in single precision. A layer is given
arrays in PyTorch's order; and, "in a network", as the layer before would leave them:
with the channels last in Lantern's, in its own order in PyTorch.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target
from benchmarks.training import MODULES, draws


class Layer(NamedTuple):
    """A convolution of square images by square windows, of ResNet-50 or SqueezeNet."""

    channels: int
    pixels: int
    filters: int
    size: int
    stride: int = 1

    def __str__(self) -> str:
        steps = f", stride {self.stride}" if self.stride > 1 else ""
        return (
            f"{self.size}×{self.size}, {self.channels} → {self.filters}, "
            f"{self.pixels}²{steps}"
        )


LAYERS = (
    Layer(3, 64, 64, 7, 2),
    Layer(3, 32, 64, 3),
    Layer(64, 32, 64, 3),
    Layer(64, 32, 64, 1),
    Layer(64, 32, 256, 1),
    Layer(256, 32, 64, 1),
    Layer(256, 32, 512, 1, 2),
    Layer(64, 16, 64, 3, 2),
    Layer(128, 16, 128, 3),
    Layer(256, 8, 256, 3),
    Layer(512, 4, 512, 3),
    Layer(512, 4, 2048, 1),
    Layer(16, 27, 64, 1),
    Layer(16, 27, 64, 3),
    Layer(64, 27, 16, 1),
    Layer(48, 13, 192, 3),
    Layer(96, 55, 16, 1),
)

# What is said of a layer, with oneDNN or without, the channels last or not, the most of
# PyTorch's time that all may take.
WAYS = (
    ("", True, False, 0.75),
    (", in a network", True, True, 0.75),
    (", without oneDNN", False, False, 1.3),
)


def rows(quick: bool) -> list[Row]:
    """Rows for layers with oneDNN and without, and for operators."""
    chosen = LAYERS[::4] if quick else LAYERS
    table = []
    for name, engine, last, most in WAYS:
        if engine and not _has_engine():
            table.append(Row("convolution", name, None, "×", None, "no oneDNN"))
            continue
        worst = {"PyTorch": Target(1 / 1.1)} if engine else {}
        found = []
        for layer in chosen:
            make = partial(_layer, layer, last)
            found += _beside(f"convolution {layer}{name}", make, worst, quick, engine)
        table += [
            *found,
            _mean(f"convolution, {len(chosen)} layers{name}", found, most),
        ]
    for name, (make, most) in OPERATORS.items():
        target = {"PyTorch": Target(1 / most)} if most else {}
        table += _beside(f"operator: {name}", make, target, quick, True)
    return table


def _has_engine() -> bool:
    from lantern import engines

    return engines.in_use() is not None


def _beside(name: str, make: Any, target: Any, quick: bool, engine: bool) -> list[Row]:
    makers = {who: partial(_program, make, MODULES[who], engine) for who in MODULES}
    return race(name, 1, makers, target, quick=quick, rtol=2e-3)


def _program(make: Any, module: str, engine: bool) -> Program | None:
    torch = peer(module)
    if torch is not None and module == MODULES[LANTERN]:
        from lantern import engines

        engines.switch(engine)
    return None if torch is None else make(torch)


def _mean(name: str, found: list[Row], most: float) -> Row:
    """The geometric mean of what was measured."""
    values = [row.value for row in found if row.value is not None]
    mean = math.exp(sum(map(math.log, values)) / len(values)) if values else None
    figure = "times as fast as PyTorch, geometric mean"
    return Row(name, figure, mean, "×", Target(1 / most), "")


def _there_and_back(
    torch: Any, function: Callable[[], Any], *leaves: Any, last: bool = False
) -> Program:
    """A function's value, and what its leaves receive of a drawn cotangent."""
    z_bar = draws(torch, *function().shape).abs()
    z_bar = _channels_last(torch, z_bar) if last else z_bar

    def run() -> list[Any]:
        for leaf in leaves:
            leaf.grad = None
        z = function()
        z.backward(z_bar)
        seen = (z.detach(), *(leaf.grad for leaf in leaves))
        return [x[tuple(slice(None, None, n // 5 + 1) for n in x.shape)] for x in seen]

    return run


def _channels_last(torch: Any, x: Any) -> Any:
    """An array as the networks of a library would hold it."""
    if torch.__name__ != MODULES[LANTERN]:
        return x
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).detach()


def _layer(layer: Layer, last: bool, torch: Any) -> Program:
    n, pixels, filters, size, stride = layer
    x = draws(torch, 32, n, pixels, pixels)
    x = (_channels_last(torch, x) if last else x).requires_grad_()
    w = (draws(torch, filters, n, size, size) / (n * size * size)).requires_grad_()
    conv = partial(torch.nn.functional.conv2d, stride=stride, padding=size // 2)
    return _there_and_back(torch, lambda: conv(x, w), x, w, last=last)


IMAGES = (32, 64, 32, 32)


def _function(name: str, shape: Any, options: Any, torch: Any) -> Program:
    """A function of an array alone."""
    x = draws(torch, *shape).requires_grad_()
    function = getattr(torch.nn.functional, name)
    return _there_and_back(torch, lambda: function(x, **options), x)


def _norm(name: str, sizes: Any, shape: Any, torch: Any) -> Program:
    """A layer with a weight and a bias."""
    x, layer = draws(torch, *shape).requires_grad_(), getattr(torch.nn, name)(*sizes)
    return _there_and_back(torch, lambda: layer(x), x, layer.weight, layer.bias)


def _convolved(
    name: str, shape: Any, weights: Any, options: Any, torch: Any
) -> Program:
    x, w = draws(torch, *shape).requires_grad_(), draws(torch, *weights) / 30
    w.requires_grad_()
    function = getattr(torch.nn.functional, name)
    return _there_and_back(torch, lambda: function(x, w, **options), x, w)


def _attention(torch: Any) -> Program:
    q, k, v = (draws(torch, 4, 4, 128, 32).requires_grad_() for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    return _there_and_back(torch, lambda: attend(q, k, v), q, k, v)


def _ctc(torch: Any) -> Program:
    x, y = (
        draws(torch, 100, 8, 29).requires_grad_(),
        draws(torch, 8, 20, classes=28) + 1,
    )
    lengths = torch.full((8,), 100), torch.full((8,), 20)
    loss = torch.nn.functional.ctc_loss
    return _there_and_back(torch, lambda: loss(x.log_softmax(-1), y, *lengths), x)


# What is computed, and how long it may take in times of PyTorch's; 0 for any time.
OPERATORS: dict[str, tuple[Any, float]] = {
    "batch norm": (partial(_norm, "BatchNorm2d", (64,), IMAGES), 1.1),
    "layer norm": (partial(_norm, "LayerNorm", (512,), (2048, 512)), 1.5),
    "group norm": (partial(_norm, "GroupNorm", (8, 64), IMAGES), 1.5),
    "GELU": (partial(_function, "gelu", (2048, 512), {}), 1.5),
    "ReLU": (partial(_function, "relu", IMAGES, {}), 0),
    "max pool, 3×3": (
        partial(_function, "max_pool2d", IMAGES, {"kernel_size": 3, "stride": 2}),
        0.6,
    ),
    "max pool, 2×2": (
        partial(_function, "max_pool2d", IMAGES, {"kernel_size": 2}),
        0.6,
    ),
    "average pool, 2×2": (
        partial(_function, "avg_pool2d", IMAGES, {"kernel_size": 2}),
        0,
    ),
    "depthwise convolution": (
        partial(
            _convolved, "conv2d", IMAGES, (64, 1, 3, 3), {"padding": 1, "groups": 64}
        ),
        1.5,
    ),
    "convolution, 3d": (
        partial(
            _convolved, "conv3d", (4, 16, 8, 16, 16), (32, 16, 3, 3, 3), {"padding": 1}
        ),
        0,
    ),
    "convolution, 1d": (
        partial(_convolved, "conv1d", (16, 64, 256), (64, 64, 5), {"padding": 2}),
        0,
    ),
    "convolution, transposed": (
        partial(
            _convolved,
            "conv_transpose2d",
            (8, 64, 16, 16),
            (64, 32, 4, 4),
            {"stride": 2},
        ),
        0,
    ),
    "attention": (_attention, 0),
    "CTC": (_ctc, 0),
}

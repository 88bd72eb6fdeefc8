"""Functions of each element by oneDNN, each in one pass over memory."""

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

from lantern.engines import gpu
from lantern.engines.arrays import all_finite, empty, order_of, single
from lantern.engines.onednn import Layout, Primitive, described, is_on, threads

__all__ = ["back", "forward"]

_TRAINING = 64
_X, _Z, _X_BAR, _Z_BAR = 1, 17, 129, 145


class _Function(NamedTuple):
    """A function of oneDNN's: its number, its numbers, and from which size it pays."""

    kind: int
    numbers: tuple[float, float]
    least: int


_FUNCTIONS = {
    "gelu": _Function(0x31, (0.0, 0.0), 1),
    "hardswish": _Function(0x34, (1 / 6, 1 / 2), 1 << 12),
    "leaky_relu": _Function(0x20, (0.0, 0.0), 1 << 12),
    "sigmoid": _Function(0x29, (0.0, 0.0), 1 << 12),
    "silu": _Function(0x2C, (1.0, 0.0), 1 << 12),
}


def forward(name: str, x: Any, number: float | None = None) -> Any:
    """A function of each element; None if it is not for the engine.

    Args:
        name: which one.
        x: what of.
        number: the slope of ``leaky_relu``.

    Shapes:
        x: (...); result: (...)
    """
    if not single(x):
        return gpu.elementwise.gelu(x) if name == "gelu" else None
    order = _order(name, x)
    if order is None or (number == 0 and not all_finite(x)):  # of NaN it would make 0
        return None
    primitive = _primitive(name, number, x.size, False, threads())
    if primitive is None:
        return None
    z = empty(x.shape, order)
    primitive.run(x, z)
    return z


def back(name: str, x: Any, z_bar: Any, number: float | None = None) -> Any:
    """``z_bar`` times the derivative of a function at x; None as there.

    Shapes:
        x, z_bar: (...); result: (...)
    """
    if not (single(x) and single(z_bar)):
        return gpu.elementwise.gelu_back(x, z_bar) if name == "gelu" else None
    order = _order(name, x, z_bar)
    if order is None:
        return None
    primitive = _primitive(name, number, x.size, True, threads())
    if primitive is None:
        return None
    x_bar = empty(x.shape, order)
    primitive.run(x, z_bar, x_bar)
    return x_bar


def _order(name: str, x: Any, *others: Any) -> int | None:
    """That of axes in memory; None if arrays differ in it, or are not large enough."""
    if x.size < _FUNCTIONS[name].least:  # first: most are small, where each step counts
        return None
    order = order_of(x)
    alike = (y.shape == x.shape and order_of(y) == order for y in others)
    return order if all(alike) and is_on() else None


@lru_cache(512)
def _primitive(
    name: str, number: Any, size: int, back: bool, _: int
) -> Primitive | None:
    kind, numbers, _ = _FUNCTIONS[name]
    numbers = numbers if number is None else (number, 0.0)
    row, (a, b) = Layout((size,), (1,)), map(ctypes.c_float, numbers)
    forward = described("eltwise_forward", _TRAINING, kind, row, row, a, b)
    if forward is None or not back:
        return forward and Primitive(forward, _X, _Z)
    description = described("eltwise_backward", kind, row, row, row, a, b, forward)
    return description and Primitive(description, _X, _Z_BAR, _X_BAR)

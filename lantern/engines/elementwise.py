"""Functions of each element by oneDNN, each in one pass over memory."""

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

from lantern.engines import gpu
from lantern.engines.arrays import single, whole
from lantern.engines.onednn import Layout, described, is_on, threads
from lantern.engines.plan import Plan

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
    if not _fits(name, x):
        return None
    found = _plan(name, number, x.size, False, threads())
    return None if found is None else found.run(x.reshape(-1)).reshape(x.shape)


def back(name: str, x: Any, z_bar: Any, number: float | None = None) -> Any:
    """``z_bar`` times the derivative of a function at x; None as there.

    Shapes:
        x, z_bar: (...); result: (...)
    """
    if not (single(x) and single(z_bar)):
        return gpu.elementwise.gelu_back(x, z_bar) if name == "gelu" else None
    if not _fits(name, x, z_bar) or x.shape != z_bar.shape:
        return None
    found = _plan(name, number, x.size, True, threads())
    if found is None:
        return None
    return found.run(x.reshape(-1), z_bar.reshape(-1)).reshape(x.shape)


def _fits(name: str, *arrays: Any) -> bool:
    """Whether arrays have no gaps, and are large enough."""
    least = _FUNCTIONS[name].least
    for x in arrays:  # the size first: most are small, for which each step counts
        if x.size < least or not whole(x):
            return False
    return is_on()


@lru_cache(512)
def _plan(name: str, number: Any, size: int, back: bool, _: int) -> Plan | None:
    kind, numbers, _ = _FUNCTIONS[name]
    numbers = numbers if number is None else (number, 0.0)
    row, (a, b) = Layout((size,), (1,)), map(ctypes.c_float, numbers)
    forward = described("eltwise_forward", _TRAINING, kind, row, row, a, b)
    if forward is None or not back:
        return forward and Plan(forward, [(_X, row)], (_Z, row), (size,))
    description = described("eltwise_backward", kind, row, row, row, a, b, forward)
    given = [(_X, row), (_Z_BAR, row)]
    return description and Plan(description, given, (_X_BAR, row), (size,))

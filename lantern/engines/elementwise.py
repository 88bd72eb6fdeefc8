"""Functions of each element by oneDNN: the Gaussian error linear unit."""

import ctypes
from functools import lru_cache
from typing import Any

from lantern.engines.arrays import single, whole
from lantern.engines.gpu import elementwise as gpu
from lantern.engines.onednn import Layout, described, is_on, threads
from lantern.engines.plan import Plan

__all__ = ["gelu", "gelu_back"]

_TRAINING, _GELU = 64, 0x31
_X, _Z, _X_BAR, _Z_BAR = 1, 17, 129, 145


def gelu(x: Any) -> Any:
    """``x`` times the chance of a normal draw below it; None if not for the engine.

    Shapes:
        x: (...); result: (...)
    """
    if not single(x):
        return gpu.gelu(x)
    if not (is_on() and whole(x)):
        return None
    found = _plan(x.size, False, threads())
    return None if found is None else found.run(x.reshape(-1)).reshape(x.shape)


def gelu_back(x: Any, z_bar: Any) -> Any:
    """``z_bar`` times the derivative of ``gelu`` at x; None as there.

    Shapes:
        x, z_bar: (...); result: (...)
    """
    if not (single(x) and single(z_bar)):
        return gpu.gelu_back(x, z_bar)
    if not (is_on() and whole(x) and whole(z_bar)):
        return None
    if x.shape != z_bar.shape:
        return None
    found = _plan(x.size, True, threads())
    if found is None:
        return None
    return found.run(x.reshape(-1), z_bar.reshape(-1)).reshape(x.shape)


@lru_cache(512)
def _plan(size: int, back: bool, _: int) -> Plan | None:
    row, none = Layout((size,), (1,)), ctypes.c_float(0)
    forward = described("eltwise_forward", _TRAINING, _GELU, row, row, none, none)
    if forward is None or not back:
        return forward and Plan(forward, [(_X, row)], (_Z, row), (size,))
    description = described(
        "eltwise_backward", _GELU, row, row, row, none, none, forward
    )
    given = [(_X, row), (_Z_BAR, row)]
    return description and Plan(description, given, (_X_BAR, row), (size,))

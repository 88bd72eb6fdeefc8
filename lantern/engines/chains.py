"""Operations on each element, one after another, in one pass over memory."""

from ctypes import c_float
from typing import Any

from lantern.engines.onednn import Layout, Primitive, described

__all__ = ["add", "chain", "keep", "less", "over", "power", "root", "times"]

_Step = tuple[Any, ...]
_X, _Y, _Z, _LATER = 1, 2, 17, 0x8000


def add(y: Layout) -> _Step:
    """The step that adds an operand."""
    return "binary", 0x1FFF0, y


def times(y: Layout) -> _Step:
    """The step that multiplies by an operand."""
    return "binary", 0x1FFF1, y


def over(y: Layout) -> _Step:
    """The step that divides by an operand."""
    return "binary", 0x1FFF4, y


def less(y: Layout) -> _Step:
    """The step that subtracts an operand."""
    return "binary", 0x1FFF5, y


def root() -> _Step:
    """The step that takes the square root; it cannot come first."""
    return "eltwise", 0x25, c_float(0), c_float(0)


def power(exponent: float) -> _Step:
    """The step that takes a power; it cannot come first."""
    return "eltwise", 0x30, c_float(1), c_float(exponent)


def keep(share: float) -> _Step:
    """The step that adds a share of what the result's memory holds before."""
    return "sum", c_float(share), 0, 0


def chain(x: Layout, first: _Step, *steps: _Step) -> Primitive | None:
    """What does steps to an array; None if oneDNN has no fast code for them.

    It takes the array, the operands of its steps, and the result, which lies as the
    array does and may be any of them that does.
    """
    _, operation, y = first
    description = described("binary", operation, x, y, x, after=steps)
    if description is None:
        return None
    places = (i for i, step in enumerate(steps, 1) if step[0] == "binary")
    return Primitive(description, _X, _Y, *(_LATER * i + _Y for i in places), _Z)

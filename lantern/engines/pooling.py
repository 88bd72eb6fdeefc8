"""Pools by oneDNN: the largest element of each window, and the sum."""

import math
from functools import lru_cache
from typing import Any

from lantern.engines.arrays import LAST, all_finite, laid, numbers_like, single, steps
from lantern.engines.onednn import Description, Layout, described, dims, is_on, threads
from lantern.engines.plan import Plan

__all__ = ["largest", "spread_largest", "spread_sums", "sums"]

_TRAINING, _MAX, _MEAN = 64, 0x1FF, 0x2FF
_X, _Z, _WORKSPACE, _X_BAR, _Z_BAR = 1, 17, 64, 129, 145


def largest(x: Any, form: Any) -> Any:
    """The largest element of each window, and its number in the window; or None.

    None where that is not for the engine, as it is if an element is not finite:
    oneDNN passes over what is no number, and takes no infinity for the largest.

    Args:
        x: an array.
        form: how windows lie on it.

    Shapes:
        x: (n, c, ...); results: (n, c, ...)
    """
    if not _takes(x, form, form.lengths) or not all_finite(x):
        return None
    x, order = laid(x)
    plan = _forward(x.shape, order, form, _MAX, threads())
    if plan is None:
        return None
    chosen = numbers_like(plan.shape, plan.primitive.description.size(_WORKSPACE))
    return plan.run(x, chosen), chosen


def spread_largest(z: Any, chosen: Any, form: Any) -> Any:
    """The transpose: each z where the largest element was; None as in ``largest``.

    Shapes:
        z, chosen: (n, c, ...); result: (n, c, ...)
    """
    if not _takes(z, form, form.steps) or not _lies_last(chosen, z):
        return None
    z, order = laid(z)
    plan = _backward(z.shape, order, form, _MAX, threads())
    if plan is None or plan.primitive.description.size(_WORKSPACE) != chosen.nbytes:
        return None
    return plan.run(z, chosen)


def sums(x: Any, form: Any) -> Any:
    """The sum of each window; None where that is not for the engine.

    Shapes:
        x: (n, c, ...); result: (n, c, ...)
    """
    if not _takes(x, form, form.lengths):
        return None
    x, order = laid(x)
    plan = _forward(x.shape, order, form, _MEAN, threads())
    return None if plan is None else _scaled(plan.run(x), form)


def spread_sums(z: Any, form: Any) -> Any:
    """The transpose of ``sums``; None as there.

    Shapes:
        z: (n, c, ...); result: (n, c, ...)
    """
    if not _takes(z, form, form.steps):
        return None
    z, order = laid(z)
    plan = _backward(z.shape, order, form, _MEAN, threads())
    return None if plan is None else _scaled(plan.run(z), form)


def _takes(x: Any, form: Any, lengths: Any) -> bool:
    return (
        single(x)
        and is_on()
        and len(form.size) <= 3
        and x.ndim == len(form.size) + 2
        and x.shape[2:] == tuple(lengths)
    )


def _lies_last(chosen: Any, z: Any) -> bool:
    """Whether places in windows lie as ``largest`` has made them."""
    lies = steps(chosen.shape, LAST)
    return chosen.shape == z.shape and chosen.strides == tuple(
        step * chosen.itemsize for step in lies
    )


def _scaled(mean: Any, form: Any) -> Any:
    mean *= math.prod(form.size)
    return mean


def _numbers(form: Any) -> Any:
    return (
        dims(form.stride),
        dims(form.size),
        dims([d - 1 for d in form.dilation]),
        dims([a for a, _ in form.padding]),
        dims([b for _, b in form.padding]),
    )


def _described(n: int, c: int, form: Any, kind: int) -> tuple[Any, Any, Any]:
    x, z = (
        Layout(shape, steps(shape, LAST))
        for shape in ((n, c, *form.lengths), (n, c, *form.steps))
    )
    return x, z, described("pooling_forward", _TRAINING, kind, x, z, *_numbers(form))


@lru_cache(512)
def _forward(x: Any, order: int, form: Any, kind: int, _: int) -> Plan | None:
    _, made, description = _described(x[0], x[1], form, kind)
    if description is None:
        return None
    z = (*x[:2], *form.steps)
    more = [_WORKSPACE] if kind == _MAX else []
    return Plan(
        description, [(_X, Layout(x, steps(x, order)))], (_Z, made), z, LAST, more
    )


@lru_cache(512)
def _backward(z: Any, order: int, form: Any, kind: int, _: int) -> Plan | None:
    made, given, forward = _described(z[0], z[1], form, kind)
    if forward is None:
        return None
    description: Description | None = described(
        "pooling_backward", kind, made, given, *_numbers(form), forward
    )
    if description is None:
        return None
    x = (*z[:2], *form.lengths)
    more = [_WORKSPACE] if kind == _MAX else []
    lies = [(_Z_BAR, Layout(z, steps(z, order)))]
    return Plan(description, lies, (_X_BAR, made), x, LAST, more)

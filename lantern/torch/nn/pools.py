"""Pools: the sum of each window, and the element of it that is chosen.

With the choice given, the largest element is linear; its transpose puts back.
"""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.engines import pooling as engine
from lantern.op import linear
from lantern.torch.nn.rules import plain
from lantern.torch.nn.starting import fused
from lantern.torch.nn.windows import Form, inner, with_padding
from lantern.torch.tensor.batches import beside
from lantern.torch.tensor.dtypes import FLOATING

__all__ = ["chosen_of", "gather_windows", "pick", "sum_windows"]


@linear
def _sum_windows(x: Any, /, form: Form) -> Rule:
    """The sum of each window of an array.

    Shapes:
        x: (n, c, ...); result: (n, c, ...)

    Rule:
        x_bar = the transpose: every element of a window receives z_bar
    """
    z_bar = yield (_transposed(x, form, _sums, sums_any), x := None)[0]
    yield spread_sums_any(z_bar, form=form)


@linear
def _spread_windows(z: Any, /, form: Form) -> Rule:
    """The transpose of ``sum_windows``.

    Shapes:
        z: (n, c, ...); result: (n, c, ...)

    Rule:
        z_bar = sum_windows(x_bar)
    """
    x_bar = yield (_transposed(z, form, _spread_sums, spread_sums_any), z := None)[0]
    yield sums_any(x_bar, form=form)


def _transposed(x: Any, form: Form, direct: Any, again: Any) -> Any:
    return direct(x, form) if plain(x) else again(x, form=form)


def _sums(x: Any, form: Form) -> Any:
    z = engine.sums(x, form)
    if z is not None:
        return z
    x = with_padding(x, form)
    total = namespace(x).zeros((*x.shape[:2], *form.steps), dtype=x.dtype)
    for _, part in form.places():
        total += x[part]
    return total


def _spread_sums(z: Any, form: Form) -> Any:
    x = engine.spread_sums(z, form)
    if x is not None:
        return x
    out = namespace(z).zeros((*z.shape[:2], *form.padded), dtype=z.dtype)
    for _, part in form.places():
        out[part] += z
    return out[inner(form)]


sums_any, spread_sums_any = _sum_windows, _spread_windows
sum_windows = fused(_sum_windows)


def chosen_of(x: Any, form: Form) -> tuple[Any, Any]:
    """The largest element of each window of a plain array, and its number there.

    The first of equal ones, and the first that is not a number.
    """
    found = engine.largest(x, form)
    if found is not None:
        return found[0], found[1]
    xp, floating = namespace(x), x.dtype.kind in FLOATING
    low = -math.inf if floating else np.iinfo(x.dtype).min
    places = list(form.places())
    small = np.uint8 if len(places) <= 256 else np.int32
    whole = with_padding(x, form, low)
    z = whole[places[0][1]]
    chosen = xp.zeros(z.shape, dtype=small)
    for i, (_, part) in enumerate(places[1:], 1):
        other = whole[part]
        better = ~(other <= z) & (z == z) if floating else other > z
        z = xp.where(better, other, z)
        chosen = xp.where(better, small(i), chosen)
    if any(map(any, form.padding)):  # which must not be chosen, if all is as low
        inside = gather_windows(xp.ones((1, 1, *form.lengths), dtype=bool), form, False)
        chosen = xp.where(z == low, inside.argmax(axis=-1).astype(small), chosen)
    return z, chosen


@linear
def _pick(x: Any, /, form: Form, chosen: Any, known: Any) -> Rule:
    """One element of each window.

    Args:
        form: how windows lie.
        chosen: the number of the element in each window.
        known: an array and the result for it, if that is known, or nothing; emptied.

    Shapes:
        x, chosen: (n, c, ...); result: (n, c, ...)

    Rule:
        x_bar = zeros, with z_bar added where its elements were
    """
    if known and known[0] is x:
        z = known[1]
    elif plain(x, chosen):
        z = _picked(x, form, chosen)
    else:
        z = pick_any(beside(x, chosen), form=form, chosen=chosen, known=[])
    known.clear()
    z_bar = yield (z, z := None, x := None)[0]
    yield unpick_any(beside(z_bar, chosen), form=form, chosen=chosen)


@linear
def _unpick(z: Any, /, form: Form, chosen: Any) -> Rule:
    """The transpose of ``pick``.

    Shapes:
        z, chosen: (n, c, ...); result: (n, c, ...)

    Rule:
        z_bar = pick(x_bar)
    """
    if plain(z, chosen):
        x = _put_back(z, form, chosen)
    else:
        x = unpick_any(beside(z, chosen), form=form, chosen=chosen)
    x_bar = yield (x, x := None, z := None)[0]
    yield pick_any(beside(x_bar, chosen), form=form, chosen=chosen, known=[])


def _picked(x: Any, form: Form, chosen: Any) -> Any:
    x = with_padding(x, form)
    xp = namespace(x)
    z = xp.zeros(chosen.shape, dtype=x.dtype)
    for i, (_, part) in enumerate(form.places()):
        z = xp.where(chosen == i, x[part], z)
    return z


def _put_back(z: Any, form: Form, chosen: Any) -> Any:
    found = engine.spread_largest(z, chosen, form)
    if found is not None:
        return found
    out = namespace(z).zeros((*z.shape[:2], *form.padded), dtype=z.dtype)
    for i, (_, part) in enumerate(form.places()):
        out[part] += z * (chosen == i)
    return out[inner(form)]


pick_any, unpick_any = _pick, _unpick
pick = fused(_pick)


def gather_windows(x: Any, form: Form, value: float) -> Any:
    """All windows of a plain array: (n, c, *steps, elements of a window)."""
    x = with_padding(x, form, value)
    out = namespace(x).empty(
        (*x.shape[:2], *form.steps, math.prod(form.size)), dtype=x.dtype
    )
    for i, (_, part) in enumerate(form.places()):
        out[..., i] = x[part]
    return out

"""A tracked number is no key: no other branch than the plain program's in silence."""

import enum
import functools
import sys
from collections import Counter

import numpy as np
import pytest

import lantern
from lantern import DetachError, grad, jvp, vjp, vmap

pytestmark = pytest.mark.usefixtures("probe")

MODES = {
    "reverse": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "reverse over reverse": lambda f: grad(grad(f)),
    "forward over reverse": lambda f: lambda x: jvp(grad(f), (x,), (1.0,))[1],
    "reverse over forward": lambda f: grad(lambda x: jvp(f, (x,), (1.0,))[1]),
    "inside": lambda f: grad(lambda x: grad(lambda y: y * f(x))(1.0)),
    "between": lambda f: grad(lambda x: x * grad(lambda y: f(y))(x)),
    "checkpoint": lambda f: grad(lantern.checkpoint(f)),
    "linearize": lambda f: lambda x: lantern.linearize(f, x)[1](1.0),
}
DATA = {2.0: "two"}


@functools.lru_cache
def cached(x):
    return x * x


USES = {
    "hash": lambda x: hash(x) * x,
    "in a dict": lambda x: x if x in DATA else x * x,
    "in a set": lambda x: x if x in {1.0, 2.0} else x * x,
    "in a frozen set": lambda x: x if x in frozenset([2.0]) else x * x,
    "dict[x]": lambda x: x * len(DATA[x]),
    "dict.get": lambda x: x * len(DATA.get(x, "")),
    "as a key": lambda x: {x: x}[x],
    "setdefault": lambda x: {}.setdefault(x, x),
    "a set": lambda x: sum({x, x * 1.0}),
    "unique": lambda x: sum(dict.fromkeys([x, x])),
    "Counter": lambda x: x * max(Counter([x, x]).values()),
    "lru_cache": cached,
    "in a tuple": lambda x: {(1, x): x}[1, x],
    "a frozen set of it": lambda x: x * len(frozenset([x])),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("use", USES)
def test_a_tracked_number_as_a_key_is_refused(use, mode):
    cached.cache_clear()
    with pytest.raises(DetachError, match=r"stop_gradient\(x\).*id\(x\).*cache"):
        MODES[mode](USES[use])(2.0)
    assert not cached.cache_info().currsize
    assert cached(2.0) == 4.0  # nothing stale waits for it


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("x", [np.float64(2.0), np.array(2.0)], ids=["scalar", "array"])
def test_a_tracked_array_has_no_hash_as_arrays_have_none(x, use):
    for mode in (grad, MODES["forward"], lambda f: lambda x: vmap(f)(np.stack([x, x]))):
        with pytest.raises(TypeError, match="hash"):
            mode(USES[use])(x)


class Kind(enum.Enum):
    TWO = 2.0


# Each with what it is at 2.
WORKING = {
    "by value": (lambda x: x * len(DATA[lantern.stop_gradient(x)]), lambda x: x * 3),
    "by identity": (lambda x: {id(x): x}[id(x)] * x, lambda x: x * x),
    "in a list": (lambda x: x * x if x in [1.0, 2.0] else x, lambda x: x * x),
    "index": (lambda x: x**3 * [1.0, 2.0].index(x), lambda x: x**3),
    "count": (lambda x: x**3 * (1.0, 2.0, 2.0).count(x), lambda x: x**3 * 2),
    "as a value": (lambda x: {"x": x}["x"] * x, lambda x: x * x),
    "cached by something else": (lambda x: x * x * cached(3), lambda x: x * x * 9),
}
if sys.version_info[:3] != (3, 13, 0):  # which finds no member by a value without hash
    WORKING["an enum"] = lambda x: x * x * Kind(x).value, lambda x: x * x * 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("use", WORKING)
def test_what_takes_its_place(use, mode):
    f, g = WORKING[use]
    assert MODES[mode](f)(2.0) == MODES[mode](g)(2.0)


def test_after_its_derivative_neither():
    kept = []
    grad(lambda x: kept.append(x) or x)(3.0)
    with pytest.raises(DetachError, match="hash"):
        hash(kept[0])

"""Objects of the caller's: walked as they are, differentiated in their structure."""

import dataclasses
import math
from typing import NamedTuple

import pytest

import lantern
from lantern.core.tree import tree_map
from lantern.staging.native.background import wait


@pytest.fixture(params=["off", "interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


class Plain:
    def __init__(self, left, right, value):
        self.left, self.right, self.value = left, right, value


class Slotted:
    __slots__ = ("left", "right", "value")

    def __init__(self, left, right, value):
        self.left, self.right, self.value = left, right, value


class Named(NamedTuple):
    left: object
    right: object
    value: float


@dataclasses.dataclass
class Data:
    left: object
    right: object
    value: float


@dataclasses.dataclass(slots=True)
class SlottedData:
    left: object
    right: object
    value: float


def by_name(x, t):
    if t is None:
        return x
    return lantern.sin(by_name(x, t.left) * by_name(x, t.right)) * t.value


def by_place(x, t):
    if t is None:
        return x
    return lantern.sin(by_place(x, t[0]) * by_place(x, t[-2])) * t[2]


KINDS = {
    "attributes": (by_name, Plain),
    "slots": (by_name, Slotted),
    "named tuples": (by_name, Named),
    "data classes": (by_name, Data),
    "data classes with slots": (by_name, SlottedData),
    "tuples": (by_place, lambda *parts: parts),
    "lists": (by_place, lambda *parts: list(parts)),
}
STRUCTURES = [name for name in KINDS if name not in ("attributes", "slots")]


def shape_of(make):
    """A tree that is not the same on both sides."""
    low = make(None, None, 0.5)
    return make(make(low, None, 1.5), make(None, make(low, low, 2.0), 0.7), 1.1)


def told(jitted, mode):
    text = lantern.explain(jitted)
    assert "runs as it is" not in text or mode == "off", text


@pytest.mark.parametrize("name", KINDS)
def test_walked_as_they_are(name, mode):
    f, make = KINDS[name]
    trees = [shape_of(make), make(None, None, 3.0), None, make(shape_of(make), None, 1)]
    for g in (f, lantern.grad(f)):
        jitted = lantern.jit(g)
        for t in trees:
            assert jitted(0.9, t) == pytest.approx(g(0.9, t), rel=1e-12)
        told(jitted, mode)


@pytest.mark.parametrize("name", STRUCTURES)
def test_gradients_have_the_structure_of_the_tree(name, mode):
    f, make = KINDS[name]
    for argnums in (1, (0, 1), (-1,)):
        g = lantern.grad(f, argnums)
        jitted = lantern.jit(g)
        for t in (shape_of(make), make(None, None, 3.0), shape_of(make)):
            assert repr(rounded(jitted(0.9, t))) == repr(rounded(g(0.9, t)))
        told(jitted, mode)


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_derivative_of_a_compiled_walk(name, mode):
    f, make = KINDS[name]
    jitted, t = lantern.jit(f), shape_of(make)
    for argnums in (0, 1, (0, 1)):
        found = lantern.grad(jitted, argnums)(0.9, t)
        assert repr(rounded(found)) == repr(rounded(lantern.grad(f, argnums)(0.9, t)))


def rounded(x):
    """A structure with its floats to eleven digits."""
    return tree_map(lambda leaf: float(f"{leaf:.11g}"), x)


def test_what_is_changed_is_seen(mode):
    jitted = lantern.jit(lambda x, t: x * t.value)
    for make in (Plain, Slotted):
        t = make(None, None, 2.0)
        assert jitted(3.0, t) == 6.0
        t.value = 5.0
        assert jitted(3.0, t) == 15.0
        t.value = 5
        assert jitted(3.0, t) == 15.0
        del t.value
        with pytest.raises(AttributeError):
            jitted(3.0, t)
        t.value = 1.0
        assert jitted(3.0, t) == 3.0


class Computed:
    def __init__(self, value):
        self.inside = value

    @property
    def value(self):
        return self.inside * 2


class Missing:
    def __getattr__(self, name):
        return 4.0


class Other(Plain):
    pass


def test_classes_that_do_more_than_keep(mode):
    f = lantern.jit(lambda x, t: x * t.value)
    for t in (Computed(1.5), Missing(), Plain(0, 0, 2.0), Other(0, 0, 3.0)):
        assert f(3.0, t) == 3.0 * t.value
    g = lantern.jit(lambda x, t: x * t.value)
    plain = Plain(None, None, 2.0)
    assert g(3.0, plain) == 6.0
    try:
        Plain.value = property(lambda self: 7.0)
        assert g(3.0, plain) == 21.0
    finally:
        del Plain.value
    assert g(3.0, plain) == 6.0


def total(x, items):
    y = 0.0
    for item in items:
        y = y + lantern.sin(x * item)
    return y * len(items)


def places(x, items, i):
    return items[i] * x + items[-1] - items[i - 2]


@pytest.mark.parametrize("kind", [tuple, list])
def test_long_rows(kind, mode):
    items = kind(0.01 * i for i in range(500))
    for f in (total, lantern.grad(total)):
        jitted = lantern.jit(f)
        assert jitted(0.9, items) == pytest.approx(f(0.9, items), rel=1e-12)
        assert jitted(0.9, items[:250]) == pytest.approx(f(0.9, items[:250]), rel=1e-12)
        assert jitted(0.9, kind([*items, 2])) == pytest.approx(
            f(0.9, kind([*items, 2])), rel=1e-12
        )
        told(jitted, mode)
    jitted = lantern.jit(places)
    for i in (0, 3, 499, -1, -498):
        assert jitted(2.0, items, i) == places(2.0, items, i)
    for i in (500, -501, -499):
        with pytest.raises(IndexError):
            jitted(2.0, items, i)


def test_rows_come_back_as_they_are(mode):
    class Point(NamedTuple):
        x: float
        y: object = None

    f = lantern.jit(lambda p: (Point(p.x * 2.0), [None, p.y], Point(p.x, (p.y, None))))
    expected = (Point(3.0), [None, 2.5], Point(1.5, (2.5, None)))
    assert repr(f(Point(1.5, 2.5))) == repr(f(Point(1.5, 2.5))) == repr(expected)
    assert f(Point(1.5, 2.5))[0].x == 3.0
    assert f(Point(1.5, 2.5))[2]._replace(x=1.0).x == 1.0


def test_numbers_that_an_object_has_are_converted(mode):
    def f(x, t):
        return x * float(t[0]) + math.sin(t[1]) if t[2] is None else x

    jitted = lantern.jit(f)
    for t in ((1.5, 2.0, None), (2, 0.5, None), (1.0, 1.0, 3.0)):
        assert jitted(2.0, t) == f(2.0, t)


def test_what_is_made_natively_has_the_hash_of_its_equals(mode):
    """Since CPython 3.14 a tuple keeps it."""
    f = lantern.jit(lambda x: (Named(x, x, 2 * x), (x, 3.0)))
    named, pair = f(1.5)
    assert hash(named) == hash(Named(1.5, 1.5, 3.0))
    assert hash(pair) == hash((1.5, 3.0))


class Branch:
    """A tree whose methods walk it."""

    def __init__(self, v, left=None, right=None):
        self.v = v
        self.left = left
        self.right = right

    def total(self):
        found = self.v
        if self.left is not None:
            found = found + self.left.total()
        if self.right is not None:
            found = found + self.right.total()
        return found

    def scaled(self, k):
        return self.total() * k


@pytest.mark.parametrize("mode", ["interpret", "O0", "O2", "tiers"])
def test_methods_of_an_argument_are_followed(mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    cls = type("Branch", (Branch,), {})
    tree = cls(1.0, cls(2.0, cls(3.0)), cls(4.0))

    def plain(t, k):
        return t.scaled(k)

    f = lantern.jit(plain)
    for _ in range(2):
        assert f(tree, 2.0) == plain(tree, 2.0) == 20.0
        wait()
    assert "compiled" in lantern.explain(f)
    tree.left.total = lambda: 100.0
    assert f(tree, 2.0) == plain(tree, 2.0) == 210.0
    del tree.left.total
    tree.left.__class__ = type("Other", (cls,), {"total": lambda self: 50.0})
    assert f(tree, 2.0) == plain(tree, 2.0) == 110.0
    monkeypatch.setattr(Branch, "total", lambda self: self.v)
    for _ in range(2):
        assert f(tree, 2.0) == plain(tree, 2.0) == 2.0
        wait()

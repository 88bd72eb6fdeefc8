"""Objects of the caller's: walked as they are, differentiated in their structure."""

import dataclasses
import functools
import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path
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


@dataclasses.dataclass
class Point:
    x: float
    y: float = 1.0


@dataclasses.dataclass(slots=True)
class SlottedPoint:
    x: float
    y: float = 1.0


@dataclasses.dataclass(frozen=True)
class Segment:
    start: Point
    end: SlottedPoint
    places: tuple


@dataclasses.dataclass(kw_only=True)
class Named3D(Point):
    z: float


def area(p):
    return lantern.sin(p.x) * p.y


def length(s):
    return s.start.x * s.end.y + s.places[1] * s.end.x


def depth(p):
    return p.x * p.y + p.z


def turned(p):
    return type_of_point(p.y, -p.x)


def type_of_point(x, y):
    return SlottedPoint(y=y, x=x)


OBJECTS = {
    "attributes": (area, lambda: Point(0.5, 2.0)),
    "slots": (area, lambda: SlottedPoint(0.5, 2.0)),
    "nested": (
        length,
        lambda: Segment(Point(0.5, 2.0), SlottedPoint(3.0, 0.25), (1, 2.0)),
    ),
    "by name": (depth, lambda: Named3D(x=1.5, y=2.0, z=3.0)),
}


def owner_of(f):
    return f.__self__


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("mode", ["O0", "tiers"])
def test_machine_code_takes_data_classes_as_they_are(mode, kind, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    plain, make = OBJECTS[kind]
    for f, g in [(plain, lantern.jit(plain)), derivative_of(plain)]:
        for _ in range(3):
            assert g(make()) == f(make())
            wait()
        calls = []
        owner = owner_of(g)
        monkeypatch.setattr(owner, "f", lambda *args, f=f, calls=calls: calls)
        monkeypatch.setattr(owner, "known", {})
        assert g(make()) == f(make())  # nobody was asked
        assert owner.known == {}


def derivative_of(plain):
    return lantern.grad(plain), lantern.jit(lantern.grad(plain))


@pytest.mark.parametrize("mode", ["O0", "tiers"])
def test_a_data_class_is_made_by_its_class(mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    f = lantern.jit(turned)
    for _ in range(3):
        assert f(Point(1.0, 2.0)) == SlottedPoint(2.0, -1.0)
        wait()
    assert "compiled" in lantern.explain(f)


def test_a_data_class_that_cannot_be_made_raises(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    cls = dataclasses.dataclass(type("Own", (), {"__annotations__": {"x": float}}))
    f = lantern.jit(lantern.grad(lambda p: p.x * p.x))
    assert f(cls(3.0)) == cls(6.0)

    def refuse(self, x):
        raise KeyError(x)

    made = cls(3.0)
    monkeypatch.setattr(cls, "__init__", refuse)
    for _ in range(2):
        with pytest.raises(KeyError):
            f(made)


class Doubled(Point):
    @property
    def twice(self):
        return 2.0 * self.x


def _with(p, **more):
    vars(p).update(more)
    return p


def _without(p, name):
    delattr(p, name)
    return p


@pytest.mark.parametrize("mode", ["O0", "tiers"])
@pytest.mark.parametrize(
    "change",
    [
        lambda: Point(2, 3.0),
        lambda: Point(2.0, True),
        lambda: Point(2.0, "yes"),
        lambda: Point(2.0, None),
        lambda: Point((2.0,), 3.0),
        lambda: Doubled(2.0, 3.0),
        lambda: SlottedPoint(2.0, 3.0),
        lambda: _with(Point(2.0, 3.0), z=5.0),
        lambda: _with(Point(2.0, 3.0), area=lambda: 7.0),
        lambda: _without(Point(2.0, 3.0), "y"),
        lambda: _without(Point(2.0, 3.0), "x"),
        lambda: _without(SlottedPoint(2.0, 3.0), "y"),
        lambda: (2.0, 3.0),
        lambda: 2.0,
    ],
)
def test_other_objects_than_the_first_give_what_python_gives(mode, change, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)

    def plain(p):
        found = getattr(p, "z", 0.5)
        return p.y * found if hasattr(p, "x") else found

    f = lantern.jit(plain)
    for first in (Point(1.0, 2.0), SlottedPoint(1.0, 2.0)):
        f(first)
        wait()
    for _ in range(2):
        assert outcome(f, change()) == outcome(plain, change())


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("mode", ["O0", "tiers"])
def test_a_property_that_comes_later_is_asked(mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)

    @dataclasses.dataclass
    class Later:
        x: float

    @dataclasses.dataclass(slots=True)
    class LaterSlot:
        x: float

    for cls in (Later, LaterSlot):
        f = lantern.jit(lambda p: p.x * 2.0)
        made = cls(1.0)
        assert f(made) == 2.0
        wait()
        cls.x = property(lambda self: 1e3 + len("much"))
        for _ in range(3):
            assert f(made) == 2008.0


def test_a_property_in_place_of_what_is_walked_is_asked(mode):
    class Slots:
        __slots__ = ("rest", "value")

        def __init__(self, value, rest):
            self.value, self.rest = value, rest

    class Names(NamedTuple):
        value: float
        rest: object

    @dataclasses.dataclass(slots=True)
    class Fields:
        value: float
        rest: object

    def total(x):
        y = 0.0
        while x is not None:
            y = y + x.value
            x = x.rest
        return y

    for cls in (Slots, Names, Fields):
        f, chain = lantern.jit(total), cls(1.0, cls(2.0, None))
        assert f(chain) == 3.0
        wait()
        assert f(chain) == 3.0
        cls.value = property(lambda self: 1e3 + len("much"))
        assert f(chain) == 2008.0


def test_references_to_fields_are_given_back(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    f = lantern.jit(lantern.grad(length))
    x = float("0.5")
    made = Segment(Point(x, x), SlottedPoint(x, x), (1, x))
    f(made)
    before = sys.getrefcount(x), sys.getrefcount(Point), sys.getrefcount(made)
    for _ in range(1000):
        f(made)
    after = sys.getrefcount(x), sys.getrefcount(Point), sys.getrefcount(made)
    assert before == after
    found = f(made)
    start = found.start
    counts = sys.getrefcount(found), sys.getrefcount(start)
    assert counts == (2, 3)  # what asks has one itself


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Both:
    left: object
    right: object


def parts(x):
    return x + 1.0, (x + 2.0, x > 0.0, None, x + 3.0), x + 4.0


def rows_in_rows(x):
    return [x, [x * 2.0, ()], (x * 3.0,)]


def by_names(x):
    return Pair(x, Pair(x * 2.0, (x * 3.0, "kept")))


def by_fields(x):
    return (x, Both(x * 2.0, Both(x * 3.0, [x])), Both(x, x))


def without_memory(name):
    """Call a compiled function while one allocation fails, the next, and so on."""
    import _testcapi

    f, fast = globals()[name], lantern.jit(globals()[name])
    expected = f(0.5)
    fast(0.5)
    wait()
    assert lantern.explain(fast).endswith("compiled"), lantern.explain(fast)
    kept = [float(i) for i in range(200)]  # what was freed before is not used again
    kept += [(i, i) for i in range(5000)] + [[i] for i in range(200)]
    failed = before = 0
    for turn in range(40):
        if turn == 20:  # when the free lists are as long as they become
            before = sys.getallocatedblocks()
        for first in range(12):
            results = [fast(0.5) for _ in range(110)]  # no float or list is free
            try:
                _testcapi.set_nomemory(first, first + 1)
                try:
                    found = fast(0.5)
                finally:
                    _testcapi.remove_mem_hooks()
            except MemoryError:
                failed += 1
                continue
            finally:
                results.clear()
            assert found == expected, (first, found)
    assert failed > 40 * 3, failed
    lost = sys.getallocatedblocks() - before
    assert lost < 100, lost


@pytest.mark.skipif(
    not importlib.util.find_spec("_testcapi"), reason="it makes allocations fail"
)
@pytest.mark.parametrize("name", ["parts", "rows_in_rows", "by_names", "by_fields"])
def test_an_allocation_that_fails_raises(name):
    """In a child, which it would end if what holds a result were not looked at."""
    command = f"from tests.staging.test_trees import *; without_memory({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "LANTERN_JIT": "O2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclasses.dataclass(eq=False)
class Alone:
    """Equal to itself alone, as objects are whose classes do not say otherwise."""

    x: float


@dataclasses.dataclass(eq=False, frozen=True)
class Frozen:
    x: float


class HashedAlone(NamedTuple):
    x: float
    __hash__ = object.__hash__


def are_equal(p, q, a):
    return p.x * a if p == q else 0.5 * a


def are_unequal(p, q, a):
    return p.x * a if p != q else 0.5 * a


def is_among(p, q, a):
    return p.x * a if p in (q,) else 0.5 * a


def is_key(p, q, a):
    return {p: 1.0}.get(q, 5.0) * a


def place(p, q, a):
    return [q, p].index(p) + a


def inside_lists(p, q, a):
    return a if [p, 1.0] == [q, 1.0] else 2.0 * a


@pytest.mark.parametrize("make", [Alone, Frozen, HashedAlone, lambda x: [Alone(x)]])
@pytest.mark.parametrize(
    "f", [are_equal, are_unequal, is_among, is_key, place, inside_lists]
)
def test_objects_that_equal_themselves_alone(f, make, mode):
    one, other = make(2.0), make(3.0)
    if type(one) is list and f is is_key:
        return
    if type(one) is list:
        f = functools.partial(in_list, f)
    for g in (f, lantern.grad(f, 2)):
        fast = lantern.jit(g)
        for args in ((one, one, 1.5), (one, other, 1.5), (one, make(2.0), 1.5)):
            assert fast(*args) == g(*args)


def in_list(f, p, q, a):
    return f(p[0], q[0], a)


def chosen_alone(a):
    p, q = Alone(a), Alone(2.0 * a)
    r = p if a > 0.0 else q
    return a if r == p else 2.0 * a


def kept_alone(a):
    p = r = Alone(a)
    for _ in range(20):
        r = Alone(r.x * 0.5) if r.x < 0.0 else r
    return a if r == p else 2.0 * a


def turned_alone(a):
    p = Alone(a)
    r = p
    for _ in range(20):
        r, p = p, r
    return a if r == p else 2.0 * a


def handed_alone(a):
    def down(p, n):
        return p if n <= 0.0 else down(p, n - 1.0)

    p = Alone(a)
    return a if down(p, a) == p else 2.0 * a


def as_key_alone(a):
    p, q = Alone(a), Alone(2.0 * a)
    r = p if a > 0.0 else q
    return {p: 1.0, q: 2.0}.get(r, 7.0) * a


def not_copied(a):
    p, q = Alone(a), Alone(2.0 * a)
    return p.x + q.x if p != q else 0.0


@pytest.mark.parametrize(
    "f", [chosen_alone, kept_alone, turned_alone, handed_alone, as_key_alone]
)
def test_what_equals_itself_alone_is_not_copied(f, mode):
    for g in (f, lantern.grad(f)):
        fast = lantern.jit(g)
        for a in (1.5, -1.5):
            assert fast(a) == g(a)
    fast = lantern.jit(not_copied)
    assert fast(1.5) == 4.5
    assert mode == "off" or lantern.explain(fast).endswith("compiled")


def both(p, a):
    return p.x * a if p == p.__class__(p.x) else 2.0 * p.x * a


def equals_itself(p, a):
    return p.x * a if p == p else 2.0 * p.x * a


@pytest.mark.parametrize("f", [both, equals_itself])
def test_a_gradient_by_what_equals_itself_alone(f, mode):
    g = lantern.grad(f)
    assert lantern.jit(g)(Alone(2.0), 3.0).x == g(Alone(2.0), 3.0).x
    h = lantern.grad(lambda p, a: lantern.jit(are_equal)(p, p, a), 1)
    assert h(Alone(2.0), 3.0) == 2.0
    k = lantern.grad(lambda p: lantern.jit(are_equal)(p, p, 3.0))
    assert k(Alone(2.0)).x == 3.0


def renamed_field(a):
    p = Both(a, 0.0)
    q = p
    if a > 0.0:
        p = Both(2.0 * a, 0.0)
    q.left = 7.0 * a
    return p.left


def renamed_item(a):
    p = [a]
    q = p
    if a > 0.0:
        p = [2.0 * a]
    q[0] = 7.0 * a
    return p[0]


def renamed_and_longer(a):
    p = q = []
    p = p if a < 0.0 else [2.0 * a]
    q.append(7.0 * a)
    return p[0] + len(p)


def renamed_in_turns(a):
    p = [a]
    q = p
    for _ in range(20):
        p = [p[0] * 1.01] if p[0] > 0.0 else p
    q[0] = 7.0 * a
    return p[0]


def renamed_by_a_call(a):
    def down(r, n):
        return r if n <= 0.0 else down(r, n - 1.0)

    p = [a]
    r = down(p, abs(a))
    p[0] = 7.0 * a
    return r[0]


def renamed_by_a_later_call(a):
    def down(r, n):
        return r if n <= 0.0 else down(r, n - 1.0)

    p, q = [a], down([2.0 * a], abs(a))
    r = down(p, abs(a))
    p[0] = 7.0 * a
    return r[0] + q[0]


def renamed_deep(a):
    p = ([a],)
    q = p[0]
    p = p if a < 0.0 else ([2.0 * a],)
    q[0] = 7.0 * a
    return p[0][0]


def renamed_in_dict(a):
    p = {"k": a}
    q = p
    if a > 0.0:
        p = {"k": 2.0 * a}
    q["k"] = 7.0 * a
    return p["k"]


def renamed_twice(a):
    p, q = Both(a, 0.0), Both(3.0 * a, 0.0)
    r = p if a > 0.0 else q
    p.left = 7.0 * a
    q.left = 11.0 * a
    return r.left


def is_renamed(a):
    p, q = [a], [3.0 * a]
    r = p if a > 0.0 else q
    return (1.0 if r is p else 2.0) * a


def is_not_renamed(a):
    p, q = [], [3.0 * a]
    r = [] if a > 0.0 else p
    return (1.0 if r is not p else 2.0) * a + len(q)


@pytest.mark.parametrize(
    "f",
    [
        renamed_field,
        renamed_item,
        renamed_and_longer,
        renamed_in_turns,
        renamed_by_a_call,
        renamed_by_a_later_call,
        renamed_deep,
        renamed_in_dict,
        renamed_twice,
        is_renamed,
        is_not_renamed,
    ],
)
def test_a_container_of_two_names_is_changed_under_both(f, mode):
    for g in (f, lantern.grad(f)):
        fast = lantern.jit(g)
        for a in (1.5, -1.5):
            assert fast(a) == g(a)


def changed_before(a):
    p = [a, 1.0]
    p[0] = 2.0 * a
    p.append(a)
    q = p if a > 0.0 else [a, 2.0, 3.0]
    other = [q[0]]
    other.append(q[1])
    return q[0] + sum(other)


def test_a_container_may_be_changed_before_it_has_two_names(mode):
    fast = lantern.jit(changed_before)
    for a in (1.5, -1.5):
        assert fast(a) == changed_before(a)
    assert mode == "off" or lantern.explain(fast).endswith("compiled")


def mirrored(x, t):
    return x if t is None else mirrored(x, t[1]) * mirrored(x, t[0]) * t[2]


def test_an_object_is_asked_once_what_it_is(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O2")
    jitted, tree = lantern.jit(lantern.grad(mirrored)), (None, (None, None, 3.0), 2.0)
    assert jitted(2.0, tree) == lantern.grad(mirrored)(2.0, tree)
    (found,) = jitted.__self__.known.values()
    if found.native is not None:  # there is llvmlite
        _, forward = found.native.text.split("define internal {i1, double, double")
        forward, _ = forward.split("\n}", 1)
        classes = re.findall(r"getelementptr i8, ptr %\w+, i64 8\n", forward)
        assert len(classes) == 2  # a node's, and a number's
        assert forward.count("icmp slt i64") == 1
    for few in ((None, (None, None), 2.0), (None, None), ()):
        for f in (jitted, lantern.grad(mirrored)):
            with pytest.raises(IndexError):
                f(2.0, few)


def test_items_on_one_way_alone(mode):
    @lantern.jit
    def f(x, t):
        y = x * t[0]
        return y * t[2] if x > 1.0 else y

    assert (f(2.0, (3.0, 1, 5.0)), f(0.5, (3.0,)), f(0.5, (3.0, 1, 5.0))) == (
        30,
        1.5,
        1.5,
    )
    with pytest.raises(IndexError):
        f(2.0, (3.0,))

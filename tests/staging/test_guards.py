"""What a program has taken for constant: after each change it is read anew."""

import functools
import math
import types
from array import array
from collections import deque

import pytest

import lantern
from lantern.staging import guards
from lantern.staging.native.background import wait
from lantern.staging.native.engine import is_available

MODES = ["off", "interpret", "O0", "O2", "tiers"]


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


@pytest.fixture(params=["by versions", "by names"])
def globals_are_guarded(request, monkeypatch):
    """Where dicts keep no version, as since CPython 3.14, names are asked for."""
    if request.param == "by names":
        monkeypatch.setattr(guards, "version_offset", lambda: -1)


class Box:
    """An object whose class has one of each kind of attributes."""

    scale = 3.0

    def __init__(self):
        self.shift = 2.0

    def moved(self, x):
        return x + self.shift

    @classmethod
    def scaled(cls, x):
        return x * cls.scale

    @staticmethod
    def squared(x):
        return x * x

    @property
    def twice(self):
        return self.shift * 2.0


class Slotted:
    __slots__ = ("shift",)

    def __init__(self):
        self.shift = 2.0


class Computed:
    """An object whose attributes are found by code of its own."""

    def __init__(self):
        self.kept = {"shift": 2.0}

    def __getattr__(self, name):
        return self.kept[name]


class Fresh:
    """An object whose attribute is another object each time, of the same value."""

    shift = types.DynamicClassAttribute(lambda self: float("2"))


def _shadowed(box):
    box.moved = lambda x: x - 1.0


def _another_class(box):
    class Other(Box):
        def moved(self, x):
            return x * 8.0

    box.__class__ = Other


def _changed(name, value):
    return lambda x: setattr(x, name, value)


def _deleted(name):
    return lambda x: delattr(x, name)


def _on_class(name, value):
    return lambda x: setattr(type(x), name, value)


def _box():
    return type("Box", (Box,), {})()


def _module():
    made = types.ModuleType("made")
    made.shift = 2.0
    return made


CASES = {
    "an attribute": (_box, lambda b, x: x * b.shift, [_changed("shift", 5.0)]),
    "an equal attribute": (
        _box,
        lambda b, x: x * b.shift,
        [_changed("shift", float("2")), _changed("shift", 7.0)],
    ),
    "of another type": (_box, lambda b, x: x * b.shift, [_changed("shift", 5)]),
    "a zero's sign": (
        _box,
        lambda b, x: x * b.shift,
        [_changed("shift", 0.0), _changed("shift", -0.0)],
    ),
    "of a class": (
        _box,
        lambda b, x: x * b.scale,
        [_on_class("scale", 4.0), _changed("scale", 9.0), _deleted("scale")],
    ),
    "a method": (
        _box,
        lambda b, x: b.moved(x),
        [
            _changed("shift", 4.0),
            _on_class("moved", lambda self, x: x * 9.0),
            _another_class,
            _shadowed,
            _deleted("moved"),
        ],
    ),
    "a class method": (
        _box,
        lambda b, x: b.scaled(x),
        [_on_class("scale", 4.0), _changed("scaled", lambda x: x - 3.0)],
    ),
    "a static method": (
        _box,
        lambda b, x: b.squared(x),
        [_changed("squared", lambda x: x - 3.0), _deleted("squared")],
    ),
    "a property": (_box, lambda b, x: x * b.twice, [_changed("shift", 4.0)]),
    "a function in an attribute": (
        lambda: types.SimpleNamespace(f=lambda x: x + 1.0),
        lambda b, x: b.f(x),
        [_changed("f", lambda x: x + 2.0), _changed("f", abs)],
    ),
    "a slot": (Slotted, lambda b, x: x * b.shift, [_changed("shift", 5.0)]),
    "of a module": (_module, lambda b, x: x * b.shift, [_changed("shift", 5.0)]),
    "computed": (
        Computed,
        lambda b, x: x * b.shift,
        [lambda b: b.kept.update(shift=5.0), _changed("shift", 1.0)],
    ),
    "made each time": (
        Fresh,
        lambda b, x: x * b.shift,
        [_on_class("shift", property(lambda self: float("5")))],
    ),
    "of an attribute": (
        lambda: types.SimpleNamespace(a=_box()),
        lambda b, x: x * b.a.shift,
        [lambda b: setattr(b.a, "shift", 4.0), lambda b: setattr(b, "a", _box())],
    ),
    "an item of a list": (
        lambda: [2.0, 3.0],
        lambda b, x: x * b[1],
        [lambda b: b.__setitem__(1, 4.0), lambda b: b.__setitem__(1, float("4"))],
    ),
    "a list's length": (
        lambda: [2.0, 3.0],
        lambda b, x: x * len(b),
        [lambda b: b.append(1.0), lambda b: b.extend([0.0] * 50), lambda b: b.clear()],
    ),
    "a longer list": (
        lambda: [2.0] * 200,
        lambda b, x: x * b[150],
        [lambda b: b.__setitem__(150, 4.0)],
    ),
    "a list in a list": (
        lambda: [[2.0], [3.0]],
        lambda b, x: x * b[1][0],
        [lambda b: b[1].__setitem__(0, 4.0), lambda b: b.__setitem__(1, [5.0])],
    ),
    "an item of a dict": (
        lambda: {"a": 2.0, "b": 3.0},
        lambda b, x: x * b["b"],
        [lambda b: b.update(b=4.0), lambda b: b.update(c=4.0)],
    ),
    "a dict's order": (
        lambda: {"a": 2.0, "b": 3.0},
        lambda b, x: x - next(iter(b.values())),
        [lambda b: b.update(a=b.pop("a"))],
    ),
    "an object's dict": (
        _box,
        lambda b, x: x * vars(b)["shift"],
        [_changed("shift", 4.0), _changed("other", 4.0)],
    ),
}


class Vector:
    """An object whose class says what operators do."""

    def __init__(self):
        self.v = 1.0

    def __mul__(self, other):
        return self.v * other

    __rmul__ = __matmul__ = __mul__

    def __neg__(self):
        return -self.v

    def __getitem__(self, i):
        return self.v * (i + 1)

    def __len__(self):
        return int(self.v)

    def __iter__(self):
        return iter([self.v, 2.0])

    def __contains__(self, x):
        return self.v > 1.5

    def __bool__(self):
        return self.v < 1.5

    def __lt__(self, other):
        return self.v < other

    def __float__(self):
        return self.v


def _unpacked(b, x):
    first, *rest = b
    return first * x + len(rest)


def _looped(b, x):
    for w in b:
        x = x * w
    return x


READS = {
    "a comprehension": lambda b, x: sum([w * x for w in b]),
    "a generator": lambda b, x: sum(w * x for w in b),
    "stars": lambda b, x: (lambda *args: args[0] * x)(*b),
    "a display": lambda b, x: [*b, x][0],
    "unpacking": _unpacked,
    "a loop": _looped,
    "truth": lambda b, x: x if b else -x,
    "a sum": lambda b, x: sum(b) * x,
    "the greatest": lambda b, x: max(*b) * x,
    "an item": lambda b, x: b[0] * x,
    "a length": lambda b, x: len(b) * x,
    "containment": lambda b, x: x * (5.0 in b),
}
LIST_READS = {
    "equality": lambda b, x: x * (b == [5.0, 2.0]),
    "order": lambda b, x: x * (b < [2.0]),
    "an added list": lambda b, x: (b + b)[0] * x,
    "a text": lambda b, x: x * len(f"{b}"),
    "a text by %": lambda b, x: x * len("%s" % b),  # noqa: UP031  # another way to it
    "a function of math": lambda b, x: math.hypot(*b) * x,
}
VECTOR_READS = {
    "a product": lambda b, x: b * x,
    "a reflected product": lambda b, x: x * b,
    "a negative": lambda b, x: -b * x,
    "a comparison": lambda b, x: x * (b < 2.0),
    "a float": lambda b, x: float(b) * x,
    "a matrix product": lambda b, x: b @ x,
}
OWNERS = {
    "list": (lambda: [1.0, 2.0], {**READS, **LIST_READS}),
    "deque": (lambda: deque([1.0, 2.0]), READS),
    "array": (lambda: array("d", [1.0, 2.0]), READS),
    "vector": (Vector, {**READS, **VECTOR_READS}),
}


def _first(b):
    if isinstance(b, Vector):
        b.v = 5.0
    else:
        b[0] = 5.0


@pytest.mark.parametrize(
    ("kind", "way"), [(k, w) for k in OWNERS for w in OWNERS[k][1]]
)
def test_a_change_is_seen_however_it_is_read(kind, way, mode):
    make, ways = OWNERS[kind]
    owner, plain = make(), ways[way]
    f = lantern.jit(lambda x: plain(owner, x))
    for change in (lambda b: None, _first):
        change(owner)
        for _ in range(2):
            assert repr(f(1.5)) == repr(plain(owner, 1.5))
            wait()


@pytest.mark.parametrize(
    "plain",
    [
        lambda x: len(str(x)) * x,
        lambda x: len(str([x])) * x,
        lambda x: len(repr(x)) * x,
        lambda x: len({x, 1.5}) * x,
        lambda x: len("%s" % x) * x,  # noqa: UP031  # another way to it
        lambda x: {1.5: 10.0}.get(x, 0.0) + x,
        lambda x: x * (x in {1.5}),
        lambda x: x * (x in {1.5: 1}),
    ],
)
def test_texts_and_keys_are_those_of_the_number(plain, mode):
    f = lantern.jit(plain)
    for x in (1.5, 0.5):
        assert f(x) == f(x) == plain(x)


def _by_name(x, *, k=2.0):
    return x * k


def test_defaults_and_options_that_change_in_place_are_seen(mode):
    partly = functools.partial(lambda x, k: x * k, k=2.0)
    options = {"k": 2.0}
    _by_name.__kwdefaults__ = options
    f, g = lantern.jit(lambda x: partly(x)), lantern.jit(lambda x: _by_name(x))
    for k in (2.0, 5.0):
        options["k"] = partly.keywords["k"] = k
        assert f(1.5) == g(1.5) == 1.5 * k


def test_an_iterator_is_used_up_as_it_is(mode):
    numbers = iter([1.0, 2.0])
    f = lantern.jit(lambda x: x + sum(numbers))
    assert [f(1.5), f(1.5)] == [4.5, 1.5]


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name, mode, globals_are_guarded):
    make, plain, changes = CASES[name]
    owner = make()
    f = lantern.jit(lambda x: plain(owner, x))
    for change in [lambda x: None, *changes, lambda x: None]:
        change(owner)
        for _ in range(3):
            assert repr(f(1.5)) == repr(plain(owner, 1.5))
            wait()


@pytest.mark.skipif(not is_available(), reason="no llvmlite")
@pytest.mark.parametrize(
    "name",
    [
        "an attribute",
        "of a class",
        "a method",
        "a class method",
        "a static method",
        "a slot",
        "of a module",
        "an item of a list",
        "a list in a list",
    ],
)
def test_machine_code_looks_by_itself(name, globals_are_guarded, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    make, plain, _ = CASES[name]
    owner, looks = make(), []
    f = lantern.jit(lambda x: plain(owner, x))
    f(1.5)
    (made,) = f.__self__.known.values()
    made.guards.checks.append(lambda: not looks.append(1))
    assert [f(x) for x in (1.5, 2.5)] == [plain(owner, x) for x in (1.5, 2.5)]
    assert not looks
    if name == "an item of a list":
        owner[1] = float("3")  # an equal one: machine code is told, and looks again
        assert f(1.5) == f(1.5) == 4.5
        assert looks == [1]


def test_what_another_error_than_a_missing_attribute_says_is_passed_on(mode):
    class Raising:
        shift = 2.0

    box = Raising()
    f = lantern.jit(lambda x: x * box.shift)
    assert f(1.5) == 3.0

    def raising(self):
        raise KeyError("not today")

    Raising.shift = types.DynamicClassAttribute(raising)
    with pytest.raises(KeyError, match="not today"):
        f(1.5)
    del Raising.shift
    with pytest.raises(AttributeError, match="shift"):
        f(1.5)
    box.shift = 4.0
    assert f(1.5) == 6.0

"""Objects for which Python calls functions by itself: followed, or refused."""

import abc
import collections
import ctypes
import dataclasses
import functools
import sys
import types
import typing

import pytest

import lantern
from lantern import staging
from lantern.staging.native.background import wait

FACTOR = {"k": 2.0}
MODES = ["interpret", "O0", "tiers"]


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


class Vec:
    """Whatever Python calls by itself reads what changes."""

    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Vec(
            self.v + (other.v if isinstance(other, Vec) else other) * FACTOR["k"]
        )

    def __radd__(self, other):
        return Vec(other + self.v * FACTOR["k"])

    def __mul__(self, other):
        return self.v * other * FACTOR["k"]

    __rmul__ = __matmul__ = __lshift__ = __pow__ = __mul__

    def __divmod__(self, other):
        return self.v * FACTOR["k"], other

    def __iadd__(self, other):
        return Vec(self.v - other * FACTOR["k"])

    def __neg__(self):
        return -self.v * FACTOR["k"]

    def __abs__(self):
        return self.v * self.v + FACTOR["k"]

    def __float__(self):
        return FACTOR["k"]

    def __index__(self):
        return int(FACTOR["k"])

    __len__ = __hash__ = __int__ = __index__

    def __bool__(self):
        return FACTOR["k"] < 3.0

    def __eq__(self, other):
        return FACTOR["k"] < 3.0

    def __lt__(self, other):
        return self.v < FACTOR["k"]

    def __contains__(self, x):
        return FACTOR["k"] > 3.0

    def __getitem__(self, i):
        return self.v * i + FACTOR["k"]

    def __iter__(self):
        return iter([self.v, FACTOR["k"]])

    def __str__(self):
        return "s" * int(FACTOR["k"])

    __repr__ = __str__

    def __format__(self, how):
        return "f" * int(FACTOR["k"])

    def __getattr__(self, name):
        if name == "other":
            return FACTOR["k"]
        raise AttributeError(name)

    @property
    def twice(self):
        return self.v * FACTOR["k"]

    @twice.setter
    def twice(self, x):
        self.v = x * FACTOR["k"]

    @functools.cached_property
    def kept(self):
        return self.v * FACTOR["k"]


class Sub(Vec):
    def __mul__(self, other):
        return super().__mul__(other) + 1.0


def _augmented(v, x):
    v += x
    return v.v


def _set(v, x):
    v.twice = x
    return v.v


def _unpacked(v, x):
    a, b = v
    return a * b * x


def _looped(v, x):
    for w in v:
        x = x * w
    return x


def _branched(v, x):
    if v:
        return x
    return -x


def _turned(v, x):
    i = 0
    while i < 5:
        v = v + x
        i += 1
    return v.v


def _entered(v, x):
    with v as w:
        return w * x


USES = {
    "sum": lambda v, x: (v + v + x).v,
    "reflected sum": lambda v, x: (x + v).v,
    "product": lambda v, x: v * x,
    "reflected product": lambda v, x: x * v,
    "matrix product": lambda v, x: v @ x,
    "shift": lambda v, x: v << x,
    "power": lambda v, x: v**x,
    "division with rest": lambda v, x: divmod(v, x)[0] * x,
    "negative": lambda v, x: -v * x,
    "absolute value": lambda v, x: abs(v) * x,
    "float": lambda v, x: float(v) * x,
    "int": lambda v, x: int(v) * x,
    "index": lambda v, x: range(10)[v] * x,
    "length": lambda v, x: len(v) * x,
    "hash": lambda v, x: {v: x}[v] * len({v}),
    "truth": lambda v, x: x if v else -x,
    "not": lambda v, x: x * (not v),
    "or": lambda v, x: (v and x) if v else -x,
    "equality": lambda v, x: x * (v == 1.0),
    "inequality": lambda v, x: x * (1.0 != v),  # noqa: SIM300  # reflected
    "order": lambda v, x: x * (v < 3.0),
    "reflected order": lambda v, x: x * (3.0 > v),  # noqa: SIM300  # it
    "equal lists": lambda v, x: x * ([v] == [1.0]),
    "in": lambda v, x: x * (x in v),
    "in a list": lambda v, x: x * (1.0 in [v]),
    "item": lambda v, x: v[1] * x,
    "comprehension": lambda v, x: sum([w * x for w in v]),
    "star": lambda v, x: [*v, x][1],
    "list": lambda v, x: list(v)[1] * x,
    "sum of items": lambda v, x: sum(v) * x,
    "sum of objects": lambda v, x: sum([v, v]).v * x,
    "greatest item": lambda v, x: max(v) * x,
    "least object": lambda v, x: min(v, v) * x,
    "text": lambda v, x: len(str(v)) * x,
    "text in braces": lambda v, x: len(f"{v}") * x,
    "text in a list": lambda v, x: len(str([v])) * x,
    "text by %": lambda v, x: len("%s" % v) * x,  # noqa: UP031  # another way to it
    "property": lambda v, x: v.twice * x,
    "cached property": lambda v, x: v.kept * x,
    "found otherwise": lambda v, x: v.other * x,
    "augmented": _augmented,
    "setter": _set,
    "unpacked": _unpacked,
    "looped": _looped,
    "branched": _branched,
    "turned": _turned,
}


def _outcome(f, *args):
    try:
        return repr(f(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _agree(plain, compiled, *args):
    for _ in range(2):
        assert _outcome(compiled, *args) == _outcome(plain, *args)
        wait()


@pytest.mark.parametrize("where", ["inside", "outside", "subclass", "argument"])
@pytest.mark.parametrize("use", USES)
def test_what_hooks_read_is_looked_at_again(use, where, mode, monkeypatch):
    body, outside = USES[use], Vec(1.0)
    plain = {
        "inside": lambda x: body(Vec(x), x),
        "outside": lambda x: body(outside, x),
        "subclass": lambda x: body(Sub(x), x),
        "argument": body,
    }[where]
    args = (Vec(1.5), 1.5) if where == "argument" else (1.5,)
    f = lantern.jit(plain)
    for k in (2.0, 4.0, 2.0):
        monkeypatch.setitem(FACTOR, "k", k)
        _agree(plain, f, *args)
    outside.v = 3.0
    _agree(plain, f, *args)
    monkeypatch.setattr(Vec, "__mul__", lambda self, other: other - 100.0)
    monkeypatch.setattr(Vec, "__add__", lambda self, other: Vec(7.0))
    _agree(plain, f, *args)


@dataclasses.dataclass
class Point:
    x: float
    y: float = 2.0

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def __rmul__(self, k):
        return Point(k * self.x, k * self.y)

    def dot(self, other):
        return self.x * other.x + self.y * other.y


class Dual:
    __slots__ = ("d", "v")

    def __init__(self, v, d=0.0):
        self.v = v
        self.d = d

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.v + other.v, self.d + other.d)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.v * other.v, self.v * other.d + self.d * other.v)

    __rmul__ = __mul__


class Polynomial:
    def __init__(self, *coefficients):
        self.coefficients = coefficients

    def __call__(self, x):
        found = 0.0
        for a in reversed(self.coefficients):
            found = found * x + a
        return found

    def __getitem__(self, i):
        return self.coefficients[i]

    def __len__(self):
        return len(self.coefficients)


G, D, P = Point(1.0), Dual(2.0, 1.0), Polynomial(1.0, 2.0, 3.0)


def _steps(x):
    p = Point(x, 1.0)
    for _ in range(100):
        p = p + 0.01 * p
    return p.dot(p)


def _outside(x):
    return (G + x * G).dot(G) + P(x) * P[1] * len(P) + (D * x).d


@pytest.mark.parametrize(
    ("plain", "args"),
    [
        (lambda p, t: (p + t * p).dot(p), (Point(1.0), 2.0)),
        (lambda p, t: p + t * p, (Point(1.0), 2.0)),
        (lambda x: (Dual(x, 1.0) * Dual(x) + 2.0).d, (2.0,)),
        (lambda x: Polynomial(1.0, x)(x) + Polynomial(x)[0], (2.0,)),
        (_steps, (2.0,)),
        (_outside, (2.0,)),
    ],
)
def test_programs_with_operators_of_their_own_are_compiled(plain, args, mode):
    f = lantern.jit(plain)
    _agree(plain, f, *args)
    assert ": compiled" in lantern.explain(f)


def test_what_optree_says_of_a_class_is_asked_while_a_program_is_watched(mode):
    pytest.importorskip("optree", reason="it says how classes are taken apart")

    class Pair:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return Pair(self.x + other.x)

    def f(x):
        return (Pair(x) + Pair(2.0)).x

    g = lantern.jit(lantern.grad(f))
    assert g(3.0) == 1.0
    assert ": compiled" in lantern.explain(g)


def test_a_gradient_goes_through_operators_of_a_class(mode):
    f = lantern.jit(lantern.grad(_steps))
    assert f(2.0) == pytest.approx(lantern.grad(_steps)(2.0), rel=1e-12)
    assert ": compiled" in lantern.explain(f)


class Logged:
    calls: typing.ClassVar[list[str]] = []

    def __add__(self, other):
        self.calls.append("add")
        return other

    def __eq__(self, other):
        self.calls.append("eq")
        return True

    def __hash__(self):
        self.calls.append("hash")
        return 1

    def __bool__(self):
        self.calls.append("bool")
        return True

    def __format__(self, how):
        self.calls.append("format")
        return "x"


@pytest.mark.parametrize(
    "plain",
    [
        lambda x: Logged() + x,
        lambda x: x if Logged() == 1 else -x,
        lambda x: x if Logged() else -x,
        lambda x: {Logged(): x}[Logged()],
        lambda x: len(f"{Logged()}") * x,
    ],
)
def test_what_hooks_do_is_done_at_each_call_and_once(plain, mode):
    f, seen = lantern.jit(plain), []
    for g in (plain, f, f):
        Logged.calls.clear()
        assert g(1.5) == 1.5
        wait()
        seen.append(list(Logged.calls))
    assert seen[0] == seen[1] == seen[2] != []


class Scaled:
    """A class without hooks, whose attributes change."""

    scale = 3.0

    def __init__(self, v):
        self.v = v

    def moved(self, x):
        return self.v * x * self.scale


class Doubled:
    def __get__(self, owner, cls=None):
        return owner.kept * FACTOR["k"]

    def __set__(self, owner, value):
        owner.kept = value + FACTOR["k"]


class Described:
    d = Doubled()

    def __init__(self, v):
        self.d = v


class Row(typing.NamedTuple):
    a: float
    b: float = 2.0

    def total(self):
        return self.a * FACTOR["k"] + self.b

    def __add__(self, other):
        return Row(self.a + other.a * FACTOR["k"], self.b)


class Made(collections.namedtuple("Made", "a b")):
    def __new__(cls, a):
        return super().__new__(cls, a, FACTOR["k"])


class Meta(type):
    def __getitem__(cls, i):
        return FACTOR["k"] * i


class WithMeta(metaclass=Meta):
    pass


class Shape(abc.ABC):  # noqa: B024  # it is asked for alone
    def area(self):
        return 1.0


@dataclasses.dataclass
class Filled:
    x: float
    row: list = dataclasses.field(default_factory=lambda: [FACTOR["k"]])


class Longer(list):
    pass


class Otherwise(dict):
    def __missing__(self, key):
        return FACTOR["k"]


LONGER, OTHERWISE, SPACE = Longer([1.0, 2.0]), Otherwise(), types.SimpleNamespace(a=1.0)
VALUES = {"a": 1.0}
VIEW = VALUES.values()
SCALED = Scaled(1.0)


def _change_containers():
    LONGER[0] += 4.0
    VALUES["a"] += 4.0
    SPACE.a += 400.0


@pytest.mark.parametrize(
    "plain",
    [
        lambda x: Scaled(x).moved(x),
        lambda x: Scaled(x).scale * x,
        lambda x: Described(x).d,
        lambda x: Row(x).total(),
        lambda x: (Row(x) + Row(x)).a,
        lambda x: Made(x).b * x,
        lambda x: WithMeta[2] * x,
        lambda x: x * isinstance(SCALED, Shape),
        lambda x: Filled(x).row[0] * x,
        lambda x: sum([w * x for w in LONGER]),
        lambda x: x * (LONGER == [1.0, 2.0]),
        lambda x: OTHERWISE["a"] * x,
        lambda x: len(f"{SPACE}") * x,
        lambda x: len(str(SPACE)) * x,
        lambda x: x * (types.SimpleNamespace(a=1.0) == SPACE),
        lambda x: sum(VIEW) * x,
    ],
)
def test_what_classes_and_containers_have_is_looked_at_again(plain, mode, monkeypatch):
    f = lantern.jit(plain)
    _agree(plain, f, 1.5)
    monkeypatch.setitem(FACTOR, "k", 4.0)
    _change_containers()
    _agree(plain, f, 1.5)
    Shape.register(Scaled)
    monkeypatch.setattr(Scaled, "scale", 5.0)
    monkeypatch.setattr(Row, "total", lambda self: 7.0)
    _agree(plain, f, 1.5)
    monkeypatch.setattr(Scaled, "moved", lambda self, x: x - 50.0)
    monkeypatch.setattr(Scaled, "__init__", lambda self, v: setattr(self, "v", 9.0))
    _agree(plain, f, 1.5)


def _halves(x):
    pairs = zip([1.0, 2.0], [3.0, 4.0], strict=True)
    return sum(a * b for a, b in pairs) * x if x > 0 else sum(a for a, _ in pairs)


def _generated(x):
    items = (w * x for w in [1.0, 2.0])
    return sum(items) if x > 0 else -sum(items)


def _mapped(x):
    items = map(lambda w: w * x, [1.0, 2.0])  # noqa: C417  # it is an iterator
    return sum(items) + sum(items)


@pytest.mark.parametrize("plain", [_halves, _generated, _mapped])
def test_an_iterator_of_the_program_is_used_up_once(plain, mode):
    f = lantern.jit(plain)
    for x in (1.5, -0.5, 1.5):
        _agree(plain, f, x)


@pytest.mark.parametrize(
    "plain",
    [
        lambda x: len(f"{x!r}") * x,
        lambda x: len(f"{[x]}") * x,
        lambda x: len("%s" % [x]) * x,
        lambda x: len(f"{x!r:>9}") * x,
        lambda x: len(x.__doc__) * x,
        lambda x: x.__class__(2) * x,
    ],
)
def test_a_number_shows_nothing_of_the_staging(plain, mode):
    f = lantern.jit(plain)
    for x in (1.5, 0.25):
        _agree(plain, f, x)


@dataclasses.dataclass
class Derived:
    x: float
    n: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.n = self.x * FACTOR["k"]


def _changed(x, **attributes):
    vars(x).update(attributes)
    return x


@pytest.mark.parametrize(
    ("plain", "make"),
    [
        (lambda v: v.n * v.x, lambda: Derived(2.0)),
        (lambda v: v.n * v.x, lambda: _changed(Derived(2.0), n=7.0)),
        (lambda v: v[0].n, lambda: [_changed(Derived(2.0), n=7.0)]),
        (lambda v: v.dot(v), lambda: _changed(Point(2.0), dot=lambda other: 8.0)),
        (lambda v: v.node * v.size, lambda: _changed(Scaled(1.0), node=2.0, size=3.0)),
    ],
)
def test_an_argument_is_more_than_its_fields(plain, make, mode, monkeypatch):
    f, argument = lantern.jit(plain), make()
    _agree(plain, f, argument)
    monkeypatch.setitem(FACTOR, "k", 4.0)
    _agree(plain, f, argument)


def _class(factor):
    @dataclasses.dataclass
    class Same:
        x: float

        def scaled(self):
            return self.x * factor

    return Same


def test_classes_of_one_name_are_different(mode):
    def plain(v):
        return v.scaled()

    f = lantern.jit(plain)
    for factor in (1.0, 2.0):
        _agree(plain, f, _class(factor)(1.5))


def test_a_profiler_goes_on_while_the_function_runs_as_it_is(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    seen = []

    def see(frame, event, arg):
        seen.append(event)

    def plain(x):
        return Vec(x) * 2.0

    f = lantern.jit(plain)
    sys.setprofile(see)
    try:
        found = f(1.5)
        assert sys.getprofile() is see
    finally:
        sys.setprofile(None)
    assert found == plain(1.5)
    assert seen
    assert "profiler" in lantern.explain(f)


def test_an_object_of_a_loop_is_no_other_one(mode):
    def plain(x):
        a = b = Point(x)
        for _ in range(50):
            x = x * 1.01
            a = a if x < 100.0 else b
        return x if a is b else -x

    f = lantern.jit(plain)
    _agree(plain, f, 1.5)


def test_a_function_that_a_combinator_is_given_is_followed(mode, monkeypatch):
    def then():
        return FACTOR["k"]

    def other():
        return -FACTOR["k"]

    def plain(x):
        return staging.IF(x > 0.0, then, other) * x

    f = lantern.jit(plain)
    for k in (2.0, 4.0):
        monkeypatch.setitem(FACTOR, "k", k)
        _agree(plain, f, 1.5)


ROWS = {"a": [1.0], "b": [2.0]}


def _got(x):
    ROWS.get("a").append(x)
    return x


def _greatest(x):
    max(ROWS["a"], ROWS["b"]).append(x)
    return x


def _reduced(x):
    functools.reduce(lambda a, b: b, [ROWS["a"], ROWS["b"]]).append(x)
    return x


def _popped(x):
    rows = [ROWS["a"]]
    rows.pop().append(x)
    return x


@pytest.mark.parametrize("plain", [_got, _greatest, _reduced, _popped])
def test_what_a_function_hands_back_is_not_made_here(plain, mode):
    f = lantern.jit(plain)
    for count in range(1, 4):
        before = sum(map(len, ROWS.values()))
        assert f(1.5) == 1.5
        wait()
        assert sum(map(len, ROWS.values())) == before + 1, count


def test_numbers_of_c_that_change_are_looked_at_again(mode):
    numbers = (ctypes.c_double * 2)(1.0, 2.0)
    plain = lambda x: numbers[0] * x + sum([w * x for w in numbers])  # noqa: E731
    f = lantern.jit(plain)
    for value in (1.0, 5.0):
        numbers[0] = value
        _agree(plain, f, 1.5)

"""Objects of data classes that a function of the user's finishes."""

import dataclasses
from dataclasses import InitVar, dataclass, field

import pytest

import lantern
from tests.staging.outcomes import is_compiled, outcome, outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


SCALE = 2.0
made = []


@dataclass
class Normal:
    mean: float
    width: float = 1.0
    names: list = field(default_factory=list)
    variance: float = field(init=False)

    def __post_init__(self):
        if self.width < 0:
            raise ValueError("a negative width")
        self.mean = self.mean * SCALE
        self.variance = self.width * self.width
        self.names.append(self.mean)
        self.count = len(self.names)


@dataclass
class Shifted(Normal):
    shift: float = field(default=0.5, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        self.mean += self.shift


@dataclass(frozen=True)
class Frozen:
    x: float
    y: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "y", self.x * 3.0)


@dataclass(slots=True)
class Slots:
    x: float

    def __post_init__(self):
        self.x = self.x + 1.0


@dataclass
class Given:
    x: float
    more: InitVar[float] = 2.0

    def __post_init__(self, more):
        self.x = self.x * more


@dataclass
class Noted:
    x: float

    def __post_init__(self):
        made.append(1)
        self.x = self.x * 2


def finished(x):
    one, other = Normal(x, names=[1.0]), Normal(2.0 * x, x * x)
    return one.mean * one.variance + other.variance * other.count + len(one.names)


def inherited(x):
    one = Shifted(x, shift=x) if SCALE > 1.0 else Shifted(x)
    one.names.append(x)
    return one.mean + sum(one.names) + one.shift


def frozen(x):
    return Frozen(x).y * Frozen(2.0, x).x + Slots(x).x


def changed(x):
    one = Normal(x)
    for i in range(100):
        if one.mean > 3.0:
            one.mean -= x * i
        one.count += 1
    return one.mean * one.count


COMPILED = [finished, inherited, frozen, changed]


def chosen(x):
    one = Normal(x) if x > 1.0 else Normal(2.0 * x)
    return one.mean


def negative(x):
    return Normal(x, -1.0).mean


def missing(x):
    return Normal().mean


def unknown(x):
    return Normal(x, wide=1.0).mean


def twice(x):
    return Normal(x, mean=x).mean


def given_more(x):
    return Given(x).x + Given(x, 3.0).x


def replaced(x):
    return dataclasses.replace(Slots(x), x=2.0).x


def handed_out(x):
    return [Normal(x), Frozen(x)]


def frozen_changed(x):
    one = Frozen(x)
    one.x = 2.0
    return one.x


def compared(x):
    return (Slots(x) == Slots(1.5)) + x


def turned(x):
    one = Slots(x)
    for _ in range(50):
        one = Slots(one.x * 0.5)
    return one.x


def by_itself(x):
    def depth(one, n):
        return one.x if n == 0 else depth(Slots(one.x * 0.5), n - 1)

    return depth(Slots(x), 40)


OTHERS = [
    chosen,
    negative,
    missing,
    unknown,
    twice,
    given_more,
    replaced,
    handed_out,
    frozen_changed,
    compared,
    turned,
    by_itself,
]
POINTS = (0.1, 0.75, 1.5, 2.5, -1.0)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_results_are_pythons(f, mode):
    assert outcomes(lantern.jit(f), POINTS) == outcomes(f, POINTS)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    jitted = lantern.jit(gradient, exact=True)
    assert outcomes(jitted, POINTS) == outcomes(gradient, POINTS)


@pytest.mark.parametrize("f", COMPILED)
def test_they_are_compiled(f):
    assert is_compiled(f, 1.5)


def test_what_it_reads_is_looked_at(mode, monkeypatch):
    jitted = lantern.jit(finished)
    before = jitted(1.5)
    monkeypatch.setattr("tests.staging.test_post_init.SCALE", 3.0)
    assert jitted(1.5) == finished(1.5) != before
    monkeypatch.setattr(Normal, "__post_init__", lambda self: vars(self).update(n=1))
    assert outcome(jitted, 1.5) == outcome(finished, 1.5)


def test_it_runs_as_often_as_in_python(mode):
    def f(x):
        return Noted(x).x

    made.clear()
    assert lantern.jit(f)(1.5) == 3.0
    assert len(made) == 1

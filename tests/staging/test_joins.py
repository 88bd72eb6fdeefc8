"""Numbers that are ints on one way and floats on another: Python's types come back."""

import inspect
import math

import pytest

import lantern


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def clipped(x):
    return x if x > 0 else 0


def extreme(x):
    return max(x, 0), min(0, x)


def total(x, n):
    s = 0
    for i in range(n):
        s += x * i
    return s


def some_turns(x, n):
    s = 0
    for i in range(n):
        s = s + i if x > i else s + 0.5
    return s * -1


def arithmetic(x):
    y = 0 if x < 0 else x
    return [y, -y, y * 3, y + y, abs(y), y / 2, y * 0.5, y - 1, y * y, y == 0, y < 1]


def grows(x, n):
    y = 1
    while y < n and y < 100:
        y = y * 3 if x > 0 else y * 1.5
    return y, (y if x > 1 else n)


def large(x, n):
    y = n if x > 0 else x
    return y * y * y * y


def signs(x):
    y = 0 if x < 0 else x
    return math.atan2(-y, -1.0), math.copysign(1.0, y * -1), 1.0 * -y, y - y


def early(x, n):
    for i in range(n):
        if x > 3:
            return 0
        x = x + i
    return x


def divided(x):
    y = 7 if x < 0 else x
    return y // 2, y % 3, -y // 2, -y % 3, y // 2.0, divmod(y, -4), y // y


STAGED = (
    divided,
    clipped,
    extreme,
    total,
    some_turns,
    arithmetic,
    grows,
    large,
    signs,
    early,
)
NUMBERS = (
    *((1.5, 4), (-1.5, 4), (0.0, 0), (-0.0, 1), (2.5, 7), (math.nan, 3), (1e17, 2)),
    *((3.0, 2**20), (-2.0, 2**60 + 1), (1.0, 2**53 + 1), (1.0, 2**53), (2.0, -(2**53))),
)


def outcome(f, args):
    try:
        return repr(f(*args))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("f", STAGED)
def test_values_and_their_types(f, mode):
    jitted = lantern.jit(f)
    count = len(inspect.signature(f).parameters)
    for args in NUMBERS:
        if f in (total, some_turns, early) and abs(args[1]) > 100:
            continue
        assert outcome(jitted, args[:count]) == outcome(f, args[:count])
    assert "runs as it is" not in lantern.explain(jitted)


@pytest.mark.parametrize("f", [clipped, total, some_turns, early])
@pytest.mark.parametrize("order", [lantern.grad, lantern.value_and_grad])
def test_derivatives(f, order, mode):
    count = len(inspect.signature(f).parameters)
    for args in NUMBERS[:5]:
        expected = outcome(order(f), args[:count])
        assert outcome(lantern.jit(order(f)), args[:count]) == expected
        assert outcome(order(lantern.jit(f)), args[:count]) == expected


REFUSED = {
    "power": lambda x: (x if x > 0 else 2) ** 2,
    "isinstance": lambda x: isinstance(x if x > 0 else 2, int),
    "sign": lambda x: lantern.sign(x if x > 0 else 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ints_do_otherwise_runs_as_it_is(name, mode):
    f = REFUSED[name]
    jitted = lantern.jit(f)
    for x in (3.5, -2.5):
        assert outcome(jitted, (x,)) == outcome(f, (x,))
    assert "runs as it is" in lantern.explain(jitted)


def test_functions_that_call_themselves(mode):
    def f(x, n):
        if n == 0:
            return x if x > 0.5 else 0
        return f(x, n - 1)

    def g(x, n):
        y = x if x > 0.5 else 0
        return f(y, n)

    for h in (f, g):
        for x in (1.0, 0.25):
            assert outcome(lantern.jit(h), (x, 3)) == outcome(h, (x, 3))


class Spot:
    def __init__(self, x):
        self.x = x


class Level:
    """Levels of one height are equal."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None


def is_one_of_two(x, make):
    p, q = make(x), make(2.0 * x)
    r = p
    if x < 0.0:
        r = q
    return x if r is q else 2.0 * x


def is_not_one_of_two(x, make):
    p, q = make(x), make(2.0 * x)
    r = p
    if x < 0.0:
        r = q
    r = q if r is not q else p
    return r.x


def equals_one_of_two(x, make):
    p, q = make(x), make(2.0 * x)
    r = p
    if x < 0.0:
        r = q
    return x if q == r else 2.0 * x


def is_in_a_row(x, make):
    p, q = make(x), make(2.0 * x)
    r = p
    if x < 0.0:
        r = q
    return x if r in [q] else 2.0 * x


def is_of_a_class(x, make):
    r = None
    if x < 0.0:
        r = make(x)
    return x if isinstance(r, make) else 2.0 * x


def is_matched(x, make):
    r = (x,)
    if x < 0.0:
        r = make(x)
    match r:
        case [y]:
            return y
        case _:
            return 2.0 * x


def is_the_last_of_turns(x, make):
    p, q = make(x), make(2.0 * x)
    for _ in range(12):
        p = q
        if x < 0.5:
            continue
    return x if q is p else 2.0 * x


def is_a_key(x, make):
    p, q = make(x), make(2.0 * x)
    r = p
    if x < 0.0:
        r = q
    return {f"{r is q}": x}.get("True", 2.0 * x)


@pytest.mark.parametrize("make", [Spot, Level])
@pytest.mark.parametrize(
    "f",
    [
        is_one_of_two,
        is_not_one_of_two,
        equals_one_of_two,
        is_in_a_row,
        is_of_a_class,
        is_matched,
        is_the_last_of_turns,
        is_a_key,
    ],
)
def test_an_object_that_is_another_on_each_way_is_not_asked(f, make):
    fast = lantern.jit(lambda x: f(x, make))
    for x in (1.5, -1.5):
        assert fast(x) == f(x, make)

"""Values, types and exceptions at the edges: each is what the plain function gives."""

import dataclasses
import math
from collections import Counter, defaultdict, deque

import pytest

import lantern
from lantern.staging.fixed import AGAIN

MODES = ["interpret", "O0", "O2"]


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def remainder(x, y):
    return math.remainder(x, y)


def logarithm(x, base):
    return math.log(x, base)


def decibels(x):
    return 10 * math.log(x, 10)


@pytest.mark.parametrize("args", [(5.0, 3.0), (0.0, -1.5), (7, 2), (-0.0, 2.0)])
@pytest.mark.parametrize("f", [remainder, logarithm], ids=lambda f: f.__name__)
def test_functions_of_two_numbers_take_both(mode, f, args):
    jitted = lantern.jit(f)
    for _ in range(2):
        assert outcome(jitted, *args) == outcome(f, *args)


def test_a_logarithm_has_the_base_that_it_is_given(mode):
    jitted = lantern.jit(decibels)
    assert jitted(100.0) == 20.0
    assert repr(jitted(3.0)) == repr(decibels(3.0))
    assert "compiled" in lantern.explain(jitted)


@pytest.mark.parametrize("x", [0.0, 2**70, -(2**63)])
def test_exceptions_have_pythons_context(mode, x):
    """They are not raised while another one is handled, which nobody has seen."""
    jitted = lantern.jit(math_of_inverse)
    for _ in range(2):
        assert outcome(jitted, x) == outcome(math_of_inverse, x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: math.prod([x, y, 3]),
        lambda x, y: math.prod((y, x), start=x),
        lambda x, y: math.fsum([x, 1e16, y, -1e16, 0.1]),
        lambda x, y: math.fsum([x]) + math.fsum([]),
        lambda x, y: math.dist([x, y], (1.0, 2.0)),
        lambda x, y: math.dist((x, y, 0.1), [y, 3, x]),
        lambda x, y: math.hypot(x, y, 0.1, 3),
        lambda x, y: math.isclose(x, y),
        lambda x, y: math.isclose(x, y, rel_tol=0.1, abs_tol=y),
        lambda x, y: math.dist([x], [y, x]),
    ],
)
def test_functions_of_rows_have_pythons_last_bit(mode, f):
    jitted, numbers = lantern.jit(f), [0.1, -0.0, 3, 2**60, 1e308, 1.0 + 1e-10, 1.0]
    for x in numbers:
        for y in [*numbers, math.inf, math.nan, -1e-9]:
            assert outcome(jitted, x, y) == outcome(f, x, y)


@pytest.mark.parametrize("n", [0, 3, -1, 0.0, 2.5, True])
def test_where_takes_numbers_for_conditions(mode, n):
    def either(x, n):
        return lantern.where(n, x * 3.0, x) + lantern.where(n > 1, x, 1)

    for f in (either, lantern.grad(either)):
        jitted = lantern.jit(f)
        assert jitted(1.5, n) == f(1.5, n)
        assert "as it is" not in lantern.explain(jitted)


def math_of_inverse(x):
    return math.sqrt(1 / x - 1)


def outcome(f, *args):
    try:
        return repr(f(*args))
    except Exception as error:
        return type(error), str(error), error.__cause__, error.__context__


@dataclasses.dataclass
class Model:
    weight: float


class Key:
    name = "b"
    same = "a"


def matched(x, subject):
    match subject:
        case [] | {}:
            return 0.0
        case [a, *_, 2.0] if a > x:
            return a
        case [first, *rest, last]:
            rest.append(last)
            return first * x + len(rest) + sum(rest)
        case [*every]:
            return every, x
        case {"a": [a, *b], Key.name: c, **rest}:
            rest["c"] = c
            return a, b, rest
        case {"a": a, Key.same: b}:
            return a, b
        case {"a": float(a)} | {"b": a}:
            return a * x
        case {**rest}:
            return len(rest) * x
    return -x


@pytest.mark.parametrize(
    "subject",
    [
        *([], (), [3.0, 1.0, 2.0], [1.0, 2.0], (1.0, 4.0, 5.0, 6.0), (7.0,), [None]),
        *(range(3), range(0), "abc", b"a", 1.5, None, {1, 2}, Model(2.0)),
        *({"a": [1.0, 2.0], "b": 3.0, "d": 4.0}, {"a": 1.0}, {"b": 2.0}, {"d": 1.0}),
        *({"a": 1.0, "b": 2.0}, defaultdict(float), defaultdict(list, {"d": 1.0})),
        *(deque([1.0, 2.0]), [[1.0], [2.0]], Counter(a=1), {"a": (), "b": 1.0}),
    ],
)
def test_patterns_match_as_in_python(mode, subject):
    jitted, kind = lantern.jit(matched), type(subject)
    for x in (1.5, 5.0):
        assert outcome(jitted, x, subject) == outcome(matched, x, subject)
    inside = lantern.jit(lambda x: matched(x, subject))
    assert outcome(inside, 1.5) == outcome(matched, 1.5, subject)
    assert type(subject) is kind


ROW = [1.0, 2.0]
MODEL = Model(3.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda p, x: ROW,
        lambda p, x: (x, ROW),
        lambda p, x: MODEL,
        lambda p, x: p[0],
        lambda p, x: {"p": p[1], "x": x},
        lambda p, x: [p[1].weight, p[1]],
    ],
)
def test_what_somebody_has_is_handed_back_itself(mode, f):
    """A copy would not see what becomes of it later."""
    p = [[1.0], Model(2.0)]
    for _ in range(2):
        right, found = f(p, 1.5), lantern.jit(f)(p, 1.5)
        assert addresses(found) & addresses([p, ROW, MODEL]) == addresses(right) & (
            addresses([p, ROW, MODEL])
        )


def test_two_names_of_one_list_are_returned_as_that(mode):
    rows = lantern.jit(lambda x: [[x, 0.0]] * 2)(1.5)
    rows[0][1] = 1.0
    assert rows == [[1.5, 1.0], [1.5, 1.0]]


def test_lists_that_loops_have_made_are_returned(mode):
    def turned(x, n):
        row = [x, 1.0]
        for _ in range(n):
            row = [row[1], row[0] * x]
        return row, x

    jitted = lantern.jit(turned)
    assert jitted(1.5, 100) == turned(1.5, 100)
    assert "compiled" in lantern.explain(jitted)


def addresses(x):
    """Those of all lists, dicts and models in a structure."""
    if isinstance(x, Model):
        return {id(x)}
    parts = list(x.values() if isinstance(x, dict) else x) if is_row(x) else []
    own = set() if isinstance(x, tuple) else {id(x)} if is_row(x) else set()
    return own.union(*map(addresses, parts))


def is_row(x):
    return isinstance(x, list | tuple | dict)


def test_a_value_is_computed_before_what_it_is_assigned_to(mode):
    def order(x):
        said = []

        def say(i):
            said.append(i)
            return i

        row, model = [x, x], Model(x)
        row[say(0)] = say(1)
        row[say(1)] += say(2)
        [model][say(0)].weight = row[say(1)] = say(3)
        return said, row, model.weight

    assert lantern.jit(order)(1.5) == order(1.5)
    assert order(1.5)[0] == [1, 0, 1, 2, 3, 0, 1]


def test_loops_whose_turns_are_as_many_as_others_have_been(mode):
    """A loop by whose counter a comprehension is as long is unrolled."""

    def backwards(x, n):
        row = [x * j for j in range(n + 1)]
        for i in range(n, 0, -1):
            row = [0.5 * (row[j] + row[j + 1]) for j in range(i)]
        return row[0]

    jitted = lantern.jit(backwards)
    for _ in range(AGAIN + 1):
        assert jitted(1.5, 6) == backwards(1.5, 6)
    assert "with argument 1 = 6: backwards(float): compiled" in lantern.explain(jitted)


class Plain:
    def __init__(self, value):
        self.value = value


class Summed(Plain):
    def __add__(self, other):
        return Summed(self.value + other.value)


@pytest.mark.parametrize("cls", [Plain, Summed])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x == y,
        lambda x, y: (x != y, x.value),
        lambda x, y: x in [y],
        lambda x, y: [y, None].index(x),
        lambda x, y: x == ROOT[0],
        lambda x, y: ROOT[0] != x,
    ],
)
def test_objects_that_equal_themselves_alone(mode, f, cls):
    one, other = cls(1.0), cls(1.0)
    ROOT[:] = [one]
    for pair in ((one, one), (one, other), (other, one), (one, None)):
        jitted = lantern.jit(f)
        for _ in range(2):
            assert outcome(jitted, *pair) == outcome(f, *pair)


ROOT = []


def power_of_itself(x):
    return x**x


def zero_or_square(x):
    return lantern.where(x > 0, x * x, 0)


def one_or_size(x):
    return lantern.log(lantern.where(x == 0, 1, abs(x))) * x


def least(x):
    return lantern.minimum(x, 1) * lantern.maximum(-1, x)


def clipped(x):
    return lantern.clip(x, 0, 1.0) * x


def one_of_both(x):
    return lantern.where(x < 1, x if x > 0 else 2, 1.0)


CHOOSING = [one_of_both, power_of_itself, zero_or_square, one_or_size, least, clipped]


@pytest.mark.parametrize("f", CHOOSING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [0.3, 1.7, 1.0, -2.0])
def test_choices_between_an_int_and_a_float(mode, f, x):
    """An int among the operands says nothing of the result's type or derivative."""
    jitted = lantern.jit(f)
    assert outcome(jitted, x) == outcome(f, x)
    slope, second = lantern.grad(f), lantern.grad(lantern.grad(f))
    if f is power_of_itself and x < 0:
        assert outcome(lantern.jit(slope), x)[0] is outcome(slope, x)[0]
        return
    for found in (lantern.grad(jitted), lantern.jit(slope)):
        assert found(x) == pytest.approx(slope(x), rel=1e-12)
    for found in (lantern.grad(lantern.grad(jitted)), lantern.jit(second)):
        assert found(x) == pytest.approx(second(x), rel=1e-12)


def named(x, n=2, m=1.0, *, k=1.0):
    return x**n * k + m


def partly_named(a, /, b, rows=()):
    return a * b - len(rows)


CALLS = [
    ((2.0,), {"n": 3}),
    ((2.0,), {"m": 5.0}),
    ((), {"m": 5.0, "x": 2.0}),
    ((2.0, 3), {"n": 3}),
    ((2.0,), {"k": 3.0}),
    ((2.0,), {"b": 4.0}),
    ((), {"a": 1.0, "b": 2.0}),
    ((2.0,), {"rows": [1.0], "b": 1.0}),
    ((2.0,), {"rows": [1.0]}),
    ((), {"other": 2.0}),
]


@pytest.mark.parametrize("f", [named, partly_named])
@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_arguments_by_name(mode, f, args, kwargs):
    jitted = lantern.jit(f)
    for _ in range(2):
        found, right = (outcome(lambda f=g: f(*args, **kwargs)) for g in (jitted, f))
        assert found == right


def test_calls_by_name_are_compiled():
    jitted = lantern.jit(named)
    assert jitted(2.0, m=5.0) == jitted(m=5.0, x=2.0, n=2) == 9.0
    assert lantern.explain(jitted) == "named(float, int, float): compiled"


def test_a_parents_function_that_is_replaced(mode):
    class Root:
        def value(self, x):
            return x

    class Middle(Root):
        pass

    class Leaf(Middle):
        def value(self, x):
            return 2 * super().value(x)

    jitted, leaf = lantern.jit(lambda leaf, x: leaf.value(x)), Leaf()
    assert jitted(leaf, 1.5) == 3.0
    Root.value = lambda self, x: -x
    assert jitted(leaf, 1.5) == -3.0
    Middle.value = lambda self, x: 5 * x
    assert jitted(leaf, 1.5) == 15.0
    del Middle.value
    assert jitted(leaf, 1.5) == -3.0


@pytest.mark.parametrize("ask", [math.isfinite, math.isinf, math.isnan])
def test_what_would_become_a_plain_number_is_not_asked(mode, ask):
    def chosen(x):
        return x * x if ask(x) else 3.0 * x

    def not_used(x):
        ask(x * 2.0)
        return x * x

    def in_a_loop(x, n=3):
        while n > 0 and not ask(x - 1e308):
            x, n = x * x, n - 1
        return x

    def caught(x):
        try:
            return x * x if ask(x) else x
        except TypeError:
            return 5.0 * x

    def asked_of_others(x):
        return x * x if ask(lantern.stop_gradient(x)) or ask(x // 1.0) else x

    def forward(f):
        return lambda x: lantern.jvp(f, (x,), (1.0,))

    for f in (chosen, not_used, in_a_loop, caught, asked_of_others):
        assert outcome(lantern.jit(f), 1.5) == outcome(f, 1.5)
        for by in (lantern.grad, lantern.value_and_grad, forward):
            assert outcome(lantern.jit(by(f)), 1.5) == outcome(by(f), 1.5)
            assert outcome(by(lantern.jit(f)), 1.5) == outcome(by(f), 1.5)

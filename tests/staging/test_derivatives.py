"""Derivatives of compiled functions, and compiled derivatives, of every order."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import lantern
from benchmarks import staging as benchmark
from benchmarks.staging_programs import PROGRAMS as PROGRAMS_OF_OTHERS
from lantern.errors import ArgumentError, LanternError, MutationError, StagingError
from lantern.staging import stage
from tests.staging.test_jit import PROGRAMS, newton, tuple_product

SCALE = 2.0


@pytest.fixture(params=["off", "interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def first_order(f, args):
    """What every transform of the library gives for a function and some arguments."""
    x, rest = args[0], args[1:]

    def g(x):
        return f(x, *rest)

    yield lantern.grad(g)(x)
    yield lantern.value_and_grad(g)(x)
    value, pullback = lantern.vjp(g, x)
    yield value, pullback(0.3), pullback(-2.0)
    yield lantern.jvp(g, (x,), (1.5,))
    value, pushforward = lantern.linearize(g, x)
    yield value, pushforward(0.7)


def second_order(f, args):
    x, rest = args[0], args[1:]

    def g(x):
        return f(x, *rest)

    yield lantern.grad(lantern.grad(g))(x)
    yield lantern.jvp(lantern.grad(g), (x,), (1.5,))
    yield lantern.grad(lambda x: lantern.jvp(g, (x,), (1.5,))[1])(x)
    yield lantern.hvp(g, x, 0.5)
    yield lantern.jvp(lambda x: lantern.jvp(g, (x,), (1.5,)), (x,), (0.4,))


def flat(x):
    return [z for part in x for z in flat(part)] if isinstance(x, tuple) else [x]


def settled(f, args):
    try:
        return f(*args)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("f", PROGRAMS)
def test_every_transform_of_a_compiled_function(f, mode):
    jitted = lantern.jit(f)
    for args in PROGRAMS[f]:
        if isinstance(settled(f, args), type):
            assert settled(lantern.grad(jitted), args) is settled(lantern.grad(f), args)
            continue
        for a, b in zip(first_order(jitted, args), first_order(f, args), strict=True):
            assert flat(a) == pytest.approx(flat(b), rel=1e-12, abs=1e-12)
    if mode != "off":
        told = lantern.explain(jitted)
        assert "pullback" in told
        assert "runs as it is" not in told


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives_of_a_compiled_function(f):
    jitted, args = lantern.jit(f), PROGRAMS[f][0]
    for a, b in zip(second_order(jitted, args), second_order(f, args), strict=True):
        assert flat(a) == pytest.approx(flat(b), rel=1e-11, abs=1e-11)
    assert "runs as it is" not in lantern.explain(jitted)


@pytest.mark.parametrize("f", PROGRAMS)
def test_every_transform_in_a_compiled_function(f, mode):
    def forward(x, *rest):
        return lantern.jvp(lambda x: f(x, *rest), (x,), (1.5,))

    def product(x, *rest):
        return lantern.hvp(lambda x: f(x, *rest), x, 0.5)

    def back(x, *rest):
        value, pullback = lantern.vjp(lambda x: f(x, *rest), x)
        return value, pullback(0.3)[0], pullback(-2.0)[0]

    def third(x, *rest):
        return lantern.grad(lantern.grad(lantern.grad(lambda x: f(x, *rest))))(x)

    args = PROGRAMS[f][0]
    for derivative in (forward, product, back, third):
        jitted = lantern.jit(derivative)
        a, b = jitted(*args), derivative(*args)
        assert flat(a) == pytest.approx(flat(b), rel=1e-10, abs=1e-10)
        if mode != "off":
            assert "runs as it is" not in lantern.explain(jitted)


def test_a_product_with_the_hessian_of_several_arguments(mode):
    def f(x, y):
        for _ in range(9):
            x, y = lantern.sin(x * y), x - 0.3 * y
        return x * y

    def product(x, y, u, v):
        return lantern.hvp(f, (x, y), (u, v))

    args = (0.7, 0.4, 1.0, -2.0)
    assert lantern.jit(product)(*args) == pytest.approx(product(*args), rel=1e-12)


def test_trees(mode):
    tree = ((None, None, 2.0), (None, (None, None, 0.5), 3.0), 1.5)

    def product(x, tree):
        return lantern.hvp(lambda x: tuple_product(x, tree), x, 0.5)

    jitted = lantern.jit(tuple_product)
    expected = lantern.grad(tuple_product)(1.1, tree)
    assert lantern.grad(jitted)(1.1, tree) == pytest.approx(expected, rel=1e-12)
    expected = pytest.approx(product(1.1, tree), rel=1e-12)
    assert lantern.jit(product)(1.1, tree) == expected


class Pair(NamedTuple):
    first: float
    second: object


def structured(p, n, name):
    total = p["a"] * p["b"][0] ** n
    return {"total": total, "rest": Pair(lantern.sin(p["a"]), [n, name, 1.5])}


def test_structures_keep_what_is_no_float(mode):
    def f(a, b, call):
        y = call({"a": a, "b": (b, 3)}, 2, "name")
        assert y["rest"].second[:2] == [2, "name"]
        assert type(y["rest"]) is Pair
        return y["total"] * y["rest"].first + y["rest"].second[2]

    both = [
        lantern.value_and_grad(lambda a, b, g=g: f(a, b, g), argnums=(0, 1))(1.5, 2.0)
        for g in (lantern.jit(structured), structured)
    ]
    assert flat(both[0]) == pytest.approx(flat(both[1]), rel=1e-14)


def in_turn(x, y, t):
    """Numbers and a structure, each with another derivative."""
    return x * x * y + t[0] * y + t[1] * x * t[0]


@pytest.mark.parametrize("argnums", [(1, 0), (2, 0), (2, 1, 0), (-1, 0), (0, 2), (1,)])
@pytest.mark.parametrize("derivative", [lantern.grad, lantern.value_and_grad])
def test_gradients_come_in_the_order_that_is_asked_for(derivative, argnums):
    args = 2.0, 5.0, (3.0, 0.5)
    plain = derivative(in_turn, argnums)
    assert lantern.jit(plain)(*args) == plain(*args)
    assert lantern.jit(lambda *xs: plain(*xs))(*args) == plain(*args)
    program = stage(in_turn, *args)
    found = program.grad(argnums)(*args)
    assert found == lantern.grad(in_turn, argnums)(*args)


@pytest.mark.parametrize("argnums", [(0, 0), (1, 0, 1), (0, -3)])
def test_no_argument_is_named_twice(argnums):
    args = 2.0, 5.0, (3.0, 0.5)
    with pytest.raises(StagingError, match="twice"):
        stage(in_turn, *args).grad(argnums)
    with pytest.raises(ArgumentError, match="twice"):
        lantern.jit(lambda *xs: lantern.grad(in_turn, argnums)(*xs))(*args)


def test_arguments_that_are_tracked_by_several_derivatives(mode):
    jitted = lantern.jit(lambda x, y, k: x * lantern.sin(y) * k)

    def inner(y, f):
        return lantern.grad(lambda x: f(x * y, y, 3) * x)(2.0)

    for order in (lantern.grad, lambda f: lantern.grad(lantern.grad(f))):
        found = order(lambda y: inner(y, jitted))(0.7)
        plain = order(lambda y: inner(y, lambda x, y, k: x * lantern.sin(y) * k))(0.7)
        assert found == pytest.approx(plain, rel=1e-13)


def test_what_is_read_belongs_to_the_moment_of_the_call(mode):
    global SCALE
    f = lantern.jit(lambda x: x * x * SCALE)

    def changes(x):
        global SCALE
        z = f(x)
        SCALE = 3.0
        return z

    try:
        assert lantern.grad(changes)(1.0) == 4.0
        assert lantern.grad(changes)(1.0) == 6.0
        SCALE = 2.0
        if mode == "off":
            assert lantern.grad(lantern.grad(changes))(1.0) == 4.0
        else:
            with pytest.raises(MutationError, match="was changed"):
                lantern.grad(lantern.grad(changes))(1.0)
    finally:
        SCALE = 2.0
    assert lantern.grad(f)(1.0) == 4.0


def test_arguments_that_are_changed_before_the_way_back(mode):
    class Box:
        __slots__ = ("value",)

    def f(x, items, box):
        return x * items[0] * box.value

    jitted = lantern.jit(f)

    def changes(x):
        box, items = Box(), [5.0, 1.0]
        box.value = 2.0
        z = jitted(x, items, box)
        items[0] = box.value = 7.0
        return z

    assert lantern.grad(changes)(1.0) == 10.0
    g = lantern.jit(lambda x, items: x * items[0])

    def changes_items(x):
        items = [5.0, 1.0]
        z = g(x, items)
        items[0] = 7.0
        return z

    assert lantern.grad(changes_items)(1.0) == 5.0


def test_tracked_numbers_that_are_closed_over(mode):
    def closed(y):
        return lantern.jit(lambda x: x * x * y)

    assert lantern.grad(lambda y: closed(y)(3.0))(2.0) == 9.0
    assert lantern.grad(lambda y: lantern.grad(closed(y))(3.0))(2.0) == 6.0
    scale = 2.0
    f = lantern.jit(lambda x: x * x * scale)
    assert lantern.grad(f)(3.0) == 12.0

    def outer(s):
        nonlocal scale
        scale = s
        return lantern.grad(f)(3.0) * s

    assert lantern.grad(outer)(2.0) == 24.0
    assert lantern.grad(lambda s: outer(s) * s)(2.0) == 72.0


DETACHED = {
    "math": lambda x: x * math.sin(x),
    "float": lambda x: x * float(x),
    "isinstance": lambda x: x * x if isinstance(x, float) else x,
    "domain": lambda x: lantern.log(x - 10.0),
    "division": lambda x: 1 / (x - 2.0),
}


@pytest.mark.parametrize("name", DETACHED)
def test_errors_and_classes_are_those_of_the_plain_function(name, mode):
    f = DETACHED[name]
    jitted = lantern.jit(f)
    jitted_first = settled(jitted, (3.0,))
    assert jitted_first == settled(f, (3.0,))
    for transform in (lantern.grad, lambda g: lambda x: lantern.jvp(g, (x,), (1.0,))):
        assert settled(transform(jitted), (2.0,)) == settled(transform(f), (2.0,))


def test_vmap_and_arrays_run_the_plain_function(mode):
    jitted = lantern.jit(newton)
    xs = np.array([2.0, 3.0])
    assert lantern.vmap(lantern.jit(lambda x: x * x))(xs).tolist() == [4.0, 9.0]
    square = lantern.jit(lambda x: (x * x).sum())
    assert lantern.grad(square)(xs).tolist() == [4.0, 6.0]
    assert lantern.hessian(jitted)(2.0) == pytest.approx(lantern.hessian(newton)(2.0))


def test_series_run_the_plain_function(mode):
    plain = lambda x: lantern.sin(x) * x**3  # noqa: E731  # what people write
    jitted = lantern.jit(plain)
    assert lantern.taylor(jitted, 2.0, 3) == lantern.taylor(plain, 2.0, 3)
    series = (2.0,), ((1.0, 0.5),)
    assert lantern.jet(jitted, *series) == lantern.jet(plain, *series)
    assert lantern.grad(lantern.checkpoint(jitted))(2.0) == lantern.grad(plain)(2.0)


def test_a_tuple_of_one_number(mode):
    assert lantern.grad(lantern.jit(lambda t: t[0] * 3.0))((2.0,)) == (3.0,)


def test_a_class_whose_attributes_have_our_names(mode):
    class Model:
        def __init__(self):
            self.f = self.known = self.count = 3.0

        def __call__(self, x):
            return x * self.f + self.known

    model = Model()
    assert lantern.jit(model)(2.0) == 9.0
    assert lantern.grad(lantern.jit(model))(2.0) == 3.0


def test_what_jvp_cannot_stage_says_what_the_plain_call_says(mode):
    def uneven(x):
        return lantern.jvp(newton, (x,), ((1.0, 2.0),))

    with pytest.raises(LanternError):
        lantern.jit(uneven)(2.0)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_higher_orders_through_trees(order):
    tree = ((None, None, 2.0), (None, (None, None, 0.5), 3.0), 1.5)
    f = tuple_product
    for _ in range(order):
        f = lantern.grad(f)
    jitted = lantern.jit(f)
    assert jitted(1.1, tree) == pytest.approx(f(1.1, tree), rel=1e-11)
    assert "runs as it is" not in lantern.explain(jitted)


@pytest.mark.parametrize("f", PROGRAMS_OF_OTHERS)
def test_programs_that_the_compiler_was_not_made_with(f):
    args = PROGRAMS_OF_OTHERS[f]
    for g in (f, lantern.grad(f)):
        jitted = lantern.jit(g)
        assert jitted(*args) == pytest.approx(g(*args), rel=1e-12)
        assert "runs as it is" not in lantern.explain(jitted)
    x, *rest = args
    if f.__name__ != "chain":  # its objects may be written to before the way back
        found = lantern.grad(lantern.jit(f))(x, *rest)
        assert found == pytest.approx(lantern.grad(f)(x, *rest), rel=1e-12)


MEASURED = {
    benchmark.sincos: (1.0,),
    benchmark.loop: (0.999,),
    benchmark.newton: (2.0,),
    benchmark.lorenz: (1.0, 1.0, 1.0),
    benchmark.tree: (1.001, benchmark.built(benchmark.DEPTH)),
}


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("f", [*MEASURED, *PROGRAMS_OF_OTHERS])
def test_the_programs_that_are_measured(f, level, monkeypatch):
    """Usually to 1e-12, and exactly to the last bit; the third derivatives, too."""
    monkeypatch.setenv("LANTERN_JIT", level)
    args = (MEASURED | PROGRAMS_OF_OTHERS)[f]
    argnums = (0, 1, 2) if f is benchmark.lorenz else 0
    gradient = lantern.grad(f, argnums)
    for plain in (f, gradient):
        jitted, exact = lantern.jit(plain), lantern.jit(plain, exact=True)
        assert flat(jitted(*args)) == pytest.approx(flat(plain(*args)), rel=1e-12)
        assert "runs as it is" not in lantern.explain(jitted)
        assert exact(*args) == plain(*args)
        told = lantern.explain(exact)
        assert "runs as it is" not in told or "a function that calls itself" in told


@pytest.mark.parametrize("f", [x for x in MEASURED if x is not benchmark.lorenz])
def test_third_derivatives_of_the_programs_that_are_measured(f):
    x, *rest = MEASURED[f]
    if f is benchmark.tree:
        rest = [benchmark.built(3)]

    def third(x, *rest):
        return lantern.grad(lantern.grad(lantern.grad(lambda x: f(x, *rest))))(x)

    jitted = lantern.jit(third)
    expected = pytest.approx(third(x, *rest), rel=1e-9, abs=1e-12)
    assert jitted(x, *rest) == expected
    assert "runs as it is" not in lantern.explain(jitted)

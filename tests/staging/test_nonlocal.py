"""Variables of a function that functions inside it assign to: ``nonlocal``."""

import pytest

import lantern
from tests.staging.test_changes import POINTS, check


@pytest.fixture(params=["interpret", "O0", "O2", "tiers"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def a_sum(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * x

    add(1.0)
    add(x)
    return total


def a_sum_in_a_loop(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * x

    for i in range(50):
        add(i * 0.1)
    return total * x


def a_sum_in_a_loop_that_depends(x):
    total, turns = 0.0, 0

    def add(v):
        nonlocal total, turns
        total += v
        turns += 1

    while total < 5:
        add(x * x + 0.5)
        if turns > 7:
            break
    return total * turns


def on_one_way(x):
    y = x

    def double():
        nonlocal y
        y = y * 2

    if x > 1:
        double()
        if x > 2:
            double()
    else:
        y = y + 1
    return y * x


def branches_inside(x):
    y, z = x, 1.0

    def clip(least):
        nonlocal y, z
        if y < least:
            y = least * x
            return
        z = z + y
        if y > 2:
            y = 2.0

    clip(0.5)
    clip(1.0)
    return y * x + z


def a_return_behind(x):
    y = x

    def add(v):
        nonlocal y
        y += v

    add(1.0)
    if x > 1:
        add(x)
        return y * x
    add(3.0)
    if x > 0.5:
        return y
    return y * y


def loops_inside(x):
    y = x

    def grow(n):
        nonlocal y
        for i in range(n):
            y = y * 1.1 + i * x
        for y in range(3, 40):  # noqa: B007  # it is what is tested
            pass

    grow(30)
    return y * x


def first_assigned_inside(x):
    def last():
        nonlocal y
        for y in range(3, 40):  # noqa: B007  # it is what is tested
            pass

    last()
    z = y * x  # noqa: F821  # the loop has assigned to it
    y = 2.0
    return z * y


def two_levels(x):
    total = x

    def outer(v):
        def inner():
            nonlocal total
            total = total * v

        inner()
        if v > x:
            inner()
        return total

    return outer(2.0) + total * outer(0.5)


def a_level_between(x):
    total = x

    def outer(v):
        nonlocal total
        count = 0

        def inner():
            nonlocal total, count
            total += v
            count += 1

        inner()
        if v > x:
            inner()
        total = total * count

    outer(2.0)
    outer(x * 0.5)
    return total


def of_the_same_name(x):
    y = x

    def outer():
        y = 3.0

        def inner():
            nonlocal y
            y = y * x

        inner()
        return y

    return outer() + y


def a_counter(x):
    def counter():
        n = 0.0

        def up(by):
            nonlocal n
            n += by
            return n

        return up

    one, other = counter(), counter()
    one(x)
    other(2.0)
    if x > 1:
        x = x * 2
    return one(1.0) * other(x) * x


def a_parameter(x):
    def moved(v):
        def by(d):
            nonlocal v
            v = v + d

        by(x)
        by(1.0)
        return v

    return moved(x) * moved(2.0)


def handed_to_others(x):
    y = x

    def put(v):
        nonlocal y
        y = v * y

    def twice(f):
        f(2.0)
        f(x)

    twice(put)
    list(map(put, [1.5, x]))
    return y


def handed_to_others_branches(x):
    y = x

    def put(v):
        nonlocal y
        y = v

    def perhaps(f):
        if x > 1:
            f(7.0)

    perhaps(put)
    return y * x


def in_an_expression(x):
    y = x

    def put(v):
        nonlocal y
        y = v
        return v

    z = put(7.0) if x > 1 else 2.0
    return y * x + z


def in_a_test(x):
    y = x

    def goes_on():
        nonlocal y
        y = y + 1
        return y < 9

    z = x
    while goes_on():
        z = z * 0.9
    return y * z


def in_a_derivative(x):
    y = x

    def f(v):
        nonlocal y
        y = 5.0
        return v * v

    return lantern.grad(f)(x) * y


def a_type_that_changes(x):
    y = 0

    def put(v):
        nonlocal y
        y = v

    if x > 1:
        put(x)
    return y + x


def a_function_that_calls_itself(x):
    count = 0.0

    def down(v, n):
        nonlocal count
        count += v
        return v if n == 0 else down(v * 0.5, n - 1)

    return down(x, 5) * count


def an_item_taken_ahead(x):
    seen = 0.0

    def noted(v):
        nonlocal seen
        seen += v
        return v

    for v in map(noted, [x, 2 * x, 3 * x]):
        if v > 2:
            break
    return seen * x


def deleted(x):
    y = x

    def forget():
        nonlocal y
        del y

    if x > 2:
        forget()
    return y * x


def _outside():
    n = 0.0

    def up(x):
        nonlocal n
        n += 1.0
        return x * n

    return up


COMPILED = [
    a_sum,
    a_sum_in_a_loop,
    a_sum_in_a_loop_that_depends,
    on_one_way,
    branches_inside,
    a_return_behind,
    loops_inside,
    first_assigned_inside,
    two_levels,
    a_level_between,
    of_the_same_name,
    a_counter,
    a_parameter,
    handed_to_others,
    a_type_that_changes,
    a_function_that_calls_itself,
]
AS_THEY_ARE = [
    handed_to_others_branches,
    in_an_expression,
    in_a_test,
    in_a_derivative,
    an_item_taken_ahead,
    deleted,
]


@pytest.mark.parametrize("f", COMPILED + AS_THEY_ARE)
def test_programs_with_nonlocal(f, mode):
    assert check(f, POINTS) is (f in COMPILED)


def test_a_loop_stays_a_loop():
    def f(x, n):
        total, count = 0.0, 0

        def add(v):
            nonlocal total, count
            if v > 1:
                total += v * x
            count += 1

        for i in range(n):
            add(i * x)
            if total > 1e4:
                break
        return total * count

    jitted, gradient = lantern.jit(f), lantern.jit(lantern.grad(f))
    for args in (0.5, 7), (1.5, 100), (1.5, 0), (2.0, 10_000):
        assert jitted(*args) == f(*args)
        assert gradient(*args) == pytest.approx(lantern.grad(f)(*args), rel=1e-12)
    assert all("runs as it is" not in lantern.explain(g) for g in (jitted, gradient))


def test_variables_of_functions_outside(mode):
    jitted, plain = lantern.jit(_outside()), _outside()
    assert [jitted(2.0) for _ in range(3)] == [plain(2.0) for _ in range(3)]
    assert "nonlocal: n is a variable of a function outside" in lantern.explain(jitted)

"""Programs for small ints that come again: lists as long as an argument says."""

import pytest

import lantern
from lantern.staging import fixed
from tests.staging.test_changes import outcome


@pytest.fixture(params=["interpret", "O0", "O2", "tiers"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def filled_in(x, n):
    values = [0.0] * n
    for i in range(n):
        values[i] = x * i
    return sum(values, x)


def appended(x, n):
    values = [x]
    for i in range(n):
        values.append(values[-1] * x + i)
    return values[-1] * len(values)


def comprehended(n, x, m):
    rows = [[x * i + j for j in range(m)] for i in range(n)]
    return sum(max(row) for row in rows if row) + x * m


def a_table(x, n):
    table = [[0.0] * (n + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            step = table[i - 1][j - 1] + x * (i ^ j)
            table[i][j] = max(step, table[i - 1][j], table[i][j - 1])
    return table[n][n] * x


def by_a_large_number(x, n):
    return sum([x * i for i in range(n)])


FUNCTIONS = {
    filled_in: [(1.5, 5), (0.5, 0), (2.0, 64), (1.0, -3)],
    appended: [(1.5, 5), (0.5, 0), (1.01, 40)],
    comprehended: [(3, 1.5, 4), (4, 1.5, 3), (0, 2.0, 5)],
    a_table: [(1.5, 5), (-0.5, 7)],
}


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("exact", [False, True])
def test_results_and_gradients(f, exact, mode):
    argnums = 1 if f is comprehended else 0
    gradient = lantern.grad(f, argnums)
    jitted = lantern.jit(f, exact=exact), lantern.jit(gradient, exact=exact)
    outside = lantern.grad(lantern.jit(f, exact=exact), argnums)
    for _ in range(fixed.AGAIN + 1):
        for args in FUNCTIONS[f]:
            for g, plain in zip(
                (*jitted, outside), (f, gradient, gradient), strict=True
            ):
                found = outcome(lambda a, g=g: g(*a), args)
                right = outcome(lambda a, plain=plain: plain(*a), args)
                if found != right:
                    assert not exact
                    assert float(found) == pytest.approx(float(right), rel=1e-12)
    for g in jitted:
        told = lantern.explain(g)
        assert told.count("with argument") == len(FUNCTIONS[f])
        is_refused = exact and f is a_table and g is jitted[1]  # `max` of equal ones
        found = [x for x in told.splitlines() if x.startswith("with")]
        assert is_refused or all("compiled" in x for x in found)


def test_a_program_is_made_when_ints_have_come_often():
    jitted = lantern.jit(filled_in)
    for n in [3, 4] * (fixed.AGAIN - 1) + [3]:
        assert "with argument" not in lantern.explain(jitted)
        assert jitted(1.0, n) == filled_in(1.0, n)
    assert "with argument 1 = 3: filled_in(float): compiled" in lantern.explain(jitted)
    assert "argument 1 = 4" not in lantern.explain(jitted)


@pytest.mark.parametrize("n", [65, -65, 1000])
def test_large_ints_have_none(n):
    jitted = lantern.jit(by_a_large_number)
    for _ in range(fixed.AGAIN + 1):
        assert jitted(1.5, n) == by_a_large_number(1.5, n)
    assert "with argument" not in lantern.explain(jitted)


def test_there_are_so_many_programs_and_no_more():
    jitted = lantern.jit(filled_in)
    for _ in range(fixed.AGAIN + 1):
        for n in range(30):
            assert jitted(0.5, n) == filled_in(0.5, n)
    assert lantern.explain(jitted).count("with argument") == 16


def test_a_program_does_not_become_long():
    jitted = lantern.jit(a_table)
    for _ in range(fixed.AGAIN + 1):
        assert jitted(1.5, 30) == a_table(1.5, 30)
    assert f"are more than {fixed.MOST_STEPS}" in lantern.explain(jitted)


def branching(x, n):
    return [x] if n < 2 else [*branching(x, n - 1), *branching(x, n - 2)]


def test_calls_are_counted_too():
    jitted = lantern.jit(lambda x, n: len(branching(x, n)) * x)
    for _ in range(fixed.AGAIN + 1):
        assert jitted(1.5, 15) == 987 * 1.5
    assert f"are more than {fixed.MOST_STEPS}" in lantern.explain(jitted)


def test_positions_from_the_end(mode):
    def f(n, x):
        return sum([x * i for i in range(n)])

    gradient = lantern.grad(f, -1)
    jitted = lantern.jit(gradient)
    assert [jitted(4, 2.0) for _ in range(10)] == [gradient(4, 2.0)] * 10


def test_a_global_that_changes(mode, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    jitted = lantern.jit(scaled)
    assert [jitted(1.5, 3) for _ in range(10)] == [9.0] * 10
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert [jitted(1.5, 3) for _ in range(10)] == [13.5] * 10


SCALE = 1.0


def scaled(x, n):
    return sum([x * SCALE for _ in range(n)])

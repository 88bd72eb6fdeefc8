"""Loops in machine code: how a walk finds the turns that a loop has saved."""

import ctypes

import pytest

import lantern
from lantern.staging.closures import functions_of
from lantern.staging.ir import walk
from lantern.staging.native import engine
from lantern.staging.native.tapes import Origins, is_fixed, rows


def one(x, n):
    """A tape of a loop alone."""
    for _ in range(n):
        x = x * x * 0.9 + 0.2
    return x


def inside(x, n):
    """A tape on the tape of the loop around, which other tapes lie between."""
    for i in range(n):
        for _ in range(i):
            x = x * x * 0.9 + 0.2
        x = lantern.sin(x) * x
    return x


def chosen(x, n):
    """A tape that a branch hands out, and none on the other."""
    if x > 0.5:
        for _ in range(n):
            x = x * x * 0.9 + 0.2
    else:
        x = x * x
    return x


def power(x, n):
    return x if n == 0 else x * power(x * 0.9 + 0.2, n - 1)


def calling(x, n):
    """Turns that lie apart: what a call saves lies between them."""
    for _ in range(n):
        x = power(x, n) * 0.5
    return x


def twice(x, n):
    """A second loop, which has a tape of its own."""
    return one(one(x, n) * x, n)


PROGRAMS = [one, inside, chosen, calling, twice]


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_walks_find_the_turns(f, level, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", level)
    gradient = lantern.grad(f)
    second = lantern.grad(gradient)
    for plain in (gradient, second, lantern.grad(second)):
        jitted = lantern.jit(plain)
        for x, n in [(0.7, 0), (0.7, 1), (0.3, 4), (0.8, 7)]:
            expected = pytest.approx(plain(x, n), rel=1e-12, abs=1e-12)
            assert jitted(x, n) == expected
        assert "runs as it is" not in lantern.explain(jitted)


@pytest.mark.parametrize("f", PROGRAMS)
def test_tapes_come_from_their_loops(f):
    jitted = lantern.jit(lantern.grad(f))
    jitted(0.7, 3)
    (made,) = jitted.__self__.known.values()
    main = made.program.function
    origins = Origins(main)
    loops = [x for x in walk(main.body) if x.op == "loop" and x.static.written]
    walks = [x for x in walk(main.body) if x.op == "back"]
    found = [origins.of_tape(x.inputs[0]) for x in walks]
    assert {loop for loop, _ in found} == set(loops)
    assert len(loops) == {inside: 2, twice: 2}.get(f, 1)
    alone = {inside: [False, True], calling: [False]}.get(f, [True] * len(loops))
    assert [is_fixed(x) for x in loops] == alone
    in_rows = {one: loops, twice: loops}.get(f, [])
    assert rows(origins) == set(in_rows)


def nothing_saved(x, n):
    """Its walk has to know how often to turn, and nothing else."""
    y = x
    for _ in range(n):
        y = y * 0.9 + 1.0 if n < 5 else y * 0.8
    return y


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_turns_that_save_nothing_have_a_place_each(level, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", level)
    jitted = lantern.jit(lantern.grad(nothing_saved))
    for n in (0, 1, 6):
        assert jitted(0.7, n) == pytest.approx(lantern.grad(nothing_saved)(0.7, n))
    (made,) = jitted.__self__.known.values()
    assert rows(Origins(made.program.function)) == set()


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_walks_along_several_tapes(f, level, monkeypatch):
    """The parts of a turn lie side by side; what a branch hands out may be none."""
    monkeypatch.setenv("LANTERN_JIT", level)

    def product(x, n):
        return lantern.hvp(lambda x: f(x, n), x, 0.5)

    jitted = lantern.jit(product)
    for x, n in [(0.7, 0), (0.7, 1), (0.3, 4), (0.8, 7)]:
        expected = pytest.approx(product(x, n), rel=1e-12, abs=1e-12)
        assert jitted(x, n) == expected
    assert "runs as it is" not in lantern.explain(jitted)
    (made,) = jitted.__self__.known.values()
    functions = functions_of(made.program.function)
    walks = [(g, x) for g in functions for x in walk(g.body) if x.op == "back"]
    assert max(len(x.inputs[: len(x.static.read)]) for _, x in walks) > 1
    for g, x in walks:
        tapes = x.inputs[: len(x.static.read)]
        direct = [Origins(g).of_tape(tape, False) for tape in tapes]
        assert (None in direct) == (f is chosen)


def few(x):
    for _ in range(1000):
        x = x * 0.9 + 0.2
    return x


def few_downwards(x):
    for i in range(10, -5, -3):
        x = x * 0.9 + i
    return x


def few_with_break(x):
    for _ in range(1000):
        x = x * 1.01 + 0.2
        if x > 100.0:
            break
    return x


def many(x):
    for _ in range(70_000):
        x = x * 0.9 + 0.2
    return x


def unknown(x):
    while x < 100.0:
        x = x * 1.01 + 0.2
    return x


def standing(x):
    i = 0
    while i < 500:
        i = i + (1 if x > 0.5 else 0)
        x = x * 0.99 + 0.2
    return x


def backwards(x):
    i = 0
    while i < 500:
        x, i = x * 0.99 + 0.2, i - 1 if x < 9.0 else 500
    return x


def few_in_unknown(x):
    while x < 100.0:
        for _ in range(10):
            x = x * 1.01 + 0.2
    return x


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (few, 0),
        (few_downwards, 0),
        (few_with_break, 1),
        (many, 1),
        (unknown, 1),
        (standing, 1),
        (backwards, 1),
        (few_in_unknown, 1),
    ],
)
def test_turns_are_counted_for_signals_unless_they_are_few(f, count):
    for g in (f, lantern.grad(f)):
        text = str(lantern.show_llvm(g, 0.6))
        assert text.count("call i32 @PyErr_CheckSignals") == count
        assert lantern.jit(g)(0.6) == g(0.6)


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("f", [few, few_with_break, unknown, few_in_unknown])
def test_a_program_stops_at_the_end_of_the_arena(f, level, monkeypatch):
    """The plain function runs then."""
    start, _ = engine.arena()
    end = start + 8 * 100
    monkeypatch.setenv("LANTERN_JIT", level)
    monkeypatch.setattr(engine, "arena", lambda: (start, end))
    fast = lantern.jit(lantern.grad(f))
    mark = ctypes.c_uint64.from_address(end)
    before, mark.value = mark.value, 12345
    try:
        assert fast(0.6) == pytest.approx(lantern.grad(f)(0.6), rel=1e-12)
        assert lantern.explain(fast).endswith("compiled")
        assert mark.value == 12345
    finally:
        mark.value = before

"""Loops in machine code: how a walk finds the turns that a loop has saved."""

import pytest

import lantern
from lantern.staging.closures import functions_of
from lantern.staging.ir import walk
from lantern.staging.native.tapes import Origins, is_fixed


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

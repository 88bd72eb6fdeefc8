"""Loops over ranges: without a first turn where no variable needs one, right in all."""

import pytest

import lantern
from lantern.staging.dispatch import staged
from lantern.staging.ir import walk


def brief(x):
    y = x
    for i in range(9):
        t = lantern.sin(y) + i
        u, v = t * x, t
        y = y + u * v
    return y


def brief_inside(x):
    y = x
    for i in range(9):
        for _ in range(7):
            t = lantern.sin(y)
            y = y * 0.9 + t
        if i % 2 == 0:
            s = y * 0.5
            y = y - s
    return y


def read_behind(x):
    y = x
    for i in range(9):
        t = lantern.sin(y) + i
        y = y + t
    return y * t


def of_the_turn_before(x):
    y = x
    for i in range(9):
        if i > 0:
            y = y * t  # noqa: F821  # a turn has set it
        t = lantern.sin(y) + i  # noqa: F841  # the next turn reads it
    return y


def of_one_way(x):
    y = x
    for i in range(9):
        if i % 3 == 0:
            t = lantern.sin(y)
        y = y + t
    return y


def becomes_a_float(x):
    y = 0
    for _ in range(9):
        y = y + lantern.sin(x + y)
    return y


def the_last_index(x):
    for i in range(9):  # noqa: B007  # it is read behind the loop
        x = lantern.sin(x) + 0.1
    return x * i


def added_to(x):
    y = x
    for _ in range(9):
        t = lantern.sin(y)
        t += x
        y = t * x
    return y


def captured(x):
    y = x
    for i in range(9):

        def f(z, i=i):
            return lantern.sin(z) * i

        y = y + f(y)
    return y


PROGRAMS = {
    brief: 1,
    brief_inside: 1,
    read_behind: 2,
    of_the_turn_before: 2,
    of_one_way: 2,
    becomes_a_float: 2,
    the_last_index: 2,
    added_to: 1,
    captured: None,
}


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("mode", ["interpret", "O0", "O2"])
def test_loops_are_right(f, mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    for x in (0.4, -1.3):
        assert lantern.jit(f)(x) == f(x)
        gradient = lantern.jit(lantern.grad(f))
        assert gradient(x) == pytest.approx(lantern.grad(f)(x), rel=1e-12)


@pytest.mark.parametrize("f", [f for f, count in PROGRAMS.items() if count])
def test_a_body_is_staged_once_where_no_turn_is_needed(f):
    program, _ = staged(f, (0.4,))
    nodes = walk(program.function.body)
    assert sum(x.op == "sin" for x in nodes) == PROGRAMS[f]

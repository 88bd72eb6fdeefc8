"""Optimisations, off one by one: more is left, and it computes the same."""

import pytest

import lantern
from lantern.errors import OptionError
from lantern.staging import PASSES, emit_python, show_ir, without
from lantern.staging.dispatch import staged
from tests.staging.random_programs import alike, outcome
from tests.staging.test_ahead import defined
from tests.staging.test_jit import PROGRAMS


def square(a):
    return a * a


def turns(x, n):
    y = x
    for _ in range(n):
        unused = y + 5.0  # noqa: F841  # nobody needs it
        scale = 2.0 * 3.0
        y = square(lantern.sin(y)) * 1.0 + scale * x + square(lantern.sin(y))
        y = y * 0.5 + (1.5 - x)
    return y


@pytest.mark.parametrize("name", PASSES)
def test_each_does_something(name):
    gradient = lantern.grad(turns)
    usual = str(emit_python(gradient, 0.3, 4))
    with without(name):
        other = str(emit_python(gradient, 0.3, 4))
    assert other != usual
    if name != "hoist":  # what is moved is as long where it comes to stand
        assert len(other) > len(usual)
    for n in (0, 1, 5):
        assert defined(other)(0.3, n) == pytest.approx(gradient(0.3, n), rel=1e-12)


@pytest.mark.parametrize("mode", ["interpret", "O0"])
@pytest.mark.parametrize("name", PASSES)
def test_results_are_the_same(name, mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    with without(name):
        for f, examples in PROGRAMS.items():
            jitted, gradient = lantern.jit(f), lantern.jit(lantern.grad(f))
            for args in examples:
                assert alike(outcome(jitted, args), outcome(f, args))
                right = outcome(lantern.grad(f), args)
                assert alike(outcome(gradient, args), right, 1e-12)


def test_what_is_switched_off_is_on_again():
    usual = str(emit_python(turns, 0.3, 4))
    with pytest.raises(KeyError), without("fold", "cse"):
        assert str(emit_python(turns, 0.3, 4)) != usual
        raise KeyError
    assert str(emit_python(turns, 0.3, 4)) == usual


def looped(x, n):
    y = x
    for _ in range(n):
        y = y * (2.0 - x) + lantern.sin(x)
    return y


HOISTED = """\
def looped(%0: float, %1: int) -> float
  %2 = subtract 2.0 %0
  %5 = loop %3 = 0, %4 = %0
      %6 = less %3 %1
      while %6
    do
      %7 = multiply %4 %2
      %8 = sin %0
      %9 = add %7 %8
      %10 = add %3 1
      -> %10, %9
  return %5"""


def test_what_is_the_same_in_each_turn_stands_before_the_loop():
    assert str(show_ir(staged(looped, (0.5, 3))[0])) == HOISTED
    with without("hoist"):
        assert "%2 = subtract" not in str(show_ir(staged(looped, (0.5, 3))[0]))


def always(x):
    y = x
    for _ in range(9):
        y = y * (2.0 - x) + lantern.sin(x)
    return y


def test_what_may_raise_is_moved_if_there_is_a_turn():
    lines = str(show_ir(staged(always, (0.5,))[0])).splitlines()
    (place,) = [i for i, x in enumerate(lines) if " sin " in x]
    assert place < next(i for i, x in enumerate(lines) if " loop " in x)


def test_another_name_is_an_error():
    wrong = pytest.raises(OptionError, match="no optimisation 'unroll'")
    with wrong, without("unroll"):
        pass

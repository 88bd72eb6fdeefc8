"""Optimisations, off one by one: more is left, and it computes the same."""

import pytest

import lantern
from lantern.errors import OptionError
from lantern.staging import PASSES, emit_python, without
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
    return y


@pytest.mark.parametrize("name", PASSES)
def test_each_does_something(name):
    gradient = lantern.grad(turns)
    usual = str(emit_python(gradient, 0.3, 4))
    with without(name):
        other = str(emit_python(gradient, 0.3, 4))
    assert other != usual
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


def test_another_name_is_an_error():
    wrong = pytest.raises(OptionError, match="no optimisation 'unroll'")
    with wrong, without("unroll"):
        pass

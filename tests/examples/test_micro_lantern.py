"""The library in one file passes the library's own tests of numbers."""

import importlib.util
import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lantern
from tests.transforms import test_nesting
from tests.transforms import test_paper_values as test_facts

FILE = Path(__file__).parents[2] / "examples" / "micro_lantern.py"
spec = importlib.util.spec_from_file_location("micro_lantern", FILE)
micro = importlib.util.module_from_spec(spec)
spec.loader.exec_module(micro)

# An untracked operation of the library computes on micro's values by micro's functions.
lantern.register_namespace(micro.Value, micro)


def forward(f):
    return lambda x: micro.jvp(f, (x,), (1.0,))[1]


MODES = [micro.grad, forward]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("fact", test_facts.SCALAR_FACTS)
def test_derivatives_of_a_scalar_function_in_every_mix_of_modes(fact, order):
    f, x, expected = test_facts.SCALAR_FACTS[fact]
    for mix in itertools.product(MODES, repeat=order):
        df = f
        for mode in mix:
            df = mode(df)
        assert df(x) == pytest.approx(expected[order], rel=1e-13, abs=1e-15)


CONFUSING = [
    name
    for name in vars(test_nesting.TestPerturbationConfusion)
    if name.startswith("test_") and "stop_gradient" not in name and "mixed" not in name
]


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=2)))
@pytest.mark.parametrize("name", CONFUSING)
def test_levels_stay_apart(name, modes):
    getattr(test_nesting.TestPerturbationConfusion(), name)(modes)


ARRAY_PROGRAMS = {
    "a layer": lambda m, x: m.sum(m.tanh(x @ np.arange(6.0).reshape(3, 2) + 1.0)),
    "broadcasting": lambda m, x: m.sum(x * np.arange(3.0) / (1 + x * x)),
    "a number repeated": lambda m, x: m.sum(m.sum(x * x) + np.ones((2, 3))),
    "a transpose": lambda m, x: m.sum(m.exp(x.T @ x) * 0.1),
    "an array on the left": lambda m, x: m.sum(np.ones((2, 2)) @ x - 2 * x),
}


@pytest.mark.parametrize("name", ARRAY_PROGRAMS)
def test_gradients_of_arrays_are_the_librarys(name):
    program, x = ARRAY_PROGRAMS[name], np.random.default_rng(0).normal(size=(2, 3))
    expected = lantern.grad(lambda x: program(lantern, x))(x)
    f = partial(program, micro)
    np.testing.assert_allclose(micro.grad(f)(x), expected, rtol=1e-12)
    moved = micro.jvp(f, (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(moved, expected.sum(), rtol=1e-12)
    rows = micro.grad(lambda x: micro.sum(micro.grad(f)(x) * expected))(x)
    again = lantern.hvp(lambda x: program(lantern, x), (x,), (expected,))
    np.testing.assert_allclose(rows, again, rtol=1e-11)


def test_a_perceptron_learns(capsys):
    micro.main()
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < 0.01 < losses[0]


def test_what_has_no_rule_is_refused():
    for wrong in (np.floor, np.add.reduce, lambda x: np.multiply(x, x, where=True)):
        with pytest.raises(TypeError, match="NotImplemented"):
            micro.grad(wrong)(2.0)


def test_what_the_result_does_not_need_is_not_resumed():
    def f(x):
        micro.sqrt(x)  # whose slope at 0 is infinite
        return x * 3.0

    assert micro.grad(f)(0.0) == 3.0


def test_it_is_short():
    assert len(FILE.read_text().splitlines()) <= 150

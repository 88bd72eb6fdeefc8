"""Every short way gives the bits of the general one: into a rule, and back out of it.

The general way in is ``dispatch.start``; the general way back is ``Receiver.resume``.
"""

import operator

import numpy as np
import pytest

import lantern
from lantern.core.dispatch import start
from lantern.core.tree import tree_leaves
from lantern.core.value import Receiver
from lantern.op import registry
from lantern.rules.number import Number
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.testing import random_like
from tests.cases import ELEMENTWISE
from tests.every_op.test_every_op import CASES, numbers, operands


def derivatives(f, x):
    """A value and its gradients, for a cotangent that is always the same."""
    y, pullback = lantern.vjp(f, *x)
    return y, pullback(random_like(y, np.random.default_rng(1)))


def check_bits(found, expected):
    pairs = zip(tree_leaves(found), tree_leaves(expected), strict=True)
    for a, b in pairs:
        assert type(a) is type(b)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        np.testing.assert_array_equal(a, b)


def by_start(name, **statics):
    rule = registry[name].rule
    return lambda *x: start(rule, x, (), statics)


def by_function(name, **statics):
    function = registry[name].function
    return lambda *x: function(*x, **statics)


@pytest.fixture
def general_way_back(monkeypatch):
    """A call under which no receiver takes a short way back."""

    def call(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(Number, "resume", Receiver.resume)
            patch.setattr(Accumulator, "resume", Receiver.resume)
            return function(*args)

    return call


TRACKED = [case for case in CASES if registry[case.name].kind != "constant"]


@pytest.mark.parametrize("case", TRACKED, ids=str)
def test_of_every_operation_of_arrays(case, general_way_back):
    x = operands(case)
    short = derivatives(by_function(case.name, **case.statics), x)
    check_bits(short, derivatives(by_start(case.name, **case.statics), x))
    check_bits(
        short, general_way_back(derivatives, by_start(case.name, **case.statics), x)
    )


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_of_every_operation_of_numbers(name, general_way_back):
    x = numbers(name)
    short = derivatives(by_function(name), x)
    check_bits(short, derivatives(by_start(name), x))
    check_bits(short, general_way_back(derivatives, by_start(name), x))


OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "matmul": operator.matmul,
}
SHAPES = [((3, 3), (3, 3)), ((3, 3), (3,)), ((3,), (3, 3)), ((3,), (3,))]


@pytest.mark.parametrize("tracked", ["both", "left", "right"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_of_operators_between_arrays(name, shapes, tracked, general_way_back):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2.0, shape) for shape in shapes)

    def of(f):
        if tracked == "left":
            return lambda x: f(x, y), (x,)
        if tracked == "right":
            return lambda y: f(x, y), (y,)
        return f, (x, y)

    short = derivatives(*of(OPERATORS[name]))
    general = by_start(name)
    check_bits(short, derivatives(*of(general)))
    check_bits(short, general_way_back(derivatives, *of(general)))


@pytest.mark.parametrize("constant", [2.0, 3, np.float32(0.5)], ids=repr)
@pytest.mark.parametrize("name", [n for n in OPERATORS if n != "matmul"])
@pytest.mark.parametrize("x", [1.7, np.array([0.5, 1.7])], ids=["number", "array"])
def test_of_operators_with_a_constant(name, constant, x, general_way_back):
    for flip in (False, True):

        def of(f, flip=flip):
            return lambda x: f(constant, x) if flip else f(x, constant)

        short = derivatives(of(OPERATORS[name]), (x,))
        general = of(by_start(name))
        check_bits(short, derivatives(general, (x,)))
        check_bits(short, general_way_back(derivatives, general, (x,)))

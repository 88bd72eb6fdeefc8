"""Every operation in a batch where any operation waits: what the plain loop gives.

The table of cases is that of test_every_op.py. The oracle is the same program, one
example after the other; so are the oracles of its derivatives.
"""

import numpy as np
import pytest

import lantern
from lantern import jvp, tree_leaves, vjp
from lantern.testing import random_like
from tests.cases import CONSTANT, call, draw
from tests.every_op.test_every_op import CASES, FIRST_CASES, operands

SIZE = 3


def batch(f, examples):
    return lantern.batch(f, examples, granularity="op")


def loop(f, examples):
    return [f(x) for x in examples]


def examples_of(case):
    return [operands(case, seed) for seed in range(SIZE)]


def check_same(got, want):
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
class TestValues:
    def test_own_operands(self, case):
        f, examples = call(case), examples_of(case)
        got = batch(lambda x: f(*x), examples)
        check_same(list(got), loop(lambda x: f(*x), examples))
        assert [run.size for run in got.runs] == [SIZE] * len(got.runs)

    def test_one_own_operand(self, case):
        f, examples = call(case), examples_of(case)
        for i in range(len(examples[0])):

            def body(x, i=i):
                return f(*examples[0][:i], x, *examples[0][i + 1 :])

            own = [x[i] for x in examples]
            check_same(list(batch(body, own)), loop(body, own))


@pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
class TestDerivatives:
    def test_outside(self, case):
        f, x = call(case), examples_of(case)
        y, alone = vjp(lambda x: loop(lambda x: f(*x), x), x)
        _, together = vjp(lambda x: list(batch(lambda x: f(*x), x)), x)
        y_bar = random_like(y, np.random.default_rng(1))
        check_same(together(y_bar), alone(y_bar))

    def test_forward_outside(self, case):
        f, x = call(case), examples_of(case)
        x_dot = random_like(x, np.random.default_rng(1))
        check_same(
            jvp(lambda x: list(batch(lambda x: f(*x), x)), (x,), (x_dot,)),
            jvp(lambda x: loop(lambda x: f(*x), x), (x,), (x_dot,)),
        )

    def test_a_pullback_inside(self, case):
        f, x = call(case), examples_of(case)
        y = loop(lambda x: f(*x), x)
        y_bar = random_like(y, np.random.default_rng(1))

        def body(both):
            y_bar, x = both
            return vjp(f, *x)[1](y_bar)

        examples = list(zip(y_bar, x, strict=True))
        check_same(list(batch(body, examples)), loop(body, examples))

    def test_a_pushforward_inside(self, case):
        f, x = call(case), examples_of(case)
        x_dot = random_like(x, np.random.default_rng(1))
        examples = list(zip(x, x_dot, strict=True))

        def body(both):
            return jvp(f, *both)

        check_same(list(batch(body, examples)), loop(body, examples))


@pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
def test_a_map_inside(case):
    f, x = call(case), examples_of(case)
    examples = [tuple(np.stack([a, a]) for a in example) for example in x]

    def body(x):
        return lantern.vmap(f)(*x)

    check_same(list(batch(body, examples)), loop(body, examples))


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_operations(name):
    f = lantern.op.registry[name].function
    rng = np.random.default_rng(0)
    x = [[draw(interval, rng, (2,)) for interval in CONSTANT[name]] for _ in range(3)]
    check_same(list(batch(lambda x: f(*x), x)), loop(lambda x: f(*x), x))

"""Every operation under ``vmap``: the stack of what it gives for each example.

The table of cases is that of test_every_op.py. The oracle is the same operation, one
example after the other; so are the oracles of its derivatives.
"""

import numpy as np
import pytest

import lantern
from lantern import jvp, tree_leaves, tree_map, vjp, vmap
from lantern.testing import random_like
from tests.cases import CONSTANT, call, draw
from tests.every_op.test_every_op import CASES, FIRST_CASES, operands

SIZE = 3


def stacked(case):
    """The operands of a case for some examples, along a first axis."""
    examples = [operands(case, seed) for seed in range(SIZE)]
    return tuple(map(np.stack, zip(*examples, strict=True)))


def each(f, *args, mapped=None):
    """What ``vmap(f)`` is to give: f of each example, stacked."""
    mapped = mapped or (True,) * len(args)
    results = [
        f(*(x[i] if m else x for x, m in zip(args, mapped, strict=True)))
        for i in range(SIZE)
    ]
    return tree_map(lambda *parts: np.stack(parts), *results)


def check_same(got, want):
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        assert type(a) is np.ndarray
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
class TestValues:
    def test_all_operands_mapped(self, case):
        f, x = call(case), stacked(case)
        check_same(vmap(f)(*x), each(f, *x))

    def test_one_operand_mapped(self, case):
        f, x = call(case), stacked(case)
        for i in range(len(x)):
            mapped = [j == i for j in range(len(x))]
            args = tuple(a if m else a[0] for a, m in zip(x, mapped, strict=True))
            axes = tuple(0 if m else None for m in mapped)
            check_same(vmap(f, axes)(*args), each(f, *args, mapped=mapped))

    def test_the_last_axis_of_the_operands_and_of_the_result(self, case):
        f, x = call(case), stacked(case)
        moved = [np.moveaxis(a, 0, -1) for a in x]
        got = vmap(f, -1, -1)(*moved)
        check_same(np.moveaxis(got, -1, 0), each(f, *x))


@pytest.mark.parametrize("case", CASES, ids=str)
class TestDerivatives:
    def test_a_pullback_inside(self, case):
        f, x = call(case), stacked(case)
        y_bar = random_like(each(f, *x), np.random.default_rng(1))

        def pulled_back(y_bar, *x):
            return vjp(f, *x)[1](y_bar)

        check_same(vmap(pulled_back)(y_bar, *x), each(pulled_back, y_bar, *x))

    def test_a_pushforward_inside(self, case):
        f, x = call(case), stacked(case)
        x_dot = random_like(x, np.random.default_rng(1))

        def pushed(x, x_dot):
            return jvp(f, x, x_dot)[1]

        want = each(lambda *both: pushed(both[: len(x)], both[len(x) :]), *x, *x_dot)
        check_same(vmap(pushed)(x, x_dot), want)

    def test_tangents_alone(self, case):
        f, x = call(case), operands(case)
        x_dot = random_like(stacked(case), np.random.default_rng(1))

        def pushed(*x_dot):
            return jvp(f, x, x_dot)[1]

        check_same(vmap(pushed)(*x_dot), each(pushed, *x_dot))

    def test_cotangents_alone(self, case):
        f, x = call(case), operands(case)
        y, pullback = vjp(f, *x)
        like = np.broadcast_to(y, (SIZE, *np.shape(y)))
        y_bar = random_like(like, np.random.default_rng(1))
        check_same(vmap(pullback)(y_bar), each(pullback, y_bar))

    def test_a_pullback_outside(self, case):
        f, x = call(case), stacked(case)
        y, pullback = vjp(vmap(f), *x)
        y_bar = random_like(y, np.random.default_rng(1))
        want = each(lambda y_bar, *x: vjp(f, *x)[1](y_bar), y_bar, *x)
        check_same(pullback(y_bar), want)

    def test_a_pushforward_outside(self, case):
        f, x = call(case), stacked(case)
        x_dot = random_like(x, np.random.default_rng(1))

        def pushed(*both):
            return jvp(f, both[: len(x)], both[len(x) :])[1]

        check_same(jvp(vmap(f), x, x_dot)[1], each(pushed, *x, *x_dot))


@pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
class TestNesting:
    def test_maps_in_a_map(self, case):
        f, x = call(case), stacked(case)
        twice = [np.stack([a, a[::-1]]) for a in x]
        want = each(f, *x)
        check_same(vmap(vmap(f))(*twice), np.stack([want, want[::-1]]))

    def test_a_map_of_one_operand_in_a_map_of_the_others(self, case):
        f, x = call(case), stacked(case)
        if len(x) < 2:
            pytest.skip("one operand")
        first, *rest = x

        def outer(*rest):
            return vmap(lambda first: f(first, *rest))(first)

        want = np.stack(
            [
                np.stack([f(first[i], *(a[j] for a in rest)) for i in range(SIZE)])
                for j in range(SIZE)
            ]
        )
        check_same(vmap(outer)(*rest), want)

    def test_a_pullback_of_a_pullback_inside(self, case):
        f, x = call(case), stacked(case)
        y_bar = random_like(each(f, *x), np.random.default_rng(1))
        v = random_like(x, np.random.default_rng(2))

        def second(y_bar, x, v):
            return jvp(lambda *x: vjp(f, *x)[1](y_bar), x, v)[1]

        want = [
            second(y_bar[i], *([a[i] for a in t] for t in (x, v))) for i in (0, 1, 2)
        ]
        check_same(
            vmap(second)(y_bar, x, v), tuple(map(np.stack, zip(*want, strict=True)))
        )


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_operations(name):
    f = lantern.op.registry[name].function
    rng = np.random.default_rng(0)
    x = [draw(interval, rng, (SIZE, 2)) for interval in CONSTANT[name]]
    check_same(vmap(f)(*x), each(f, *x))

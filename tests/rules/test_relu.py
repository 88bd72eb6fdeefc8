"""The positive part of large arrays, whose cotangent is computed in a mask's memory."""

import numpy as np
import pytest

import lantern
from lantern import relu

SIZE = 3000  # more than the fewest elements for which it is


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal(SIZE)


def test_a_pullback_may_be_used_twice_and_leaves_its_cotangent(x):
    z, pullback = lantern.vjp(relu, x)
    for seed in (1, 2):
        z_bar = np.random.default_rng(seed).standard_normal(SIZE)
        given = z_bar.copy()
        (x_bar,) = pullback(z_bar)
        np.testing.assert_array_equal(x_bar, np.where(x > 0, given, 0.0))
        np.testing.assert_array_equal(z_bar, given)
    np.testing.assert_array_equal(z, np.maximum(x, 0))


def test_second_and_forward_derivatives(x):
    def cubes(x):
        return (relu(x) ** 3).sum()

    first, second = (np.where(x > 0, d, 0) for d in (3 * x * x, 6 * x))
    np.testing.assert_allclose(lantern.grad(cubes)(x), first)
    outer = lantern.grad(lambda x: lantern.grad(cubes)(x).sum())
    np.testing.assert_allclose(outer(x), second)
    direction = np.ones_like(x)
    _, slope = lantern.jvp(relu, (x,), (direction,))
    np.testing.assert_array_equal(slope, x > 0)
    forward = lantern.jvp(lantern.grad(cubes), (x,), (direction,))[1]
    np.testing.assert_allclose(forward, second)


def test_cotangents_of_many_outputs_at_once(x):
    jacobian = lantern.vmap(lantern.vjp(relu, x)[1])(np.ones((2, SIZE)))[0]
    np.testing.assert_array_equal(jacobian, np.stack([x > 0, x > 0]))


def test_single_precision_stays(x):
    x = x.astype(np.float32)
    assert lantern.grad(lambda x: relu(x).sum())(x).dtype == np.float32

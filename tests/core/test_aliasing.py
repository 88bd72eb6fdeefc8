"""Gradients share memory with nothing, and inputs keep their bytes."""

import itertools

import numpy as np
import pytest

import lantern
from lantern import grad, vjp

DRIVERS = ["in place", "switching"]
# f, and the arguments: cases where a cotangent is handed on as it is
ALIASES = {
    "identity": (lambda x: lantern.sum(x), 1),
    "one cotangent for two": (lambda x, y: lantern.sum((x + y) * 2.0), 2),
    "reshaped views": (
        lambda x, y: lantern.sum((x.reshape(2, 2) + y.reshape(2, 2)).T),
        2,
    ),
    "a broadcast cotangent": (lambda x, y: lantern.sum(x) + lantern.sum(y), 2),
    "parts of one array": (lambda x, y: lantern.sum(lantern.concat([x, y]) * 3.0), 2),
    "unused": (lambda x, y: lantern.sum(x * 0.0), 2),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("case", ALIASES)
def test_gradients_share_memory_with_nothing_and_inputs_keep_their_bytes(case, driver):
    f, n = ALIASES[case]
    args = [np.linspace(1.0, 2.0, 4) + i for i in range(n)]
    before = [x.tobytes() for x in args]
    argnums = tuple(range(n))
    gradients = grad(f, argnums, driver=driver)(*args)
    pulled = vjp(f, *args)[1](1.0)
    assert [x.tobytes() for x in args] == before
    for a, b in itertools.combinations([*gradients, *pulled, *args], 2):
        assert not np.shares_memory(a, b)
    for a, b in zip(gradients, pulled, strict=True):
        a[...] = 7.0  # writable, and nobody else's
        assert not (b == 7.0).any()


def test_one_array_passed_twice_gets_two_gradients():
    x = np.ones(3)
    first, second = grad(lambda a, b: lantern.sum(a * 2.0 + b), (0, 1))(x, x)
    assert not np.shares_memory(first, second)
    assert (first.tolist(), second.tolist()) == ([2.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("x_bar", [np.ones(3), np.zeros(3), np.arange(3.0)])
def test_a_seed_is_neither_changed_nor_returned(x_bar):
    before = x_bar.tobytes()
    _, pullback = vjp(lambda x: +x, np.ones(3))
    _, twice = vjp(lambda x: x + x, np.ones(3))
    for result in (*pullback(x_bar), *twice(x_bar)):
        assert not np.shares_memory(result, x_bar)
    assert x_bar.tobytes() == before


@pytest.mark.parametrize(
    "read", [lambda y: y + y + y, lambda y: y[np.array([0, 0, 1])]]
)
def test_pullbacks_in_turn_leave_their_seeds_and_each_other_alone(read):
    _, pullback = lantern.vjp(lambda x: read(lantern.exp(x)), np.zeros(3))
    seed = np.ones(3)
    first, second, third = (pullback(seed)[0] for _ in range(3))
    np.testing.assert_array_equal(seed, np.ones(3))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


@pytest.mark.parametrize(
    "f",
    [lambda x: x, lambda x: x[::-1], lambda x: (x, x), lambda x: {"a": x, "b": [x]}],
)
def test_tangents_have_memory_of_their_own(f):
    x, v = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    pushed = lantern.jvp(f, (x,), (v,))[1], lantern.linearize(f, x)[1](v)
    parts = list(lantern.tree_leaves(pushed))
    for i, part in enumerate(parts):
        assert part.flags.writeable
        assert not any(np.shares_memory(part, other) for other in (*parts[:i], x, v))

"""Contributions that are computed only if they are wanted: ``yield lambda: ...``."""

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.op import elementwise, op, registry
from lantern.testing import check_grads

CALLS = []


@pytest.fixture(autouse=True)
def registered():
    """The operations below, and the registry as it was behind them."""
    before, CALLS[:] = dict(registry), []
    yield
    registry.clear()
    registry.update(before)


def times():
    @op
    def times(x, y, /):
        z_bar = yield x * y
        yield lambda: CALLS.append("x") or z_bar * y
        yield lambda: CALLS.append("y") or z_bar * x

    return times


def cube():
    @elementwise
    def cube(x, /):
        z_bar = yield x * x * x
        yield lambda: z_bar * 3 * x * x

    return cube


ARRAY = np.array([1.5, -0.5])
PROGRAMS = {
    "numbers": (lambda times, cube, x, y: times(times(x, y), x) + y, (2.0, 3.0)),
    "arrays": (lambda times, cube, x, y: times(cube(x), y) + x, (ARRAY, 2 * ARRAY)),
    "a number beside an array": (lambda times, cube, x, y: times(x, y), (2.0, ARRAY)),
    "elementwise": (lambda times, cube, x, y: cube(cube(x) + y) + x, (0.7, 0.2)),
    "broadcast": (lambda times, cube, x, y: cube(x + y), (0.7, ARRAY)),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_thunks_are_contributions(program):
    f, args = PROGRAMS[program]
    rules = times(), cube()
    check_grads(lambda x, y: f(*rules, x, y), args, order=2)


@pytest.mark.parametrize("x", [2.0, ARRAY], ids=["number", "array"])
def test_nobody_computes_what_is_not_wanted(x):
    f = times()
    lantern.grad(lambda x: lantern.sum(f(3.0, x)))(x)
    assert CALLS == ["y"]


def test_they_are_called_behind_pytorchs_face_too():
    rules = times(), cube()
    x = torch.tensor([1.5, -0.5], dtype=torch.float64, requires_grad=True)
    f = PROGRAMS["arrays"][0]
    f(*rules, x, 2.0 * x).sum().backward()
    expected = lantern.grad(lambda x: lantern.sum(f(*rules, x, 2.0 * x)))(ARRAY)
    np.testing.assert_allclose(x.grad.numpy(), expected)

"""What a tracked array receives, by whatever way it comes, is the sum of it all."""

import itertools

import numpy as np
import pytest

import lantern
from lantern import grad, hook, vjp
from lantern.eager.recorder import Recorder
from lantern.tensor.accumulate.accumulator import LARGE, Accumulator, unbroadcast

V = np.array([0.5, -1.5, 2.0])
ORDERS = list(itertools.permutations(range(3)))
SIZES = (3, LARGE - 1, LARGE, LARGE + 1)
POWERS = {
    "of one array": (lambda x: x * x * x, lambda x: 3 * x**2),
    "of one operation": (
        lambda x: lantern.exp(x) * lantern.exp(x),
        lambda x: 2 * np.exp(2 * x),
    ),
    "of a constant": (lambda x: x * (2 + 1j) * x, lambda x: (4 + 2j) * x),
    "of a sum": (lambda x: (x + x) * x - x, lambda x: 4 * x - 1),
    "of a quotient": (lambda x: x / (x * x), lambda x: -1 / x**2),
    "of a reduction": (
        lambda x: x * lantern.sum(x * x),
        lambda x: np.sum(x * x) + 2 * np.sum(x) * x,
    ),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", POWERS)
def test_complex_arrays_of_every_size_have_conjugate_gradients(name, size):
    f, slope = POWERS[name]
    x = 1.5 + 0.5j + np.exp(1j * np.arange(size))
    expected = slope(x)
    for through in (lambda x: x, lambda x: x * 1.0):
        z = grad(lambda x, g=through: lantern.sum(f(g(x))).real)(x)
        np.testing.assert_allclose(z, np.conj(expected), rtol=1e-12)
    _, pullback = vjp(f, x)
    z = pullback(np.ones_like(x))[0]
    np.testing.assert_allclose(z, np.conj(expected), rtol=1e-12)


def shapes():
    """Pairs of shapes of which each could be broadcast to, or with, the other."""
    some = [
        shape
        for n in range(4)
        for shape in itertools.product(*((1, size) for size in (2, 3, 4)[3 - n :]))
    ]
    return itertools.product(some, some)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_contribution_of_another_shape_is_summed_or_repeated(dtype):
    for found, shape in shapes():
        x = np.arange(1.0, 1.0 + np.prod(found, dtype=int)).reshape(found)
        n = max(len(found), len(shape))
        ours, theirs = ((1,) * (n - len(s)) + s for s in (found, shape))
        summed = tuple(i for i in range(n) if theirs[i] == 1)
        z = np.broadcast_to(x.reshape(ours).sum(axis=summed, keepdims=True), theirs)
        result = unbroadcast(x.astype(dtype), shape)
        assert (result.shape, result.dtype) == (shape, dtype)
        np.testing.assert_array_equal(result, z.reshape(shape))


def test_many_halves_are_summed_as_singles_are():
    x = np.full((5000, 2), 0.1, "float16")
    expected = x.astype("float32").sum(axis=0).astype("float16")
    np.testing.assert_array_equal(unbroadcast(x, (2,)), expected)
    np.testing.assert_array_equal(unbroadcast(x, (1, 2)), expected[None])


def test_a_contribution_has_the_type_of_the_value_that_receives_it():
    seen = []

    def f(x):
        y = hook(seen.append, x * np.float32(2))
        return lantern.sum(lantern.multiply(y, V)) + lantern.sum(y * V)

    slope = grad(f)(V.astype("float32"))
    assert slope.dtype == seen[0].dtype == "float32"
    np.testing.assert_array_equal(slope, 4 * V)


BRANCHES = {
    "left": lambda x, p: x * p,
    "right": lambda x, p: p * x,
    "alone": lambda x, p: lantern.exp(x),
    "beside a constant": lambda x, p: x * 3.0,
    "matrices": lambda x, p: x @ p,
    "an index": lambda x, p: x[0] * 2.0 + x[1:],
    "a broadcast": lambda x, p: x + lantern.ones((2, 3)),
}


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", BRANCHES)
def test_what_comes_beside_branches_counts_everywhere(name, order):
    """After, between and before contributions that come through a branch."""

    def f(u):
        x, p = u * u, u + 1.0
        parts = [
            lambda: lantern.sum(BRANCHES[name](x, p)),
            lambda: lantern.sum(lantern.where(V > 0, x, 0.0)),
            lambda: lantern.sum(lantern.where(V > 1, x * 2.0, 1.0)),
        ]
        return sum([parts[i]() for i in order])

    steps = 1e-6 * np.eye(3)
    numeric = [(f(V + h) - f(V - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(grad(f)(V), numeric, rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("turn", [1, -1])
def test_sums_keep_what_came_through_a_branch(turn, rows):
    """Where none was taken, not even the nan of a root comes back."""

    def f(x):
        root = lantern.sqrt(x) - x + (np.ones((rows, 3)) + x)
        return lantern.sum(lantern.where(V > 0, turn * root, 0.0))

    with np.errstate(invalid="ignore"):
        found = grad(f)(V)
    right = np.where(V > 0, turn * rows * 0.5 / np.sqrt(np.abs(V)), 0)
    np.testing.assert_allclose(found, right)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(
    "square", [lambda x, w: x * (x * w), lambda x, w: (w * x) * x], ids=["x", "y"]
)
def test_tracked_contributions_beside_plain_ones(square, order):
    """As the left operand and as the right one."""

    def slope(w):
        def f(x):
            x = x * 1.0
            parts = [
                lambda: lantern.sum(x * (2 * V)),
                lambda: lantern.sum((3 * V) * x),
                lambda: lantern.sum(x * w) + lantern.sum(square(x, w)),
            ]
            return sum([parts[i]() for i in order])

        return lantern.sum(grad(f)(V) * V)

    np.testing.assert_allclose(slope(V), np.sum((6 * V + 2 * V * V) * V))
    np.testing.assert_allclose(grad(slope)(V), V + 2 * V * V)


TRACKED = {
    "an element": lambda x, w: x[0] * w[0] * x[1],
    "a slice": lambda x, w: lantern.sum(x[1:] * w[1:] * x[1:]),
    "places": lambda x, w: lantern.sum(x[np.array([0, 0, 2])] * w * x),
    "everywhere": lambda x, w: lantern.sum(x * w * x),
}


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", TRACKED)
def test_what_an_outer_derivative_tracks_counts_beside_branches(name, order):
    def slope(w):
        def f(u):
            x = lantern.exp(u)
            parts = [
                lambda: TRACKED[name](x, w),
                lambda: lantern.sum(lantern.where(V > 0, x, 0.0)),
                lambda: lantern.sum(lantern.where(V > 1, x * w, 1.0)),
            ]
            return sum([parts[i]() for i in order])

        if isinstance(w, np.ndarray):
            numeric = [(f(V + h) - f(V - h)) / 2e-6 for h in steps]
            np.testing.assert_allclose(grad(f)(V), numeric, rtol=1e-6, atol=1e-8)
        return lantern.sum(grad(f)(V) * np.array([1.0, 2.0, 4.0]))

    steps = 1e-6 * np.eye(3)
    w = np.array([0.3, -0.7, 1.1])
    numeric = [(slope(w + h) - slope(w - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(grad(slope)(w), numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("aligned", [0, 1, 2])
def test_what_was_resumed_lets_go_of_its_operands(aligned):
    """Unless it is a recorder, which is asked for them later."""

    def rule():
        z_bar = yield
        for factor in (2.0, 3.0):
            yield factor * z_bar

    def resumed(z, *operands):
        z.suspended, z.aligned = rule(), aligned
        next(z.suspended)
        z.left, z.right = operands
        z.cotangent = np.ones(3)
        z.resume(None)
        return z

    kind = np.dtype(float)
    x, y = (Accumulator().prepare((3,), kind) for _ in "xy")
    operands = (x, y) if aligned == 2 else (x, None)
    z = resumed(Accumulator().prepare((3,), kind), *operands)
    assert z.left is z.right is z.suspended is z.cotangent is None
    np.testing.assert_array_equal(x.cotangent, [2.0] * 3)
    z = resumed(Recorder().prepare((3,), kind), *operands)
    assert (z.left, z.right) == operands

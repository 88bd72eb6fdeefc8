"""`where` gives the branch not taken exactly nothing, whatever nan would make of it."""

import itertools

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp, where

pytestmark = pytest.mark.usefixtures("probe")

MODES = {
    "g": grad,
    "s": lambda f: grad(f, driver="switching"),
    "v": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "f": lambda f: lambda x: jvp(f, (x,), (x * 0 + 1,))[1],
}
ORDERS = [
    "".join(order) for n in (1, 2, 3) for order in itertools.product("gsvf", repeat=n)
]


def cube(x):
    return x * x * x


# A program with a branch that is not taken, and what is left of it.
PROGRAMS = {
    "sqrt": (lambda x: where(x > 0, cube(x), lantern.sqrt(x - 5.0)), cube),
    "sqrt at 0": (lambda x: where(x < 0, lantern.sqrt(x - x), cube(x)), cube),
    "log": (lambda x: where(x > 0, cube(x), lantern.log(-1.0 - 0.0 * x) * x), cube),
    "division": (lambda x: where(x > 100, x / (x - x), cube(x)), cube),
    "power": (
        lambda x: where(x > 100, (x - x - 1) ** 0.5 * x, lantern.exp(x)),
        lantern.exp,
    ),
    "nested": (
        lambda x: where(
            x > 0, where(x > 100, lantern.log(-x), cube(x)), lantern.sqrt(-x)
        ),
        cube,
    ),
    "chain": (
        lambda x: where(x > 0, cube(x), lantern.exp(lantern.log(lantern.sqrt(-x)) * 2)),
        cube,
    ),
}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_every_mode_and_order_for_scalars(name):
    for order in ORDERS:
        f, g = PROGRAMS[name]
        for mode in order:
            f, g = MODES[mode](f), MODES[mode](g)
        expected = g(np.float64(0.7))
        assert f(np.float64(0.7)) == pytest.approx(expected, rel=1e-12), order


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_every_mode_and_order_for_arrays(name):
    x = np.array([0.7, 1.2, 2.0])

    def total(f):
        return lambda x: lantern.sum(f(x))

    for order in ORDERS:
        f, g = map(total, PROGRAMS[name])
        for mode in order[:-1]:
            f, g = (total(MODES[mode](h)) for h in (f, g))
        f, g = (MODES[order[-1]](h) for h in (f, g))
        np.testing.assert_allclose(f(x), g(x), rtol=1e-12, err_msg=order)


# Each mixes elements, so that a nan of one row could reach another.
MIXING = {
    "sum": lambda y: lantern.sum(y, axis=1, keepdims=True) * np.ones(2),
    "cumsum": lambda y: lantern.cumsum(y, axis=1),
    "index": lambda y: y[:, ::-1],
    "transposed": lambda y: lantern.stack([y[:, 1], y[:, 0]], axis=1),
    "broadcast": lambda y: y * lantern.broadcast_to(y[:, :1], (2, 2)),
}


@pytest.mark.parametrize("mode", "gsv")
@pytest.mark.parametrize("name", MIXING)
def test_rows_that_are_not_taken(name, mode):
    """The second row of the inner function is nan, and is not taken."""
    x, taken = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[True], [False]])

    def f(x):
        return lantern.sum(where(taken, MIXING[name](lantern.log(x) * x), x * x))

    def rows(x):
        return lantern.sum(MIXING[name](lantern.log(x) * x))

    found = MODES[mode](f)(x)
    expected = MODES["g"](rows)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], 0.0)


# Not elementwise, not linear: if nothing is taken, they are not even asked.
GENERAL = {
    "norm": lambda y: lantern.linalg.norm(y) * y,
    "matmul": lambda y: y @ y,
    "prod": lambda y: lantern.prod(y) + y,
    "std": lambda y: lantern.std(y) * y,
    "logsumexp": lambda y: lantern.logsumexp(y, axis=1, keepdims=True) + y,
    "max": lambda y: lantern.max(y) * y,
    "solve": lambda y: lantern.linalg.solve(y * 0.0 + np.eye(2) * y, y),
}


@pytest.mark.parametrize("mode", "gsv")
@pytest.mark.parametrize("name", GENERAL)
def test_a_branch_that_is_taken_nowhere(name, mode):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])

    def f(x):
        bad = GENERAL[name](lantern.log(x) * lantern.sqrt(x) + np.eye(2) * np.nan)
        return lantern.sum(where(np.zeros((2, 2), dtype=bool), bad, x * x))

    np.testing.assert_array_equal(MODES[mode](f)(x), 2 * x)


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (4,), (3, 1), (2, 3, 4)])
def test_a_condition_of_any_shape_stops_nan_before_a_product(shape):
    """Attention: scores that are hidden, and were made of matrices."""
    rng = np.random.default_rng(0)
    x, w = rng.uniform(0.5, 1, (3, 2)), rng.uniform(0.5, 1, (2, 4))
    condition = rng.uniform(size=shape) > 0.5
    condition.flat[0] = True

    def f(x, w):
        scores = x @ w
        roots = lantern.sqrt(lantern.where(condition, scores, -scores))
        return lantern.where(condition, roots, 0.0).sum()

    with np.errstate(invalid="ignore"):
        found = lantern.grad(f, (0, 1))(x, w)
    count = np.broadcast_to(condition, np.broadcast_shapes(shape, (3, 4)))
    times = count.reshape(-1, 3, 4).sum(axis=0)
    z_bar = times * 0.5 / np.sqrt(x @ w)
    np.testing.assert_allclose(found[0], z_bar @ w.T)
    np.testing.assert_allclose(found[1], x.T @ z_bar)


NUMBERS = [-1.0, 0.0, 2.0, np.nan]
CONDITIONS = {
    "floats": np.array(NUMBERS),
    "whole numbers": np.array([-3, 0, 2, -1]),
    "bytes": np.array([255, 0, 1, 128], np.uint8),
    "complex": np.array([-1j, 0.0, -2.0, 1.0 + 1j]),
    "a column": np.array([[-1.0], [0.0]]),
    "one number": np.float64(-2.0),
}


@pytest.mark.parametrize("inside", [False, True], ids=["root outside", "root inside"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_of_numbers_holds_where_they_are_not_zero(name, inside):
    condition, x = CONDITIONS[name], np.array([4.0, 1.0, 9.0, 16.0])

    def f(x, condition):
        if inside:
            return np.sum(np.where(condition, np.sqrt(x), 0.0))
        return np.sum(np.sqrt(np.where(condition, x, 1.0)))

    taken = np.broadcast_to(condition != 0, np.broadcast_shapes(np.shape(condition), 4))
    expected = taken.reshape(-1, 4).sum(axis=0) * 0.5 / np.sqrt(x)
    np.testing.assert_array_equal(grad(f)(x, condition), expected)
    np.testing.assert_array_equal(lantern.jit(grad(f))(x, condition), expected)
    mapped = lantern.vmap(grad(f), (0, None))(np.stack([x, x]), condition)
    np.testing.assert_array_equal(mapped, [expected, expected])
    mapped = lantern.vmap(grad(f))(np.stack([x, x]), np.stack([condition, condition]))
    np.testing.assert_array_equal(mapped, [expected, expected])
    _, along = jvp(lambda x: f(x, condition), (x,), (np.ones(4),))
    np.testing.assert_allclose(along, expected.sum())

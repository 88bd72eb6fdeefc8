"""Behaviour at non-differentiable points: kinks, ties, poles, branches not taken."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lantern
from lantern import grad, jvp

HOME = Path(__file__).parents[2]
INF, NAN = math.inf, math.nan
DRIVERS = ["in place", "switching"]


def forward(f):
    return lambda x: jvp(f, (x,), (x * 0 + 1,))[1]


def where_positive(taken, other):
    return lambda x: lantern.where(x > 0, taken(x), other(x))


def zero(x):
    return 0.0


def log_of_root(x):
    return lantern.log(1 + lantern.sqrt(x))


def roots(x):
    return lantern.sqrt(lantern.sqrt(x)) * lantern.cbrt(x)


# name: f, point, derivative. Each holds for a number, and for arrays of it.
EDGES = {
    "abs at 0": (abs, 0.0, 0.0),
    "abs at -0": (lantern.abs, -0.0, 0.0),
    "relu at 0": (lantern.relu, 0.0, 0.0),
    "sign at 0": (lantern.sign, 0.0, 0.0),
    "maximum at a tie": (lambda x: lantern.maximum(x, 2.0), 2.0, 0.5),
    "minimum at a tie": (lambda x: lantern.minimum(2.0, x), 2.0, 0.5),
    "maximum with itself": (lambda x: lantern.maximum(x, x), 2.0, 1.0),
    "sqrt at 0": (lantern.sqrt, 0.0, INF),
    "cbrt at 0": (lantern.cbrt, 0.0, INF),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "x**0.0": (lambda x: x**0.0, 0.0, 0.0),
    "x**1": (lambda x: x**1, 0.0, 1.0),
    "x**2": (lambda x: x**2, 0.0, 0.0),
    "x**0.5": (lambda x: x**0.5, 0.0, INF),
    "x**3 at -2": (lambda x: x**3, -2.0, 12.0),
    "0**x at 0": (lambda x: 0**x, 0.0, 0.0),
    "0.0**x at 0": (lambda x: 0.0**x, 0.0, 0.0),
    "0.0**x at 2": (lambda x: 0.0**x, 2.0, 0.0),
    "x**x at 0": (lambda x: x**x, 0.0, 0.0),
    "x to a constant's array of 0": (lambda x: x ** (x * 0), 0.0, 0.0),
    "clip at its lower bound": (lambda x: lantern.clip(x, 0.0, 1.0), 0.0, 1.0),
    "clip at its upper bound": (lambda x: lantern.clip(x, 0.0, 1.0), 1.0, 1.0),
    "clip inside": (lambda x: lantern.clip(x, 0.0, 1.0), 0.5, 1.0),
    "clip below": (lambda x: lantern.clip(x, 0.0, 1.0), -0.5, 0.0),
    "clip above, one bound": (lambda x: lantern.clip(x, max=1.0), 1.5, 0.0),
    "hypot(x, 0) at 0": (lambda x: lantern.hypot(x, 0.0), 0.0, 0.0),
    "hypot(x, x) at 0": (lambda x: lantern.hypot(x, x), 0.0, 0.0),
    "hypot without overflow": (lambda x: lantern.hypot(x, x), 1e200, math.sqrt(2)),
    "acos at 1": (lantern.acos, 1.0, -INF),
    "asin at 1": (lantern.asin, 1.0, INF),
    "acosh at 1": (lantern.acosh, 1.0, INF),
    "remainder at a jump": (lambda x: x % 2.0, 4.0, 1.0),
    "sigmoid far out": (lantern.sigmoid, -800.0, 0.0),
    "softplus far out": (lantern.softplus, 800.0, 1.0),
    "softplus far down": (lantern.softplus, -800.0, 0.0),
    "tanh far out": (lantern.tanh, 800.0, 0.0),
    "exp far down": (lantern.exp, -800.0, 0.0),
    "erf far out": (lantern.erf, 1e3, 0.0),
    "a subnormal square": (lambda x: x * x, 5e-324, 1e-323),
    "where, taken": (where_positive(lantern.sqrt, zero), 4.0, 0.25),
    "where, not taken": (where_positive(lantern.sqrt, zero), 0.0, 0.0),
    "where, a power not taken": (where_positive(lambda x: x**0.5, abs), 0.0, 0.0),
    "where, a chain not taken": (where_positive(log_of_root, zero), 0.0, 0.0),
    "where, roots of roots": (where_positive(roots, lambda x: 3 * x), 0.0, 3.0),
    "where, on the right": (lambda x: lantern.where(x <= 0, x, roots(x)), 0.0, 1.0),
    "a negative base": (lambda x: (-2.0) ** x, 2.0, NAN),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("shape", [None, (), (2,), (2, 1)], ids=str)
@pytest.mark.parametrize("edge", EDGES)
def test_the_derivative_at_an_edge(edge, shape, driver):
    f, point, expected = EDGES[edge]
    x = point if shape is None else np.full(shape, point)
    total = (lambda y: y) if shape is None else lantern.sum
    found = grad(lambda x: total(f(x)), driver=driver)(x)
    expected = np.full(np.shape(x), expected)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    np.testing.assert_allclose(forward(f)(x), expected, rtol=1e-15)
    assert type(found) is type(x)


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (0.0, 0.0, (0, 0)),
        (0.0, 1.0, (1, 0)),
        (0.0, 2.0, (0, 0)),
        (-2.0, 2.0, (-4, NAN)),
    ],
)
def test_a_power_of_which_base_and_exponent_are_inputs(base, exponent, expected):
    found = grad(lambda x, y: x**y, (0, 1))(base, exponent)
    np.testing.assert_array_equal(found, expected)
    arrays = np.array([base]), np.array([exponent])
    found = grad(lambda x, y: lantern.sum(x**y), (0, 1))(*arrays)
    np.testing.assert_array_equal(np.ravel(found), expected)


ARRAY_EDGES = {
    "max with ties": (lantern.max, [1.0, 3.0, 3.0], [0, 0.5, 0.5]),
    "min with ties": (lantern.min, [2.0, 2.0, 2.0], [1 / 3] * 3),
    "prod with a zero": (lantern.prod, [2.0, 0.0, 3.0], [0, 6, 0]),
    "prod with two zeros": (lantern.prod, [0.0, 0.0, 3.0], [0, 0, 0]),
    "std of a constant": (lantern.std, [3.0, 3.0, 3.0], [0, 0, 0]),
    "logsumexp of -inf": (lantern.logsumexp, [-INF, -INF], [0, 0]),
    "logsumexp with a -inf": (lantern.logsumexp, [-INF, 1.0], [0, 1]),
    "logsumexp of large": (lantern.logsumexp, [1e4, 1e4], [0.5, 0.5]),
    "softmax with a -inf": (lambda x: lantern.softmax(x)[0], [0.0, -INF], [0, 0]),
    "log_softmax far out": (lambda x: lantern.log_softmax(x)[0], [1e4, -1e4], [0, 0]),
    "powers of 0": (lambda x: lantern.sum(x ** np.arange(3.0)), [0.0] * 3, [0, 1, 0]),
    "np.clip": (lambda x: np.clip(x, 0, 1).sum(), [-1.0, 0.0, 1.0, 2.0], [0, 1, 1, 0]),
    "a mask that is shared": (
        lambda x: lantern.sum(lantern.where(x > 0, lantern.sqrt(x), 0.0) * x),
        [0.0, 4.0],
        [0, 3],
    ),
    "a mask beside other uses": (
        lambda x: lantern.sum(lantern.where(x > 0, lantern.sqrt(x), 0.0) + 5 * x),
        [0.0, 4.0],
        [5, 5.25],
    ),
    "a mask through indices and shapes": (
        lambda x: lantern.sum(
            lantern.where(x > 0, lantern.concat([lantern.sqrt(x)[:1], x[1:]]), 0.0)
        ),
        [0.0, 4.0],
        [0, 1],
    ),
}


@pytest.mark.parametrize("edge", ARRAY_EDGES)
def test_the_gradient_at_an_edge_of_arrays(edge):
    f, x, expected = ARRAY_EDGES[edge]
    np.testing.assert_allclose(grad(f)(np.array(x)), expected, rtol=1e-12)
    tangent = jvp(f, (np.array(x),), (np.arange(1.0, len(x) + 1),))[1]
    assert tangent == pytest.approx(np.dot(expected, np.arange(1.0, len(x) + 1)))


SECOND = {
    "reverse over reverse": lambda f, x: grad(lambda x: _total(grad(f)(x)))(x),
    "forward over reverse": lambda f, x: jvp(grad(f), (x,), (x * 0 + 1,))[1],
    "reverse over forward": lambda f, x: grad(lambda x: forward(f)(x))(x),
    "forward over forward": lambda f, x: forward(forward(f))(x),
}


def _total(x):
    return lantern.sum(x) if np.shape(lantern.stop_gradient(x)) else x


@pytest.mark.parametrize("x", [0.0, np.array(0.0), np.zeros(2)], ids=repr)
@pytest.mark.parametrize("variant", SECOND)
def test_second_derivatives_through_a_branch_not_taken(variant, x):
    def f(x):
        return _total(lantern.where(x > 0, lantern.sqrt(x) * x, 2 * x * x))

    expected = np.full(np.shape(x), 4.0)
    if variant == "forward over forward":
        expected = expected.sum()
    np.testing.assert_array_equal(SECOND[variant](f, x), expected)


@pytest.mark.parametrize("x", [0.0, np.array(0.0)], ids=repr)
@pytest.mark.parametrize("variant", SECOND)
def test_second_derivative_of_a_root_at_0(variant, x):
    with np.errstate(invalid="ignore"):  # it is -inf, or nan from inf times 0
        assert not np.isfinite(SECOND[variant](lantern.sqrt, x))


def test_a_logarithm_of_a_root_on_a_branch_not_taken():
    def f(x):
        return lantern.where(x > 0, lantern.log(lantern.sqrt(x)), 0.0)

    x = np.array([0.0, 4.0])
    with np.errstate(divide="ignore"):  # log(0) itself is the user's
        np.testing.assert_array_equal(grad(lambda x: lantern.sum(f(x)))(x), [0, 1 / 8])
        np.testing.assert_array_equal(forward(f)(x), [0, 1 / 8])


def through(choose):
    """The derivative by w of sum(d/dx (choose(x * x) * w)), which is 2 x."""
    x = np.array([1.0, 2.0])

    def inner(w):
        return lantern.sum(grad(lambda x: lantern.sum(choose(x * x) * w))(x))

    return inner, 2 * x


CHOICES = {
    "where": lambda y: lantern.where(y > -1, y, 0.0),
    "clip": lambda y: lantern.clip(y, 0.0, 100.0),
    "maximum": lambda y: lantern.maximum(y, -1.0),
    "relu": lantern.relu,
    "abs": lantern.abs,
    "getitem": lambda y: y[np.array([0, 1])],
    "max": lambda y: lantern.max(y[:, None], axis=1),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_cotangent_that_is_zero_by_chance_is_no_branch_not_taken(choice):
    inner, expected = through(CHOICES[choice])
    for w in (np.zeros(2), np.ones(2), np.array([0.0, 1.0])):
        np.testing.assert_array_equal(grad(inner)(w), expected)
        np.testing.assert_array_equal(jvp(inner, (w,), (w + 1,))[1], expected @ (w + 1))

    def squared(x):
        return lantern.sum(CHOICES[choice](lantern.sin(x) + 0.0) ** 2)

    if choice not in ("relu", "abs"):
        ones = np.ones(2)
        found = jvp(grad(squared), (np.zeros(2),), (ones,))[1]
        np.testing.assert_allclose(found, [2.0, 2.0])


@pytest.mark.parametrize("outer", [grad, forward])
@pytest.mark.parametrize("inner", [grad, forward])
def test_mixed_second_derivative_of_a_power_at_exponent_0(outer, inner):
    """d/dy (y * x**(y - 1)) at y = 0 is 1 / x."""
    assert outer(lambda y: inner(lambda x: x**y)(2.0))(0.0) == 0.5
    x, y = np.array([2.0]), np.array([0.0])
    assert outer(lambda y: inner(lambda x: lantern.sum(x**y))(x).sum())(y) == 0.5
    assert outer(lambda x: inner(lambda y: lantern.sum(x**y))(y).sum())(x) == 0.5


def test_a_read_beside_a_masked_use_is_not_masked():
    chosen = np.array([True, False, True])

    def read_first(x):
        y = lantern.exp(x)
        part = y[1]
        return part + lantern.sum(lantern.where(chosen, y, 0.0))

    def read_last(x):
        y = lantern.exp(x)
        return lantern.sum(lantern.where(chosen, y, 0.0)) + y[1]

    for f in (read_first, read_last):
        np.testing.assert_array_equal(grad(f)(np.zeros(3)), np.ones(3))


class TestBesideThePeers:
    """The table of docs/explanation/edges.md, asked of those that are installed."""

    @pytest.fixture(scope="class")
    @classmethod
    def answers(cls):
        command = [sys.executable, "-W", "ignore", "-m", "tests.edges_of_peers"]
        done = subprocess.run(command, cwd=HOME, capture_output=True, check=True)
        return json.loads(done.stdout)

    @pytest.mark.parametrize(
        ("peer", "column"), [("pytorch", 2), ("jax", 3), ("autograd", 4)]
    )
    def test_the_table(self, peer, column, answers):
        text = (HOME / "docs/explanation/edges.md").read_text("utf-8")
        rows = [line.split("|")[1:-1] for line in text.splitlines() if line[:1] == "|"]
        rows = [[cell.strip() for cell in row] for row in rows]
        version, cells = answers.get(peer, ("", {}))
        if not version.startswith(rows[0][column].split()[-1]):
            pytest.skip(f"the version of {peer} in the table is not installed")
        told = {row[0]: row[column] for row in rows[2:]}
        assert told.keys() == cells.keys()
        for row, cell in cells.items():
            assert told[row].split(" (")[0] == cell, row

    def test_ours(self):
        text = (HOME / "docs/explanation/edges.md").read_text("utf-8")
        from tests.edges_of_peers import ROWS, cell

        names = {"xp": lantern, "one": 1.0, "relu": lantern.relu}
        names["logsumexp"] = lantern.logsumexp
        for row, (point, program) in ROWS.items():
            point = np.array(point) if isinstance(point, list) else point
            found = grad(eval(f"lambda x: {program}", names))(point)
            assert f"\n| {row} | {cell(found)} |" in text


# Each on the side of the branch cut that the sign of its zero says.
ON_A_CUT = (1.3 + 0j, -1.3 + 0j, complex(1.3, -0.0), complex(-1.3, -0.0))


@pytest.mark.parametrize("x", ON_A_CUT)
@pytest.mark.parametrize("name", ["asin", "acos", "acosh"])
def test_the_derivative_on_a_branch_cut(name, x):
    f, step = getattr(lantern, name), 1e-6
    beside = complex(x.real + step, x.imag), complex(x.real - step, x.imag)
    expected = (f(beside[0]) - f(beside[1])) / (2 * step)
    np.testing.assert_allclose(grad(f, holomorphic=True)(x), expected, rtol=1e-6)
    array = jvp(f, (np.array(x),), (np.array(1 + 0j),))[1]
    np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_derivatives_near_a_pole_keep_their_precision():
    near = 1 - 2.0**-40
    exact = 1 / (2.0**-40 * (2 - 2.0**-40))
    for x in (near, np.float64(near)):
        np.testing.assert_allclose(grad(lantern.atanh)(x), exact, rtol=1e-14)
        np.testing.assert_allclose(grad(lantern.asin)(x), exact**0.5, rtol=1e-14)
        np.testing.assert_allclose(grad(lantern.acos)(x), -(exact**0.5), rtol=1e-14)


@pytest.mark.parametrize("x", [-1e-12, -1e-300, -1 - 2.0**-40, -3 + 2.0**-40])
def test_the_derivative_of_lgamma_beside_a_whole_number(x):
    found = grad(lantern.lgamma)(x)
    assert found == pytest.approx(-1 / (x - round(x)), rel=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_an_array_divided_by_the_number_0_is_infinite_in_every_mode(shape, dtype):
    x = np.full(shape, 3, dtype)
    with np.errstate(divide="ignore"):
        y, tangent = jvp(lambda x: x / 0.0, (x,), (np.ones_like(x),))
        x_bar = grad(lambda x: (x / 0.0).sum())(x)
    for found in (y, tangent, x_bar):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.full(shape, INF))

"""Solutions of equations: their derivatives, every order, and searches that fail."""

import gc
import math

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    ConvergenceError,
    MutationError,
    ShapeError,
    fixed_point,
    grad,
    jvp,
    root,
)
from lantern.testing import check_grads


def heron(x, a):
    return (x + a / x) / 2


def slow_cosine(x, a, b):
    return lantern.cos(a * x) * b


MATRIX = np.array([[0.2, -0.1, 0.3], [0.1, 0.25, -0.2], [-0.3, 0.1, 0.2]])


def layer(x, w, b):
    return lantern.tanh(w @ x + b)


def pair(x, p):
    return {"u": p[0] * lantern.cos(x["v"]), "v": (0.4 * x["u"] * p[1],)[0]}


PROBLEMS = {
    "heron": (lambda a: fixed_point(heron, 1.0, a), (2.0,)),
    "cosine": (lambda a, b: fixed_point(slow_cosine, 1.0, a, b), (0.9, 0.8)),
    "a layer in equilibrium": (
        lambda w, b: fixed_point(layer, np.zeros(3), w, b),
        (MATRIX, np.array([0.5, -0.2, 0.1])),
    ),
    "a structure": (
        lambda p: fixed_point(pair, {"u": 1.0, "v": 1.0}, p),
        ([0.7, 1.1],),
    ),
    "a cubic": (lambda a: root(lambda x, a: x**3 + x - a, 1.0, a), (5.0,)),
    "an implicit layer": (
        lambda w, b: root(lambda x, w, b: x - layer(x, w, b), np.zeros(3), w, b),
        (MATRIX, np.array([0.5, -0.2, 0.1])),
    ),
    "a matrix": (
        lambda a: root(lambda x, a: x @ x - a, np.eye(2), a),
        (np.array([[2.0, 0.3], [0.1, 1.5]]),),
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_three_orders_in_every_mix_of_modes(problem):
    f, args = PROBLEMS[problem]
    order = 3 if problem in ("heron", "a cubic") else 2
    check_grads(f, args, order=order, atol=1e-5, rtol=1e-6)


def test_the_derivatives_of_a_square_root():
    for f in (
        lambda a: fixed_point(heron, 1.0, a),
        lambda a: root(lambda x, a: x * x - a, 1.0, a),
    ):
        assert f(4.0) == 2.0
        assert grad(f)(4.0) == 0.25
        assert grad(grad(f))(4.0) == pytest.approx(-1 / 32, rel=1e-14)
        assert grad(grad(grad(f)))(4.0) == pytest.approx(3 / 256, rel=1e-13)
        assert jvp(f, (4.0,), (1.0,)) == (2.0, 0.25)


def test_complex_numbers_converge_to_the_complex_derivative():
    got = grad(lambda a: fixed_point(heron, 1 + 1j, a), holomorphic=True)(2j)
    assert got == pytest.approx(0.5 / (2j) ** 0.5, rel=1e-13)


def test_float32_stays_float32():
    x = np.ones(3, np.float32)
    b = np.array([0.5, -0.2, 0.1], np.float32)
    got = grad(lambda b: fixed_point(layer, x, MATRIX.astype("f"), b).sum())(b)
    want = grad(lambda b: fixed_point(layer, x * 1.0, MATRIX, b).sum())(b * 1.0)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_another_solver_finds_the_root_and_the_equation_its_derivative():
    def bisect(g, _):
        low, high = 0.0, 10.0
        while high - low > 1e-15 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if g(middle) < 0 else (low, middle)
            if middle in (low, high) and high - low < 4e-16 * high:
                break
        return (low + high) / 2

    f = lambda a: root(lambda x, a: x * x - a, 1.0, a, solver=bisect)  # noqa: E731
    assert grad(f)(4.0) == pytest.approx(0.25, rel=1e-14)
    assert grad(grad(f))(4.0) == pytest.approx(-1 / 32, rel=1e-12)


def test_a_solver_of_scipy():
    optimize = pytest.importorskip("scipy.optimize", reason="one solver among many")
    f = lambda b: root(  # noqa: E731
        lambda x, b: x - layer(x, MATRIX, b), np.zeros(3), b, solver=optimize.fsolve
    ).sum()
    b = np.array([0.5, -0.2, 0.1])
    want = grad(lambda b: fixed_point(layer, np.zeros(3), MATRIX, b).sum())(b)
    np.testing.assert_allclose(grad(f)(b), want, rtol=1e-8)


def test_the_start_has_no_part_in_the_derivative():
    assert grad(lambda a: fixed_point(heron, a, 4.0))(1.0) == 0.0
    assert grad(lambda a: fixed_point(heron, a, a))(4.0) == 0.25


def test_arguments_that_are_no_numbers_pass_through():
    def step(x, f, a, n):
        return f(a * x) / n

    value = lambda a: fixed_point(step, 1.0, lantern.cos, a, 2)  # noqa: E731
    check_grads(value, (0.9,), order=2)


def test_the_search_leaves_nothing_behind():
    """The number of live objects at the end of the forward pass: no step is kept."""
    counts = []

    def objects_after(a, tol):
        x = fixed_point(lambda x, a: lantern.cos(a * x), 1.0, a, tol=tol)
        gc.collect()
        counts.append(sum(type(o) is lantern.Number for o in gc.get_objects()))
        return x

    for tol in (1e-2, 1e-14):
        grad(objects_after)(0.9, tol)
    assert counts[0] == counts[1]


def _stay(g, x0):
    return x0


class TestRefusals:
    def test_a_closure_over_a_tracked_value(self):
        for solve in (
            lambda a: fixed_point(lambda x: heron(x, a), 1.0),
            lambda a: root(lambda x: x * x - a, 1.0),
            lambda a: root(lambda x: x * x - a, 1.0, solver=lambda g, x: g(x)),
            lambda a: fixed_point(lambda x, b: heron(x, a) * b, 1.0, a * 0 + 1),
        ):
            with pytest.raises(ArgumentError, match="closes over a tracked value"):
                grad(solve)(4.0)

    def test_a_search_that_does_not_end(self):
        with pytest.raises(ConvergenceError, match="still changes after 50 steps"):
            fixed_point(lambda x: 2 * x + 1, 1.0, max_steps=50)
        with pytest.raises(ArithmeticError, match="no solution after 100 steps"):
            root(lambda x: lantern.exp(x) + x * x, 1.0)

    def test_a_singular_derivative(self):
        with pytest.raises(ConvergenceError, match="singular"):
            root(lambda x: x * x + 1, 0.0)
        with pytest.raises(ConvergenceError, match="singular"):
            root(lambda x: x * x.sum() - x * x[0] - 1, np.zeros(2))
        assert grad(lambda a: root(lambda x, a: a * x - a, 2.0, a))(3.0) == 0.0
        with pytest.raises(ConvergenceError, match="singular at the solution"):
            grad(lambda a: root(lambda x, a: (x - a) ** 3, 3.0, a, solver=_stay))(3.0)

    def test_a_function_that_changes_the_form(self):
        with pytest.raises(ShapeError, match="Return the form of x"):
            fixed_point(lambda x: x[:1], np.ones(2))
        with pytest.raises(ShapeError, match="Return the form of x"):
            root(lambda x: x.sum(), np.ones(2))

    @pytest.mark.parametrize("x0", [1j, [1.0, 2.0], "one", None])
    def test_a_start_that_is_no_real_number(self, x0):
        with pytest.raises(ArgumentError, match="root"):
            root(lambda x: x, x0)

    def test_the_next_derivative_is_right(self):
        with pytest.raises(ConvergenceError):
            grad(lambda a: fixed_point(lambda x, a: a * x + 1, 1.0, a))(2.0)
        assert math.isclose(grad(lambda a: fixed_point(heron, 1.0, a))(4.0), 0.25)


class TestWhatTheEquationReads:
    @pytest.mark.parametrize("solve", [fixed_point, root])
    def test_variables_that_a_loop_rebinds(self, solve):
        def loss(a):
            for k in (2.0, 5.0):  # the solutions are a, and then a / 4
                a = solve(lambda x, a: x / k + a / k - (solve is root) * x, 0.0, a)  # noqa: B023
            return a

        assert grad(loss)(3.0) == pytest.approx(0.25)
        assert jvp(loss, (3.0,), (1.0,))[1] == pytest.approx(0.25)

    @pytest.mark.parametrize("solve", [fixed_point, root])
    def test_arrays_that_are_changed_later(self, solve):
        def loss(a, given):
            c = np.array([0.5])
            if given:
                x = solve(lambda x, a, c: c * x + a, np.zeros(1), a, c)
            else:
                x = solve(lambda x, a: c * x + a, np.zeros(1), a)
            c[:] = 0.25
            return lantern.sum(x)

        a = np.array([3.0])
        expected = 2.0 if solve is fixed_point else -2.0
        assert grad(loss)(a, given=True) == pytest.approx(expected)
        with pytest.raises(MutationError, match="c was changed after"):
            grad(loss)(a, given=False)

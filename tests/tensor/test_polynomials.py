"""Polynomials: the same coefficients as NumPy's, and their derivatives."""

import numpy as np
import pytest

import lantern
from lantern.testing import check_grads

CALLS = [
    (np.poly, [1.0, 2.5, 3.0]),
    (np.poly, [[1.0, 2.0], [3.0, 4.0]]),
    (np.poly, np.eye(3)),  # an eigenvalue three times
    (np.poly, [2.0 + 1j, 3.0]),
    (np.polymul, [1.0, 2.0], [1.0, 0.0, 3.0]),
    (np.polymul, [0.0, 2.0, 1.0], [1.5]),
    (np.polydiv, [1.0, 2.0, 5.0, 3.0], [1.5, 3.0]),
    (np.polydiv, [1.0, 2.0], [1.5, 3.0, 4.0]),
    (np.polydiv, [1.0, 2.0], [1.5]),
    (np.roots, [1.0, 2.0, -5.0, 3.5]),
    (np.roots, [2.0, 3.0, 0.5, 0.0]),
    (np.ix_, [1.0, 2.0], [3.0, 4.0, 5.0]),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c[0].__name__}{c[1:]}")
def test_a_function_of_polynomials(call):
    function, *args = call
    args = tuple(map(np.array, args))
    ours, numpys = getattr(lantern, function.__name__)(*args), function(*args)
    parts = zip(ours, numpys, strict=True)
    for a, b in parts if isinstance(numpys, tuple) else [(ours, numpys)]:
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, atol=1e-12)
    if args[0].flat[0] == 0:  # the result is longer where it is not
        return
    check_grads(function, args, order=2, rtol=1e-5, atol=1e-5)


def matrix(kind, n):
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 0.95, (n, n))
    turn = np.linalg.qr(x)[0]
    spread = {
        "uniform": x,
        "large": 1e5 * (x - 0.5),
        "definite": x @ x.T,
        "graded": turn * 10.0 ** np.linspace(-4, 4, n) @ turn.T,
        "projector": turn[:, ::2] @ turn[:, ::2].T,
        "nilpotent": turn @ np.diag(np.ones(n - 1), 1) @ turn.T,
    }
    return spread[kind]


@pytest.mark.parametrize("n", [3, 5, 9, 17, 40])
@pytest.mark.parametrize(
    "kind", ["uniform", "large", "definite", "graded", "projector", "nilpotent"]
)
def test_of_a_matrix_of_many_rows(kind, n):
    x, expected = matrix(kind, n), np.poly(matrix(kind, n))
    z, pullback = lantern.vjp(np.poly, x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(z, expected, rtol=0, atol=1e-8 * scale)
    x_dot = np.random.default_rng(1).standard_normal((n, n)) * np.abs(x).max()
    moved = [np.poly(x + step * x_dot) for step in (1e-6, -1e-6)]
    slope = (moved[0] - moved[1]) / 2e-6
    z_bar = 1 / np.abs(slope).max()
    found = (pullback(np.full(n + 1, z_bar))[0] * x_dot).sum()
    assert found == pytest.approx(slope.sum() * z_bar, abs=1e-4)


def test_conjugate_roots_make_a_real_polynomial():
    zeros = np.array([1.0 + 2.0j, 1.0 - 2.0j])
    z, pullback = lantern.vjp(np.poly, zeros)
    np.testing.assert_allclose(z, [1.0, -2.0, 5.0])
    assert z.dtype == np.float64
    np.testing.assert_allclose(pullback(np.array([0.0, 0.0, 1.0]))[0], zeros)


def test_roots_move_against_the_polynomial_over_its_slope():
    # x² - 5x + 6: the root 3 moves by -1 / slope = -1 for each unit of the constant
    _, pullback = lantern.vjp(lantern.roots, np.array([1.0, -5.0, 6.0]))
    np.testing.assert_allclose(pullback(np.array([1.0, 0.0]))[0], [-9.0, -3.0, -1.0])

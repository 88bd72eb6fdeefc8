"""Solutions of linear equations, determinants and exponentials at the edges."""

import math

import numpy as np
import pytest
import scipy.linalg

import lantern
from lantern import MissingExtraError, grad, linalg, vjp
from tests.matrices import KINDS, check, draw, refuse_imports, shape_of, square


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", ["4,3 4", "4,3 4,2", "3,4 3", "3,4 3,2", "3,3 3"])
@pytest.mark.parametrize("rcond", [None, 1e-10, -1])
def test_lstsq(shapes, kind, rcond):
    a, b = (draw(kind, *shape_of(s)) for s in shapes.split())
    want = np.linalg.lstsq(a, b, rcond)
    seen = []

    def f(a, b):
        x, residuals, rank, s = linalg.lstsq(a, b, rcond)
        seen[:] = [x, residuals, rank, s]
        return (x, residuals, s) if residuals.size else (x, s)

    vjp(f, a, b)
    for got, expected in zip(seen, want, strict=True):
        np.testing.assert_allclose(lantern.core.value.base(got), expected, rtol=1e-12)
    check(f, a, b)


def test_lstsq_without_full_rank_is_the_shortest_solution():
    a = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    b = np.array([1.0, 0.0, 2.0])
    x, residuals, rank, _ = linalg.lstsq(a, b)
    assert (rank, residuals.size) == (1, 0)
    check(lambda b: linalg.lstsq(a, b)[0], b)
    # Along matrices of rank 1 the derivative is the true one.
    check(lambda u: linalg.lstsq(lantern.outer(u, [1.0, -1.0]), b)[0], a[:, 0])
    check(lambda v: linalg.pinv(lantern.outer(b, v)), np.array([1.0, -1.0]))
    np.testing.assert_allclose(x, np.linalg.lstsq(a, b)[0])


class TestDeterminants:
    @pytest.mark.parametrize("rank", [0, 1, 2])
    @pytest.mark.parametrize("kind", KINDS)
    def test_of_singular_matrices(self, rank, kind):
        x = draw(kind, 3, rank) @ draw(kind, rank, 3, seed=1)
        check(linalg.det, x)

    def test_gradient_is_the_matrix_of_cofactors(self):
        x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
        cofactors = [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]]
        np.testing.assert_allclose(grad(linalg.det)(x), cofactors, rtol=1e-13)
        np.testing.assert_array_equal(grad(linalg.det)(np.zeros((3, 3))), 0)

    def test_of_a_nearly_singular_matrix_it_keeps_all_digits(self):
        x = np.diag([1.0, 1e-9, 1.0])
        q = np.linalg.qr(draw("real", 3, 3)).Q
        want = np.linalg.det(q) * np.diag([1e-9, 1.0, 1e-9])
        np.testing.assert_allclose(grad(linalg.det)(q @ x), q @ want, atol=1e-14)

    def test_third_derivative(self):
        a = draw("real", 3, 3)
        third = grad(grad(grad(lambda t: linalg.det(t * a))))
        assert third(0.7) == pytest.approx(6 * np.linalg.det(a), rel=1e-10)

    def test_of_no_rows(self):
        np.testing.assert_array_equal(
            grad(linalg.det)(np.ones((0, 0))), np.ones((0, 0))
        )

    def test_slogdet_of_a_singular_matrix(self):
        assert linalg.slogdet(np.zeros((2, 2))).logabsdet == -math.inf
        with pytest.raises(linalg.LinAlgError, match="Singular"):
            grad(lambda x: linalg.slogdet(x).logabsdet)(np.zeros((2, 2)))


class TestExponential:
    @pytest.mark.parametrize("kind", KINDS)
    def test_derivative_is_scipys(self, kind):
        x, e = draw(kind, 4, 4), draw(kind, 4, 4, seed=1)
        value, tangent = lantern.jvp(linalg.expm, (x,), (e,))
        want = scipy.linalg.expm_frechet(x, e)
        np.testing.assert_allclose(value, want[0], rtol=1e-12)
        np.testing.assert_allclose(tangent, want[1], rtol=1e-11, atol=1e-12)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
    def test_the_size_of_the_cotangent_costs_no_accuracy(self, scale):
        x, e = draw("real", 3, 3), draw("real", 3, 3, seed=1)
        pullback = vjp(linalg.expm, x)[1]
        np.testing.assert_allclose(pullback(e * scale)[0] / scale, pullback(e)[0])

    def test_of_nothing_and_of_zero(self):
        assert vjp(linalg.expm, np.ones((0, 0)))[1](np.ones((0, 0)))[0].shape == (0, 0)
        check(linalg.expm, np.zeros((2, 2)))

    def test_without_scipy(self, monkeypatch):
        refuse_imports(monkeypatch, "lantern.tensor.linalg.matrix_functions")
        with pytest.raises(MissingExtraError, match=r"lantern-ad\[scipy\]"):
            linalg.expm(np.eye(2))

    def test_solve_triangular_without_scipy(self, monkeypatch):
        a, b = square("real", 3, 3), draw("real", 3)
        want = vjp(linalg.solve_triangular, a, b)[1](b)
        refuse_imports(monkeypatch, "lantern.tensor.linalg.solve")
        for x, y in zip(vjp(linalg.solve_triangular, a, b)[1](b), want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13)

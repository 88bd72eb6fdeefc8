"""Norms of every order, and where they have a kink."""

import math

import numpy as np
import pytest

import lantern
from lantern import MissingRuleError, grad, linalg, vjp
from tests.matrices import KINDS, check, square

VECTOR_ORDERS = [None, 2, 1, 3, 4, 1.5, 2.5, 0.5, -1, -2.5, math.inf, -math.inf]
MATRIX_ORDERS = [None, "fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf]


@pytest.mark.parametrize("kind", KINDS)
class TestNorms:
    @pytest.mark.parametrize("keepdims", [False, True])
    @pytest.mark.parametrize("order", VECTOR_ORDERS)
    def test_of_vectors(self, order, keepdims, kind):
        x = square(kind, 2, 3, 3, seed=5)
        for axis in (0, -1):
            want = np.linalg.norm(x, order, axis, keepdims)
            value = vjp(lambda x: linalg.norm(x, order, axis, keepdims), x)[0]  # noqa: B023
            np.testing.assert_allclose(value, want, rtol=1e-13)
            check(lambda x: linalg.norm(x, order, axis, keepdims), x)  # noqa: B023

    @pytest.mark.parametrize("keepdims", [False, True])
    @pytest.mark.parametrize("axes", [(0, 1), (-1, 0), (1, 2)], ids=str)
    @pytest.mark.parametrize("order", MATRIX_ORDERS)
    def test_of_matrices(self, order, axes, keepdims, kind):
        x = square(kind, 3, 3, 3, seed=5)

        def f(x):
            return linalg.norm(x, order, axes, keepdims)

        want = np.linalg.norm(x, order, axes, keepdims)
        np.testing.assert_allclose(vjp(f, x)[0], want, rtol=1e-13)
        check(f, x)

    @pytest.mark.parametrize("axis", [None, 1, (0, 2), (2, 1, 0)], ids=str)
    @pytest.mark.parametrize("order", [2, 1, 3, math.inf])
    def test_names_of_the_standard(self, order, axis, kind):
        x = square(kind, 2, 3, 3, seed=5)
        for keepdims in (False, True):
            how = {"axis": axis, "keepdims": keepdims, "ord": order}
            want = np.linalg.vector_norm(x, **how)
            np.testing.assert_allclose(linalg.vector_norm(x, **how), want, rtol=1e-13)
            check(lambda x: linalg.vector_norm(x, **how), x, order=1)  # noqa: B023
        for name in ("fro", "nuc", 2):
            value = vjp(lambda x: linalg.matrix_norm(x, ord=name), x)[0]  # noqa: B023
            np.testing.assert_allclose(value, np.linalg.matrix_norm(x, ord=name))

    @pytest.mark.parametrize("order", [None, 2, -2, 1, -1, "fro", "nuc", math.inf])
    def test_condition_numbers(self, order, kind):
        x = square(kind, 2, 3, 3)
        value = vjp(lambda x: linalg.cond(x, order), x)[0]
        np.testing.assert_allclose(value, np.linalg.cond(x, order), rtol=1e-12)
        check(lambda x: linalg.cond(x, order), x, atol=1e-3)


class TestNormsAtTheEdges:
    @pytest.mark.parametrize("order", [None, 1, 2, 3, 1.5, math.inf])
    def test_norm_of_zero_has_derivative_zero(self, order):
        for zero in (np.zeros(3), np.zeros(3) * 1j):
            gradient = grad(lambda x: linalg.norm(x, order))(zero)
            np.testing.assert_array_equal(gradient, np.zeros(3))
        hessian = lantern.jvp(
            grad(lambda x: linalg.norm(x, order)), (np.zeros(3),), (np.ones(3),)
        )[1]
        np.testing.assert_array_equal(hessian, np.zeros(3))

    @pytest.mark.parametrize("order", [None, "nuc", 2, 1, math.inf])
    def test_norm_of_a_zero_matrix_has_derivative_zero(self, order):
        gradient = grad(lambda x: linalg.norm(x, order))(np.zeros((2, 3)))
        np.testing.assert_array_equal(gradient, np.zeros((2, 3)))

    @pytest.mark.parametrize("order", [1.5, 2.5, 3, 4])
    def test_elements_that_are_zero(self, order):
        x = np.array([0.0, 2.0, -1.0])
        check(lambda x: linalg.norm(x, order), x, order=1, atol=1e-4)
        second = lantern.jvp(
            grad(lambda x: linalg.norm(x, order)), (x,), (np.array([1.0, 0.0, 0.0]),)
        )[1]
        np.testing.assert_allclose(second, 0, atol=1e-15)

    def test_one_infinite_direction(self):
        """Fourth derivative of the norm of degree 4, at an element that is zero."""

        def f(t):
            return linalg.norm(lantern.stack([t, 1.0]), 4)

        fourth = grad(grad(grad(grad(f))))
        assert fourth(0.0) == pytest.approx(6.0)

    def test_ties_share(self):
        x = np.array([2.0, -2.0, 1.0])
        gradient = grad(lambda x: linalg.norm(x, math.inf))(x)
        np.testing.assert_array_equal(gradient, [0.5, -0.5, 0.0])
        gradient = grad(lambda x: linalg.norm(x, 2))(np.eye(2))
        np.testing.assert_allclose(gradient, np.eye(2) / 2)

    def test_counting_has_derivative_zero(self):
        x = np.array([0.0, 3.0])
        assert linalg.norm(x, 0) == 1.0
        np.testing.assert_array_equal(
            grad(lambda x: linalg.norm(x, 0) * x[1])(x), [0, 1]
        )
        assert linalg.matrix_rank(np.ones((2, 2))) == 1

        def scaled(x):
            return linalg.matrix_rank(x) * lantern.sum(x)

        np.testing.assert_array_equal(grad(scaled)(np.ones((2, 2))), np.ones((2, 2)))

    @pytest.mark.parametrize(
        ("shape", "order", "axis"),
        [
            ((2, 2, 2), 2, None),
            ((2, 2), 3, None),
            ((3,), "fro", None),
            ((2, 2), "nuc", 0),
            ((2, 2), 2, (0, 0)),
            ((2, 2, 2), 2, (0, 1, 2)),
        ],
    )
    def test_numpys_errors(self, shape, order, axis):
        x = np.ones(shape)
        with pytest.raises(ValueError) as numpy_error:
            np.linalg.norm(x, order, axis)
        with pytest.raises(ValueError) as error:
            grad(lambda x: lantern.sum(linalg.norm(x, order, axis)))(x)
        assert str(error.value) == str(numpy_error.value)


def test_orders_and_cutoffs_that_are_tracked():
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    with pytest.raises(MissingRuleError, match="ord"):
        grad(lambda p: linalg.norm(x, p))(2.0)
    with pytest.raises(MissingRuleError, match="ord"):
        grad(lambda p: linalg.vector_norm(x, ord=p))(2.0)
    assert grad(lambda t: t * linalg.pinv(x, rtol=t)[0, 0])(1e-9) == pytest.approx(0.6)
    assert grad(lambda t: t * linalg.lstsq(x, x, t)[0][0, 0])(1e-9) == pytest.approx(1)

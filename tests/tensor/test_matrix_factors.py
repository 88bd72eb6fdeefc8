"""Functions and factors of matrices, and where factors are not unique."""

import numpy as np
import pytest
import scipy.linalg

import lantern
from lantern import MissingRuleError, grad, linalg
from tests.matrices import KINDS, adjoint, check, draw, hermitian, shape_of, square

# Functions of a square matrix, each of them differentiable as it stands.
OF_SQUARES = {
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "pinv": linalg.pinv,
    "expm": lambda x: linalg.expm(x / 9),
    "qr": linalg.qr,
    "R alone": lambda x: linalg.qr(x, "r"),
    "eig": linalg.eig,
    "eigvals": linalg.eigvals,
    "svd": linalg.svd,
    "svdvals": linalg.svdvals,
    "solve, a vector": lambda x: linalg.solve(x, np.arange(1.0, 4.0)),
    "solve, a matrix": lambda x: linalg.solve(x, x[..., :2]),
    "the second power": lambda x: linalg.matrix_power(x / 9, 2),
    "the fifth power": lambda x: linalg.matrix_power(x / 9, 5),
    "the power -3": lambda x: linalg.matrix_power(x, -3),
}
OF_HERMITIAN = {
    "cholesky": linalg.cholesky,
    "upper cholesky": lambda x: linalg.cholesky(x, upper=True),
    "eigh": linalg.eigh,
    "upper eigh": lambda x: linalg.eigh(x, "U"),
    "eigvalsh": linalg.eigvalsh,
    "upper eigvalsh": lambda x: linalg.eigvalsh(x, UPLO="U"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)], ids=str)
class TestMatrices:
    @pytest.mark.parametrize("name", OF_SQUARES)
    def test_functions_of_square_matrices(self, name, shape, kind):
        tolerance = 1e-4 if name == "det" else 2e-6
        check(OF_SQUARES[name], square(kind, *shape), atol=tolerance)

    @pytest.mark.parametrize("name", OF_HERMITIAN)
    def test_functions_of_hermitian_matrices_read_one_triangle(self, name, shape, kind):
        x = hermitian(kind, *shape) + square(kind, *shape, seed=3) / 4
        check(OF_HERMITIAN[name], x)

    @pytest.mark.parametrize("lower", [False, True])
    @pytest.mark.parametrize("unit_diagonal", [False, True])
    @pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
    def test_solve_triangular(self, trans, unit_diagonal, lower, shape, kind):
        a = square(kind, *shape)

        def f(a, b):
            return linalg.solve_triangular(a, b, trans, lower, unit_diagonal)

        for b in (draw(kind, 3), draw(kind, 3, 2)):
            check(f, a, b, order=1 if b.ndim == 2 else 2)
            for one in a.reshape(-1, 3, 3):
                want = scipy.linalg.solve_triangular(
                    one, b, trans, lower, unit_diagonal
                )
                np.testing.assert_allclose(f(one, b), want, rtol=1e-12)


SOLVE = "3,3 3; 3,3 3,2; 2,3,3 3; 2,3,3 3,2; 3,3 4,3,2; 2,1,3,3 4,3,2; 0,0 0; 2,0,0 0,3"


@pytest.mark.parametrize("shapes", SOLVE.split("; "))
def test_solve(shapes):
    first, second = map(shape_of, shapes.split())
    a, b = square("real", *first), draw("complex", *second)
    np.testing.assert_array_equal(linalg.solve(a, b), np.linalg.solve(a, b))
    check(linalg.solve, a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 5, 2), (2, 2, 5)], ids=str)
class TestRectangles:
    def test_svd(self, shape, kind):
        x = draw(kind, *shape)
        check(lambda x: linalg.svd(x, full_matrices=False), x)
        check(lambda x: linalg.svd(x, compute_uv=False), x)

    def test_qr(self, shape, kind):
        check(linalg.qr, draw(kind, *shape))

    def test_pinv(self, shape, kind):
        x = draw(kind, *shape)
        np.testing.assert_array_equal(linalg.pinv(x), np.linalg.pinv(x))
        check(linalg.pinv, x)
        check(lambda x: linalg.pinv(x, rtol=None), x, order=1)


class TestVectorsThatAreNotUnique:
    def test_values_are_those_of_numpy_up_to_phases(self):
        x = hermitian("complex", 3, 3)
        w, v = linalg.eigh(x)
        np.testing.assert_array_equal(w, np.linalg.eigh(x).eigenvalues)
        np.testing.assert_allclose(np.abs(v), np.abs(np.linalg.eigh(x).eigenvectors))
        np.testing.assert_allclose(v * w @ adjoint(v), x, atol=1e-13)
        u, s, v_h = linalg.svd(square("complex", 3, 3))
        np.testing.assert_allclose(u * s @ v_h, square("complex", 3, 3), atol=1e-12)

    @pytest.mark.parametrize("f", [linalg.eigh, linalg.eig, linalg.svd])
    def test_largest_components_are_positive(self, f):
        result = f(hermitian("complex", 2, 4, 4))
        v = result.U if f is linalg.svd else result.eigenvectors
        largest = np.take_along_axis(v, np.abs(v).argmax(-2)[:, None, :], -2)
        assert (largest.real > 0).all()
        np.testing.assert_allclose(largest.imag, 0, atol=1e-15)

    def test_real_vectors_are_numpys_own(self):
        x = hermitian("real", 3, 3)
        for ours, theirs in zip(linalg.eigh(x), np.linalg.eigh(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for ours, theirs in zip(linalg.svd(x), np.linalg.svd(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_complex_eigenvalues_of_real_matrices(self):
        x = np.array([[1.0, 2.0, 0.3], [-3.0, 1.5, 0.2], [0.1, 0.4, 7.0]])
        check(linalg.eig, x)
        check(lambda x: lantern.abs(linalg.eigvals(x)), x)

    @pytest.mark.parametrize("f", [linalg.eigh, linalg.svd, linalg.eig])
    def test_coinciding_values(self, f):
        """Their vectors have no derivative; the values alone, and others, have."""

        def total(z):
            return lantern.real(lantern.sum(z))  # NumPy 2.5 gives all of eig as complex

        x = np.diag([1.0, 1.0, 3.0])
        which = 1 if f is linalg.svd else 0
        gradient = grad(lambda x: total(f(x)[which]))(x)
        np.testing.assert_allclose(gradient, np.eye(3), atol=1e-15)
        vectors = 1 - which
        assert np.isnan(grad(lambda x: total(f(x)[vectors][:, :2]))(x)).any()
        single = 0 if f is linalg.svd else 2
        gradient = grad(lambda x: total(f(x)[vectors][:, single] ** 3))(x)
        assert np.isfinite(gradient).all()

    def test_singular_values_of_singular_matrices(self):
        x = np.diag([3.0, 1.0, 0.0])
        assert np.isfinite(grad(lambda x: linalg.svdvals(x)[0])(x)).all()
        tall = np.concatenate([x, np.zeros((1, 3))])
        reduced = {"full_matrices": False}
        first = grad(lambda x: linalg.svd(x, **reduced).U[0, 0] ** 2)(tall)
        assert np.isfinite(first).all()
        last = grad(lambda x: linalg.svd(x, **reduced).U[0, 2])(tall)
        assert np.isnan(last).any()

    def test_full_matrices_have_no_rule(self):
        x = draw("real", 3, 2)
        assert linalg.svd(x).U.shape == (3, 3)
        assert linalg.qr(x, "complete").Q.shape == (3, 3)
        with pytest.raises(MissingRuleError, match="full_matrices=False"):
            grad(lambda x: linalg.svd(x).U[0, 0])(x)
        with pytest.raises(MissingRuleError, match="complete"):
            grad(lambda x: linalg.qr(x, "complete").Q[0, 0])(x)
        check(lambda x: linalg.qr(x, "complete"), draw("real", 2, 3))

    def test_hermitian_options_have_no_rule(self):
        x = hermitian("real", 3, 3)
        assert linalg.svd(x, hermitian=True).S.shape == (3,)
        with pytest.raises(MissingRuleError, match="eigh"):
            grad(lambda x: linalg.svd(x, hermitian=True).S[0])(x)
        with pytest.raises(MissingRuleError, match="hermitian"):
            grad(lambda x: linalg.pinv(x, hermitian=True)[0, 0])(x)


def test_one_triangle_is_enough():
    """The gradient of what is read is twice the symmetric one below the diagonal."""
    x = hermitian("real", 3, 3)
    lower = np.tril(x)

    def log_det(x):
        return 2 * lantern.sum(lantern.log(lantern.diagonal(linalg.cholesky(x))))

    for point in (x, lower):
        gradient = grad(log_det)(point)
        symmetric = (gradient + gradient.T) / 2
        np.testing.assert_allclose(symmetric, np.linalg.inv(x), rtol=1e-12)
        np.testing.assert_array_equal(np.triu(gradient, 1), 0)


def test_untracked_tensors_have_every_option():
    """Of them all that NumPy computes is there, as tensors."""
    x = lantern.Tensor(draw("real", 3, 2))
    calls = [
        lambda x: linalg.svd(x).U,
        lambda x: linalg.qr(x, "complete").Q,
        lambda x: linalg.qr(x, "raw")[0],
        lambda x: linalg.pinv(x @ x.T, hermitian=True),
        linalg.matrix_rank,
        lambda x: linalg.matrix_power(x @ x.T, 0),
        lambda x: linalg.norm(x, 0, axis=0),
        lambda x: lantern.einsum("ij->i", x, dtype=complex),
    ]
    for call in calls:
        got = call(x)
        assert type(got) is lantern.Tensor
        np.testing.assert_array_equal(np.asarray(got), call(lantern.core.value.base(x)))

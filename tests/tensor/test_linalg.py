"""Linear algebra: products, NumPy's own functions, and what is shared."""

import numpy as np
import pytest

import lantern
from lantern import MissingRuleError, grad, linalg, vjp
from tests.matrices import KINDS, check, draw, hermitian, shape_of, square

PRODUCTS = {
    "dot": "() 3; 3 3; 2,3 3; 3 3,2; 2,3 3,2; 2,3 4,3,2; 3 4,3,2; 4,2,3 5,3,2",
    "vdot": "3 3; 2,3 3,2; () ()",
    "inner": "() 2,3; 3 3; 2,3 3; 3 2,3; 2,3 4,3; 2,2,3 4,1,3",
    "outer": "2 3; 2,2 3; () 2",
    "kron": "2 3; 2,3 3,2; 2 3,2; 2,1,2 2; () ()",
    "cross": "3 3; 2,3 3; 2,1,3 4,3",
    "vecdot": "3 3; 2,3 3; 2,1,3 4,3",
    "matvec": "2,3 3; 4,2,3 3; 2,3 4,3",
    "vecmat": "2 2,3; 4,2 2,3; 2 4,2,3",
    "matmul": "3 3; 2,3 3,2; 4,2,3 3,2; 2,3 4,3,2; 3 4,3,2; 4,2,3 3; 5,1,2,3 4,3,1",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [(name, s) for name, row in PRODUCTS.items() for s in row.split("; ")],
)
def test_products(name, shapes, kind):
    first, second = map(shape_of, shapes.split())
    x, y = draw(kind, *first), draw(kind, *second, seed=1)
    f = getattr(lantern, name)
    np.testing.assert_allclose(f(x, y), getattr(np, name)(x, y), rtol=1e-12)
    check(f, x, y)
    check(f, x, draw("complex", *second, seed=2), order=1)


TENSORDOT = [
    ((2,), (3, 2), 0),
    ((2, 3, 4), (4, 2), 1),
    ((2, 3, 4), (3, 4, 2), 2),
    ((2, 3, 4), (5, 3), (1, 1)),
    ((2, 3, 4), (4, 2, 3), ((0, 2), (1, 0))),
    ((2, 3, 4), (4, 2, 3), ((-1, 0), (0, -2))),
    ((2, 3, 4), (3, 2, 4), [[1, 0, 2], [0, 1, 2]]),
]


@pytest.mark.parametrize(("first", "second", "axes"), TENSORDOT, ids=str)
def test_tensordot(first, second, axes):
    x, y = draw("real", *first), draw("complex", *second)
    want = np.tensordot(x, y, axes)
    np.testing.assert_allclose(lantern.tensordot(x, y, axes), want, rtol=1e-12)
    check(lambda x, y: lantern.tensordot(x, y, axes), x, y)


def test_numbers_and_lists_are_operands():
    assert grad(lambda x: lantern.dot(x, 3.0))(2.0) == 3.0
    assert grad(lambda x: np.dot(x, 3.0))(2.0) == 3.0
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(
        grad(lambda x: lantern.sum(lantern.outer([1.0, 2.0], x)))(x), [3.0, 3.0]
    )
    assert linalg.det([[1.0, 2.0], [3.0, 4.0]]) == np.linalg.det([[1, 2], [3, 4]])


@pytest.mark.parametrize("axes", [{}, {"axis": 0}, {"axisa": 0, "axisc": 0}], ids=str)
def test_cross_along_other_axes(axes):
    x = draw("real", 3, 3)
    y = draw("real", 3, 3, seed=1)
    np.testing.assert_array_equal(lantern.cross(x, y, **axes), np.cross(x, y, **axes))
    check(lambda x, y: lantern.cross(x, y, **axes), x, y)
    seen = vjp(lambda x: lantern.cross(x, y, **axes), x)[0]
    np.testing.assert_array_equal(seen, np.cross(x, y, **axes))


def test_cross_of_short_vectors_has_no_rule():
    with pytest.raises(MissingRuleError, match="length 2"):
        grad(lambda x: lantern.sum(lantern.cross(x, x)))(np.ones(2))


@pytest.mark.parametrize("offset", [0, 1, -2, 5])
@pytest.mark.parametrize("axes", [(0, 1), (2, 0), (-1, -2)])
def test_diagonal_and_trace(offset, axes):
    x = draw("complex", 3, 4, 2)
    for f, numpy_f in ((lantern.diagonal, np.diagonal), (lantern.trace, np.trace)):
        want = numpy_f(x, offset, *axes)
        np.testing.assert_allclose(f(x, offset, *axes), want)
        np.testing.assert_allclose(vjp(lambda x, f=f: f(x, offset, *axes), x)[0], want)
        check(lambda x, f=f: f(x * x, offset, *axes), x)


def test_vecdot_refuses_vectors_of_two_lengths():
    with pytest.raises(ValueError, match="mismatch"):
        lantern.vecdot(np.ones((2, 1)), np.ones((2, 3)))


def test_products_of_linalg_have_its_defaults():
    x, y = draw("real", 2, 3, 3), draw("real", 2, 3, 3, seed=1)
    for name in ("diagonal", "trace"):
        np.testing.assert_allclose(
            getattr(linalg, name)(x), getattr(np.linalg, name)(x)
        )
    np.testing.assert_allclose(linalg.cross(x, y, axis=1), np.cross(x, y, axis=1))
    np.testing.assert_allclose(
        linalg.outer(x[0, 0], y[0, 0]), np.outer(x[0, 0], y[0, 0])
    )
    with pytest.raises(ValueError, match="one-dimensional"):
        linalg.outer(x, y)


@pytest.mark.parametrize(
    "shapes", ["2,3 3,4", "2,3 3,4 4,2", "3 3,4 4,2 2", "5,2 2,9 9,1 1,7"]
)
def test_multi_dot(shapes):
    arrays = [draw("real", *shape_of(s)) for s in shapes.split()]
    np.testing.assert_allclose(linalg.multi_dot(arrays), np.linalg.multi_dot(arrays))
    check(lambda *x: linalg.multi_dot(x), *arrays)


def test_multi_dot_refuses_what_numpy_refuses():
    with pytest.raises(ValueError, match="at least two"):
        linalg.multi_dot([np.ones((2, 2))])
    with pytest.raises(np.linalg.LinAlgError, match="two-dimensional"):
        linalg.multi_dot([np.ones((2, 2)), np.ones(2), np.ones((2, 2))])


def test_powers_of_matrices_at_the_edges():
    x = square("real", 2, 2)
    for n in (0, 1, 3, -2):
        value = vjp(lambda x, n=n: linalg.matrix_power(x, n) + 0 * x, x)[0]
        np.testing.assert_allclose(value, np.linalg.matrix_power(x, n), rtol=1e-12)
    with pytest.raises(TypeError):
        linalg.matrix_power(x, 0.5)


def test_inverses_and_equations_of_tensors():
    x = draw("real", 4, 6, 8, 3)
    np.testing.assert_allclose(vjp(linalg.tensorinv, x)[0], np.linalg.tensorinv(x))
    check(linalg.tensorinv, x, order=1)
    check(lambda x: linalg.tensorinv(x, ind=1), draw("real", 6, 2, 3))
    with pytest.raises(ValueError, match="ind"):
        grad(lambda x: lantern.sum(linalg.tensorinv(x, ind=0)))(x)
    a, b = draw("real", 2, 3, 6), draw("real", 2, 3)
    value = vjp(linalg.tensorsolve, a, b)[0]
    np.testing.assert_allclose(value, np.linalg.tensorsolve(a, b))
    check(linalg.tensorsolve, a, b)
    moved = np.moveaxis(a, -1, 0)
    check(lambda a: linalg.tensorsolve(a, b, axes=(0,)), moved)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.tensorsolve(np.ones((2, 3)), np.ones(2))


NUMPY_CALLS = {
    "solve": lambda x: np.linalg.solve(a=x, b=x[0]),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda x: np.linalg.slogdet(x).logabsdet,
    "cholesky": lambda x: np.linalg.cholesky(x, upper=True),
    "eigh": lambda x: np.linalg.eigh(x, UPLO="U").eigenvectors,
    "svd": lambda x: np.linalg.svd(x, full_matrices=False, compute_uv=True).S,
    "qr": lambda x: np.linalg.qr(x, mode="reduced").R,
    "pinv": lambda x: np.linalg.pinv(x, rtol=1e-9),
    "lstsq": lambda x: np.linalg.lstsq(x, x[0], rcond=None)[0],
    "norm": lambda x: np.linalg.norm(x, axis=0, keepdims=True),
    "vector_norm": lambda x: np.linalg.vector_norm(x, ord=3),
    "matrix_norm": lambda x: np.linalg.matrix_norm(x, ord="nuc"),
    "cond": np.linalg.cond,
    "matrix_power": lambda x: np.linalg.matrix_power(x / 9, 3),
    "multi_dot": lambda x: np.linalg.multi_dot([x, x[0]]),
    "trace": np.linalg.trace,
    "diagonal": lambda x: np.linalg.diagonal(x, offset=1),
    "outer": lambda x: np.linalg.outer(x[0], x[1]),
    "cross": lambda x: np.linalg.cross(x[0], x[1]),
    "vecdot": lambda x: np.linalg.vecdot(x, x[0], axis=-1),
    "tensordot": lambda x: np.linalg.tensordot(x, x, axes=1),
    "matmul": lambda x: np.linalg.matmul(x, x),
    "np.trace": lambda x: np.trace(x, offset=1),
    "np.dot": lambda x: np.dot(x, x),
    "np.kron": lambda x: np.kron(x, x),
    "np.einsum": lambda x: np.einsum("ij,kj->ik", x, x, optimize=True),
    "np.vecdot": lambda x: np.vecdot(x, x[0]),
}


@pytest.mark.parametrize("name", NUMPY_CALLS)
def test_numpys_own_functions(name):
    x = hermitian("real", 3, 3)
    value = vjp(NUMPY_CALLS[name], x)[0]
    np.testing.assert_allclose(value, NUMPY_CALLS[name](x), rtol=1e-11, atol=1e-14)
    check(NUMPY_CALLS[name], x, order=1, atol=1e-4)


def test_singular_matrices_raise_as_in_numpy():
    for f in (linalg.inv, lambda x: linalg.solve(x, np.ones(2))):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            grad(lambda x, f=f: lantern.sum(f(x)))(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        grad(lambda x: lantern.sum(linalg.cholesky(x)))(-np.eye(2))


def test_every_name_of_numpy_linalg():
    missing = {n for n in np.linalg.__all__ if not hasattr(linalg, n)}
    assert missing == set()
    assert sorted(linalg.__all__) == linalg.__all__
    assert linalg.LinAlgError is np.linalg.LinAlgError


def test_weights_of_a_batch_are_one_product():
    """The cotangent of one matrix behind a batch never has the batch's axes."""
    x, y = draw("real", 7, 2, 3), draw("real", 3, 4)
    pullback = vjp(lantern.matmul, x, y)[1]
    z_bar = draw("real", 7, 2, 4)
    np.testing.assert_allclose(pullback(z_bar)[1], np.einsum("bnk,bnm->km", x, z_bar))
    empty = vjp(lantern.matmul, np.ones((0, 2, 3)), y)[1](np.ones((0, 2, 4)))
    np.testing.assert_array_equal(empty[1], np.zeros((3, 4)))
    assert vjp(lantern.matmul, np.ones((2, 2, 0)), y[:0])[1](z_bar[:2])[1].shape == (
        0,
        4,
    )

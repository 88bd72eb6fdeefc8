"""Jacobians and Hessians: structures, shapes, modes, complex numbers, nesting."""

from fractions import Fraction

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    diag_hessian,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    tree_leaves,
    tree_map,
    vjp,
    vmap,
)
from tests.every_op.test_every_op import FIRST_CASES, call, operands

ALL = pytest.mark.parametrize("jac", [jacfwd, jacrev, jacobian])
A = np.arange(12.0).reshape(4, 3) / 10
X = np.array([0.3, -0.5, 1.1])


def f(x):
    return np.tanh(A @ x) * x.sum()


def real(f):
    """The real part of what a function gives, if that is complex."""

    def g(*x):
        y = f(*x)
        return lantern.real(y) if y.dtype.kind == "c" else y

    return g


def by_rows(f, x):
    """The Jacobian of one array of another, one pullback after the other."""
    y, pullback = vjp(f, x)
    rows = []
    for i in range(y.size):
        unit = np.zeros(y.size, y.dtype)
        unit[i] = 1
        rows.append(pullback(unit.reshape(y.shape))[0])
    return np.reshape(rows, y.shape + x.shape)


def by_columns(f, x):
    """The same, one pushforward after the other."""
    columns = []
    for i in range(x.size):
        unit = np.zeros(x.size, x.dtype)
        unit[i] = 1
        columns.append(jvp(f, (x,), (unit.reshape(x.shape),))[1])
    columns = np.stack(columns, axis=-1)
    return columns.reshape(columns.shape[:-1] + x.shape)


@ALL
class TestJacobians:
    def test_a_map_of_vectors(self, jac):
        np.testing.assert_allclose(jac(f)(X), by_rows(f, X))
        np.testing.assert_allclose(jac(f)(X), by_columns(f, X))

    @pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
    def test_every_operation(self, jac, case):
        x, g = operands(case), real(call(case))
        got = jac(g, argnums=tuple(range(len(x))))(*x)
        for i, (block, a) in enumerate(zip(got, x, strict=True)):

            def alone(a, i=i):
                return lantern.asarray(g(*x[:i], a, *x[i + 1 :]))

            want = by_rows(alone, a)
            assert block.shape == want.shape
            np.testing.assert_allclose(block, want, rtol=1e-10, atol=1e-12)

    def test_shapes(self, jac):
        for n in ((), (1,), (2, 3), (0,), (0, 2)):
            for m in ((), (1,), (3, 1, 2), (0,)):
                x, y = np.full(n, 0.5), np.ones(m)
                got = jac(lambda x, y=y: y * (x * x).sum() + 0 * y)(x)
                assert got.shape == m + n
                np.testing.assert_array_equal(got, np.ones(m + n))

    def test_structures(self, jac):
        def g(p, t):
            return {"a": p["u"] * t, "b": (p["u"].sum() * p["v"], [t, None])}

        p = {"u": X, "v": 2.0}
        got = jac(g, argnums=(0, 1))(p, 3.0)
        zero, one = np.zeros(3), np.ones(3)
        want = {
            "a": ({"u": 3 * np.eye(3), "v": zero}, X),
            "b": (
                ({"u": 2 * one, "v": X.sum()}, 0.0),
                [({"u": zero, "v": 0.0}, 1.0), None],
            ),
        }
        assert list(got) == ["a", "b"]
        assert got["b"][1][1] is None
        tree_map(np.testing.assert_allclose, got, want)

    def test_argnums(self, jac):
        def g(x, y, scale=1.0):
            return x * y.sum() * scale

        np.testing.assert_array_equal(jac(g, 1)(X, X), np.outer(X, np.ones(3)))
        np.testing.assert_array_equal(
            jac(g, -2)(X, X, scale=2.0), 2 * X.sum() * np.eye(3)
        )
        (only,) = jac(g, (0,))(X, X)
        np.testing.assert_array_equal(only, X.sum() * np.eye(3))

    def test_aux(self, jac):
        jacobian_, aux = jac(lambda x: (f(x), {"norm": (x * x).sum()}), has_aux=True)(X)
        np.testing.assert_allclose(jacobian_, by_rows(f, X))
        assert aux == {"norm": (X * X).sum()}
        with pytest.raises(ArgumentError, match="has_aux"):
            jac(f, has_aux=True)(X)

    def test_numbers(self, jac):
        assert jac(lambda x: x**3)(2.0) == 12.0
        assert type(jac(lambda x: x**3)(2.0)) is float
        assert jac(lambda x: x**3)(Fraction(1, 3)) == Fraction(1, 3)
        np.testing.assert_array_equal(
            jac(lambda x: lantern.stack([x, x * x, 3.0]))(2.0), [1.0, 4.0, 0.0]
        )
        rows = jac(lambda x, y: (x * y, x + y), (0, 1))(2.0, 3.0)
        assert rows == ((3.0, 2.0), (1.0, 1.0))

    def test_a_result_that_depends_on_nothing(self, jac):
        np.testing.assert_array_equal(jac(lambda x: A)(X), np.zeros((4, 3, 3)))
        got = jac(lambda x: (np.ones(2), x))(X)
        np.testing.assert_array_equal(got[0], np.zeros((2, 3)))
        np.testing.assert_array_equal(got[1], np.eye(3))

    def test_types(self, jac):
        got = jac(lambda x: x.astype(np.float32) * 2)(X.astype(np.float32))
        assert got.dtype == np.float32
        got = jac(f)(lantern.Tensor(X))
        assert type(got) is lantern.Tensor
        np.testing.assert_allclose(np.asarray(got), by_rows(f, X))

    def test_holomorphic(self, jac):
        z = X + 1j * X[::-1]
        got = jac(lambda z: z**2 * z.sum(), holomorphic=True)(z)
        want = np.diag(2 * z * z.sum()) + np.outer(z**2, np.ones(3))
        np.testing.assert_allclose(got, want)

    def test_the_users_error_passes(self, jac, probe):
        def fail(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            jac(fail)(X)
        with pytest.raises(ArgumentError, match="expected a function"):
            jac(3.0)
        with pytest.raises(ArgumentError, match="must return numbers"):
            jac(lambda x: "text")(X)
        with pytest.raises(ArgumentError, match="argnums"):
            jac(f, 1)(X)
        np.testing.assert_allclose(jac(f)(X), by_rows(f, X))

    def test_it_can_be_differentiated_and_mapped(self, jac):
        def norm(x):
            return (jac(f)(x) ** 2).sum()

        step = 1e-6 * np.eye(3)
        want = [(norm(X + e) - norm(X - e)) / 2e-6 for e in step]
        np.testing.assert_allclose(grad(norm)(X), want, rtol=1e-7)
        xs = np.stack([X, 2 * X])
        np.testing.assert_allclose(vmap(jac(f))(xs), [by_rows(f, x) for x in xs])
        np.testing.assert_allclose(
            vmap(grad(norm))(xs), [grad(norm)(x) for x in xs], rtol=1e-12
        )

    def test_it_runs_the_function_once(self, jac):
        calls = []
        jac(lambda x: calls.append(1) or x[:2])(X)
        assert len(calls) == 1

    def test_no_two_parts_share_memory(self, jac):
        for g in (lambda x, y: (x, x + y), lambda x, y: x + y, lambda x, y: (A, y[:2])):
            got = list(tree_leaves(jac(g, (0, 1))(X, X)))
            for i, a in enumerate(got):
                assert a.flags.writeable
                assert not any(np.shares_memory(a, b) for b in (*got[:i], X))


def test_complex_numbers_without_a_promise():
    z = X + 1j
    with pytest.raises(ArgumentError, match=r"jacrev.*holomorphic"):
        jacfwd(lambda z: z * z)(z)
    with pytest.raises(ArgumentError, match=r"jacfwd.*holomorphic"):
        jacrev(lambda z: z * z)(z)
    got = jacrev(lambda z: lantern.abs(z) ** 2)(z)
    np.testing.assert_allclose(got, np.diag(2 * z))
    got = jacfwd(lambda x: lantern.exp(1j * x))(X)
    np.testing.assert_allclose(got, np.diag(1j * np.exp(1j * X)))


def test_jacobian_says_its_mode_and_chooses_the_cheaper():
    def wide(x):
        return np.outer(x, x)

    assert jacobian(f).mode(X) == "forward"
    assert jacobian(wide).mode(X) == "forward"
    assert jacobian(np.sum).mode(X) == "reverse"
    assert jacobian(np.sin).mode(X) == "reverse"
    both = jacobian(lambda x, y: x * y, argnums=(0, 1))
    assert both.mode(X, X) == "reverse"
    aux = jacobian(lambda x: (x.sum(), wide(x)), has_aux=True)
    assert aux.mode(X) == "reverse"
    calls = []
    jacobian(lambda x: calls.append(type(x)) or wide(x))(X)
    assert len(calls) == 2, "once to count, once forward"


class TestHessians:
    def test_a_function_of_a_vector(self):
        def g(x):
            return (f(x) ** 2).sum() + x[0] * x[2]

        np.testing.assert_allclose(hessian(g)(X), by_rows(grad(g), X))
        np.testing.assert_allclose(hessian(g)(X), hessian(g)(X).T)
        np.testing.assert_allclose(diag_hessian(g)(X), np.diag(hessian(g)(X)))
        assert diag_hessian(g)(X).flags.writeable

    def test_the_facts(self):
        h = hessian(lambda x: x[0] * x[1] * x[2] * x[3])(np.arange(1.0, 5))
        want = [[0, 12, 8, 6], [12, 0, 4, 3], [8, 4, 0, 2], [6, 3, 2, 0]]
        np.testing.assert_array_equal(h, want)
        np.testing.assert_array_equal(h @ [5, 6, 7, 8], [176, 112, 80, 62])
        got = diag_hessian(lantern.atan2, (0, 1))(1.0, 2.0)
        np.testing.assert_allclose(got, (-0.16, 0.16))

    def test_structures(self):
        def g(p, t):
            return (p["u"] ** 2).sum() * p["v"] * t

        p = {"u": X, "v": 2.0}
        for_p, for_t = hessian(g, (0, 1))(p, 3.0)
        np.testing.assert_allclose(for_p["u"][0]["u"], 12 * np.eye(3))
        np.testing.assert_allclose(for_p["u"][0]["v"], 6 * X)
        np.testing.assert_allclose(for_p["v"][0]["u"], 6 * X)
        np.testing.assert_allclose(for_p["u"][1], 4 * X)
        np.testing.assert_allclose(for_t[0]["v"], (X**2).sum())
        assert for_p["v"][0]["v"] == 0
        assert for_t[1] == 0
        diagonal = diag_hessian(g, (0, 1))(p, 3.0)
        np.testing.assert_allclose(diagonal[0]["u"], [12] * 3)
        assert diagonal[0]["v"] == 0
        assert diagonal[1] == 0

    def test_numbers_and_aux(self):
        assert hessian(lambda x: x**3)(2.0) == 12.0
        assert hessian(lambda x: x**3)(Fraction(1, 3)) == 2
        assert diag_hessian(lambda x: x**3)(2.0) == 12.0
        h, aux = hessian(lambda x: ((x**3).sum(), 2 * x), has_aux=True)(X)
        np.testing.assert_allclose(h, np.diag(6 * X))
        np.testing.assert_array_equal(aux, 2 * X)

    def test_several_results(self):
        h = hessian(lambda x: {"cubes": x**3, "sum": x.sum()})(X)
        want = np.zeros((3, 3, 3))
        want[range(3), range(3), range(3)] = 6 * X
        np.testing.assert_allclose(h["cubes"], want)
        np.testing.assert_array_equal(h["sum"], np.zeros((3, 3)))

    def test_mapped_and_differentiated(self):
        def g(x):
            return (np.sin(x) * x).sum() * x[0]

        xs = np.stack([X, 2 * X])
        np.testing.assert_allclose(
            vmap(hessian(g))(xs), [by_rows(grad(g), x) for x in xs]
        )
        third = jacrev(hessian(g))(X)
        np.testing.assert_allclose(third, jacfwd(hessian(g))(X), atol=1e-14)
        np.testing.assert_allclose(third, third.transpose(2, 1, 0), atol=1e-14)

    def test_holomorphic(self):
        z = X + 1j * X[::-1]
        got = hessian(lambda z: (z**3).sum(), holomorphic=True)(z)
        np.testing.assert_allclose(got, np.diag(6 * z))


@pytest.mark.parametrize("D", [jacfwd, jacrev, jacobian])
def test_an_array_of_nothing_beside_the_only_number(D):
    def f(x, y):
        return np.sin(x) * 2.0 + np.sum(y)

    found = D(f, argnums=(0, 1))(np.array(0.3), np.zeros((0, 3)))
    assert [np.shape(g) for g in found] == [(), (0, 3)]
    assert found[0] == 2 * np.cos(0.3)
    twice = hessian(f, argnums=(0, 1))(np.array(0.3), np.zeros((0, 3)))
    shapes = [[np.shape(block) for block in row] for row in twice]
    assert shapes == [[(), (0, 3)], [(0, 3), (0, 3, 0, 3)]]

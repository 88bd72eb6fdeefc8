"""Arrays from nothing, from numbers and from tracked values."""

from functools import partial

import numpy as np
import pytest

import lantern
from lantern import grad, vjp
from lantern.errors import MissingRuleError
from lantern.testing import check_grads

same, close = np.testing.assert_array_equal, np.testing.assert_allclose
X = np.array([[1.0, 2.0], [3.0, 4.0]])

CONSTANT = [
    ("zeros", (3,), {}),
    ("zeros", ((2, 3),), {"dtype": np.float32}),
    ("ones", ((2,),), {"dtype": int}),
    ("eye", (3,), {}),
    ("eye", (2, 3, 1), {"dtype": np.float32}),
    ("identity", (2,), {}),
    ("tri", (3, 4, -1), {}),
    ("full", ((2, 2), 7.0), {}),
    ("full", (3, 1), {"dtype": float}),
    ("arange", (4,), {}),
    ("arange", (1.0, 3.0, 0.5), {}),
    ("arange", (1, 7, 2), {"dtype": np.float32}),
    ("linspace", (0.0, 1.0), {}),
    ("linspace", (0.0, np.ones(2), 4), {"axis": 1, "endpoint": False}),
    ("linspace", (0, 9, 4), {"dtype": int}),
    ("logspace", (0.0, 2.0, 5), {}),
    ("logspace", (0.0, 2.0, 5), {"base": 2.0}),
    ("logspace", (0.0, 2.0, 3), {"base": np.array([2.0, 10.0])}),
    ("geomspace", (1.0, 64.0, 4), {}),
    ("geomspace", (-1.0, -64.0, 4), {}),
    ("zeros_like", (X,), {"dtype": np.float32}),
    ("ones_like", ([1, 2],), {}),
    ("full_like", (X, 3.0), {}),
    ("asarray", ([[1, 2], [3, 4]],), {}),
    ("array", ([1, 2],), {"dtype": np.float32, "ndmin": 2}),
]


@pytest.mark.parametrize(("name", "args", "options"), CONSTANT)
def test_like_numpy(name, args, options):
    want = getattr(np, name)(*args, **options)
    got = getattr(lantern, name)(*args, **options)
    close(got, want, rtol=1e-15)
    assert got.dtype == want.dtype


def test_empty_arrays_have_the_shape():
    assert lantern.empty((2, 3)).shape == (2, 3)
    assert lantern.empty_like(X).shape == (2, 2)
    assert lantern.zeros((2,), device="cpu").shape == (2,)


def test_forms_of_tracked_values_are_plain():
    seen = []

    def f(x):
        forms = (lantern.zeros_like, lantern.ones_like, lantern.empty_like)
        seen.extend(form(x) for form in forms)
        return lantern.sum(x)

    grad(f)(X)
    grad(lambda x: seen.append(lantern.ones_like(x)) or x)(2.0)
    assert [type(x) for x in seen] == [np.ndarray] * 3 + [float]


class TestNestedLists:
    def test_values_and_derivatives(self):
        def f(x, y):
            return lantern.array([[x, 1.0], [y, x * y]])

        y, pullback = vjp(f, 2.0, 3.0)
        same(y, [[2.0, 1.0], [3.0, 6.0]])
        assert pullback(np.array([[1.0, 9.0], [10.0, 100.0]])) == (301.0, 210.0)
        check_grads(f, (2.0, 3.0), order=2)

    def test_of_arrays(self):
        def f(x, y):
            return lantern.array([[x, [1.0, 2.0]], [y * x, (y, y)]])

        x = np.array([1.0, 3.0])
        assert f(x, 2.0).shape == (2, 2, 2)
        check_grads(f, (x, 2.0), order=2)
        check_grads(lambda x: lantern.asarray([x, 2 * x]), (x,))

    def test_of_numbers_and_of_arrays_themselves(self):
        assert grad(lambda x: lantern.asarray(x) * 3)(2.0) == 3.0
        assert grad(lambda x: lantern.array(x, ndmin=2)[0, 0])(2.0) == 1.0
        same(grad(lambda x: lantern.sum(lantern.asarray(x)))(X), np.ones((2, 2)))
        y = vjp(lambda x: lantern.array([x, x], dtype=np.float32), 2.0)[0]
        assert y.dtype == np.float32

    def test_plain_arrays_are_copied_or_shared(self):
        assert np.shares_memory(lantern.asarray(X), X)
        assert not np.shares_memory(lantern.array(X), X)
        assert not np.shares_memory(lantern.asarray(X, copy=True), X)

    def test_ragged(self):
        with pytest.raises(ValueError, match="same shape"):
            grad(lambda x: lantern.array([[x, 1.0], [x]])[0, 0])(2.0)


class TestRanges:
    @pytest.mark.parametrize("num", [0, 1, 2, 5])
    @pytest.mark.parametrize("endpoint", [True, False])
    def test_linspace(self, num, endpoint):
        f = partial(lantern.linspace, num=num, endpoint=endpoint)
        y = vjp(f, 1.0, 4.0)[0]
        same(y, np.linspace(1.0, 4.0, num, endpoint))
        check_grads(f, (1.0, 4.0), order=2)
        check_grads(partial(f, axis=-1), (X, X[0] + 1))
        theirs = vjp(lambda a: np.linspace(a, 4.0, num, endpoint), 1.0 * X)[0]
        same(theirs, np.linspace(X, 4.0, num, endpoint))

    def test_linspace_with_its_step(self):
        def step(a, b):
            return lantern.linspace(a, b, 5, retstep=True)[1]

        assert vjp(step, 1.0, 3.0)[1](1.0) == (-0.25, 0.25)
        assert step(1.0, 3.0) == 0.5
        y = vjp(lambda a: lantern.linspace(a, 1.0, 3, dtype=np.float32), 0.0)[0]
        assert y.dtype == np.float32

    def test_others(self):
        check_grads(lambda a, b: lantern.logspace(a, b, 4), (0.1, 0.7), order=2)
        check_grads(lambda b: lantern.logspace(0.1, 0.7, 4, base=b), (2.0,), order=2)
        check_grads(lambda a, b: lantern.geomspace(a, b, 4), (0.5, 3.0), order=2)
        check_grads(lambda a, b: lantern.geomspace(a, b, 4), (-0.5, -3.0), order=2)
        close(vjp(lambda a: lantern.geomspace(a, 8.0, 4), 1.0)[0], [1, 2, 4, 8])
        check_grads(lambda a, h: lantern.arange(a, 3.0, h), (0.1, 0.4))
        same(
            vjp(lambda a: lantern.arange(a, 3.0, 0.5), 1.0)[0], np.arange(1.0, 3.0, 0.5)
        )
        same(vjp(lambda b: lantern.arange(b), 3.0)[0], np.arange(3.0))
        with pytest.raises(MissingRuleError, match="complex"):
            grad(lambda a: lantern.real(lantern.geomspace(a, 2j, 3)[1]))(1.0)

    def test_full(self):
        check_grads(lambda a: lantern.full((2, 3), a), (2.0,))
        check_grads(lambda a: lantern.full_like(X, a), (np.array([1.0, 2.0]),))
        y = vjp(lambda a: lantern.full_like(X.astype(np.float32), a), 2.0)[0]
        assert y.dtype == np.float32


def test_numpys_older_names_and_constants():
    assert lantern.grad(lambda x: lantern.arcsin(x) + lantern.power(x, 2.0))(0.0) == 1
    assert lantern.amax is lantern.max
    assert lantern.concatenate is lantern.concat
    assert lantern.newaxis is None
    assert lantern.pi == np.pi
    assert lantern.zeros(2, dtype=lantern.float32).dtype == np.float32
    with pytest.raises(AttributeError, match="no attribute 'arcsine'"):
        lantern.arcsine

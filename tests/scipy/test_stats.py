"""``lantern.scipy.stats``: SciPy's values, and their derivatives."""

import numpy as np
import pytest

from lantern import ArgumentError, MissingRuleError, grad
from lantern.scipy import stats
from lantern.testing import check_grads

pytest.importorskip("scipy", reason="SciPy computes most of this")
import scipy.stats

X = np.array([0.3, 0.7, 1.1, 1.6, 2.4])
P, S = X / 2.5, X - 1.2

# Each distribution: where, its parameters, what is outside its support.
CONTINUOUS = {
    "norm": (S, (), ()),
    "t": (S, (2.5,), ()),
    "gamma": (X, (1.7,), (-1.0, 0.0)),
    "chi2": (X, (3.0,), (-1.0, 0.0)),
    "beta": (P, (1.5, 2.5), (-0.5, 1.5)),
    "expon": (X, (), (-1.0,)),
    "laplace": (S, (), ()),
    "logistic": (S, (), ()),
    "cauchy": (S, (), ()),
    "uniform": (P, (), (-0.5, 1.5)),
}
METHODS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")


def both(name, method):
    return [getattr(getattr(m, name), method) for m in (stats, scipy.stats)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CONTINUOUS)
class TestContinuous:
    def test_values_and_derivatives(self, name, method):
        x, parameters, _ = CONTINUOUS[name]
        ours, theirs = both(name, method)
        loc, scale = np.array([[0.0], [0.2]]), np.array([[1.0], [1.3]])
        x = x * scale + loc
        expected = theirs(x, *parameters, loc=loc, scale=scale)
        named = dict(zip(getattr(stats, name).parameters, parameters, strict=True))
        by_name = ours(x, **named, loc=loc, scale=scale)
        for z in (ours(x, *parameters, loc, scale), by_name):
            np.testing.assert_allclose(z, expected, rtol=1e-10)
        free = parameters if "pdf" in method else ()

        def f(x, loc, scale, *free):
            return ours(x, *(free or parameters), loc, scale)

        check_grads(f, (x, loc, scale, *free), order=2, atol=1e-5, rtol=1e-5)

    def test_outside_the_support(self, name, method):
        _, parameters, outside = CONTINUOUS[name]
        ours, theirs = both(name, method)
        for x in outside:
            assert ours(x, *parameters) == pytest.approx(theirs(x, *parameters))
            assert x == 0 or grad(ours)(x, *parameters) == 0


@pytest.mark.parametrize("name", ["norm", "logistic", "cauchy", "laplace"])
def test_tails_keep_their_digits(name):
    for method in METHODS[2:]:
        ours, theirs = both(name, method)
        x = -30.0 if "cdf" in method else 30.0
        assert ours(x) == pytest.approx(theirs(x), rel=1e-10)


DISCRETE = {"poisson": 1.7, "bernoulli": 0.3}


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf"])
def test_discrete(name, method):
    k, p = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), DISCRETE[name]
    ours, theirs = both(name, method)
    np.testing.assert_allclose(ours(k, p), theirs(k, p), rtol=1e-10)
    np.testing.assert_allclose(ours(k + 1, p, loc=1), theirs(k + 1, p, loc=1), 1e-10)
    possible = k[1:2] if name == "bernoulli" else k[[1, 3, 4, 5]]
    check_grads(lambda p: ours(possible, p), (p,), order=2)
    assert ours([0.0, 1.0], p).shape == (2,)


def test_wrong_parameters():
    for call in (
        lambda: stats.norm.pdf(1.0, 0.0, 1.0, 2.0),
        lambda: stats.norm.pdf(1.0, 0.0, loc=1.0),
        lambda: stats.norm.pdf(1.0, mean=1.0),
        lambda: stats.gamma.pdf(1.0),
    ):
        with pytest.raises(ArgumentError, match="Name the parameters"):
            call()


MEAN = np.array([0.2, -0.1, 0.3])
COV = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
POINTS = np.array([[0.1, 0.5, -0.4], [1.0, 0.0, 0.3]])


def symmetric(f):
    """f of the symmetric part of its last argument."""
    return lambda *args: f(*args[:-1], (args[-1] + args[-1].T) / 2)


class TestMultivariateNormal:
    @pytest.mark.parametrize("method", ["pdf", "logpdf"])
    @pytest.mark.parametrize("x", [POINTS, POINTS[0]], ids=["points", "point"])
    def test_densities(self, method, x):
        ours, theirs = both("multivariate_normal", method)
        np.testing.assert_allclose(ours(x, MEAN, COV), theirs(x, MEAN, COV), rtol=1e-12)
        check_grads(symmetric(ours), (x, MEAN, COV), order=2)

    def test_entropy(self):
        ours, theirs = both("multivariate_normal", "entropy")
        assert ours(MEAN, COV) == pytest.approx(theirs(MEAN, COV))
        check_grads(symmetric(lambda cov: ours(MEAN, cov)), (COV,), order=2)

    @pytest.mark.parametrize("cov", [2.0, np.array([1.0, 2.0, 0.5])])
    def test_a_diagonal_stands_for_the_matrix(self, cov):
        ours, theirs = both("multivariate_normal", "logpdf")
        np.testing.assert_allclose(ours(POINTS, MEAN, cov), theirs(POINTS, MEAN, cov))
        check_grads(lambda cov: ours(POINTS, MEAN, cov), (cov,))

    def test_a_singular_covariance(self):
        cov, inside = np.diag([1.0, 2.0, 0.0]), MEAN + np.array([0.3, -0.5, 0.0])
        ours, theirs = both("multivariate_normal", "logpdf")
        for x in (inside, POINTS[0]):
            expected = theirs(x, MEAN, cov, allow_singular=True)
            assert ours(x, MEAN, cov, allow_singular=True) == pytest.approx(expected)

        def f(d):
            return ours(inside + d, MEAN + 2 * d, cov, allow_singular=True)

        gradient = grad(f)(np.zeros(3))
        np.testing.assert_allclose(gradient, [0.3, -0.25, 0.0])
        with pytest.raises(MissingRuleError, match="identity"):
            grad(lambda c: ours(inside, MEAN, c, allow_singular=True))(cov)
        full = (POINTS, MEAN, COV)
        np.testing.assert_allclose(ours(*full, allow_singular=True), theirs(*full))
        with pytest.raises(np.linalg.LinAlgError):
            ours(inside, MEAN, cov)


class TestDirichlet:
    ALPHA, POINT = np.array([1.5, 2.0, 0.7]), np.array([0.2, 0.5, 0.3])

    @pytest.mark.parametrize("method", ["pdf", "logpdf"])
    def test_densities(self, method):
        ours, theirs = both("dirichlet", method)
        for x in (self.POINT, self.POINT[:2], np.stack([self.POINT] * 2, axis=1)):
            expected = theirs(x, self.ALPHA)
            np.testing.assert_allclose(ours(x, self.ALPHA), expected, rtol=1e-12)
        args = (self.POINT[:2], self.ALPHA)
        check_grads(ours, args, order=2, atol=1e-6, rtol=1e-6)

    @pytest.mark.parametrize(
        "x", [[0.5, 0.5, 0.5], [0.2, 0.2, 0.3, 0.3], [1.5, -0.5, 0]]
    )
    def test_what_are_no_probabilities(self, x):
        with pytest.raises(ArgumentError, match="sum 1"):
            stats.dirichlet.logpdf(np.array(x), self.ALPHA)

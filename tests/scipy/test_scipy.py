"""``lantern.scipy``: SciPy's values, and their derivatives."""

import numpy as np
import pytest

import lantern
from lantern import ArgumentError, MissingRuleError, ShapeError, grad
from lantern.scipy import integrate, linalg, signal, special
from lantern.testing import check_grads

pytest.importorskip("scipy", reason="SciPy computes most of this")
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special

X = np.array([0.3, 0.7, 1.1, 1.6, 2.4])
P = X / 2.5
S = X - 1.2

SPECIAL = {
    "beta": (X, X[::-1]),
    "betainc": (1.5, 2.5, P),
    "betaln": (X, X[::-1]),
    "digamma": (X,),
    "entr": (X,),
    "erf": (S,),
    "erfc": (S,),
    "erfcinv": (X * 0.8,),
    "erfinv": (P - 0.5,),
    "expi": (X,),
    "expit": (S,),
    "gamma": (X,),
    "gammainc": (X, X[::-1]),
    "gammaincc": (X, X[::-1]),
    "gammaincinv": (X, P),
    "gammaln": (X,),
    "gammasgn": (S,),
    "i0": (S,),
    "i0e": (S,),
    "i1": (S,),
    "i1e": (S,),
    "iv": (1.5, X),
    "ive": (2.5, X),
    "j0": (S,),
    "j1": (S,),
    "jn": (2, S),
    "jv": (0.5, X),
    "k0": (X,),
    "k0e": (X,),
    "k1": (X,),
    "k1e": (X,),
    "kl_div": (X, X[::-1]),
    "kv": (1.5, X),
    "kve": (-1, X),
    "log_expit": (S,),
    "log_ndtr": (S,),
    "log_softmax": (S,),
    "logit": (P,),
    "logsumexp": (S,),
    "multigammaln": (X + 2, 3),
    "ndtr": (S,),
    "ndtri": (P,),
    "polygamma": (1, X),
    "psi": (X,),
    "rel_entr": (X, X[::-1]),
    "rgamma": (X,),
    "sinc": (S,),
    "softmax": (S,),
    "stdtr": (3.0, S),
    "xlog1py": (S, X),
    "xlogy": (S, X),
    "y0": (X,),
    "y1": (X,),
    "yn": (2, X),
    "yv": (0.5, X),
}
UFUNCS = [n for n in SPECIAL if isinstance(getattr(scipy.special, n, 0), np.ufunc)]


def scipys(name):
    return np.sinc if name == "sinc" else getattr(scipy.special, name)


def of_arrays(f, args):
    """A function of those of its arguments that are arrays, and these."""
    places = [i for i, x in enumerate(args) if isinstance(x, np.ndarray)]

    def g(*arrays):
        full = list(args)
        for i, x in zip(places, arrays, strict=True):
            full[i] = x
        return f(*full)

    return g, tuple(args[i] for i in places)


class TestSpecial:
    def test_every_name_is_tried(self):
        assert sorted(SPECIAL) == sorted(special.__all__)

    @pytest.mark.parametrize("name", SPECIAL)
    def test_values_and_derivatives(self, name):
        f, args = getattr(special, name), SPECIAL[name]
        np.testing.assert_allclose(f(*args), scipys(name)(*args), rtol=1e-13)
        check_grads(*of_arrays(f, args), order=2, atol=1e-6, rtol=1e-6)

    @pytest.mark.parametrize("name", SPECIAL)
    def test_numbers(self, name):
        if "soft" in name or "sum" in name:
            pytest.skip("functions of axes")
        args = [x[1].item() if isinstance(x, np.ndarray) else x for x in SPECIAL[name]]
        f = getattr(special, name)
        assert f(*args) == pytest.approx(scipys(name)(*args), rel=1e-12)
        gradient = grad(f, len(args) - 1 if name != "multigammaln" else 0)(*args)
        assert type(gradient) is float

    @pytest.mark.parametrize("name", UFUNCS)
    def test_scipys_own_functions_find_these(self, name):
        f, args = of_arrays(scipys(name), SPECIAL[name])
        ours, _ = of_arrays(getattr(special, name), SPECIAL[name])
        if name == "gammasgn":
            assert (lantern.jvp(f, args, args)[1] == 0).all()
            return
        _, pullback = lantern.vjp(f, *args)
        _, expected = lantern.vjp(ours, *args)
        for a, b in zip(pullback(S), expected(S), strict=True):
            np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("name", ["jv", "iv", "yv", "kve", "betainc", "stdtr"])
    def test_tracked_parameters_are_refused(self, name):
        args = list(SPECIAL[name])
        for f in (getattr(special, name), scipys(name)):
            with pytest.raises(MissingRuleError, match="constant"):
                grad(lambda v, f=f: lantern.sum(f(v, *args[1:])))(1.5)

    def test_bessel_functions_of_every_order(self):
        assert special.iv(-0.5, 1.0) == pytest.approx(scipy.special.iv(-0.5, 1.0))
        assert special.iv(-2, 1.0) == pytest.approx(scipy.special.iv(2, 1.0))
        check_grads(lambda x: special.iv(0.5, x), (0.7,), order=2)

    def test_complex_error_functions(self):
        z = 0.4 + 0.3j
        for f, sign in ((special.erf, 1), (special.erfc, -1)):
            slope = sign * 2 / np.sqrt(np.pi) * np.exp(-(z**2))
            assert grad(f, holomorphic=True)(z) == pytest.approx(slope)

    def test_a_number_beside_an_array(self):
        check_grads(lambda x: special.betaln(0.5, x), (X,), order=2)
        check_grads(lambda a: special.betaln(a, X), (0.5,), order=2)

    def test_edges(self):
        assert special.entr(0.0) == 0
        assert special.rel_entr(0.0, 0.0) == special.rel_entr(0.0, 1.0) == 0
        assert special.kl_div(-1.0, 1.0) == np.inf
        assert grad(special.xlog1py, 1)(0.0, -1.0) == 0
        with pytest.raises(ArgumentError, match="dimension"):
            special.multigammaln(2.0, 0)


COV = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
POINTS = np.array([[0.1, 0.5, -0.4], [1.0, 0.0, 0.3]])


class TestLinalg:
    def test_roots_of_indefinite_matrices_are_complex(self):
        a = np.array([[1.0, 2.0], [2.0, -1.0]])
        np.testing.assert_allclose(linalg.sqrtm(a), scipy.linalg.sqrtm(a))
        check_grads(linalg.sqrtm, (a,), order=2)

    @pytest.mark.parametrize("lower", [False, True])
    def test_factors(self, lower):
        a, b = COV @ COV, POINTS.T
        factor = linalg.cholesky(a, lower)
        np.testing.assert_allclose(factor, scipy.linalg.cholesky(a, lower), rtol=1e-12)

        def f(a, b):
            return linalg.cho_solve(linalg.cho_factor(a, lower), b)

        np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b))
        check_grads(lambda a, b: f((a + a.T) / 2, b), (a, b), order=2)

    def test_complex_sylvester(self):
        a, b, q = COV + 1j * np.eye(3), 1j * COV[:2, :2], POINTS.T + 0j
        x = linalg.solve_sylvester(a, b, q)
        np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-14)
        check_grads(linalg.solve_sylvester, (a, b, q))

    @pytest.mark.parametrize("l_and_u", [(1, 1), (2, 0), (0, 1), (1, 2)])
    def test_banded(self, l_and_u):
        rng = np.random.default_rng(0)
        ab, b = rng.normal(size=(sum(l_and_u) + 1, 5)), rng.normal(size=(5, 2))
        ab[l_and_u[1]] += 6
        for c in (b, b[:, 0]):
            z = linalg.solve_banded(l_and_u, ab, c)
            np.testing.assert_allclose(z, scipy.linalg.solve_banded(l_and_u, ab, c))
        check_grads(lambda ab, b: linalg.solve_banded(l_and_u, ab, b), (ab, b), order=2)

    def test_banded_refuses_other_shapes(self):
        with pytest.raises(ShapeError, match="diagonals"):
            linalg.solve_banded((1, 1), np.ones((2, 5)), np.ones(5))


SHAPES = [
    ((5,), (3,)),
    ((3,), (5,)),
    ((4, 3), (2, 2)),
    ((2, 3, 4), (1, 2, 2)),
    ((4, 3), (2, 5)),
]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name, shapes, mode):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in shapes)
    ours, theirs = getattr(signal, name), getattr(scipy.signal, name)
    if mode == "valid" and shapes == SHAPES[-1]:
        with pytest.raises(ShapeError, match="neither fits"):
            ours(x, y, mode)
        return
    for a, b in ((x.real, y.real), (x, y)):
        np.testing.assert_allclose(ours(a, b, mode), theirs(a, b, mode), atol=1e-12)
        check_grads(lambda a, b: ours(a, b, mode), (a, b), order=2)


def test_convolutions_refuse():
    with pytest.raises(ShapeError, match="axes"):
        signal.convolve(np.ones(2), np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="no mode"):
        signal.convolve(np.ones(2), np.ones(2), "some")


def swing(y, t, damping):
    return lantern.stack([y[1], -lantern.sin(y[0]) - damping * y[1] + t])


class TestOdeint:
    TIMES = np.array([0.0, 0.3, 1.0, 2.5])

    @pytest.mark.parametrize("times", [TIMES, TIMES[::-1], TIMES[[0, 0, 1, 2]]])
    def test_values_and_derivatives(self, times):
        y, exact = np.array([1.0, 0.5]), {"rtol": 1e-10, "atol": 1e-10}
        expected = scipy.integrate.odeint(swing, y, times, (0.2,), **exact)
        z = integrate.odeint(swing, y, times, (0.2,))
        np.testing.assert_allclose(z, expected, rtol=1e-7, atol=1e-7)

        def f(y, times, damping):
            return integrate.odeint(swing, y, times, (damping,))

        check_grads(f, (y, times, 0.2), order=2, atol=1e-5, rtol=1e-5)

    def test_numbers_and_closures(self):
        def f(rate):
            return integrate.odeint(lambda y, t: -rate * y, 2.0, np.array([0.0, 1.0]))[
                1
            ]

        assert f(0.5) == pytest.approx(2 * np.exp(-0.5), rel=1e-8)
        assert grad(f)(0.5) == pytest.approx(-2 * np.exp(-0.5), rel=1e-7)
        assert grad(grad(f))(0.5) == pytest.approx(2 * np.exp(-0.5), rel=1e-6)

    def test_a_blow_up_is_an_error(self):
        with pytest.raises(integrate.IntegrationError, match="mxstep"):
            integrate.odeint(lambda y, t: y * y, 1.0, np.array([0.0, 2.0]), mxstep=200)
        with pytest.raises(ArgumentError, match="one axis"):
            integrate.odeint(swing, np.zeros(2), 1.0, (0.1,))

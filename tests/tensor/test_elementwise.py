"""Elementwise operations beside the shared ones: values, derivatives and edges."""

import math
import sys

import mpmath
import numpy as np
import pytest
import scipy.special

import lantern
from lantern import grad, jvp, torch, vjp
from lantern.errors import MissingRuleError
from lantern.op import registry
from lantern.testing import check_grads
from tests.cases.elementwise import ELEMENTWISE

INF, NAN = math.inf, math.nan
same, close = np.testing.assert_array_equal, np.testing.assert_allclose


def drawn(name, shape=None, seed=0):
    rng = np.random.default_rng(seed)
    draws = [rng.uniform(*interval, shape) for interval in ELEMENTWISE[name]]
    return tuple(draws if shape is not None else map(float, draws))


def gradients(f, *x):
    """The gradients of sum(f) with respect to each argument."""
    y, pullback = vjp(f, *(np.asarray(a, dtype=float) for a in x))
    return pullback(np.ones_like(y))


@pytest.mark.parametrize("name", ELEMENTWISE)
class TestNumbers:
    def test_derivatives_of_both_orders_in_every_mix_of_modes(self, name):
        check_grads(registry[name].function, drawn(name), order=2, atol=1e-6)

    def test_numbers_and_arrays_agree(self, name):
        f, x = registry[name].function, drawn(name)
        y, pullback = vjp(f, *x)
        z, array_pullback = vjp(f, *(np.array([a]) for a in x))
        assert type(y) is float
        assert y == pytest.approx(z[0], rel=1e-13)
        for got, want in zip(pullback(1.0), array_pullback(np.ones(1)), strict=True):
            assert type(got) is float
            assert got == pytest.approx(want[0], rel=1e-12)


BROADCASTS = [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", [n for n, i in ELEMENTWISE.items() if len(i) == 2])
def test_broadcasting(name, shapes):
    rng = np.random.default_rng(0)
    pairs = zip(ELEMENTWISE[name], shapes, strict=True)
    x = tuple(np.asarray(rng.uniform(*interval, shape)) for interval, shape in pairs)
    check_grads(registry[name].function, x, order=2, atol=1e-6, rtol=1e-6)


X = np.array([[-2.4, -0.3, 0.2], [0.7, 1.2, 2.5]])
Y = np.array([0.5, -1.7, 3.1])
P = np.array([0.01, 0.3, 0.77, 0.999])
Z = np.array([1 + 2j, -0.5 + 0.1j, 2 - 1j])
WITH_NAN = np.array([1.0, NAN, INF, -INF])
# name, arguments, and how many of them are differentiated
COMPARED = [
    ("exp2", (X,)),
    ("exp2", (Z,)),
    ("reciprocal", (X,)),
    ("reciprocal", (Z,)),
    ("logaddexp", (X, Y)),
    ("logaddexp2", (X, Y)),
    ("deg2rad", (X,)),
    ("rad2deg", (X,)),
    ("degrees", (X,)),
    ("radians", (X,)),
    ("fmod", (X, Y)),
    ("ldexp", (X, np.array([1, -2, 3]))),
    ("heaviside", (np.array([-1.0, 0.0, 2.0]), Y)),
    ("copysign", (X, Y)),
    ("fmax", (X, Y)),
    ("fmin", (X, Y)),
    ("fabs", (X,)),
    ("float_power", (np.abs(X), Y)),
    ("nan_to_num", (WITH_NAN,)),
    ("nan_to_num", (WITH_NAN, True, 7.0, 8.0)),
    ("nan_to_num", (Z,)),
    ("clip", (X, -1.0, 1.0)),
    ("clip", (X, None, Y)),
    ("angle", (Z,)),
    ("angle", (Z, True)),
    ("angle", (X,)),
    ("real_if_close", (Z,)),
    ("real_if_close", (Z.real + 0j,)),
    ("sinc", (X,)),
    ("sinc", (Z,)),
    ("i0", (X,)),
]
SPECIAL = [
    ("expit", (X,)),
    ("logit", (P,)),
    ("log_expit", (X,)),
    ("xlogy", (X, np.abs(Y))),
    ("erfinv", (2 * P - 1,)),
    ("gammaln", (np.abs(X),)),
    ("betaln", (np.abs(X), np.abs(Y))),
    ("gammainc", (np.abs(X), np.abs(Y))),
    ("gammaincc", (np.abs(X), np.abs(Y))),
    ("gammaincinv", (P, P)),
    ("i1", (X,)),
    ("ndtr", (X,)),
]


@pytest.mark.parametrize(("name", "args"), COMPARED, ids=str)
class TestLikeNumPy:
    def test_value(self, name, args):
        want = getattr(np, name)(*args)
        got = getattr(lantern, name)(*args)
        close(got, want, rtol=1e-15, atol=1e-300)
        assert np.asarray(got).dtype == want.dtype
        seen = []
        vjp(lambda x: seen.append(getattr(lantern, name)(x, *args[1:])) or x, args[0])
        same(lantern.core.value.base(seen[0]), got)

    def test_numpy_hands_it_over(self, name, args):
        ours = lambda x: getattr(lantern, name)(x, *args[1:])  # noqa: E731
        theirs = lambda x: getattr(np, name)(x, *args[1:])  # noqa: E731
        y, pullback = vjp(ours, args[0])
        z, np_pullback = vjp(theirs, args[0])
        same(y, z)
        same(pullback(np.ones_like(y))[0], np_pullback(np.ones_like(z))[0])

    def test_derivatives(self, name, args):
        if args[0] is WITH_NAN or name in ("heaviside", "real_if_close"):
            return  # their edges are tested below
        places = [i for i, a in enumerate(args) if hasattr(a, "dtype")]
        places = [i for i in places if args[i].dtype.kind in "fc"]

        def f(*x):
            x = dict(zip(places, x, strict=True))
            return getattr(lantern, name)(*(x.get(i, a) for i, a in enumerate(args)))

        check_grads(f, [args[i] for i in places], order=2, atol=1e-5)


@pytest.mark.parametrize(("name", "args"), SPECIAL, ids=str)
def test_like_scipy(name, args):
    want = getattr(scipy.special, name)(*args)
    f = getattr(lantern, name)
    close(f(*args), want, rtol=2e-15)
    close(f(*map(float, [a.ravel()[0] for a in args])), want.flat[0])
    y, pullback = vjp(f, *args)
    z, scipy_pullback = vjp(getattr(scipy.special, name), *args)
    same(y, z)
    for a, b in zip(
        pullback(np.ones_like(y)), scipy_pullback(np.ones_like(y)), strict=True
    ):
        same(a, b)


CONSTANT = [
    *((name, (X, Y)) for name in (
        "equal not_equal less less_equal greater greater_equal logical_and logical_or "
        "logical_xor isclose allclose array_equal array_equiv isin"
    ).split()),
    *((name, (WITH_NAN,)) for name in (
        "logical_not isfinite isinf isnan isneginf isposinf isreal iscomplex isrealobj "
        "iscomplexobj signbit spacing rint trunc fix all any count_nonzero nanargmax "
        "nanargmin argmax argmin"
    ).split()),
    ("round", (X, 1)),
    ("around", (X,)),
    ("argmax", (X, 1)),
    ("all", (X, 0)),
    ("digitize", (X, np.array([0.0, 1.0]))),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:numpy.fix:DeprecationWarning")  # since NumPy 2.5
@pytest.mark.parametrize(("name", "args"), CONSTANT, ids=str)
def test_functions_with_derivative_zero_give_plain_values(name, args):
    def f(x):
        seen.append(getattr(lantern, name)(x, *args[1:]))
        return lantern.sum(x)

    seen = []
    assert np.all(grad(f)(args[0]) == 1)
    assert not isinstance(seen[0], lantern.core.value.Value)
    same(seen[0], getattr(np, name)(*args))


class TestEdges:
    def test_logaddexp_of_infinities(self):
        x, y = (
            np.array([-INF, INF, -INF, INF, 1.0]),
            np.array([-INF, INF, 2.0, -INF, 1.0]),
        )
        for f in (lantern.logaddexp, lantern.logaddexp2):
            x_bar, y_bar = gradients(f, x, y)
            same(x_bar, [0.0, 0.5, 0.0, 1.0, 0.5])
            same(y_bar, [0.0, 0.5, 1.0, 0.0, 0.5])
            for a, b in zip(x, y, strict=True):
                partials = vjp(f, float(a), float(b))[1](1.0)
                assert partials in [(p, q) for p, q in zip(x_bar, y_bar, strict=True)]

    def test_second_derivative_of_logaddexp_at_a_tie(self):
        df = grad(lantern.logaddexp)
        assert grad(df)(1.0, 1.0) == 0.25

    def test_xlogy_at_zero(self):
        x_bar, y_bar = gradients(lantern.xlogy, [0.0, 0.0, 2.0], [0.0, 3.0, 0.0])
        same(x_bar, [-INF, math.log(3.0), -INF])
        same(y_bar, [0.0, 0.0, INF])
        mixed = grad(lambda x: grad(lantern.xlogy, 1)(x, 3.0))
        assert mixed(0.0) == pytest.approx(1 / 3)
        assert lantern.xlogy(0.0, 0.0) == 0.0
        assert vjp(lantern.xlogy, 0.0, 0.0)[1](1.0) == (-INF, 0.0)

    def test_sinc_at_and_near_zero(self):
        def derivative(f, n):
            return derivative(grad(f), n - 1) if n else f

        for n in range(6):
            exact = math.pi**n * (-1) ** (n // 2) / (n + 1) * (n % 2 == 0)
            assert derivative(lantern.sinc, n)(0.0) == pytest.approx(exact, abs=1e-14)
        with mpmath.workdps(60):
            for x in (1e-8, 1e-3, 0.1, 0.9, 1.3, 2.5, -4.0, 7.7):
                for n in (1, 2, 3):
                    exact = mpmath.diff(mpmath.sincpi, mpmath.mpf(x), n)
                    got = derivative(lantern.sinc, n)(x)
                    assert got == pytest.approx(float(exact), rel=1e-12, abs=1e-14)

    def test_logit_and_erfinv_at_their_bounds(self):
        same(gradients(lantern.logit, [0.0, 1.0])[0], [INF, INF])
        same(gradients(lantern.erfinv, [-1.0, 1.0])[0], [INF] * 2)
        assert lantern.logit(0.0) == -INF
        assert lantern.erfinv(-1.0) == -INF
        assert grad(lantern.logit)(0.5) == 4.0

    def test_log_sigmoid_far_out(self):
        same(lantern.log_sigmoid(np.array([-1e3, 1e3])), [-1e3, 0])
        same(gradients(lantern.log_sigmoid, [-1e3, 1e3])[0], [1, 0])

    def test_nan_to_num_cuts_the_derivative_of_what_it_replaces(self):
        def f(x):
            return lantern.nan_to_num(lantern.log(x) * 1.0)

        with np.errstate(all="ignore"):
            same(gradients(f, [-1.0, 0.0, 2.0])[0], [0, 0, 0.5])
        z = np.array([complex(NAN, 1.0), 2 + 3j])
        z_bar = grad(
            lambda z: lantern.sum(lantern.real((1 - 2j) * lantern.nan_to_num(z)))
        )(z)
        same(z_bar, [2j, 1 + 2j])
        assert grad(lantern.nan_to_num)(NAN) == 0.0
        assert grad(lantern.nan_to_num)(2.0) == 1.0

    def test_fmax_and_fmin_take_the_number_beside_a_nan(self):
        for f in (lantern.fmax, lantern.fmin):
            x_bar, y_bar = gradients(f, [1.0, NAN, 2.0], [NAN, 1.0, 2.0])
            same(x_bar, [1.0, 0.0, 0.5])
            same(y_bar, [0.0, 1.0, 0.5])

    def test_copysign_and_heaviside_at_zero(self):
        same(
            gradients(lantern.copysign, [0.0, 2.0, -2.0], [1.0, -1.0, -0.0])[0],
            [0, -1, 1],
        )
        x_bar, y_bar = gradients(lantern.heaviside, [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5])
        same(x_bar, [0, 0, 0])
        same(y_bar, [0, 1, 0])
        assert lantern.heaviside(0.0, 0.25) == 0.25
        assert grad(lantern.heaviside, 1)(0.0, 0.25) == 1.0

    def test_clip_under_all_its_names(self):
        x = np.array([-2.0, 0.5, 1.0, 3.0])
        for f in (
            lambda x: lantern.clip(x, 0.0, 1.0),
            lambda x: lantern.clip(x, a_min=0.0, a_max=1.0),
            lambda x: lantern.clip(x, min=0.0, max=1.0),
            lambda x: np.clip(x, 0.0, 1.0),
            lambda x: np.clip(x, a_min=0.0, a_max=1.0),
            lambda x: x.clip(0.0, 1.0),
        ):
            same(gradients(f, x)[0], [0, 1, 1, 0])
        with pytest.raises(MissingRuleError, match="out="):
            lantern.clip(x, 0.0, 1.0, x)

    def test_fmod_counts_whole_quotients(self):
        y_bar = gradients(lantern.fmod, [7.0, -7.0, 0.3], [2.0, 2.0, 0.1])[1]
        same(y_bar, [-3.0, 3.0, -2.0])

    def test_modf_and_divmod(self):
        assert lantern.modf(-2.5) == (-0.5, -2.0)
        for part, want in zip(lantern.modf(X), np.modf(X), strict=True):
            same(part, want)
        assert np.all(gradients(lambda x: lantern.modf(x)[0], X)[0] == 1)
        q, r = lantern.divmod(X, 2.0)
        same(q, X // 2.0)
        same(r, X % 2.0)

    def test_float32_and_numbers_keep_their_type(self):
        x = np.array([0.25, 0.5], dtype=np.float32)
        for name in (
            "sinc i0 logit erfinv exp2 logaddexp xlogy betaln gammainc copysign fmax "
            "heaviside nan_to_num ndtr log_sigmoid deg2rad clip"
        ).split():
            f = getattr(lantern, name)
            args = (x,) * (2 if name in ("logaddexp", "xlogy", "betaln", "gammainc",
                           "copysign", "fmax", "heaviside") else 1)  # fmt: skip
            assert f(*args).dtype == np.float32, name
            assert type(f(*map(float, [a[0] for a in args]))) is float, name
        assert lantern.float_power(x, 2).dtype == np.float64

    def test_angle_of_numbers(self):
        assert lantern.angle(1j) == math.pi / 2
        assert grad(lambda t: lantern.angle(lantern.exp(t * 1j)))(0.3) == pytest.approx(
            1
        )


class TestGammaDistribution:
    def test_slope_to_the_last_digits(self):
        """How a quantile moves with the shape, against 40 digits."""
        with mpmath.workdps(40):
            for a in (0.05, 0.7, 1.0, 3.3, 40.0, 900.0):
                for p in (1e-6, 0.01, 0.3, 0.6, 0.99, 1 - 1e-9):
                    x = float(scipy.special.gammaincinv(a, p))
                    if x < 1e-250:
                        continue
                    up = float(mpmath.loggamma(a)) + x - (a - 1) * math.log(x)
                    slope = -mpmath.diff(lambda b, x=x: _lower(b, x), a)
                    if p > 0.5:
                        slope = mpmath.diff(lambda b, x=x: _upper(b, x), a)
                    slope *= mpmath.exp(
                        mpmath.loggamma(a) + x - (a - 1) * mpmath.log(x)
                    )
                    assert math.isfinite(up)
                    got = lantern.gamma_slope(a, x)
                    assert got == pytest.approx(float(slope), rel=2e-12), (a, p)

    def test_partials_of_gammainc_at_zero(self):
        by_a, by_x = gradients(lantern.gammainc, [0.5, 1.0, 2.0], [0.0, 0.0, 0.0])
        same(by_a, [0, 0, 0])
        same(by_x, [INF, 1, 0])

    def test_inverse(self):
        a, x = np.array([0.3, 2.0, 50.0]), np.array([0.1, 3.0, 45.0])
        back = lantern.gammaincinv(a, lantern.gammainc(a, x))
        close(back, x, rtol=1e-12)
        f = lambda a, x: lantern.gammaincinv(a, lantern.gammainc(a, x))  # noqa: E731
        partials = vjp(f, a, x)[1](np.ones(3))
        close(partials[0], 0, atol=1e-9)
        close(partials[1], 1, rtol=1e-9)

    def test_many_at_once_take_blocks(self, monkeypatch):
        a, x = np.linspace(0.5, 9.0, 50), np.linspace(9.0, 0.5, 50)
        whole = lantern.gamma_slope(a, x)
        module = sys.modules[lantern.gamma_slope.__module__]
        monkeypatch.setattr(module, "_BLOCK", 500)
        close(lantern.gamma_slope(a, x), whole, rtol=1e-14)


def _lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def _upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def test_jvp_of_several_at_once():
    def f(x, y):
        return lantern.logaddexp(x, y) * lantern.sinc(x) + lantern.xlogy(y, x)

    x, y = np.array([0.5, 1.5]), np.array([2.0, 0.1])
    check_grads(f, (x, y), order=2, atol=1e-6)
    assert jvp(f, (0.5, 2.0), (1.0, 0.0))[1] == pytest.approx(
        jvp(f, (x, y), (np.ones(2), np.zeros(2)))[1][0]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [3, 3.0])
def test_cubes_are_products_to_the_last_bit(dtype, exponent):
    x = np.linspace(-3, 3, 200).astype(dtype)
    same(lantern.pow(x, exponent), x * x * x)
    z, pullback = vjp(lambda x: x**exponent, x)
    same(z, x * x * x)
    assert z.dtype == dtype
    close(pullback(np.ones_like(x))[0], 3 * x * x, rtol=1e-6)
    same((torch.tensor(x) ** exponent).numpy(), x * x * x)


@pytest.mark.parametrize("exponent", [2.5, -3, 9, 4.0, np.float64(3)])
def test_other_powers_are_numpy_s(exponent):
    x = np.linspace(0.1, 3, 50)
    close(lantern.pow(x, exponent), x**exponent, rtol=1e-15)
    assert lantern.pow(np.array([2]), 3.0).dtype == float

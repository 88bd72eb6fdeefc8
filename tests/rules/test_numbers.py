"""Every kind of number: exact, decimal, complex, of NumPy, of the user's own."""

import decimal
import math
import numbers
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp
from lantern.testing import check_grads

DRIVERS = ["in place", "switching"]


def forward(f):
    return lambda x: jvp(f, (x,), (x * 0 + 1,))[1]


def polynomial(x):
    return x**2 + 3 * x + 1


def rational(x):
    return (x**3 - 2 / x) / (1 + x * x) - x**-2


class TestExactNumbers:
    @pytest.mark.parametrize("driver", DRIVERS)
    def test_a_fraction_stays_exact(self, driver):
        third = Fraction(1, 3)
        gradient = grad(polynomial, driver=driver)(third)
        assert (gradient, type(gradient)) == (Fraction(11, 3), Fraction)
        assert jvp(polynomial, (third,), (third,)) == (Fraction(19, 9), Fraction(11, 9))
        assert grad(grad(polynomial))(third) == 2
        assert value_and_grad(polynomial)(third) == (Fraction(19, 9), Fraction(11, 3))

    @pytest.mark.parametrize("D", [grad, forward])
    def test_division_and_powers_of_fractions_stay_exact(self, D):
        x = Fraction(2, 3)
        u, v = x**3 - 2 / x, 1 + x * x
        du, dv = 3 * x**2 + 2 / x**2, 2 * x
        expected = (du * v - u * dv) / v**2 + 2 * x**-3
        assert D(rational)(x) == expected
        assert type(D(rational)(x)) is Fraction

    @pytest.mark.parametrize("digits", [10, 50])
    @pytest.mark.parametrize("D", [grad, forward])
    def test_decimals_follow_the_precision_of_their_context(self, D, digits):
        with decimal.localcontext(prec=digits) as context:
            x = Decimal(7) / 3
            found = D(lambda x: lantern.exp(x) * lantern.sqrt(x) + polynomial(x))(x)
            step = x.exp() * x.sqrt() + x.exp() / (2 * x.sqrt()) + 2 * x + 3
            assert abs(found - step) <= 8 * step.scaleb(-digits)
            assert type(found) is Decimal
            assert not context.flags[decimal.InvalidOperation]

    @pytest.mark.parametrize("digits", [30, 60])
    @pytest.mark.parametrize("D", [grad, forward])
    def test_mpmath_numbers_keep_their_digits(self, D, digits):
        with mpmath.workdps(digits):
            x = mpmath.mpf(1) / 7
            found = D(lambda x: lantern.sin(x) * lantern.gamma(x))(x)
            exact = mpmath.gamma(x) * (mpmath.cos(x) + mpmath.sin(x) * mpmath.psi(0, x))
            assert abs(found / exact - 1) < mpmath.mpf(10) ** (3 - digits)
            assert isinstance(found, mpmath.mpf)

    def test_a_complex_mpmath_number(self):
        z = mpmath.mpc(1, 2)
        assert grad(lambda z: abs(z) ** 2)(z) == mpmath.mpc(2, 4)
        found = grad(lambda z: lantern.exp(z) * z, holomorphic=True)(z)
        assert abs(found - mpmath.exp(z) * (1 + z)) < 1e-13


class TestTypes:
    @pytest.mark.parametrize(
        "kind", [np.float16, np.float32, np.float64, np.longdouble]
    )
    def test_numpy_scalars_keep_their_type(self, kind):
        value, gradient = value_and_grad(lambda x: x * x * 2.0 + 1)(kind(1.5))
        assert (value, gradient) == (5.5, 6.0)
        assert (type(value), type(gradient)) == (kind, kind)
        value, tangent = jvp(lambda x: x * x * 2.0 + 1, (kind(1.5),), (kind(1),))
        assert (type(value), type(tangent)) == (kind, kind)

    @pytest.mark.parametrize("kind", [np.complex64, np.complex128])
    def test_complex_numpy_scalars_keep_their_type(self, kind):
        gradient = grad(lambda z: abs(z) ** 2)(kind(1 + 2j))
        assert gradient == 2 + 4j
        assert type(gradient) is kind

    @pytest.mark.parametrize("x", [3, np.int64(3), np.uint8(3)])
    def test_an_int_counts_as_a_float(self, x):
        for D in (grad, forward):
            assert D(lambda x: x * x / 2)(x) == 3.0
            assert type(D(lambda x: x * x)(x)) is float
        assert type(grad(lambda x: 7)(x)) is float
        assert grad(lambda p: p["a"] * p["b"][0])({"a": 2, "b": [3]}) == {
            "a": 3.0,
            "b": [2.0],
        }

    def test_a_subclass_of_float_is_a_float(self):
        class Metres(float):
            pass

        assert grad(lambda x: lantern.sin(x) * x)(Metres(0.0)) == 0.0
        assert grad(lambda x: x * Metres(3.0))(2.0) == 3.0

    @pytest.mark.parametrize(
        "constant", [2, 2.0, np.float64(2), np.float32(2), np.int8(2)]
    )
    def test_a_float_beside_a_constant_of_any_kind(self, constant):
        for f in (lambda x: x * constant, lambda x: constant * x):
            assert grad(f)(3.0) == 2.0
            assert type(grad(f)(3.0)) is float
        assert grad(lambda x: constant**x)(1.0) == pytest.approx(2 * math.log(2))

    @pytest.mark.parametrize("order", ["number first", "array first"])
    def test_a_number_beside_an_array_receives_the_sum(self, order):
        a = np.array([1.0, 2.0, 4.0])

        def f(x):
            return lantern.sum(x * a if order == "number first" else a * x)

        assert grad(f)(3.0) == 7.0
        assert type(grad(f)(3.0)) is float
        assert forward(f)(3.0) == 7.0
        assert grad(lambda x: (x * a.astype(np.float32)).sum())(3.0) == 7.0


class Uncertain:
    """A user's number: a value and its deviation, to first order."""

    def __init__(self, value, deviation=0.0):
        self.value, self.deviation = value, deviation

    def _lift(self, other):
        if isinstance(other, Uncertain):
            return other
        return Uncertain(other) if isinstance(other, int | float) else None

    def __add__(self, other):
        if (other := self._lift(other)) is None:
            return NotImplemented
        return Uncertain(self.value + other.value, self.deviation + other.deviation)

    def __mul__(self, other):
        if (other := self._lift(other)) is None:
            return NotImplemented
        deviation = self.deviation * other.value + self.value * other.deviation
        return Uncertain(self.value * other.value, deviation)

    def __pow__(self, n):
        return Uncertain(self.value**n, n * self.value ** (n - 1) * self.deviation)

    __radd__, __rmul__ = __add__, __mul__


class TestOwnNumbers:
    @pytest.mark.parametrize("D", [grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]])
    def test_a_value_with_an_uncertainty(self, D):
        found = D(polynomial)(Uncertain(1 / 3, 0.01))
        assert found.value == pytest.approx(11 / 3)
        assert found.deviation == pytest.approx(0.02)

    def test_constants_of_the_own_class_on_either_side(self):
        three = Uncertain(3.0, 0.5)
        for f in (lambda x: x * three, lambda x: three * x, lambda x: x * x * three):
            found = grad(f)(Uncertain(0.5, 0.0))
            assert (found.value, found.deviation) == (3.0, 0.5)

    def test_a_class_that_is_registered_as_a_number_keeps_its_type(self):
        class Registered(Uncertain):
            pass

        numbers.Number.register(Registered)
        assert type(grad(lambda x: x)(Registered(2.0))) is Registered


COMPLEX = {
    "modulus squared": (lambda z: abs(z) ** 2, 1 + 2j, 2 + 4j),
    "modulus at 0": (abs, 0j, 0j),
    "modulus": (abs, 3 + 4j, 0.6 + 0.8j),
    "z conj(z)": (lambda z: (z * z.conjugate()).real, 1 + 2j, 2 + 4j),
    "conj(z) z": (lambda z: lantern.real(lantern.conj(z) * z), 1 + 2j, 2 + 4j),
    "real part of a multiple": (lambda z: (z * (1 - 2j)).real, 1 + 2j, 1 + 2j),
    "imaginary part": (lambda z: lantern.imag(z), 1 + 2j, 1j),
    "real times imaginary": (lambda z: z.real * z.imag, 1 + 2j, 2 + 1j),
    "square": (lambda z: (z**2).real, 1 + 2j, 2 - 4j),
    "exp": (lambda z: lantern.exp(z).real, 1j, np.exp(-1j)),
}


COMPLEX_ARRAYS = {
    "where": lambda z: lantern.where(np.array([True, False]), z * z, 2 * z),
    "getitem": lambda z: z[:, 0] * z[0] + z[[1, 1], [0, 1]],
    "stack": lambda z: lantern.stack([z, z * z]),
    "concat": lambda z: lantern.concat([z, z * z], axis=1),
    "matmul": lambda z: z @ z,
    "prod": lambda z: lantern.prod(z, axis=0),
    "mean": lambda z: lantern.mean(z * z, axis=0),
    "transpose": lambda z: z.T * z,
    "sign": lantern.sign,
    "a sum of moduli": lambda z: lantern.sum(lantern.abs(z) ** 3),
}


class TestComplex:
    @pytest.mark.parametrize("case", COMPLEX_ARRAYS)
    def test_operations_on_arrays(self, case):
        z = np.array([[1 + 2j, 0.5 - 1j], [-0.3j, 2.0]])
        check_grads(COMPLEX_ARRAYS[case], (z,), order=2, atol=1e-5)
        y, pullback = vjp(COMPLEX_ARRAYS[case], z)
        y_bar = y * (0.3 - 0.2j) if y.dtype.kind == "c" else y * 0.3

        def weighted(z):
            products = lantern.conj(y_bar) * COMPLEX_ARRAYS[case](z)
            return lantern.sum(lantern.real(products))

        for driver in DRIVERS:
            found = grad(weighted, driver=driver)(z)
            np.testing.assert_allclose(found, pullback(y_bar)[0], rtol=1e-13)

    @pytest.mark.parametrize("driver", DRIVERS)
    @pytest.mark.parametrize("case", COMPLEX)
    def test_gradient_of_a_real_function_is_dx_plus_i_dy(self, case, driver):
        f, z, expected = COMPLEX[case]
        found = grad(f, driver=driver)(z)
        assert found == pytest.approx(expected, rel=1e-15)
        assert type(found) is complex
        assert vjp(f, z)[1](1.0)[0] == pytest.approx(expected, rel=1e-15)
        array = grad(lambda a: lantern.sum(f(a)), driver=driver)(np.array([z, z]))
        np.testing.assert_allclose(array, [expected] * 2, rtol=1e-15)
        for v in (1.0, 1j, 2 - 3j):
            tangent = jvp(f, (z,), (v + 0j,))[1]
            assert tangent == pytest.approx((np.conj(expected) * v).real, abs=1e-14)

    def test_second_derivatives(self):
        for f in (
            lambda z: z * z.conjugate(),
            lambda z: abs(z) * z,
            lambda z: z.imag * z,
        ):
            check_grads(f, (1 + 2j,), order=2, atol=1e-5)
            check_grads(f, (np.array([1 + 2j, 0.5 - 1j]),), order=2, atol=1e-5)

    def test_holomorphic_derivatives_of_every_order(self):
        f = lambda z: z**3 + lantern.exp(z)  # noqa: E731
        z = 1 + 2j
        for expected in (3 * z**2, 6 * z, 6):
            f = grad(f, holomorphic=True)
            assert f(z) == pytest.approx(expected + np.exp(z), rel=1e-14)

    def test_a_real_input_receives_a_real_gradient(self):
        f = lambda x: abs(x * (1 + 2j))  # noqa: E731
        assert grad(f)(2.0) == pytest.approx(math.sqrt(5))
        assert type(grad(f)(2.0)) is float
        w = np.array([[1 + 2j], [3j]])
        found = grad(lambda x: lantern.sum(lantern.abs(x * w)))(np.ones(2))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, [math.sqrt(5) + 3] * 2)


POLYGAMMA = [
    (n, x)
    for n in (0, 1, 2, 3, 5)
    for x in (1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 7.3, 14.9, 15.1, 300.0, 1e6)
] + [(n, x) for n in (0, 1, 2, 3) for x in (-0.5, -1.25, -7.75)]


@pytest.mark.parametrize(("n", "x"), POLYGAMMA)
def test_polygamma_and_its_derivative(n, x):
    with mpmath.workdps(40):
        exact, slope = (float(mpmath.psi(m, mpmath.mpf(x))) for m in (n, n + 1))
    value, gradient = value_and_grad(lambda x: lantern.polygamma(n, x))(x)
    assert value == pytest.approx(exact, rel=1e-12, abs=1e-14)
    assert gradient == pytest.approx(slope, rel=1e-12)
    if x > 0:
        array = grad(lambda x: lantern.sum(lantern.polygamma(n, x)))(np.array([x]))
        assert array[0] == pytest.approx(slope, rel=1e-12)


def test_a_nested_gradient_of_a_complex_number_is_complex():
    def gradient(z, y_bar):
        return lantern.vjp(lantern.real, z)[1](y_bar)[0]

    value, tangent = lantern.jvp(lambda g: gradient(1 + 2j, g), (3.0,), (1.0,))
    assert (value, tangent) == (3 + 0j, 1 + 0j)
    assert type(value) is type(tangent) is complex

"""Whatever has + * /: uncertain, interval, exact and complex numbers, quaternions."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import lantern
from lantern import (
    DetachError,
    MissingRuleError,
    NotScalarError,
    checkpoint,
    diag_hessian,
    fixed_point,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jet,
    jvp,
    linearize,
    register_commutative,
    taylor,
    value_and_grad,
    vjp,
    wirtinger,
)
from lantern.testing import check_grads

MODES = {
    "reverse": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "linear map": lambda f: lambda x: linearize(f, x)[1](1.0),
    "series": lambda f: lambda x: taylor(f, x, 1)[1],
}


def polynomial(x):
    return x**2 + 3 * x + 1


@pytest.mark.parametrize("mode", MODES)
class TestUncertain:
    """Values of the ``uncertainties`` package: a deviation travels with each."""

    def test_the_fact_of_zygote(self, mode):
        ufloat = pytest.importorskip("uncertainties", reason="its values").ufloat
        found = MODES[mode](polynomial)(ufloat(1 / 3, 0.01))
        assert (found.n, found.s) == pytest.approx((11 / 3, 0.02))

    def test_functions_and_second_derivatives(self, mode):
        ufloat = pytest.importorskip("uncertainties", reason="its values").ufloat
        D, x = MODES[mode], ufloat(0.5, 0.01)
        found = D(lambda x: lantern.exp(x) * lantern.sin(x) / x)(x)
        f = D(lambda x: lantern.exp(x) * lantern.sin(x) / x)
        assert found.n == pytest.approx(f(0.5), rel=1e-13)
        assert found.s == pytest.approx(0.01 * abs(grad(f)(0.5)), rel=1e-6)
        second = D(D(lambda x: x**3))(x)
        assert (second.n, second.s) == pytest.approx((3.0, 0.06))

    def test_two_that_depend_on_each_other(self, mode):
        ufloat = pytest.importorskip("uncertainties", reason="its values").ufloat
        x, c = ufloat(2.0, 0.1), ufloat(3.0, 0.2)
        found = MODES[mode](lambda x: c * x * c)(x)
        assert (found.n, found.s) == pytest.approx((9.0, 2 * 3 * 0.2))
        assert MODES[mode](lambda y: y * y - 2 * x * y)(x).s == 0.0


@pytest.mark.parametrize("mode", MODES)
class TestIntervals:
    """mpmath's intervals: the derivative encloses that at every point."""

    @pytest.mark.parametrize(
        "f",
        [
            polynomial,
            lambda x: x / (1 + x * x) - 2 / x,
            lambda x: lantern.exp(x) * lantern.sin(x) + lantern.log(x),
            lambda x: lantern.sqrt(x) * x**3 - 2,
        ],
    )
    def test_the_derivative_encloses_that_at_every_point(self, mode, f):
        iv = pytest.importorskip("mpmath", reason="its intervals").iv
        D = MODES[mode]
        for order in (1, 2):
            g = f
            for _ in range(order):
                g = D(g)
            found = g(iv.mpf([1, 2]))
            for x in (1.0, 1.3, 1.7, 2.0):
                assert float(found.a) - 1e-12 <= g(x) <= float(found.b) + 1e-12

    def test_an_interval_on_either_side(self, mode):
        iv = pytest.importorskip("mpmath", reason="its intervals").iv
        D, point, c = MODES[mode], iv.mpf([3, 4]), iv.mpf([1, 2])
        for f, slope in (
            (lambda x: c * x, (1.0, 2.0)),
            (lambda x: x * c, (1.0, 2.0)),
            (lambda x: c + x, (1.0, 1.0)),
            (lambda x: c - x, (-1.0, -1.0)),
            (lambda x: c / x, (-2 / 9, -1 / 16)),
            (lambda x: D(lambda y: c * y * x)(point), (1.0, 2.0)),
            (lambda x: c * D(lambda y: c * y * x)(point), (1.0, 4.0)),
        ):
            found = D(f)(point)
            assert (float(found.a), float(found.b)) == pytest.approx(slope, rel=1e-14)

    def test_functions_of_mpmath_are_refused(self, mode):
        iv = pytest.importorskip("mpmath", reason="its intervals").iv
        for f in (iv.sin, lambda x: x.mid, lambda x: iv.mpf(x) * iv.exp(x)):
            with pytest.raises(DetachError, match=r"lantern\.sin"):
                MODES[mode](f)(iv.mpf([3, 4]))

    def test_a_polynomial_of_small_intervals_is_tight(self, mode):
        iv = pytest.importorskip("mpmath", reason="its intervals").iv
        found = MODES[mode](polynomial)(iv.mpf([1, 2]))
        assert (float(found.a), float(found.b)) == (5.0, 7.0)


@pytest.mark.parametrize("mode", MODES)
class TestExact:
    def test_fractions(self, mode):
        found = MODES[mode](polynomial)(Fraction(1, 3))
        assert (found, type(found)) == (Fraction(11, 3), Fraction)
        f = lambda x: (x**3 - 2 / x) / (1 + x)  # noqa: E731
        found = MODES[mode](f)(Fraction(1, 3))
        assert type(found) is Fraction
        assert float(found) == pytest.approx(grad(f)(1 / 3), rel=1e-14)

    def test_decimals(self, mode):
        found = MODES[mode](polynomial)(Decimal("0.1"))
        assert (found, type(found)) == (Decimal("3.2"), Decimal)
        with pytest.raises(MissingRuleError, match="sin: Decimal"):
            MODES[mode](lantern.sin)(Decimal(1))


@pytest.mark.parametrize("kind", ["Decimal", "Fraction", "mpf", "interval", "ufloat"])
def test_whole_matrices_of_one_number(kind):
    x = {
        "Decimal": lambda: Decimal("0.5"),
        "Fraction": lambda: Fraction(1, 2),
        "mpf": lambda: pytest.importorskip("mpmath", reason="its numbers").mpf("0.5"),
        "interval": lambda: pytest.importorskip("mpmath", reason="its numbers").iv.mpf(
            "0.5"
        ),
        "ufloat": lambda: pytest.importorskip(
            "uncertainties", reason="its values"
        ).ufloat(0.5, 0.1),
    }[kind]()
    first, second = grad(polynomial)(x), grad(grad(polynomial))(x)
    for derivative in (jacfwd, jacrev, jacobian):
        assert derivative(polynomial)(x) == first
    for derivative in (hessian, diag_hessian):
        assert derivative(polynomial)(x) == second
    assert grad(checkpoint(polynomial))(x) == first


@pytest.mark.parametrize("mode", MODES)
def test_symbols_of_sympy(mode):
    sympy = pytest.importorskip("sympy", reason="its symbols")
    x = sympy.Symbol("x")
    f = lambda x: x**3 + 2 * x / (1 + x) - 1 / x  # noqa: E731
    D = MODES[mode] if mode in ("reverse", "switching") else _by_whole_ones(mode)
    assert sympy.simplify(D(f)(x) - sympy.diff(f(x), x)) == 0
    assert sympy.simplify(D(D(f))(x) - sympy.diff(f(x), x, 2)) == 0


def _by_whole_ones(mode):
    """The mode with the integer 1 for direction, which a symbol keeps exact."""
    return {
        "forward": lambda f: lambda x: jvp(f, (x,), (1,))[1],
        "pullback": lambda f: lambda x: vjp(f, x)[1](1)[0],
        "linear map": lambda f: lambda x: linearize(f, x)[1](1),
        "series": lambda f: lambda x: taylor(f, x, 1)[1],
    }[mode]


class Quaternion:
    """A user's class with operators, whose product does not commute."""

    def __init__(self, *parts):
        self.parts = tuple(parts) + (0.0,) * (4 - len(parts))

    @staticmethod
    def of(x):
        if isinstance(x, Quaternion):
            return x
        return Quaternion(x) if isinstance(x, int | float) else None

    def __add__(self, other):
        if (other := self.of(other)) is None:
            return NotImplemented
        return Quaternion(
            *(a + b for a, b in zip(self.parts, other.parts, strict=True))
        )

    def __neg__(self):
        return Quaternion(*(-a for a in self.parts))

    def __sub__(self, other):
        return NotImplemented if self.of(other) is None else self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if (other := self.of(other)) is None:
            return NotImplemented
        (a, b, c, d), (e, f, g, h) = self.parts, other.parts
        return Quaternion(
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        )

    def __rmul__(self, other):
        return NotImplemented if self.of(other) is None else self.of(other) * self

    def __truediv__(self, other):
        if (other := self.of(other)) is None:
            return NotImplemented
        squares = sum(a * a for a in other.parts)
        return self * Quaternion(*(a / squares for a in other.conjugate().parts))

    def __rtruediv__(self, other):
        return NotImplemented if self.of(other) is None else self.of(other) / self

    def __pow__(self, n):
        power = Quaternion(1.0)
        for _ in range(abs(n)):
            power = power * self
        return power if n >= 0 else 1 / power

    def conjugate(self):
        a, b, c, d = self.parts
        return Quaternion(a, -b, -c, -d)

    @property
    def real(self):
        return self.parts[0]

    __radd__ = __add__


Q, R, T = (
    Quaternion(1.0, 2.0, -1.0, 0.5),
    Quaternion(0.3, -1.0, 2.0, 1.0),
    Quaternion(1.0, 0.2, 0.3, 0.4),
)
QUATERNIONS = {
    "between": lambda x: x * R * x,
    "left": lambda x: R * x * x + x,
    "quotient": lambda x: x / R * x - 2 * x,
    "reciprocal": lambda x: R / x + 1 / x,
    "quotient of itself": lambda x: (x * R) / (R * x),
    "power": lambda x: x**3 * R + x**1 + x**0,
    "negative power": lambda x: R * x**-2,
    "conjugate": lambda x: x * x.conjugate() * R * x,
    "rotation": lambda x: x * R * x.conjugate(),
    "half": lambda x: x * 0.5 + 0.5 * x - 1 - (1 - x),
}


def along(f, x, v, step=1e-4):
    """The derivative along v by central differences of fourth order."""
    near = f(x + step * v) - f(x - step * v)
    far = f(x + 2 * step * v) - f(x - 2 * step * v)
    return (8 * near - far) * (1 / (12 * step))


def parts(q):
    return pytest.approx(Quaternion.of(q).parts, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", QUATERNIONS)
class TestQuaternions:
    def test_forward_mode(self, name):
        f = QUATERNIONS[name]
        value, moved = jvp(f, (Q,), (T,))
        assert value.parts == parts(f(Q))
        assert moved.parts == parts(along(f, Q, T))
        assert linearize(f, Q)[1](T).parts == parts(moved)
        _, (first, second) = jet(f, (Q,), ([T, 0 * T],))
        assert first.parts == parts(moved)
        assert second.parts == parts(along(lambda x: jvp(f, (x,), (T,))[1], Q, T))

    def test_reverse_mode(self, name):
        """The real part of gradient times change is the change of the real part."""
        f = QUATERNIONS[name]
        for g in (grad(lambda x: f(x).real), grad(f)):
            w = g(Q)
            for v in (T, R, Quaternion(0.0, 0.0, 1.0)):
                change = along(f, Q, v).real
                assert (Quaternion.of(w) * v).real == pytest.approx(change, abs=1e-7)

    def test_second_order(self, name):
        f = QUATERNIONS[name]
        forward = lambda x: jvp(f, (x,), (T,))[1]  # noqa: E731
        assert jvp(forward, (Q,), (R,))[1].parts == parts(along(forward, Q, R))
        reverse = lambda x: 1 * grad(lambda y: f(y).real)(x)  # noqa: E731
        moved = jvp(lambda x: grad(lambda y: f(y).real)(x) + 0 * x, (Q,), (R,))[1]
        assert moved.parts == parts(along(reverse, Q, R))


class Plain:
    """A user's class with no more than ``+ * /``, made of all its parts alone."""

    def __init__(self, *parts):
        assert len(parts) == 4
        self.parts = parts

    def __add__(self, other):
        return Plain(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __mul__(self, other):
        if isinstance(other, int | float):
            return Plain(*(a * other for a in self.parts))
        product = Quaternion(*self.parts) * Quaternion(*other.parts)
        return Plain(*product.parts)

    def __rmul__(self, other):
        return self * other

    def __truediv__(self, other):
        quotient = Quaternion(*self.parts) / Quaternion(*other.parts)
        return Plain(*quotient.parts)


class TestOwnClasses:
    def test_a_class_that_cannot_be_made_of_one_number(self):
        x, v = Plain(*Q.parts), Plain(*T.parts)
        f = lambda x: x * x / (x + x) * x  # noqa: E731
        expected = along(f, Q, T)
        value, moved = jvp(f, (x,), (v,))
        assert value.parts == parts(f(Q))
        assert moved.parts == parts(expected)
        assert linearize(f, x)[1](v).parts == parts(expected)
        w = grad(f)(x)
        assert (Quaternion(*w.parts) * T).real == pytest.approx(expected.real)
        assert grad(lambda x: f(v) * 1.0)(x).parts == (0.0,) * 4

    @pytest.mark.parametrize(
        "f",
        [
            lantern.square,
            lambda x: lantern.multiply(x, x),
            lambda x: x**x,
            lambda x: x**0.5 if not isinstance(x, Quaternion) else x,
        ],
    )
    def test_rules_that_swap_factors_are_refused(self, f):
        for D in MODES.values():
            with pytest.raises((MissingRuleError, TypeError)):
                D(f)(Q)

    def test_a_promise_that_products_commute(self):
        class Dual:
            def __init__(self, a, b=0.0):
                self.a, self.b = a, b

            def __add__(self, other):
                other = other if isinstance(other, Dual) else Dual(other)
                return Dual(self.a + other.a, self.b + other.b)

            def __mul__(self, other):
                other = other if isinstance(other, Dual) else Dual(other)
                return Dual(self.a * other.a, self.a * other.b + self.b * other.a)

            __radd__, __rmul__ = __add__, __mul__

        with pytest.raises(MissingRuleError, match="register_commutative"):
            grad(lantern.square)(Dual(3.0, 1.0))
        register_commutative(Dual)
        for f in (lantern.square, checkpoint(lantern.square)):  # no two are equal
            found = grad(f)(Dual(3.0, 1.0))
            assert (found.a, found.b) == (6.0, 2.0)

    def test_the_gradient_of_what_does_not_depend_is_a_zero_of_the_class(self):
        assert grad(lambda x: 1.0)(Q).parts == (0.0,) * 4
        assert grad(lambda x: x.real)(Q).parts == (1.0, 0.0, 0.0, 0.0)

    def test_quaternions_in_a_structure_and_beside_floats(self):
        by_q, by_s = grad(lambda q, s: (q["q"] * q["q"] * R).real * s, (0, 1))(
            {"q": Q}, 2.0
        )
        assert by_s == pytest.approx((Q * Q * R).real)
        assert by_q["q"].parts == parts(2.0 * (Q * R + R * Q))


class TestComplex:
    def test_the_convention(self):
        f = lambda z: abs(z) ** 2  # noqa: E731
        assert grad(f)(1 + 2j) == 2 + 4j
        assert wirtinger(f)(1 + 2j) == (1 - 2j, 1 + 2j)
        assert grad(lambda z: z**3, holomorphic=True)(1 + 2j) == 3 * (1 + 2j) ** 2
        with pytest.raises(NotScalarError, match="holomorphic"):
            grad(lambda z: z**3)(1 + 2j)

    def test_real_operands_receive_real_gradients(self):
        w, x = np.array([1 + 2j, 3 - 1j]), np.array([0.5, -2.0])

        def loss(w, x, s):
            z = w * x + 1j * s
            return lantern.sum(lantern.real(z * lantern.conj(z))) + lantern.imag(z[0])

        by_w, by_x, by_s = grad(loss, "*")(w, x, 0.7)
        assert (by_w.dtype, by_x.dtype, type(by_s)) == (complex, float, float)
        np.testing.assert_allclose(
            by_x[1], 2 * (abs(w[1]) ** 2 * x[1] - 0.7), rtol=1e-13
        )
        check_grads(loss, (w, x, 0.7), order=2)

    def test_projection_from_complex_intermediate_values(self):
        f = lambda x: abs(lantern.exp(1j * x) + x) ** 2  # noqa: E731
        exact = lambda x: 1 + 2 * x * math.cos(x) + x * x  # noqa: E731
        assert f(0.7) == pytest.approx(exact(0.7))
        want = 2 * math.cos(0.7) - 1.4 * math.sin(0.7) + 1.4
        for D in MODES.values():
            assert D(f)(0.7) == pytest.approx(want, rel=1e-13)
            assert type(D(f)(0.7)) is float

    def test_a_filter_is_learned_in_the_frequency_domain(self):
        """Real kernel, real data, complex spectra: unmodified NumPy in the middle."""
        rng = np.random.default_rng(3)
        x, kernel = rng.normal(size=(4, 16)), rng.normal(size=16)
        target = np.fft.ifft(np.fft.fft(x) * np.fft.fft(kernel)).real

        def loss(k):
            found = np.fft.ifft(np.fft.fft(x) * np.fft.fft(k)).real
            return ((found - target) ** 2).sum() / 8

        check_grads(loss, (np.zeros(16),), order=2, atol=1e-6)
        k, spectrum = np.zeros(16), np.abs(np.fft.fft(x)) ** 2
        step = 4 / spectrum.sum(axis=0).max()
        for _ in range(2000):
            value, gradient = value_and_grad(loss)(k)
            k = k - step * gradient
        assert gradient.dtype == float
        assert value < 1e-3 * loss(np.zeros(16))

    def test_a_phase_is_retrieved_from_the_power_spectrum(self):
        """A complex unknown, a real loss: the gradient is dx + i dy at each point."""
        rng = np.random.default_rng(0)
        true = rng.normal(size=8) + 1j * rng.normal(size=8)
        power = np.abs(np.fft.fft(true)) ** 2

        def loss(z):
            return lantern.mean((lantern.abs(np.fft.fft(z)) ** 2 - power) ** 2)

        z = true + 0.1 * (rng.normal(size=8) + 1j * rng.normal(size=8))
        check_grads(loss, (z,), order=1, atol=1e-3)
        start = loss(z)
        for _ in range(300):
            z = z - 2e-4 * grad(loss)(z)
        assert loss(z) < 1e-2 * start

    def test_a_complex_root(self):
        f = lambda a: abs(fixed_point(lambda x, a: (x + a / x) / 2, 1 + 1j, a)) ** 2  # noqa: E731
        # |sqrt(a)|^2 = |a|
        assert grad(f)(3 + 4j) == pytest.approx(0.6 + 0.8j, rel=1e-12)

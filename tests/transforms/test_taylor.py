"""Taylor series: known ones, and every operation against nested forward mode."""

import math
from fractions import Fraction

import numpy as np
import pytest

import lantern
from lantern import ArgumentError, ShapeError, grad, jet, jvp, taylor

FACTORIALS = [math.factorial(k) for k in range(12)]
# function, point and coefficients at that point up to t**n
SERIES = {
    "exp": (lantern.exp, 0.0, [1 / f for f in FACTORIALS]),
    "sin": (
        lantern.sin,
        0.0,
        [math.sin(k * math.pi / 2) / FACTORIALS[k] for k in range(12)],
    ),
    "cos at 1": (
        lantern.cos,
        1.0,
        [math.cos(1 + k * math.pi / 2) / FACTORIALS[k] for k in range(12)],
    ),
    "log": (
        lambda x: lantern.log(1 + x),
        0.0,
        [0, *((-1) ** (k + 1) / k for k in range(1, 9))],
    ),
    "geometric": (lambda x: 1 / (1 - x), 0.0, [1] * 9),
    "square root": (
        lambda x: lantern.sqrt(1 + x),
        0.0,
        [1, 1 / 2, -1 / 8, 1 / 16, -5 / 128, 7 / 256, -21 / 1024],
    ),
    "tan": (lantern.tan, 0.0, [0, 1, 0, 1 / 3, 0, 2 / 15, 0, 17 / 315, 0, 62 / 2835]),
    "tanh": (lantern.tanh, 0.0, [0, 1, 0, -1 / 3, 0, 2 / 15, 0, -17 / 315]),
    "atan": (lantern.atan, 0.0, [0, 1, 0, -1 / 3, 0, 1 / 5, 0, -1 / 7, 0, 1 / 9]),
    "asin": (lantern.asin, 0.0, [0, 1, 0, 1 / 6, 0, 3 / 40, 0, 5 / 112]),
    "erf": (
        lantern.erf,
        0.0,
        [c * 2 / math.sqrt(math.pi) for c in (0, 1, 0, -1 / 3, 0, 1 / 10, 0, -1 / 42)],
    ),
    "a polynomial": (lambda x: x**5 + 2 * x, -3.0, [-249, 407, -270, 90, -15, 1, 0, 0]),
    "a power of a power": (lambda x: (x**2) ** 1.5, 2.0, [8, 12, 6, 1, 0, 0]),
    "a branch": (lambda x: x * x if x > 0 else -x * x, -2.0, [-4, 4, -1, 0]),
    "a constant": (lambda x: 7.0, 2.0, [7, 0, 0]),
    "the identity": (lambda x: x, 2.0, [2, 1, 0]),
    "a product of many": (
        lambda x: math.prod([x, x, x, x], start=1),
        1.0,
        [1, 4, 6, 4, 1, 0],
    ),
}


@pytest.mark.parametrize("name", SERIES)
def test_known_series(name):
    f, x, coefficients = SERIES[name]
    got = taylor(f, x, len(coefficients) - 1)
    assert got == pytest.approx(coefficients, rel=1e-12, abs=1e-13)


def nested(f, x, order):
    """The same coefficients by forward mode in forward mode."""
    found = [f(x)]
    for k in range(1, order + 1):
        f = lambda x, f=f: jvp(f, (x,), (x * 0 + 1,))[1]  # noqa: E731
        found.append(f(x) / math.factorial(k))
    return found


FUNCTIONS = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log1p "
    "log2 log10 sqrt cbrt square abs sigmoid softplus erf erfc sinc gelu silu lgamma "
    "reciprocal"
).split()
POINTS = {"acosh": 1.4, "lgamma": 2.3}


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if hasattr(lantern, n)])
def test_every_function_agrees_with_nested_forward_mode(name):
    f, x = getattr(lantern, name), POINTS.get(name, 0.4)
    order = 3 if name == "lgamma" else 5
    assert taylor(f, x, order) == pytest.approx(nested(f, x, order), rel=1e-11)


PROGRAMS = {
    "nested": lambda x: lantern.exp(lantern.sin(x) * x) / (1 + x * x),
    "power": lambda x: (1 + x * x) ** x,
    "two operands": lambda x: (
        lantern.atan2(lantern.sin(x), 1 + x) * lantern.hypot(x, x * x)
    ),
    "loop": lambda x: [y := x] and [y := lantern.sin(y) * x + y for _ in range(4)][-1],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("x", [0.7, np.array([0.3, 0.7, 1.1])], ids=["number", "array"])
def test_programs_of_numbers_and_of_arrays(name, x):
    got, want = (g(PROGRAMS[name], x, 5) for g in (taylor, nested))
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(x)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_more_than_elementwise_programs():
    w = np.array([[0.3, -0.2], [0.1, 0.4]])

    def f(x):
        h = lantern.tanh(w @ x)
        return {"sum": (h * x).sum(), "first": h[0], "norm": lantern.linalg.norm(x @ w)}

    x, v = np.array([0.7, -0.4]), np.array([1.0, 2.0])
    value, series = jet(f, (x,), ([v, 0 * v, 0 * v],))
    for key, got in series.items():
        want = nested(lambda t, k=key: f(x + t * v)[k], 0.0, 3)
        scaled = [math.factorial(k) * c for k, c in enumerate(want)]
        np.testing.assert_allclose([value[key], *got], scaled, rtol=1e-9, atol=1e-13)


def test_the_series_of_a_curve_in_the_convention_of_jax():
    x, (a, b) = 0.4, (0.7, -1.3)
    value, (first, second) = jet(lantern.sin, (x,), ((a, b),))
    assert value == math.sin(x)
    assert first == pytest.approx(math.cos(x) * a, rel=1e-15)
    assert second == pytest.approx(-math.sin(x) * a * a + math.cos(x) * b, rel=1e-14)
    value, series = jet(lambda x, y: x * y, (2.0, 3.0), ([1.0, 0.0], [0.0, 1.0]))
    assert (value, series) == (6.0, [3.0, 2.0])
    assert jet(lantern.sin, (0.0,), ([],)) == (0.0, [])


def test_exact_numbers_stay_exact():
    got = taylor(lambda x: 1 / (1 - x * x), Fraction(1, 2), 3)
    assert got == (
        Fraction(4, 3),
        Fraction(16, 9),
        Fraction(112, 27),
        Fraction(640, 81),
    )
    assert all(type(c) is Fraction for c in got)


def test_complex_numbers():
    got = taylor(lantern.exp, 1j, 4)
    assert got == pytest.approx([np.exp(1j) / f for f in FACTORIALS[:5]], rel=1e-14)


def test_derivatives_of_a_series_and_series_of_derivatives():
    def third(x):
        return taylor(lambda y: lantern.sin(x * y), x, 3)[3]

    # -x^3 cos(x^2) / 6
    want = lambda x: -(x**3) * lantern.cos(x * x) / 6  # noqa: E731
    assert third(0.8) == pytest.approx(want(0.8), rel=1e-13)
    assert grad(third)(0.8) == pytest.approx(grad(want)(0.8), rel=1e-12)
    moved = jvp(third, (0.8,), (1.0,))[1]
    assert moved == pytest.approx(grad(want)(0.8), rel=1e-12)
    got = taylor(grad(lambda x: lantern.sin(x) * x), 0.8, 4)
    assert got == pytest.approx(nested(grad(lambda x: lantern.sin(x) * x), 0.8, 4))
    inner = taylor(lambda x: taylor(lambda y: x * y**3, x, 1)[1], 2.0, 3)  # 3 x^3
    assert inner == pytest.approx((24, 36, 18, 3))


def test_perturbations_stay_apart():
    f = lambda x: x * taylor(lambda y: x + y, 1.0, 1)[1]  # noqa: E731
    assert taylor(f, 1.0, 2) == (1.0, 1.0, 0.0)


def test_custom_rules_have_series():
    @lantern.custom_rule
    def cube(x, /):
        yield 3 * x * x * (yield x**3)

    @lantern.custom_jvp
    def own_sin(x):
        return lantern.sin(x)

    own_sin.defjvps(lambda t, z, x: t * lantern.cos(x))
    own_exp = lantern.custom_vjp(lantern.exp)
    own_exp.defvjp(lambda x: (lantern.exp(x),) * 2, lambda z, g: (g * z,))
    assert taylor(cube, 2.0, 4) == pytest.approx((8, 12, 6, 1, 0))
    assert taylor(own_exp, 0.5, 5) == pytest.approx(taylor(lantern.exp, 0.5, 5))
    assert taylor(own_sin, 0.5, 5) == pytest.approx(taylor(lantern.sin, 0.5, 5))
    xs = np.array([1.0, 2.0])
    found = taylor(lambda t: lantern.vmap(cube)(xs * t), 2.0, 3)
    np.testing.assert_allclose(found, [xs**3 * c for c in (8, 12, 6, 1)])


def test_the_cost_is_a_power_of_the_order():
    """Counted in calls of a rule, which nested forward mode makes 2**order times."""
    calls = []

    @lantern.custom_rule(kind="elementwise")
    def counted(x, /):
        calls.append(1)
        z_bar = yield lantern.sin(x)
        yield z_bar * lantern.cos(x)

    assert taylor(counted, 0.3, 20)[20] == pytest.approx(
        taylor(lantern.sin, 0.3, 20)[20]
    )
    assert len(calls) <= 60


@pytest.mark.parametrize("order", [-1, 1.0, True, None])
def test_an_order_that_is_none(order):
    with pytest.raises(ArgumentError, match="taylor: order"):
        taylor(lantern.sin, 0.0, order)


def test_series_that_do_not_fit():
    with pytest.raises(ShapeError, match="all of one length"):
        jet(lambda x, y: x, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ShapeError, match="series"):
        jet(lambda x, y: x, (1.0, 2.0), ([1.0],))
    with pytest.raises(ShapeError, match="expected the structure"):
        jet(lambda x: x, (np.ones(2),), ([1.0],))
    with pytest.raises(ArgumentError, match="series must be"):
        jet(lambda x: x, (1.0,), 1.0)

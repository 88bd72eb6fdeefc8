"""Functions of plain numbers, at points of each of their branches, beside mpmath."""

import math
from numbers import Number

import mpmath
import numpy as np
import pytest

from lantern.core import scalar_functions
from lantern.errors import MissingExtraError

mp = mpmath.mp.clone()
mp.dps = 40
SMALL = (-0.9, -0.3, 0.2, 0.6, 0.95)
ANY = (-30.5, -2.0, -0.3, 0.2, 1.0, 4.5, 40.0)
POSITIVE = (1e-3, 0.3, 1.0, 2.5, 17.0, 300.0)
PAIRS = [(x, y) for x in (0.3, 2.0, 11.0, 40.0) for y in (0.1, 1.5, 9.9, 12.0, 60.0)]
REAL_PAIRS = [(x, y) for x in (-3.5, 0.0, 2.0) for y in (-1.25, 0.5, 3.0)]
ORDERS = [(n, x) for n in range(4) for x in (-7.25, -0.4, 0.1, 3.0, 14.5, 40.0)]
ORDERS += [(8, x) for x in (0.1, 3.0, 16.0, 23.0)]
SHAPES = [*PAIRS, (0.3, 1e-6)]


def _polygamma(n, x):
    """As a limit of differences where mpmath's own has no negative x."""
    return mp.psi(n, x) if x > 0 else mp.diff(mp.digamma, x, n)


# Name: the points, and the function in more digits.
TABLE = {
    "expm1": (ANY, mp.expm1),
    "log1p": (SMALL + POSITIVE, lambda x: mp.log(1 + x)),
    "log2": (POSITIVE, lambda x: mp.log(x, 2)),
    "exp2": (ANY, lambda x: mp.mpf(2) ** x),
    "cbrt": (POSITIVE, lambda x: mp.root(x, 3)),
    "reciprocal": (ANY, lambda x: 1 / mp.mpf(x)),
    "sigmoid": (ANY, lambda x: 1 / (1 + mp.exp(-x))),
    "softplus": (ANY, lambda x: mp.log(1 + mp.exp(x))),
    "relu": (ANY, lambda x: max(x, 0)),
    "sinc": ((-2.5, -0.25, 0.0, 0.3, 1.5), lambda x: mp.sincpi(x)),
    "logit": ((1e-9, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9), lambda x: mp.log(x / (1 - x))),
    "erfinv": ((*SMALL, -0.9999999, 1 - 1e-15, 0.0, 1e-9), mp.erfinv),
    "xlogy": ([(0.0, 0.0), (0.0, 2.0), (3.0, 2.5)], lambda x, y: x and x * mp.log(y)),
    "logaddexp": (REAL_PAIRS, lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
    "logaddexp2": (
        REAL_PAIRS,
        lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2),
    ),
    "polygamma": (ORDERS, _polygamma),
    "iv": (
        [(n, x) for n in (-3.0, -2.0, 0.0, 0.5, 3.0) for x in (0.1, 2.0, 30.0)],
        mp.besseli,
    ),
    "betaln": (PAIRS, lambda x, y: mp.log(mp.beta(x, y))),
    "gammainc": (SHAPES, lambda x, y: mp.gammainc(x, 0, y, regularized=True)),
    "gammaincc": (SHAPES, lambda x, y: mp.gammainc(x, y, regularized=True)),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_function_has_its_value_to_a_few_last_digits(name):
    points, right = TABLE[name]
    function = getattr(scalar_functions, name)
    for point in points:
        operands = point if isinstance(point, tuple) else (point,)
        digits = [n if isinstance(n, int) else mp.mpf(n) for n in operands]
        exact = float(right(*digits))
        assert math.isclose(
            function(*operands), exact, rel_tol=2e-13, abs_tol=1e-300
        ), (
            name,
            point,
        )


INF, NAN = math.inf, math.nan
# Calls, and their values where a function ends, turns or is chosen to be something.
EDGES = {
    "logit": [((0,), -INF), ((1,), INF)],
    "erfinv": [((1,), INF), ((-1.0,), -INF), ((1.5,), NAN), ((-2.0,), NAN)],
    "polygamma": [((0, 0.0), NAN), ((1, -3.0), NAN)],
    "iv": [((0.0, 0.0), 1.0), ((1.0, 0.0), 0.0)],
    "gammainc": [((2.0, 0.0), 0.0), ((2.0, INF), 1.0), ((2.0, -1.0), NAN)],
    "gammaincc": [((2.0, 0.0), 1.0), ((2.0, INF), 0.0)],
    "ieee_divide": [
        ((6.0, 4.0), 1.5),
        ((1.0, 0.0), INF),
        ((1.0, -0.0), -INF),
        ((-1.0, 0.0), -INF),
        ((0.0, 0.0), NAN),
        ((NAN, 0.0), NAN),
    ],
    "ieee_pow": [
        ((3.0, 2.0), 9.0),
        ((-0.0, -3.0), -INF),
        ((0.0, -2.0), INF),
        ((-10.0, 999.0), -INF),
        ((-10.0, 998.0), INF),
    ],
    "maximum": [
        ((1.0, 2.0), 2.0),
        ((2.0, 1.0), 2.0),
        ((NAN, 1.0), NAN),
        ((1, NAN), NAN),
    ],
    "minimum": [
        ((1.0, 2.0), 1.0),
        ((2.0, 1.0), 1.0),
        ((NAN, 1.0), NAN),
        ((1, NAN), NAN),
    ],
    "sign": [
        ((-2.5,), -1.0),
        ((0.0,), 0.0),
        ((3.0,), 1.0),
        ((NAN,), NAN),
        ((3 + 4j,), 0.6 + 0.8j),
        ((0j,), 0j),
    ],
    "floor": [((-1.5,), -2.0), ((INF,), INF)],
    "ceil": [((-1.5,), -1.0), ((-INF,), -INF)],
    "trunc": [((-1.5,), -1.0), ((INF,), INF)],
    "rint": [((2.5,), 2.0), ((3.5,), 4.0), ((INF,), INF)],
    "heaviside": [
        ((-1.0, 0.5), 0.0),
        ((0.0, 0.5), 0.5),
        ((2.0, 0.5), 1.0),
        ((NAN, 0.5), NAN),
    ],
    "relu": [((NAN,), NAN), ((-3.0,), 0.0)],
    "logaddexp": [((INF, INF), INF), ((-INF, -INF), -INF), ((-INF, 1.0), 1.0)],
    "xlogy": [((0.0, NAN), NAN)],
    "where": [((True, 1, 2), 1), ((False, 1, 2), 2)],
    "select": [((True, 2.0), 2.0), ((False, 2.0), None)],
    "logical_not": [((0.0,), True), ((2.0,), False)],
    "ones_like": [((2.5,), 1.0), ((3,), 1)],
    "zeros_like": [((2.5,), 0.0), ((3,), 0), ((INF,), 0.0)],
    "conj": [((1 + 2j,), 1 - 2j), ((2.5,), 2.5)],
    "real": [((1 + 2j,), 1.0)],
    "imag": [((1 + 2j,), 2.0)],
}


@pytest.mark.parametrize(
    ("name", "operands", "right"),
    [(name, *case) for name, cases in EDGES.items() for case in cases],
    ids=str,
)
def test_an_edge_has_the_value_and_the_type_that_is_promised(name, operands, right):
    value = getattr(scalar_functions, name)(*operands)
    assert type(value) is type(right)
    assert value is right or np.array_equal(value, right, equal_nan=True)


@pytest.mark.parametrize(
    "name", "exp log sin tanh expm1 log1p log2 exp2 sigmoid softplus".split()
)
def test_complex_numbers_have_complex_values(name):
    x = 0.4 + 0.3j
    right = complex(
        TABLE[name][1](mp.mpc(x)) if name in TABLE else getattr(mp, name)(x)
    )
    found = getattr(scalar_functions, name)(x)
    assert found == pytest.approx(right, rel=1e-14, abs=0)


@pytest.mark.parametrize("name", ["erf", "erfc", "sin", "log1p"])
def test_a_complex_number_has_its_value_and_what_is_none_is_named(name):
    function = getattr(scalar_functions, name)
    z = complex(getattr(mp, name)(mp.mpc(0.75, -1.5)))
    assert function(0.75 - 1.5j) == pytest.approx(z, rel=1e-12)
    if name != "log1p":
        assert function.__name__ == name
        with pytest.raises(TypeError, match=f"{name}: expected a number"):
            function("a")


def test_what_a_number_raises_as_it_is_converted_is_not_hidden():
    class Unwilling:
        def __float__(self):
            raise TypeError("not today")

    with pytest.raises(TypeError, match="not today"):
        scalar_functions.erf(Unwilling())


class WithUnit(Number):
    """A number that nothing makes of 0 alone."""

    def __init__(self, x, unit):
        self.x, self.unit = x, unit

    def __rmul__(self, k):
        return WithUnit(k * self.x, self.unit)

    __hash__ = None


class Spelled:
    """What is made of 0, and is no product."""

    def __init__(self, x):
        self.x = x


class Vector:
    """What has a product with numbers, and is none."""

    def __init__(self, *parts):
        self.parts = parts

    def __rmul__(self, k):
        return Vector(*(k * x for x in self.parts))


def test_zero_of_a_class_is_made_as_the_class_allows():
    zero = scalar_functions.zeros_like(WithUnit(2.0, "m"))
    assert (zero.x, zero.unit) == (0.0, "m")
    assert scalar_functions.zeros_like(Spelled(2.0)).x == 0
    assert scalar_functions.zeros_like(Vector(2.0, 3.0)).parts == (0.0, 0.0)


def test_a_function_of_scipy_is_named_where_scipy_is_missing(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(scalar_functions, "import_module", missing)
    with pytest.raises(MissingExtraError, match="erf: of a complex number SciPy"):
        scalar_functions.erf(0.5 + 1j)


def test_functions_have_the_names_of_the_standard():
    for name in ("exp", "sqrt", "log10", "tan", "asinh", "lgamma"):
        assert getattr(scalar_functions, name).__name__ == name


def test_what_is_next_to_zero_keeps_its_digits_and_its_sign():
    found = scalar_functions.erfinv(-1e-200)
    assert found == pytest.approx(-1e-200 * math.sqrt(math.pi) / 2, rel=1e-14, abs=0)
    assert math.copysign(1, scalar_functions.relu(-0.0)) == 1  # as of an array

"""Classes of numbers have functions of their own, under the standard's names."""

import cmath
import math
import sys
from decimal import Decimal

import mpmath
import pytest

from lantern import grad
from lantern.core import scalar_functions
from lantern.core.namespace import common_namespace, namespace
from lantern.errors import MissingRuleError

# What takes more than one number, or one outside (0, 1).
OPERANDS = {
    "acosh": (1.3,),
    "atan2": (0.3, -0.7),
    "hypot": (0.3, 0.7),
    "polygamma": (1, 0.3),
    "ieee_divide": (0.3, 0.7),
    "ieee_pow": (0.3, 0.7),
    "maximum": (0.3, 0.7),
    "minimum": (0.3, 0.7),
    "select": (True, 0.7),
    "where": (False, 0.3, 0.7),
}
NAMES = sorted(
    name
    for name, value in vars(namespace(mpmath.mpf(1))).items()
    if name[0] != "_" and name not in ("pi", "ignore_fp_warnings") and callable(value)
)


@pytest.fixture(autouse=True)
def is_met_for_the_first_time(monkeypatch):
    """Each class of numbers: what was found for it before is forgotten."""
    found = sys.modules[namespace.__module__]._namespaces
    for kind in list(found):
        if kind.__module__.partition(".")[0] in ("mpmath", "uncertainties", "decimal"):
            monkeypatch.delitem(found, kind)


@pytest.mark.parametrize("name", NAMES)
def test_a_number_of_many_digits_has_the_value_of_a_float(name):
    operands = OPERANDS.get(name, (0.3,))
    digits = [mpmath.mpf(x) if isinstance(x, float) else x for x in operands]
    found = getattr(namespace(digits[-1]), name)(*digits)
    right = getattr(scalar_functions, name)(*operands)
    assert complex(found) == pytest.approx(complex(right), rel=1e-13)


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(scalar_functions, n)])
def test_a_float_has_the_value_and_the_type_that_any_number_has(name):
    operands = OPERANDS.get(name, (0.3,))
    found = getattr(scalar_functions.floats, name)(*operands)
    right = getattr(scalar_functions, name)(*operands)
    assert (found, type(found)) == (right, type(right))


def test_a_float_beside_a_complex_number_leaves_it_its_functions():
    assert namespace(2.0) is scalar_functions.floats
    for pair in ((2.0, 1j), (1j, 2.0), (2, 2.0)):
        assert namespace(*pair) is common_namespace(*pair) is scalar_functions
    slope = 1j * 2 ** (1j - 1) + 2j**2 * cmath.log(2j)
    found = grad(lambda x: (x**1j + 2j**x).real)(2.0)
    assert found == pytest.approx(slope.real, rel=1e-14)


def test_what_every_class_of_numbers_has_and_what_mpmath_has_is_found():
    assert {"log2", "real", "sigmoid", "softplus", "lgamma", "abs"} <= set(NAMES)
    assert namespace(mpmath.mpf(1)).pi == pytest.approx(math.pi)


def test_values_with_a_deviation():
    x = pytest.importorskip("uncertainties", reason="its values").ufloat(0.3, 0.1)
    xp = namespace(x)
    assert xp.exp(x).std_dev == pytest.approx(0.1 * math.exp(0.3))
    assert (xp.abs, xp.pi) == (abs, math.pi)


def test_intervals_hold_the_value():
    x = mpmath.iv.mpf([0.3, 0.4])
    xp = namespace(x)
    assert math.exp(0.35) in xp.exp(x)
    assert xp.abs(-x) == x


def test_exact_decimals_have_few_functions_and_name_what_they_lack():
    x = Decimal("0.3")
    assert float(namespace(x).log(x)) == pytest.approx(math.log(0.3))
    with pytest.raises(MissingRuleError, match="sin: Decimal numbers have no such"):
        namespace(x).sin(x)

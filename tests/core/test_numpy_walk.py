"""No public function of NumPy loses a derivative in silence."""

from functools import cache

import pytest

from tests.numpy_walk import functions, verdict, walk

FUNCTIONS = functions()


@cache
def outcomes(name):
    return walk(name, FUNCTIONS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_numpy_is_right_or_says_what_it_cannot(name):
    wrong = {p: r for p, r in outcomes(name).items() if r.startswith("wrong")}
    assert not wrong


def test_nine_of_ten_functions_with_a_derivative_are_supported():
    verdicts = [verdict(outcomes(name)) for name in FUNCTIONS]
    tracked, missing = verdicts.count("tracked"), verdicts.count("missing")
    assert tracked >= 0.9 * (tracked + missing)

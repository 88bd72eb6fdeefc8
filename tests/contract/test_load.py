"""A little of ``python -m tests.contract.load``."""

import pytest

from tests.contract import load


@pytest.mark.parametrize("name", load.STEPS)
def test_a_step_leaves_less_than_a_byte(name):
    assert load.bytes_for_each(load.STEPS[name], 10_000) < 1


def test_nested_derivatives_in_threads():
    assert load.nested_in_threads(8, 50) == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_short_soak():
    steps, wrong = load.soak(3.0)
    assert steps > 20
    assert wrong == 0

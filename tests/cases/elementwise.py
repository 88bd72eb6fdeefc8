"""Sample calls: elementwise operations on arrays alone."""

from tests.cases.case import Case

CASES: list[Case] = []

"""Sample calls: reductions and cumulative operations."""

from tests.cases.case import Case

CASES: list[Case] = []

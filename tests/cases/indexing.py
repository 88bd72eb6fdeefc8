"""Sample calls: reading, moving and sorting elements."""

from tests.cases.case import Case

CASES: list[Case] = []

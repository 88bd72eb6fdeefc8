"""Sample calls: linear algebra."""

from tests.cases.case import Case

CASES: list[Case] = []

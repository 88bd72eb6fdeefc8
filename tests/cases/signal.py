"""Sample calls: Fourier transforms, convolution and interpolation."""

from tests.cases.case import Case

CASES: list[Case] = []

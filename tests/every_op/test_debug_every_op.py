"""debug() changes nothing, and no operation surprises by itself."""

import warnings

import numpy as np
import pytest

from lantern import debug, jvp, vjp
from lantern.testing import random_like
from tests.every_op.test_every_op import CASES, call, operands

# Their derivatives are partly computed in double precision.
WIDE = {"betainc", "gammainc", "gammaincc", "gammaincinv", "linspace", "roots", "stdtr"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operation_gives_the_same(case, dtype):
    """And none has a surprise of type or shape that is the library's own."""
    x = operands(case, dtype=dtype)

    def derivatives():
        y, pullback = vjp(call(case), *x)
        y_bar = random_like(y, np.random.default_rng(1))
        forward = jvp(call(case), x, random_like(x, np.random.default_rng(2)))
        return y, *pullback(y_bar), *pullback(y_bar), *forward

    expected = derivatives()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "debug: ", UserWarning)
        with debug() as report:
            found = derivatives()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (
        case.name in WIDE
        or case.statics.get("dtype") is not None
        or {finding.kind for finding in report.findings} <= {"shape"}
    )

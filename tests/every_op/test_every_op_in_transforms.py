"""Every operation of the registry as a linear map and as a Taylor series."""

import numpy as np
import pytest

from lantern import jet, jvp, linearize
from lantern.core.tree import tree_leaves
from lantern.testing import random_like
from tests.cases import call
from tests.every_op.test_every_op import FIRST_CASES, operands


def moved(f, x, v):
    return jvp(f, x, v)[1]


@pytest.mark.parametrize("case", list(FIRST_CASES.values()), ids=str)
def test_linear_maps_and_series_agree_with_forward_mode(case):
    f, x = call(case), operands(case)
    rng = np.random.default_rng(1)
    v, w = random_like(x, rng), random_like(x, rng)
    value, pushforward = linearize(f, *x)
    first = moved(f, x, v)
    compare(value, f(*x))
    for _ in range(2):
        compare(pushforward(*v), first)
    second = moved(lambda *x: moved(f, x, v), x, v)
    along_w = moved(f, x, w)
    series = jet(f, x, [list(pair) for pair in zip(v, w, strict=True)])[1]
    found = [tree_leaves(s) for s in ([series] if type(series) is list else series)]
    for (a, b), c, d, e in zip(
        found,
        tree_leaves(first),
        tree_leaves(second),
        tree_leaves(along_w),
        strict=True,
    ):
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(b, d + e, rtol=1e-7, atol=1e-9)


def compare(tree, other):
    for a, b in zip(tree_leaves(tree), tree_leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)

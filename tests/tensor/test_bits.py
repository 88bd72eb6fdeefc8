"""A function's value inside a derivative is the plain one: to the bit, or how closely.

What is equal and why is said in docs/explanation/promises.md.
"""

import contextlib
import io
import warnings

import numpy as np
import pytest

import lantern
from tests.numpy_walk import PATTERNS, functions

FUNCTIONS = functions()
# How far apart in units of the largest number's last bit, for functions that compute
# in another way inside a derivative; 0 for all others.
VECTORS = 16  # LAPACK is asked for values and vectors, outside for values alone
FORMULA = 8  # the rule has a formula of its own, or multiplies in another order
BOUNDS = {
    **dict.fromkeys(
        "linalg.cond linalg.eigvals linalg.eigvalsh linalg.norm linalg.svd "
        "linalg.svdvals linalg.matrix_norm roots".split(),
        VECTORS,
    ),
    **dict.fromkeys(
        "corrcoef cov einsum float_power geomspace i0 linalg.lstsq linalg.matrix_power "
        "linalg.vector_norm".split(),
        FORMULA,
    ),
    "poly": 4096,  # products of eigenvalues, each of which is off by VECTORS
    "gradient": 256,  # it divides by differences of the points that may nearly vanish
}
# Their vectors have signs of their own, which the derivative fixes.
SIGNED = {"linalg.eig"}
SHAPED = ("(9,)", "(2, 3, 3)", "grid", "mask", "TWO")


def outcomes(f, n):
    """For each pattern of arguments the leaves that are tracked, and the plain ones."""
    rng = np.random.default_rng(n)
    x, v = rng.uniform(0.1, 0.95, (n, n)), rng.uniform(0.2, 2.7, n)
    for pattern, call in PATTERNS.items():
        if n != 3 and any(word in pattern for word in SHAPED):
            continue  # arguments for three elements
        seen = []

        def body(x, v, call=call, seen=seen):
            seen.append(call(f, x, v))
            return lantern.sum(x)

        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            plain = call(f, x.copy(), v.copy())
            lantern.vjp(body, x.copy(), v.copy())
            yield pattern, *map(lantern.tree_leaves, (seen[0], plain))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n[3:] not in SIGNED])
def test_the_value_inside_a_derivative_is_the_plain_one(name):
    bound = BOUNDS.get(name[3:], 0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in (3, 17):
            for pattern, inside, outside in outcomes(FUNCTIONS[name], n):
                for got, want in zip(inside, outside, strict=False):
                    got = np.asarray(lantern.stop_gradient(got))
                    want = np.asarray(want)
                    if want.dtype.kind not in "fc" or got.shape != want.shape:
                        continue  # the walk compares these
                    largest = np.abs(want[np.isfinite(want)]).max(initial=0)
                    last = np.finfo(want.dtype).eps * largest
                    np.testing.assert_allclose(
                        got, want, rtol=0, atol=bound * last, err_msg=f"{pattern} {n}"
                    )

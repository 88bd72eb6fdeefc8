"""Every public function of NumPy under ``vmap``: right, or one of our errors.

The functions and the patterns of arguments are those of the walk over tracked arrays.
"""

import contextlib
import io
import warnings

import numpy as np
import pytest

from lantern import LanternError, grad, real, tree_leaves, vmap
from tests.numpy_walk import ODD_CALLS, PATTERNS, V, X, functions

FUNCTIONS = functions()
XS = np.stack([X, 0.9 * X.T, 1.1 * X[::-1]])
VS = np.stack([V, 0.9 * V[::-1], 1.1 * V])
ODD = {
    *ODD_CALLS,
    *((f"np.{f}", "f(x, (9,))") for f in ("clip", "divmod")),  # a tuple as number
    *((f"np.{f}", "f(x, (2, 3, 3))") for f in ("clip", "divmod")),
    *(("np.isfortran", p) for p in ("f(x)", "f(v)", "f(spd)")),  # asks how x lies
}


def is_number(x):
    dtype = getattr(x, "dtype", None)
    return isinstance(x, bool | int | float | complex) or (
        dtype is not None and not isinstance(x, type) and dtype.kind in "biufc"
    )


def numbers(tree):
    """The numeric leaves of what a function returned."""
    return [leaf for leaf in tree_leaves(tree) if is_number(leaf)]


def total(tree):
    """The sum of all that could have a derivative."""
    parts = [
        x for x in numbers(tree) if getattr(x, "dtype", np.dtype(int)).kind in "fc"
    ]
    return sum(((1.5 * real(x)).sum() for x in parts), 0.0)


def each(f):
    """f of each example; None where NumPy does not take such arguments."""
    try:
        results = [f(x.copy(), v.copy()) for x, v in zip(XS, VS, strict=True)]
        return [np.stack(parts) for parts in zip(*map(numbers, results), strict=True)]
    except Exception:  # whatever NumPy, or a derivative, says to such arguments
        return None


def check(f):
    want = each(f)
    if not want:
        return
    with contextlib.suppress(LanternError):  # it says what it cannot
        got = numbers(vmap(f)(XS, VS))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_numpy_is_right_or_says_what_it_cannot(name):
    before = XS.copy(), VS.copy()
    for pattern, call in PATTERNS.items():
        if (name, pattern) in ODD:
            continue

        def f(x, v, call=call):
            return call(FUNCTIONS[name], x, v)

        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            check(lambda x, v, f=f: numbers(f(x, v)))
            check(grad(lambda x, v, f=f: total(f(x, v)), (0, 1)))
    np.testing.assert_array_equal(XS, before[0])
    np.testing.assert_array_equal(VS, before[1])

"""NumPy's own functions on tracked arrays of a device: as on the host, and no copies.

The calls are those of tests/numpy_walk.py, as far as NumPy takes them and a derivative
of the host's arrays is right or zero.
"""

import contextlib
import io
import warnings

import numpy as np
import pytest

from lantern import tree_leaves, vjp
from lantern.testing import random_like
from tests.backends import check_equal, moved, numpys_own_sums, settled
from tests.numpy_walk import PATTERNS, V, X, functions

FUNCTIONS = functions()
# Patterns with arrays of the host beside x and v, or with tuples in place of arrays.
ON_THE_HOST = ("mask", "[0, 1]", "grid", "[[0", "spd", "(9,)", "(2, 3, 3)")
CALLS = {
    name: call
    for name, call in PATTERNS.items()
    if not any(part in name for part in ON_THE_HOST)
}
# Calls that NumPy takes for many functions, and that make sense for these.
MEANT_FOR = {
    "f(sum, 0, x)": ("np.apply_along_axis", "np.apply_over_axes"),
    "f('ij,jk', x, x)": ("np.einsum", "np.einsum_path"),
    "f(x, 1, v[:1])": ("np.insert",),
}
CALLS["f(spd)"] = lambda f, x, v: f(x @ x.T + np.diag(0 * v + 2.3))
CALLS["f(spd, v)"] = lambda f, x, v: f(x @ x.T + np.diag(0 * v + 2.3), v)

WITHOUT_COUNTERPART = {
    "np.histogram_bin_edges": "CuPy does not have it",
    "np.i0": "cupyx.scipy.special has no iv, which is its derivative",
    "np.real_if_close": "its tolerance is a number",
    "np.spacing": "CuPy does not have it",
}
# Functions that have to look at values to know what to do.
CUTTING = "how much it cuts off depends on the values"
COUNTING = "how many elements there are depends on the values"
INCREASING = "edges that do not increase are an error"
LOOKING = {
    "np.argpartition": "CuPy checks the positions that it found",
    "np.choose": "a choice out of range is an error",
    "np.linalg.lstsq": "whether there are residuals depends on the rank",
    "np.polydiv": CUTTING,
    "np.polymul": CUTTING,
    "np.roots": CUTTING,
    "np.trim_zeros": CUTTING,
    **dict.fromkeys(("np.histogram", "np.histogram2d", "np.histogramdd"), INCREASING),
} | {
    f"np.{name}": COUNTING
    for name in (
        "argwhere compress extract flatnonzero intersect1d nonzero setdiff1d setxor1d "
        "union1d unique unique_all unique_counts unique_inverse unique_values where"
    ).split()
}
# Calls that CuPy does not take, or may answer otherwise.
APART = {
    "np.argpartition": {"f(x, 0, 1)"},  # the order of the elements behind the first
    "np.isin": CALLS.keys() - {"f(x, x)", "f(v, v)", "f(x, v)"},  # of arrays alone
    "np.linalg.matrix_rank": CALLS.keys() - {"f(x)", "f(v)", "f(spd)", "f(x, 0.3)"},
    "np.partition": {"f(x, 0, 1)"},
} | {  # a type among numbers; elements of x @ x.T, which are equal up to rounding
    f"np.{name}": {"f(x, float32)", "f(spd)", "f(spd, v)"}
    for name in (
        "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ).split()
}
# Numbers that stay on the device.
NUMBERS = {"np.linalg.matrix_rank"}


@pytest.fixture(autouse=True)
def _numpys_own_sums():
    with numpys_own_sums():
        yield


def result(function, call, x, v):
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vjp(lambda x, v: call(function, x, v), x, v)


def on_the_host(function, call):
    """The value, a cotangent and its pullback; None if NumPy does not take the call."""
    try:
        y, pullback = result(function, call, X.copy(), V.copy())
        if any(np.asarray(leaf).dtype == object for leaf in tree_leaves(y)):
            return None
        y_bar = random_like(y, np.random.default_rng(0))
        return y, y_bar, pullback(y_bar)
    except Exception:  # of whatever kind: numpy_walk.py looks at them
        return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_numpy(backend, name):
    if name in WITHOUT_COUNTERPART:
        pytest.skip(WITHOUT_COUNTERPART[name])

    def function(*args):
        return settled(name.rpartition(".")[2], FUNCTIONS[name](*args))

    for pattern, call in CALLS.items():
        meant = name in MEANT_FOR.get(pattern, (name,))
        meant = meant and pattern not in APART.get(name, ())
        expected = on_the_host(function, call) if meant else None
        if expected is None:
            continue
        y, y_bar, gradients = expected
        with backend.without_copies(uploads=True, sizes=name in LOOKING):
            there = moved(backend, (X, V))
            z, pullback = result(function, call, *there)
            got = pullback(moved(backend, y_bar))
        leaves = zip(tree_leaves((z, got)), tree_leaves((y, gradients)), strict=True)
        for a, b in leaves:
            if isinstance(b, np.ndarray | np.generic) or name in NUMBERS:
                check_equal(backend, a, b)
            else:
                assert type(a) is type(b)


def test_the_tables_name_functions():
    assert {*WITHOUT_COUNTERPART, *LOOKING, *APART, *NUMBERS} <= {*FUNCTIONS}

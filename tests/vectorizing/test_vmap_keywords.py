"""Functions under ``vmap``, with the alternatives of each keyword: as a loop gives.

Each function of Lantern, and of NumPy, is called in some patterns, with each value of
each of its parameters that the table has. Where a loop over the examples has a result,
``vmap`` has the same one, or refuses for a reason; the reasons are counted here.
"""

import inspect
import warnings

import numpy as np
import pytest

import lantern
from lantern import BatchedValueError, LanternError, vmap
from lantern.errors import EscapedError, MutationError
from tests.numpy_walk import NO_ARRAYS, V, X
from tests.vectorizing.test_vmap_numpy import numbers

XS = np.stack([X, 0.9 * X.T, 1.1 * X[::-1]])
VS = np.stack([V, 0.9 * V[::-1], 1.1 * V])
MASK, GRID = np.array([True, False, True]), np.arange(3.0)
METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf hazen "
    "closest_observation interpolated_inverted_cdf weibull median_unbiased"
).split()
MODES = (
    "full same valid wrap clip raise reflect edge constant reduced complete r".split()
)
# Where a text stands for a tracked value: "V", "X"; "MASK" is a constant.
ALTERNATIVES = {
    "axis": [None, 0, 1, -1, (0, 1)], "axes": [None, (0, 1), (1, 0)],
    "keepdims": [True], "ddof": [1], "correction": [1], "order": ["C", "F", "A"],
    "ord": [0, 0.0, 1, -1, 2, -2, 3, np.inf, -np.inf, "fro", "nuc"],
    "weights": ["V", "X", np.array([1.0, 2.0, 0.5])], "returned": [True],
    "initial": [0.5], "where": ["MASK"], "n": [0, 1, 2, -1, 5], "k": [1, -1],
    "mode": MODES, "method": METHODS, "side": ["left", "right"], "m": [2], "p": [2],
    "norm": ["ortho", "forward"], "compute_uv": [False], "full_matrices": [False],
    "hermitian": [True], "UPLO": ["U"], "rcond": [0.1, None], "rtol": [0.1],
    "tol": [0.1], "upper": [True], "rowvar": [False], "bias": [True],
    "fweights": [np.array([1, 2, 1])], "aweights": ["V"], "fill_value": [0.0],
    "shift": [1, -1], "repeats": [2, np.array([1, 0, 2])], "reps": [(2, 1)],
    "offset": [1, -1], "nan": [1.0], "decimals": [1], "indexing": ["ij"],
    "sparse": [True], "equal_nan": [True], "prepend": [0.0, "V"], "append": [0.0],
    "edge_order": [2], "period": [1.0], "left": [0.0], "right": [0.0],
    "increasing": [True], "descending": [True], "stable": [True], "largest": [False],
    "kth": [1], "axis1": [1], "axis2": [0], "dtype": [np.float32], "copy": [True],
    "bins": [3, "V"], "density": [True], "range": [(0.0, 3.0)], "endpoint": [False],
    "num": [4], "base": [2.0], "include_initial": [True], "invert": [True],
    "pad_width": [1, ((1, 0), (0, 2))], "constant_values": [2.0], "dx": [0.5],
    "x": ["V", "X"], "s": [(2, 2)], "indices": [np.array([0, 1])], "obj": [1],
    "values": [0.5], "max": [0.5], "min": [0.3], "q": [0.3, [0.2, 0.7]],
    "to_end": [0.0], "to_begin": [0.0], "overwrite_input": [True],
}  # fmt: skip
PATTERNS = {
    "x": lambda x, v: (x,),
    "v": lambda x, v: (v,),
    "x, v": lambda x, v: (x, v),
    "x, x": lambda x, v: (x, x),
    "v, v": lambda x, v: (v, v),
    "v, v, v": lambda x, v: (v, 0.5 * v, v + 1),
    "spd": lambda x, v: (x @ x.T + 2 * np.eye(3),),
    "spd, v": lambda x, v: (x @ x.T + 2 * np.eye(3), v),
    "tall, v": lambda x, v: (x[:, :2], v),
    "mask, v": lambda x, v: (MASK, v),
    "mask, x": lambda x, v: (MASK, x),
    "x, 1": lambda x, v: (x, 1),
    "x, 0": lambda x, v: (x, 0),
    "x, 0.3": lambda x, v: (x, 0.3),
    "c, v": lambda x, v: (GRID, v),
    "c, x": lambda x, v: (np.eye(3) + 0.1, x),
    "x, c": lambda x, v: (x, np.eye(3) + 0.1),
    "c, c, v": lambda x, v: (GRID + 0.4, GRID, v),
    "i, [v, v, v]": lambda x, v: (np.array([0, 2, 1]), [v, 2 * v, 3 * v]),
}
# (function, pattern or keyword) that a loop answers with what happens to be in memory,
# or by writing into an argument, or by looking at how an array lies there.
ODD = {
    ("isfortran", None),
    ("gamma_slope", None),  # of positive arguments
    ("interp", "v, v, v"),  # of increasing ones
}


def functions():
    modules = {"lantern": lantern, "np": np}
    for part in ("linalg", "fft"):
        modules |= {f"{n}.{part}": getattr(modules[n], part) for n in ("lantern", "np")}
    for prefix, module in modules.items():
        for name in sorted(dir(module)):
            found = getattr(module, name)
            if name[0] == "_" or name in NO_ARRAYS or isinstance(found, type):
                continue
            if callable(found) and name not in ("vmap", "empty", "grad", "jet"):
                yield f"{prefix}.{name}", found


FUNCTIONS = dict(functions())


def keywords(function):
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:
        names = []
    each = [(n, a) for n in names for a in ALTERNATIVES.get(n, [])]
    yield {}
    yield from ({n: a} for n, a in each)
    if "axis" in names:
        yield from (
            {"axis": axis, n: a}
            for axis in (0, 1)
            for n, a in each
            if n not in ("axis", "method", "dtype", "order", "mode")
        )


def given(value, x, v):
    if isinstance(value, str):
        return {"V": v, "X": x, "MASK": MASK}.get(value, value)
    return value


def in_a_loop(call):
    """The stacked results of all examples; None where there are none."""
    try:
        each = [call(x.copy(), v.copy()) for x, v in zip(XS, VS, strict=True)]
        return [np.stack(parts) for parts in zip(*each, strict=True)] or None
    except Exception:  # whatever a function says to such arguments
        return None


def compare(name, pattern, options):
    def call(x, v):
        arguments = PATTERNS[pattern](x, v)
        chosen = {n: given(a, x, v) for n, a in options.items()}
        return numbers(FUNCTIONS[name](*arguments, **chosen))

    want = in_a_loop(call)
    if want is None:
        return
    try:
        got = vmap(call)(XS, VS)
    except EscapedError:
        raise
    except LanternError:  # it says what it cannot
        return
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_what_a_loop_gives_or_says_what_it_cannot(name):
    short, ufunc = name.rpartition(".")[2], isinstance(FUNCTIONS[name], np.ufunc)
    before = XS.copy(), VS.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pattern in PATTERNS:
            if (short, None) in ODD or (short, pattern) in ODD:
                continue
            for options in keywords(FUNCTIONS[name]):
                if not (ufunc and "where" in options):  # the rest is left as it was
                    compare(name, pattern, options)
                np.testing.assert_array_equal(XS, before[0])
                np.testing.assert_array_equal(VS, before[1])


RIGHT = {
    "matrix_power, 0": lambda x, v: np.linalg.matrix_power(x, 0),
    "matrix_power, -2": lambda x, v: lantern.linalg.matrix_power(x, -2),
    "lstsq": lambda x, v: lantern.linalg.lstsq(x[:, :2], v)[0],
    "lstsq, constant matrix": lambda x, v: lantern.linalg.lstsq(np.eye(3) + 0.1, v)[0],
    "lstsq, constant vector": lambda x, v: lantern.linalg.lstsq(x, np.ones(3))[0],
    "norm, 0": lambda x, v: np.linalg.norm(v * MASK, ord=0),
    "norm, 0.0": lambda x, v: lantern.linalg.norm(x, ord=0.0, axis=1),
    "matrix_rank": lambda x, v: np.linalg.matrix_rank(x),
    "matrix_rank, tolerance": lambda x, v: lantern.linalg.matrix_rank(x, rtol=0.5),
    "compress": lambda x, v: np.compress(MASK, v),
    "compress, axis": lambda x, v: np.compress([True, False, True], x, axis=1),
    "extract": lambda x, v: np.extract(MASK, v),
    "average": lambda x, v: np.average(v, weights=v * v),
    "average, axis": lambda x, v: np.average(x, axis=0, weights=v),
    "average of constants": lambda x, v: np.average(np.ones(3), weights=v),
    "argmax, keepdims": lambda x, v: np.argmax(x, keepdims=True),
    "diff, 0": lambda x, v: np.diff(v, n=0, prepend=1.0),
    "trapezoid": lambda x, v: np.trapezoid(v, x),
    "geomspace": lambda x, v: np.geomspace(x, 2.0, 4, axis=1),
    "histogram": lambda x, v: np.histogram(x, 3, (0.0, 1.0), weights=x)[0],
    "choose": lambda x, v: np.choose(np.array([0, 1, 0]), [v, 2 * v]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_functions_that_are_right(name):
    call = RIGHT[name]
    want = np.stack([call(x, v) for x, v in zip(XS, VS, strict=True)])
    got = vmap(call)(XS, VS)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_weights_that_sum_to_zero_are_refused_in_any_example():
    weights = np.array([[1.0, 2.0], [1.0, -1.0]])
    with pytest.raises(ZeroDivisionError):
        np.average(np.ones(2), weights=weights[1])
    with pytest.raises(ValueError, match="weights sum to zero"):
        vmap(lambda w: np.average(np.ones(2), weights=w))(weights)


def test_sizes_that_depend_on_values_are_refused():
    for call in (np.compress, np.extract):
        with pytest.raises(BatchedValueError, match="another size"):
            vmap(lambda v, call=call: call(v > 1, v))(VS)


@pytest.mark.parametrize("name", ["equal", "less", "isfinite", "isneginf", "all"])
def test_nothing_is_written_into_a_value(name):
    function, before = getattr(lantern, name), VS.copy()
    count = 2 if name in ("equal", "less", "all") else 1
    others = (None,) if name == "all" else (GRID,) * (count - 1)
    for derivative in (vmap, lambda f: lambda vs: lantern.vjp(f, vs[0])):
        with pytest.raises(MutationError, match="out= cannot be a tracked value"):
            derivative(lambda v: function(GRID, *others, v))(VS)
        with pytest.raises(MutationError, match="out= cannot be a tracked value"):
            derivative(lambda v: function(GRID, *others, out=v))(VS)
    np.testing.assert_array_equal(VS, before)

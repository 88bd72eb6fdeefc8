"""Every public function of NumPy on a tracked array: what comes of it.

A function is tried with several patterns of arguments. Where NumPy itself accepts the
pattern, the tracked call has to give the same value with the right derivative, or to
raise one of our errors. ``python -m tests.numpy_walk`` writes docs/numpy.md.
"""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np

import lantern
from lantern.errors import DetachError, LanternError, MissingRuleError, MutationError
from lantern.testing import difference, inner, random_like


def constant(values):
    """An array that nobody changes, as `np.rot90(x, k)` and others do with k."""
    found = np.array(values)
    found.flags.writeable = False
    return found


X = constant([[0.61, 0.22, 0.13], [0.31, 0.92, 0.24], [0.17, 0.43, 0.84]])
V = constant([0.57, 1.43, 2.66])
MASK, TWO = constant([True, False, True]), constant([0, 1])

# Functions that read and write files or buffers, change settings, print, or give what
# happens to be in memory: nothing to track.
NO_ARRAYS = frozenset(
    (
        "test info show_config show_runtime save savez savez_compressed savetxt load "
        "loadtxt empty_like frombuffer fromfile fromregex genfromtxt mintypecode "
        "typename set_printoptions get_printoptions printoptions seterr geterr "
        "seterrcall geterrcall setbufsize getbufsize get_include bmat"
    ).split()
)
PATTERNS = {
    "f(x)": lambda f, x, v: f(x),
    "f(v)": lambda f, x, v: f(v),
    "f(x, x)": lambda f, x, v: f(x, x),
    "f(v, v)": lambda f, x, v: f(v, v),
    "f(x, v)": lambda f, x, v: f(x, v),
    "f(x, 1)": lambda f, x, v: f(x, 1),
    "f(x, 2)": lambda f, x, v: f(x, 2),
    "f(x, 0.3)": lambda f, x, v: f(x, 0.3),
    "f(x, 0, 1)": lambda f, x, v: f(x, 0, 1),
    "f(x, 2, 0)": lambda f, x, v: f(x, 2, 0),
    "f(x, 0.2, 0.8)": lambda f, x, v: f(x, 0.2, 0.8),
    "f([x, x])": lambda f, x, v: f([x, x]),
    "f([v, v])": lambda f, x, v: f([v, v]),
    "f(x, float32)": lambda f, x, v: f(x, np.float32),
    "f(x, (9,))": lambda f, x, v: f(x, (9,)),
    "f(x, (2, 3, 3))": lambda f, x, v: f(x, (2, 3, 3)),
    "f(x, [0, 1])": lambda f, x, v: f(x, TWO),
    "f(x, [[0, 1, 1]], 0)": lambda f, x, v: f(x, np.array([[0, 1, 1]]), 0),
    "f(mask, v)": lambda f, x, v: f(MASK, v),
    "f(mask, v, v)": lambda f, x, v: f(MASK, v, 2 * v),
    "f([0, 1], [v, v])": lambda f, x, v: f(TWO, [v[:2], 2 * v[:2]]),
    "f([mask], [v])": lambda f, x, v: f([MASK], [v]),
    "f(grid, grid, v)": lambda f, x, v: f(np.arange(3) + 0.4, np.arange(3.0), v),
    "f('ij,jk', x, x)": lambda f, x, v: f("ij,jk", x, x),
    "f(x[0, 0], 2.0)": lambda f, x, v: f(x[0, 0], 2.0),
    "f(spd)": lambda f, x, v: f(x @ x.T + 2.3 * np.eye(3)),
    "f(spd, v)": lambda f, x, v: f(x @ x.T + 2.3 * np.eye(3), v),
    "f(x, 1, v[:1])": lambda f, x, v: f(x, 1, v[:1]),
    "f(sum, 0, x)": lambda f, x, v: f(np.sum, 0, x),
}

# Calls that NumPy takes for reasons of its own: (function, pattern) -> why not ours.
ODD_CALLS = {
    ("np.average", "f(x, [0, 1])"): "an array as axis",
    ("np.median", "f(x, [0, 1])"): "an array as axis",
    ("np.nanmedian", "f(x, [0, 1])"): "an array as axis",
    ("np.polyint", "f(x, 0.3)"): "a fraction as order",
    ("np.polyint", "f(x, 0.2, 0.8)"): "a fraction as order",
    ("np.corrcoef", "f(x, [[0, 1, 1]], 0)"): "a second row beside columns",
    ("np.cov", "f(x, [[0, 1, 1]], 0)"): "a second row beside columns",
    ("np.copysign", "f(x, (9,))"): "a tuple as number",
    ("np.copysign", "f(x, (2, 3, 3))"): "a tuple as number",
    ("np.float_power", "f(x, (9,))"): "a tuple as number",
    ("np.float_power", "f(x, (2, 3, 3))"): "a tuple as number",
    ("np.histogramdd", "f(x)"): "a count that jumps at this x",
    ("np.where", "f(sum, 0, x)"): "a function as condition",
}


def functions():
    """The public functions of numpy, numpy.linalg and numpy.fft, by name."""
    found = {}
    for module, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
        for name in dir(module):
            function = getattr(module, name)
            public = callable(function) and not isinstance(function, type)
            if public and not name.startswith("_") and name not in NO_ARRAYS:
                found[f"{prefix}.{name}"] = function
    return found


def outcome(function, pattern):
    """What one call comes to: "tracked", "zero", "missing", "detach" or None.

    None: NumPy does not take such arguments, or does not use them.

    Raises:
        AssertionError: for a wrong value, a wrong derivative or a lost one.
    """

    def f(x, v):
        return _floats(PATTERNS[pattern](function, x, v))

    plain, slope = _plain(f)
    if plain is None:
        return None
    try:
        value, tangent = lantern.jvp(f, (X.copy(), V.copy()), _direction())
    except MissingRuleError:
        return "missing"
    except (DetachError, MutationError):
        return "detach"
    _assert_close("value", value, plain)
    _assert_close("forward derivative", tangent, slope)
    y, pullback = lantern.vjp(f, X.copy(), V.copy())
    y_bar = random_like(y, np.random.default_rng(1))
    got = inner(pullback(y_bar), _direction())
    single = any(leaf.dtype == np.float32 for leaf in plain if hasattr(leaf, "dtype"))
    if not single:  # finite differences of single precision tell too little
        _assert_close("reverse derivative", got, inner(y_bar, slope))
    moving = any(np.any(np.asarray(leaf) != 0) for leaf in lantern.tree_leaves(slope))
    return "tracked" if moving else "zero"


def _direction():
    return random_like((X, V), np.random.default_rng(0))


def _floats(result):
    """The parts of a result that could have a derivative."""
    kept = []
    for leaf in lantern.tree_leaves(result):
        dtype = getattr(leaf, "dtype", None)
        if isinstance(leaf, float) or (dtype is not None and dtype.kind in "fc"):
            kept.append(leaf)
    return kept


def _plain(f):
    """Value and derivative by NumPy alone; (None, None) where it takes no such call."""
    try:
        x, v = X.copy(), V.copy()
        plain = f(x, v)
        changed = (x != X).any() or (v != V).any()
        if not plain or changed or not np.all([np.isfinite(p).all() for p in plain]):
            return None, None
        return plain, difference(f, (X, V), _direction(), 1e-4)
    except Exception:  # whatever NumPy says to arguments that it does not take
        return None, None


def _assert_close(what, got, want):
    got, want = list(lantern.tree_leaves(got)), list(lantern.tree_leaves(want))
    assert len(got) == len(want), f"{what}: {len(got)} parts, expected {len(want)}"
    for a, b in zip(got, want, strict=True):
        single = getattr(b, "dtype", None) == np.float32
        tolerance = (
            {"rtol": 0.05, "atol": 0.05} if single else {"rtol": 1e-5, "atol": 1e-6}
        )
        np.testing.assert_allclose(a, b, **tolerance, err_msg=what)


def walk(name, function):
    """The outcomes of all patterns that NumPy takes: {pattern: outcome}."""
    found = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for pattern in PATTERNS:
            if (name, pattern) in ODD_CALLS:
                continue
            try:
                result = outcome(function, pattern)
            except LanternError as error:
                result = f"wrong: {type(error).__name__}: {error}"
            except Exception as error:
                result = f"wrong: {type(error).__name__}: {error}"
            if result is not None:
                found[pattern] = result
    return found


def verdict(outcomes):
    """One word for a function, the best of its outcomes."""
    order = ("tracked", "zero", "detach", "missing")
    return next((word for word in order if word in outcomes.values()), "not applicable")


HEADINGS = {
    "tracked": "Differentiated",
    "zero": "Derivative zero: the result is a plain value",
    "detach": "Refused: the result would be a constant (`DetachError`)",
    "missing": "No rule (`MissingRuleError`)",
    "not applicable": "Not about arrays of floating-point numbers",
}


def page(verdicts):
    """The table of the documentation."""
    lines = [
        "# NumPy's functions on a tracked array",
        "",
        f"What public functions of NumPy {np.__version__} do inside a derivative.",
        "Written by `python -m tests.numpy_walk`, checked by the tests.",
    ]
    for word, heading in HEADINGS.items():
        names = sorted(name for name, found in verdicts.items() if found == word)
        if not names:
            continue
        lines += [
            "",
            f"## {heading}: {len(names)}",
            "",
            ", ".join(f"`{n}`" for n in names),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    table = page({name: verdict(walk(name, f)) for name, f in functions().items()})
    Path(__file__).parent.parent.joinpath("docs", "numpy.md").write_text(table)

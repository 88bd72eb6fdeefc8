"""A list, a tuple or a number as an operand is the array that NumPy makes of it.

In every position of every array function in which NumPy takes it, and in every mode:
value and derivatives are to the bit those for ``np.asarray`` of it.
"""

import contextlib
import io
import warnings

import numpy as np
import pytest
import scipy

import lantern
import lantern.fft
import lantern.linalg
import lantern.scipy.linalg
import lantern.scipy.signal
import lantern.scipy.special
from lantern import LanternError, grad, jvp, vmap
from lantern.core.numpy_protocols import OUR_NAMES
from lantern.op import registry
from tests import numpy_walk
from tests.cases import ARRAYS, ELEMENTWISE, Case, draw
from tests.numpy_walk import MASK, PATTERNS, TWO, V, X, constant


def converted(kind):
    """Conversion of arrays, also in lists and tuples, to nested ``kind``."""

    def convert(x):
        if isinstance(x, np.ndarray | np.generic):
            x = x.tolist()
        return kind(map(convert, x)) if type(x) in (list, tuple) else x

    return convert


def rows(x):
    """A list of arrays."""
    return list(x) if isinstance(x, np.ndarray) and x.ndim else x


def zero_dim(x):
    """A fraction as an array without axes; a whole number may be an axis."""
    return np.asarray(x) if type(x) is float else x


FORMS = {
    "lists": converted(list),
    "tuples": converted(tuple),
    "rows": rows,
    "arrays for fractions": zero_dim,
}


def total(g):
    """A function of g's whole result: a number."""

    def f(x):
        sums = []
        for leaf in lantern.tree_leaves(g(x)):
            weights = np.cos(1 + np.arange(np.prod(_shape(leaf), dtype=int)))
            weights = weights.reshape(_shape(leaf))
            sums.append(lantern.sum(lantern.real(leaf) * weights))
        return sum(sums)

    return f


def _shape(leaf):
    return getattr(leaf, "shape", ())


def slanted(x):
    return np.sin(1 + np.arange(x.size)).reshape(x.shape)


def several(x):
    return np.stack([x, 1.01 * x])


MODES = {
    "reverse": lambda g, x: (g(x), grad(total(g))(x)),
    "forward": lambda g, x: jvp(g, (x,), (slanted(x),)),
    "vmap": lambda g, x: vmap(g)(several(x)),
    "nested": lambda g, x: jvp(grad(total(g)), (x,), (slanted(x),)),
    "vmap of reverse": lambda g, x: vmap(grad(total(g)))(several(x)),
    "reverse of vmap": lambda g, x: grad(total(vmap(g)))(several(x)),
}


def attempt(mode, g, x):
    """What a mode gives: ``(result, None)`` or ``(None, error)``."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return MODES[mode](g, x.copy()), None
    except Exception as error:
        return None, error


def same(found, expected):
    """Whether two structures agree in shapes, types and values."""
    found, expected = (list(lantern.tree_leaves(x)) for x in (found, expected))
    found, expected = ([np.asarray(x) for x in leaves] for leaves in (found, expected))
    return len(found) == len(expected) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.allclose(a, b, rtol=1e-13, atol=1e-14, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def differences(call, x, forms, modes=MODES):
    """Where forms of the constant operands change what comes of a call.

    Args:
        call: takes x and a conversion of its constant operands.
        x: what is differentiated.
        forms: names of conversions.
        modes: names of modes.
    """
    for mode in modes:
        expected, error = attempt(mode, lambda x: call(x, np.asanyarray), x)
        for form in forms:
            convert = FORMS[form]
            found, other = attempt(mode, lambda x, c=convert: call(x, c), x)
            if error is None:
                if other is not None:
                    yield f"{mode}, {form}: {type(other).__name__}: {other}"
                elif not same(found, expected):
                    yield f"{mode}, {form}: {found}, not {expected}"
            elif isinstance(error, LanternError) and not isinstance(
                other, LanternError
            ):
                yield f"{mode}, {form}: {other or found!r} in place of {error!r}"


def refusal(function, *args):
    """What a function of NumPy or SciPy says to plain arguments, or None."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            floats = numpy_walk._floats(function(*args))
    except Exception as error:
        return error
    return None if floats else "nothing that could have a derivative"


def accepts(function, *args):
    """Whether a function of NumPy or SciPy takes plain arguments."""
    return refusal(function, *args) is None


def functions():
    """The functions to call, each with the one of NumPy or SciPy that it stands for."""
    found = {name: (f, f) for name, f in numpy_walk.functions().items()}
    theirs = {ours: name for name, ours in OUR_NAMES.items()}
    for ours, twin in (
        (lantern, np),
        (lantern.linalg, np.linalg),
        (lantern.fft, np.fft),
        (lantern.scipy.special, scipy.special),
        (lantern.scipy.linalg, scipy.linalg),
        (lantern.scipy.signal, scipy.signal),
    ):
        for name in dir(ours):
            if name in numpy_walk.NO_ARRAYS:
                continue
            f, g = (
                getattr(module, name, None)
                or getattr(module, theirs.get(name, name), None)
                for module in (ours, twin)
            )
            if callable(g) and callable(f) and not isinstance(f, type):
                found[f"{ours.__name__}.{name}"] = f, g
    return found


FUNCTIONS = functions()


def arguments(pattern):
    found = []
    PATTERNS[pattern](lambda *args: found.append(args), X.copy(), V.copy())
    return found[0]


def positions(args):
    """The arguments that can be differentiated."""
    for i, x in enumerate(args):
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            yield i


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_numpy_and_scipy(name):
    function, twin = FUNCTIONS[name]
    wrong = []
    for pattern in PATTERNS:
        args = arguments(pattern)
        if (f"np.{twin.__name__}", pattern) in numpy_walk.ODD_CALLS:
            continue
        if not accepts(twin, *args):
            continue
        for i in positions(args):

            def call(x, form, args=args, i=i):
                others = [form(y) if j != i else x for j, y in enumerate(args)]
                return numpy_walk._floats(function(*others))

            forms = [
                form
                for form, convert in FORMS.items()
                if any(convert(y) is not y for j, y in enumerate(args) if j != i)
                and accepts(twin, *(convert(y) for y in args))
            ]
            found = differences(lambda x, c: call(x, _unless_array(c)), args[i], forms)
            wrong += [f"{pattern}, {i}: {words}" for words in found]
    assert not wrong, "\n".join(wrong)


def _unless_array(convert):
    """A conversion that leaves numbers and strings, as ``np.asanyarray`` does not."""
    if convert is not np.asanyarray:
        return convert
    return lambda x: x


ROWS = constant([[True, False, True], [False, True, True], [True, True, False]])
THREE, WHOLE = constant([0.4, 1.3, 2.2]), constant([2, 0, 1])
GRID = constant([0.0, 1.0, 2.0, 3.0])
# What is given by name, or in positions that no pattern has.
BY_NAME = {
    "where": lambda x, c: np.where(c(ROWS), x, 2 * x),
    "where, x": lambda x, c: np.where(c(ROWS), c(X), x),
    "where, y": lambda x, c: np.where(c(ROWS), x, c(THREE)),
    "where, numbers": lambda x, c: np.where(c(WHOLE), x, 1),
    "sum": lambda x, c: np.sum(x, axis=0, where=c(ROWS)),
    "mean": lambda x, c: np.mean(x, axis=0, where=c(ROWS)),
    "std": lambda x, c: np.std(x, axis=0, where=c(ROWS)),
    "max": lambda x, c: np.max(x, axis=0, where=c(ROWS), initial=0.1),
    "prod": lambda x, c: np.prod(x, axis=0, where=c(ROWS)),
    "sum, initial": lambda x, c: np.sum(x, initial=c(0.3)),
    "average": lambda x, c: np.average(x, axis=0, weights=c(THREE)),
    "average of constants": lambda x, c: np.average(c(THREE), weights=x[0]),
    "cov": lambda x, c: np.cov(x, fweights=c(WHOLE + 1), aweights=c(THREE)),
    "clip": lambda x, c: np.clip(x, c(THREE - 0.3), c(THREE)),
    "clip of a constant": lambda x, c: np.clip(c(THREE), x, 2.0),
    "diff": lambda x, c: np.diff(x, prepend=c(X[:, :1]), append=c(X[:, 1:2])),
    "ediff1d": lambda x, c: np.ediff1d(x, to_begin=c(THREE), to_end=c(TWO)),
    "gradient": lambda x, c: np.gradient(x, c(THREE), axis=1),
    "trapezoid": lambda x, c: np.trapezoid(x, c(THREE)),
    "interp": lambda x, c: np.interp(x, c(GRID), c(np.sin(GRID))),
    "interp, fp": lambda x, c: np.interp(c(THREE), c(THREE + 0.1), x[0]),
    "interp, period": lambda x, c: np.interp(
        x, c(GRID), c(np.sin(GRID)), period=c(5.0)
    ),
    "unwrap": lambda x, c: np.unwrap(10 * x, period=c(2.3)),
    "insert": lambda x, c: np.insert(x, c(TWO), c(X[:2]), axis=0),
    "insert into a constant": lambda x, c: np.insert(c(X), c(TWO), x[:2], axis=0),
    "delete": lambda x, c: np.delete(x, c(TWO), axis=1),
    "append": lambda x, c: np.append(c(X), x, axis=0),
    "take": lambda x, c: np.take(x, c(WHOLE), axis=1),
    "take from a constant": lambda x, c: x[0] * np.take(c(THREE), c(WHOLE)),
    "take along": lambda x, c: np.take_along_axis(x, c(WHOLE[None]), 0),
    "compress": lambda x, c: np.compress(c(MASK), x, axis=1),
    "extract": lambda x, c: np.extract(c(ROWS), x),
    "choose": lambda x, c: np.choose(c(WHOLE), [x[0], c(THREE), x[1]]),
    "select": lambda x, c: np.select([c(ROWS), c(~ROWS)], [x, c(X)], c(THREE)),
    "piecewise": lambda x, c: np.piecewise(
        x, [c(ROWS), c(~ROWS)], [np.sin, lambda x: x * x]
    ),
    "repeat": lambda x, c: np.repeat(x, c(WHOLE), axis=1),
    "split": lambda x, c: np.split(x, c(np.array([1, 2])), axis=1),
    "pad": lambda x, c: np.pad(x, c(np.array([[1, 0], [0, 2]]))),
    "pad, values": lambda x, c: np.pad(x, 1, constant_values=c(np.array([1.5, 2.5]))),
    "roll": lambda x, c: np.roll(x, c(np.array([1, 2])), (0, 1)),
    "tile": lambda x, c: np.tile(x, c(np.array([2, 1]))),
    "histogram": lambda x, c: np.histogram(
        c(np.ravel(X)), c(GRID / 3), weights=x.ravel()
    )[0],
    "bincount": lambda x, c: np.bincount(c(WHOLE), weights=x[0]),
    "quantile": lambda x, c: np.quantile(x, c(np.array([0.2, 0.7])), axis=0),
    "percentile": lambda x, c: np.percentile(x, c(np.array([20.0, 70.0]))),
    "nan_to_num": lambda x, c: np.nan_to_num(np.sqrt(x - 0.3), nan=c(THREE)),
    "nansum": lambda x, c: np.nansum(x, axis=0, where=c(ROWS)),
    "polyval": lambda x, c: np.polyval(c(THREE), x),
    "polyval at constants": lambda x, c: np.polyval(x[0], c(THREE)),
    "polyint": lambda x, c: np.polyint(x[0], 2, c(TWO + 0.5)),
    "vander": lambda x, c: np.vander(x[0], 3) @ c(THREE),
    "convolve": lambda x, c: np.convolve(c(THREE), x[0]),
    "cross": lambda x, c: np.cross(c(X), x),
    "einsum": lambda x, c: np.einsum("ij,j,k->ik", x, c(THREE), c(TWO)),
    "einsum, list": lambda x, c: np.einsum(x, [0, 1], c(THREE), [1], [0]),
    "dot": lambda x, c: np.dot(c(X), x),
    "vdot": lambda x, c: np.vdot(c(X), x),
    "inner": lambda x, c: np.inner(x, c(THREE)),
    "outer": lambda x, c: np.outer(c(THREE), x),
    "kron": lambda x, c: np.kron(c(X), x),
    "tensordot": lambda x, c: np.tensordot(c(X), x, ([0], [1])),
    "multi_dot": lambda x, c: np.linalg.multi_dot([c(X), x, c(THREE)]),
    "solve": lambda x, c: np.linalg.solve(x, c(THREE)),
    "solve of constants": lambda x, c: np.linalg.solve(c(X), x),
    "lstsq": lambda x, c: np.linalg.lstsq(x, c(THREE))[0],
    "lstsq of constants": lambda x, c: np.linalg.lstsq(c(X), x[0])[0],
    "searchsorted": lambda x, c: x[0] * np.searchsorted(c(GRID), x[0]),
    "isin": lambda x, c: x * np.isin(x, c(X[0])),
    "digitize": lambda x, c: x * np.digitize(x, c(GRID / 3)),
    "greater": lambda x, c: x * np.greater(x, c(THREE)),
    "logical_and": lambda x, c: x * np.logical_and(x > 0.3, c(ROWS)),
    "isclose": lambda x, c: x * np.isclose(c(X), x, rtol=c(1e-3)),
    "floor_divide": lambda x, c: x * np.floor_divide(x, c(THREE)),
    "divmod": lambda x, c: np.divmod(x, c(THREE))[1],
    "heaviside": lambda x, c: np.heaviside(c(X - 0.3), x),
    "copysign": lambda x, c: np.copysign(x, c(THREE - 1)),
    "ldexp": lambda x, c: np.ldexp(x, c(WHOLE)),
    "geomspace": lambda x, c: np.geomspace(x, c(THREE), 4),
    "linspace": lambda x, c: np.linspace(c(THREE), x, 4),
    "full_like": lambda x, c: x * np.full_like(x, c(THREE)),
    "put_along_axis": lambda x, c: lantern.put_along_axis(
        x, c(WHOLE[None]), c(THREE[None]), 0
    ),
    "multiply.outer": lambda x, c: np.multiply.outer(x, c(THREE)),
    "polygamma": lambda x, c: lantern.scipy.special.polygamma(c(WHOLE), x),
    "jv": lambda x, c: lantern.scipy.special.jv(c(WHOLE), x),
    "iv": lambda x, c: lantern.scipy.special.iv(c(WHOLE), x),
    "betainc": lambda x, c: lantern.scipy.special.betainc(c(THREE), c(THREE), x),
    "stdtr": lambda x, c: lantern.scipy.special.stdtr(c(THREE), x),
    "logsumexp": lambda x, c: lantern.scipy.special.logsumexp(x, b=c(THREE), axis=1),
    "x + ...": lambda x, c: x + c(THREE),
    "... - x": lambda x, c: c(THREE) - x,
    "... * x": lambda x, c: c(THREE) * x,
    "x / ...": lambda x, c: x / c(THREE),
    "x @ ...": lambda x, c: x @ c(X),
    "... @ x": lambda x, c: c(X) @ x,
    "x ** ...": lambda x, c: x ** c(WHOLE),
    "x % ...": lambda x, c: x % c(THREE),
    "x // ...": lambda x, c: x * (x // c(THREE)),
    "x > ...": lambda x, c: x * (x > c(THREE)),
    "x == ...": lambda x, c: x * (x == c(X)),
    "x[...]": lambda x, c: x[c(WHOLE)],
    "x[mask]": lambda x, c: x[c(ROWS)],
    "x[:, ...]": lambda x, c: x[:, c(WHOLE)],
    "x.at": lambda x, c: x.at[c(WHOLE)].add(c(X)),
    "x.take": lambda x, c: x.take(c(WHOLE)),
    "x.clip": lambda x, c: x.clip(c(THREE - 0.3), c(THREE)),
    "x.dot": lambda x, c: x.dot(c(THREE)),
    "x.sum": lambda x, c: x.sum(0, where=c(ROWS)),
    "x.repeat": lambda x, c: x.repeat(c(WHOLE), 1),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_operands_given_by_name(name):
    call, forms = BY_NAME[name], list(FORMS)
    if name in ("x.at", "put_along_axis"):  # NumPy has no such function
        forms.remove("tuples")  # a tuple of indices has one for each axis
    else:
        assert refusal(call, X, np.asanyarray) is None
        assert attempt("reverse", lambda x: call(x, np.asanyarray), X)[1] is None
        forms = [form for form in forms if accepts(call, X, FORMS[form])]
    wrong = list(differences(call, X, forms))
    assert not wrong, "\n".join(wrong)


PUBLIC = (
    lantern,
    lantern.linalg,
    lantern.fft,
    lantern.scipy.special,
    lantern.scipy.linalg,
    lantern.scipy.signal,
)
CASES = [
    case
    for case in ARRAYS
    + [
        Case(name, intervals, {}, ((2, 3),) * len(intervals))
        for name, intervals in ELEMENTWISE.items()
    ]
    if (0, 3) not in case.shapes  # a list has no such shape
    if len(case.operands) > 1
    or any(isinstance(x, np.ndarray) for x in case.statics.values())
]


def public(case):
    function = registry[case.name].function
    return any(getattr(module, case.name, None) is function for module in PUBLIC)


@pytest.mark.parametrize("case", [case for case in CASES if public(case)], ids=str)
def test_every_operation(case):
    rng = np.random.default_rng(0)
    pairs = zip(case.operands, case.shapes, strict=True)
    operands = [np.asarray(draw(interval, rng, shape)) for interval, shape in pairs]
    function, wrong = registry[case.name].function, []
    for i, chosen in enumerate(operands):

        def call(x, c, i=i):
            c = _unless_array(c)
            others = [c(y) if j != i else x for j, y in enumerate(operands)]
            statics = {k: c(v) if _listed(k, v) else v for k, v in case.statics.items()}
            return numpy_walk._floats(function(*others, **statics))

        wrong += list(differences(call, chosen, FORMS))
    assert not wrong, "\n".join(wrong)


def _listed(name, static):
    return isinstance(static, np.ndarray) and name != "index"


def test_numbers_put_in_place_of_nan_and_infinities_are_differentiated():
    x = np.array([np.nan, 1.0, np.inf, -np.inf, np.nan])

    def f(v):
        return lantern.nan_to_num(x * v / v, nan=v, posinf=[v * v], neginf=3 * v)

    for v in (2.0, np.array(2.0)):
        np.testing.assert_array_equal(
            jvp(f, (v,), (1.0,))[1], [1.0, 0.0, 4.0, 3.0, 1.0]
        )
        assert grad(lambda v: f(v).sum())(v) == 9.0
    assert grad(lambda v: lantern.nan_to_num(np.nan, nan=v) * v)(3.0) == 6.0
    assert vmap(f)(np.array([2.0, 3.0]))[1].tolist() == [3.0, 1.0, 9.0, 9.0, 3.0]

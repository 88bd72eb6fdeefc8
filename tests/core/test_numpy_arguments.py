"""NumPy's functions with rarer arguments: value and type are as without us."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import lantern
from lantern import LanternError, grad, vjp
from lantern.core.numpy_protocols import find_operation
from lantern.core.value import base
from lantern.op import registry
from lantern.testing import check_grads

MATRIX = np.array([[0.7, -0.4, 1.3], [0.2, 0.9, -1.1]])
STACK = np.linspace(-1.0, 1.5, 18).reshape(2, 3, 3)
NUMBER = np.array(0.7)
NOTHING = np.zeros((0, 3))
COMPLEX = np.array([0.6 + 0.3j, -0.4 + 1.1j])

CALLS = {
    "accumulate": (lambda x: np.add.accumulate(x), MATRIX),
    "accumulate, axis": (lambda x: np.multiply.accumulate(x, 1), MATRIX),
    "running maximum": (lambda x: np.maximum.accumulate(x), MATRIX),
    "outer": (lambda x: np.multiply.outer(x, [1.0, 2.0]), MATRIX),
    "outer of a number": (lambda x: np.multiply.outer(x, [1.0, 2.0]), NUMBER),
    "outer of any ufunc": (lambda x: np.arctan2.outer([1.0, 2.0], x), MATRIX),
    "dot of stacks": (lambda x: x.dot(x), STACK),
    "emath.sqrt": (lambda x: np.emath.sqrt(x), MATRIX),
    "emath.log": (lambda x: np.emath.log(x), MATRIX),
    "emath.power": (lambda x: np.emath.power(x, 0.5), MATRIX),
    "emath.arcsin": (lambda x: np.emath.arcsin(x), MATRIX),
    "sign of complex": (np.sign, COMPLEX),
    "conj": (lambda x: x.conj(), COMPLEX),
    "expi of a number": (special.expi, 0.6 + 0.3j),
    "sum over axis 0 of a number": (lambda x: np.sum(x, axis=0), NUMBER),
    "max over axis -1 of a number": (lambda x: np.max(x, axis=-1), NUMBER),
    "add.reduce of a number": (np.add.reduce, NUMBER),
    "prod of nothing": (lambda x: np.prod(x, axis=0), NOTHING),
    "max of nothing": (lambda x: np.max(x, axis=0, initial=2.0), NOTHING),
    "min of nothing": (lambda x: np.min(x, initial=2.0), NOTHING),
    "mean, integers": (lambda x: np.mean(x, dtype=int), MATRIX),
    "var, complex": (lambda x: np.var(x, dtype=complex), MATRIX),
    "var of nothing": (lambda x: np.nanvar(x, axis=1, ddof=4), MATRIX),
    "median, axis": (lambda x: np.median(x, axis=np.int64(1)), MATRIX),
    "no quantiles": (lambda x: np.quantile(x, [], axis=1), MATRIX),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_rarer_arguments(name):
    f, x = CALLS[name]
    expected, found = np.asarray(f(x)), np.asarray(base(vjp(f, x)[0]))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)
    if found.dtype.kind in "fc" and found.size and np.isfinite(found).all():
        check_grads(f, (x,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_median_of_nothing_is_nan():
    value, pullback = vjp(np.median, NOTHING)
    assert np.isnan(value)
    assert pullback(1.0)[0].shape == NOTHING.shape


SINGLE = {
    "nanmean": np.nanmean,
    "nanstd": lambda x: np.nanstd(x, axis=0),
    "nanvar": np.nanvar,
    "mean, where": lambda x: np.mean(x, axis=1, where=x > 0),
    "std, where": lambda x: np.std(x, where=x > 0),
    "differences": lambda x: np.ediff1d(x, to_begin=1.0),
    "mean of a column": lambda x: np.mean(x, where=np.array([True, False, False])),
}


@pytest.mark.parametrize("name", SINGLE)
def test_what_counts_elements_leaves_single_precision(name):
    x = MATRIX.astype(np.float32)
    value = vjp(SINGLE[name], x)[0]
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, SINGLE[name](x))


def test_sinc_in_half_precision():
    x = np.array([0.3, 0.7, 0.1])
    found = grad(lambda x: np.sinc(x).sum())(x.astype(np.float16))
    np.testing.assert_allclose(found, grad(lambda x: np.sinc(x).sum())(x), rtol=2e-3)


def test_what_a_scalar_of_numpy_has():
    def f(x):
        assert (x.nbytes, x.itemsize, round(x, 1)) == (8, 8, 0.7)
        return x * x

    assert grad(f)(np.float64(0.7)) == 1.4


BOUNDS = {
    "sqrt": 0.0,
    "log": 0.5,
    "log2": 0.5,
    "log10": 0.5,
    "arccos": 1.0,
    "arcsin": -1.0,
    "arctanh": 0.5,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_has_a_real_value_is_not_made_complex(name):
    function, x = getattr(np.emath, name), BOUNDS[name]
    for given, kind in ((x, float), (np.array([x, x]), np.ndarray)):
        value = vjp(lambda x: function(x * 1.0), given)[0]
        assert isinstance(value, kind)
        np.testing.assert_allclose(value, function(given), rtol=1e-15)
        assert np.asarray(value).dtype == float


INTO = {
    "a ufunc": (lambda x, b: np.exp(x, out=b), np.exp),
    "a function": (lambda x, b: np.sum(x[None], axis=1, out=b), np.ones_like),
    "a tuple of one": (lambda x, b: np.exp(x, out=(b,)), np.exp),
}


@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize("n", [1, 2])
def test_a_buffer_for_the_result(name, n):
    call, slope = INTO[name]
    x = np.linspace(0.5, 1.5, n)

    def f(x):
        b = lantern.Buffer(np.zeros(1 if name == "a function" else n))
        call(x, b)
        return lantern.sum(b)

    np.testing.assert_allclose(grad(f)(x), slope(x))


@pytest.mark.filterwarnings("ignore:numpy.fix:DeprecationWarning")
@pytest.mark.parametrize("function", [np.fix, np.isneginf, np.isposinf])
def test_a_buffer_in_the_second_place(function):
    x = np.array([-np.inf, 1.5, np.inf])

    def f(x):
        b = lantern.Buffer(np.zeros(3))
        function(x, b)
        return b * 1.0

    np.testing.assert_array_equal(vjp(f, x)[0], function(x))


def test_only_a_buffer_is_written_to_at_places():
    for target in (lambda x: np.zeros(2), lambda x: x):
        with pytest.raises(lantern.MutationError, match=r"numpy.add.at: .*Buffer"):
            grad(lambda x, t=target: np.add.at(t(x), [0], x[0]))(np.ones(2))


WRITES = {
    "add": (lambda b, x: np.add.at(b, [0, 0], x), [1.0, 1.0]),
    "subtract": (lambda b, x: np.subtract.at(b, [1], x[:1]), [-1.0, 0.0]),
    "multiply": (lambda b, x: np.multiply.at(b, [0], x[1:]), [0.0, 2.0]),
    "divide": (lambda b, x: np.divide.at(b, [0], x[1:]), [0.0, -1 / 8]),
    "power": (lambda b, x: np.power.at(b, [0], x[1:]), [0.0, 16 * np.log(2)]),
    "minimum": (lambda b, x: np.minimum.at(b, [0], x[:1]), [1.0, 0.0]),
    "maximum": (lambda b, x: np.maximum.at(b, [0], x[1:]), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_a_ufunc_does_at_places_of_a_buffer(name):
    write, slope = WRITES[name]

    def f(x):
        b = lantern.Buffer(np.array([2.0, 2.0]))
        write(b, x)
        return lantern.sum(b)

    np.testing.assert_allclose(grad(f)(np.array([1.0, 4.0])), slope)


@pytest.mark.parametrize("ufunc", [np.hypot, np.negative], ids=lambda f: f.__name__)
def test_what_has_no_rule_at_places_is_told_which_have(ufunc):
    def f(x):
        b = lantern.Buffer(x)
        ufunc.at(b, [0], *([x[:1]] if ufunc.nin == 2 else []))
        return lantern.sum(b)

    with pytest.raises(lantern.MissingRuleError, match=r"at: no rule .* add, subtract"):
        grad(f)(np.ones(2))


REFUSED = {
    "no axis to join along": (lambda x: np.concatenate([x, x]), ValueError),
    "no matrix": (lambda x: np.trace(x), ValueError),
    "bytes": (lambda x: x.tobytes(), TypeError),
    "an exponent that is no integer": (lambda x: np.ldexp(x, x), TypeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_words(name):
    f, kind = REFUSED[name]
    with pytest.raises(kind) as caught:
        vjp(f, NUMBER)
    assert (
        isinstance(caught.value, LanternError)
        or "axis" in str(caught.value)
        or ("ldexp" in str(caught.value))
    )


IGNORED = {
    "a ufunc": lambda x: np.exp(x, out=None),
    "a ufunc of two": lambda x: np.add(x, 1.0, out=(None,)),
    "a function": lambda x: np.cumsum(x, out=None),
    "a sum": lambda x: np.sum(x, axis=0, out=None),
    "a bound": lambda x: np.clip(x, -1.0, 1.0, out=None),
    "what has no such option here": lambda x: np.trace(x, out=None),
    "several arrays": lambda x: np.concatenate((x, x), out=None),
}


@pytest.mark.parametrize("name", IGNORED)
def test_no_buffer_for_the_result_is_none(name):
    value, _ = vjp(IGNORED[name], MATRIX)
    np.testing.assert_allclose(value, IGNORED[name](MATRIX), rtol=1e-15)


# What would be lost, or has no rule; and what it is told.
NO_RULE = {
    "an array for a ufunc": (lambda x: np.add(x, 1.0, out=np.zeros((2, 3))), "out="),
    "a number for a sum": (lambda x: np.sum(x, out=np.zeros(())), "out="),
    "a mask": (
        lambda x: np.exp(x, where=[True, False, True]),
        r"numpy.exp: no rule for a tracked value with these arguments \(where\)",
    ),
    "two results": (np.frexp, "numpy.frexp: no rule for a tracked value. Write it"),
}


@pytest.mark.parametrize("name", NO_RULE)
def test_what_has_no_rule_says_so(name):
    f, words = NO_RULE[name]
    with pytest.raises(LanternError, match=words):
        vjp(f, MATRIX)


def test_a_scalar_of_numpy_beside_a_number_leaves_the_domain_as_in_numpy():
    with np.errstate(divide="ignore", invalid="ignore"):
        assert vjp(lambda x: np.power(x, np.float64(-2.0)), 0.0)[0] == np.inf
        assert np.isnan(vjp(lambda x: np.fmod(np.float64(0.5), x), 0.0)[0])
        assert vjp(lambda x: np.divide(np.float64(1.0), x), 0.0)[0] == np.inf


NUMBERS = {
    "a ufunc": (np.exp, 0.5, 1000.0),
    "a logarithm": (np.log, 0.5, -1.0),
    "emath": (np.emath.log, 0.5, 0.0),
    "a quotient": (lambda x: np.divide(1.0, x), 0.5, 0.0),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_stays_one_inside_the_domain_and_leaves_it_as_in_numpy(name):
    f, inside, outside = NUMBERS[name]
    with np.errstate(all="ignore"):
        assert type(vjp(f, inside)[0]) is float
        for x in (inside, outside):
            np.testing.assert_allclose(vjp(f, x)[0], f(x), rtol=1e-15)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide])
def test_a_constant_goes_with_each_element_on_its_right(ufunc):
    c, v = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5])
    value, pullback = vjp(lambda x: ufunc.outer(c, x), v)
    np.testing.assert_array_equal(value, ufunc.outer(c, v))
    seed, step = np.arange(9.0).reshape(3, 3), 1e-6 * np.eye(3)
    slopes = [(ufunc.outer(c, v + h) - ufunc.outer(c, v - h)) / 2e-6 for h in step]
    right = [(seed * slope).sum() for slope in slopes]
    np.testing.assert_allclose(pullback(seed)[0], right, rtol=1e-6)


@pytest.mark.parametrize("c", [[1.0, 2.0, 3.0], MATRIX**2, np.float64(2.0), 2, None])
def test_what_stands_left_of_a_tracked_array_is_a_constant(c):
    for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.power):
        if c is None:
            with pytest.raises(TypeError):
                vjp(lambda x, f=ufunc: f(c, x), MATRIX)
            continue
        value, _ = vjp(lambda x, f=ufunc: f(c, x), MATRIX + 2.0)
        np.testing.assert_allclose(value, ufunc(c, MATRIX + 2.0), rtol=1e-15)


def test_the_module_of_an_operation_is_imported_when_it_is_asked_for(monkeypatch):
    asked = []

    def importing(name):
        asked.append(name)
        if name == "late":
            registry[name] = "the operation"

    monkeypatch.setattr(lantern, "__getattr__", importing)
    try:
        assert [find_operation("late") for _ in range(2)] == ["the operation"] * 2
        assert find_operation("unknown") is None
        assert find_operation("sum") is registry["sum"]
    finally:
        del registry["late"]
    assert asked == ["late", "unknown"]


# A function's name and module, and what it is told as it wants a plain array.
LIBRARIES = {
    ("merge", "pandas.core.frame"): "merge: a pandas DataFrame",
    (
        "gmean",
        f"{stats.__name__}._stats_py",
    ): "^scipy.stats.gmean: SciPy's own function",
    ("expm", "scipy.linalg._matfuncs"): "^scipy.linalg.expm: SciPy's own function",
    ("helper", "scipy.linalg._matfuncs"): "numpy.array: a tracked value",
    ("anything", "mine"): "numpy.array: a tracked value",
}


@pytest.mark.parametrize(("name", "module"), LIBRARIES)
def test_a_function_that_wants_a_plain_array_is_named(name, module):
    scope = {"__name__": module, "np": np}
    exec(f"def {name}(x): return np.asarray(x)", scope)
    with pytest.raises(LanternError, match=LIBRARIES[name, module]):
        grad(scope[name])(2.0)


# A call of SciPy with a tracked number, and what is said of it.
SCIPYS = {
    "one that a decorator wraps": (
        lambda x: stats.hmean([x, 1.0]),
        r"^scipy.stats.hmean: SciPy's own function .* Use what lantern.scipy has",
    ),
    "ours has one": (
        stats.norm.pdf,
        r"^scipy.stats.norm.pdf: .* Use lantern.scipy.stats.norm.pdf[.]$",
    ),
    "ours has none": (
        lambda x: stats.genpareto.pdf(x, 1.0),
        r"^scipy.stats.genpareto.pdf: .* Use what lantern.scipy has, or write it",
    ),
    "what SciPy calls": (
        lambda x: optimize.brentq(lambda _: float(x), 0.0, 1.0),
        "^float: a tracked number would become a constant",
    ),
}


@pytest.mark.parametrize("name", SCIPYS)
def test_a_function_of_scipy_is_named_with_ours_if_it_took_the_value_itself(name):
    call, words = SCIPYS[name]
    with pytest.raises(LanternError, match=words):
        grad(call)(0.5)


@pytest.mark.parametrize(("x", "expected"), [(2.0, 4.0), (np.ones(2), [1.0, 3.0])])
def test_a_list_stands_on_the_left_of_a_number_and_of_an_array(x, expected):
    slopes = grad(lambda x: np.sum(np.multiply([1.0, 3.0], x)))(x)
    np.testing.assert_array_equal(slopes, expected)

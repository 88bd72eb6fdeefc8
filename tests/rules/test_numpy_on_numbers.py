"""NumPy's functions on a tracked Python number do what they do on a plain one.

Also outside their domains and where they overflow: value, warnings and derivative are
those of an array without axes. Python's own arithmetic raises, and says where.
"""

import itertools
import math
import re
import warnings

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad
from lantern.core.numpy_protocols import find_function
from lantern.core.value import base

pytestmark = pytest.mark.usefixtures("probe")

INF, NAN = math.inf, math.nan
ONE = [-INF, -1e308, -1000.0, -2.5, -2.0, -1.0, -0.5, -1e-320, -0.0, 0.0, 5e-324]
ONE += [0.5, 1.0, 1.5, 2.0, 171.0, 1000.0, 1e308, INF, NAN]
PAIR = [-INF, -1e308, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 1000.0, 1e308, INF, NAN]
FUNCTIONS = {
    name: f
    for name in dir(np)
    if isinstance(f := getattr(np, name), np.ufunc)
    and f.nout == 1
    and f.nin < 3
    and f.signature is None
    and find_function(f.__name__)
} | {"sinc": np.sinc, "nan_to_num": np.nan_to_num, "fix": np.fix}
# Where NumPy warns, or answers, as no other formula does.
PECULIAR = {
    "logaddexp": {(-1e308, 1e308), (1e308, -1e308)},  # exp(-inf) is 0: no overflow
    "logaddexp2": {(-1e308, 1e308), (1e308, -1e308)},
    # np.float64(-inf) ** 0.5 is nan, and float64's own powers of infinity warn.
    "float_power": {(-INF, 0.5), *itertools.product((-1e308, 1e308), (INF,))}
    | {(-0.0, -INF), (0.0, -INF)},
    "power": {(-INF, 0.5)},
    "pow": {(-INF, 0.5)},
}


def observed(thunk):
    """A result, and what NumPy said of it, the name of the function left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = thunk()
    return result, {str(x.message).partition(" encountered")[0] for x in caught}


def equal(found, expected):
    return np.allclose(found, expected, rtol=1e-9, atol=0, equal_nan=True)


def calls(name, f):
    """The calls in which NumPy gives a real number: (arguments, place, function)."""
    points = ONE if getattr(f, "nin", 1) == 1 else PAIR
    for args in itertools.product(points, repeat=getattr(f, "nin", 1)):
        if args in PECULIAR.get(name, ()):
            continue
        try:
            with np.errstate(all="ignore"):
                real = np.asarray(f(*args)).dtype.kind == "f"
        except TypeError:
            continue
        for i in range(len(args) if real else 0):
            yield args, i, lambda x, a=args, i=i: f(*a[:i], x, *a[i + 1 :])


def faults(f, x):
    """What differs between f on a tracked number, a plain one and a tracked array."""
    seen, array = [], np.array(x)

    def kept(x):
        seen.append(f(x))
        return seen[-1]

    plain, said = observed(lambda: f(x))
    try:
        value, heard = observed(lambda: lantern.vjp(f, x)[0])
        reverse, _ = observed(lambda: grad(kept)(x))
        forward, _ = observed(lambda: jvp(f, (x,), (1.0,))[1])
        inside, _ = observed(lambda: jvp(grad(lambda y: y * f(x)), (1.0,), (0.0,))[0])
        on_array, _ = observed(lambda: grad(f)(array))
        along_array, _ = observed(lambda: jvp(f, (array,), (1.0,))[1])
    except Exception as error:
        yield repr(error)
        return
    for found in (value, inside, base(seen[0])):
        if not equal(found, plain):
            yield f"{found}, not {plain}"
    if heard != said:
        yield f"warns of {heard}, not of {said}"
    if not (equal(reverse, on_array) and equal(forward, along_array)):
        yield f"derivatives {reverse} and {forward}, not {on_array}"
    if type(reverse) is not float:
        yield f"a gradient of type {type(reverse)}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_warnings_and_derivatives(name):
    wrong = [
        f"{args}, {i}: {words}"
        for args, i, f in calls(name, FUNCTIONS[name])
        for words in faults(f, args[i])
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("zero", [0, 0.0, np.float64(0.0)], ids=repr)
def test_beside_a_number_of_either_library_numpy_s_function_goes_on(zero):
    with np.errstate(invalid="ignore"):
        value, (gradient,) = value_and_grad(lambda x: np.fmod(x, zero), [0])(1.0)
    assert math.isnan(value)
    assert gradient == 1.0


def test_beside_a_complex_number_no_constant_takes_the_place_of_what_python_raises():
    with pytest.raises(ZeroDivisionError, match="complex"):
        grad(lambda x: np.divide(x, 0j).real)(1.0)


RAISING = {
    "1 / x": (lambda x: 1 / x, 0.0, ZeroDivisionError, r"divide\(1, 0.0\)"),
    "y / x": (lambda x: (x + 1) / x, 0.0, ZeroDivisionError, r"divide\(1.0, 0.0\)"),
    "x % 0": (lambda x: x % 0.0, 2.0, ZeroDivisionError, r"remainder\(2.0, 0.0\)"),
    "x // 0": (lambda x: x // 0.0, 2.0, ZeroDivisionError, r"floor_divide\(2.0, 0.0\)"),
    "x ** -1": (lambda x: x**-1, 0.0, ZeroDivisionError, r"pow\(0.0, -1\)"),
    "x ** 400": (lambda x: x**400, 10.0, OverflowError, r"pow\(10.0, 400\)"),
    "2 ** x": (lambda x: 2.0**x, 2000.0, OverflowError, r"pow\(2.0, 2000.0\)"),
    "log": (lantern.log, -1.0, ValueError, r"log\(-1.0\)"),
    "sqrt": (lantern.sqrt, -1.0, ValueError, r"sqrt\(-1.0\)"),
    "exp": (lantern.exp, 1000.0, OverflowError, r"exp\(1000.0\)"),
    "fmod": (lambda x: lantern.fmod(x, 0.0), 1.0, ValueError, r"fmod\(1.0, 0.0\)"),
    "divmod": (lambda x: divmod(x, 0)[1], 2.0, ZeroDivisionError, r"divmod\(2.0, 0\)"),
    "by x": (lambda x: divmod(1, x)[0], 0.0, ZeroDivisionError, r"divmod\(1, 0.0\)"),
    "int": (lambda x: x * int(x), math.inf, OverflowError, r"int\(inf\)"),
    "round": (lambda x: x * round(x), math.nan, ValueError, r"round\(nan\)"),
    "tens": (lambda x: x * round(x, -308), 1.7e308, OverflowError, r"round\(1.7e.*\)"),
    "floor": (lambda x: x * math.floor(x), math.inf, OverflowError, r"floor\(inf\)"),
    "ceil": (lambda x: x * math.ceil(x), math.nan, ValueError, r"ceil\(nan\)"),
    "trunc": (lambda x: x * math.trunc(x), math.nan, ValueError, r"trunc\(nan\)"),
}
MODES = {
    "reverse": grad,
    "forward": lambda f: lambda x: jvp(f, (x,), (1.0,)),
    "nested": lambda f: grad(grad(f)),
    "mixed": lambda f: grad(lambda x: jvp(f, (x,), (1.0,))[1]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RAISING)
def test_python_s_own_arithmetic_raises_and_says_where(name, mode):
    f, x, kind, call = RAISING[name]
    with pytest.raises(kind) as plain:
        f(x)
    with pytest.raises(kind) as caught:
        MODES[mode](lambda x: f(x))(x)
    assert type(caught.value) is type(plain.value) is kind
    assert str(caught.value) == str(plain.value)
    (note,) = caught.value.__notes__
    assert re.match(rf"^{call}: .* at test_numpy_on_numbers.py:\d+: .*[.] Keep", note)


class Bounded:
    """A number of the user's own, with a product and no negative."""

    def __mul__(self, other):
        return self

    __rmul__ = __mul__

    def __neg__(self):
        raise OverflowError("below the bound")

    def __repr__(self):
        return "bounded"


def test_what_a_number_of_the_user_s_own_raises_says_where():
    with pytest.raises(OverflowError, match=r"^below the bound") as caught:
        grad(lambda x: -x)(Bounded())
    (note,) = caught.value.__notes__
    assert re.match(r"^negative\(bounded\): .* at test_numpy_on_numbers.py:\d+: ", note)


def test_an_error_of_the_user_s_own_passes_as_it_is():
    cause = KeyError("why")

    @lantern.op.op
    def picky(x, y, /):
        if x < 0:
            raise ValueError("no") from cause
        z_bar = yield x * y
        yield z_bar * y
        yield z_bar * x

    with pytest.raises(ValueError, match="no") as caught:
        grad(lambda x: picky(x, 2.0))(-1.0)
    assert not hasattr(caught.value, "__notes__")
    assert caught.value.__cause__ is cause

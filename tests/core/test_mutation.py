"""Every way to write to a tracked array: the right derivative, or MutationError.

Never a silent no-op, and never a constant.
"""

import operator
import re

import numpy as np
import pytest

import lantern
from lantern import Buffer, DetachError, LanternError, MutationError, grad, jvp

# Some of these ways to write are deprecated since NumPy 2.5.
pytestmark = [
    pytest.mark.usefixtures("probe"),
    pytest.mark.filterwarnings("ignore:Setting the (dtype|shape):DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:numpy.fix:DeprecationWarning"),
]
X = np.array([[0.7, -1.3], [0.4, 1.9]])
TWO = np.array([[0], [1]])
MESSAGE = re.compile(r"^[\w.\[\] =]+\(?\)?: .+[.] .+[.]$", re.DOTALL)


def set_index(x, b):
    b[0] = x[1]


def set_slice(x, b):
    b[:, 1] = 2.0


def set_mask(x, b):
    b[np.array([True, False])] = x[1]


def set_array(x, b):
    b[[0, 1], [1, 0]] = x[0]


def add_to_index(x, b):
    b[0] += x[1]


def multiply_mask(x, b):
    b[np.eye(2, dtype=bool)] *= x[0, 0]


def write_through_a_row(x, b):
    row = b[0]
    row[1] = x[1, 1]


def write_through_a_slice(x, b):
    part = b[:, 1:]
    part[...] = 5.0 * x[0, 0]


def set_transposed(x, b):
    b.T[0] = x[0]


def set_flat(x, b):
    b.flat[3] = x[0, 0]


def set_ravel(x, b):
    b.ravel()[3] = x[0, 0]


def set_reshaped(x, b):
    b.reshape(4)[3] = x[0, 0]


def set_real_part(x, b):
    b.real[0] = x[1]


def set_diagonal(x, b):
    b.diagonal()[...] = x[0]


def set_property_shape(x, b):
    b.shape = (4,)


def set_property_real(x, b):
    b.real = x


def set_property_imag(x, b):
    b.imag = x


def set_property_dtype(x, b):
    b.dtype = np.float32


def set_property_flat(x, b):
    b.flat = x[0, 0]


def set_property_transposed(x, b):
    b.T = x


METHODS = {
    "fill": lambda x, b: b.fill(x[0, 0]),
    "put": lambda x, b: b.put([0, 3], x[0]),
    "sort": lambda x, b: b.sort(),
    "sort along an axis": lambda x, b: b.sort(axis=0),
    "partition": lambda x, b: b.partition(1),
    "resize": lambda x, b: b.resize((4,)),
    "setflags": lambda x, b: b.setflags(write=False),
    "setfield": lambda x, b: b.setfield(x[0, 0], np.float64),
    "byteswap": lambda x, b: b.byteswap(inplace=True),
}
FUNCTIONS = {
    "copyto": lambda x, b: np.copyto(b, 2.0 * x),
    "copyto where": lambda x, b: np.copyto(b, 2.0 * x, where=[True, False]),
    "put": lambda x, b: np.put(b, [0, -1], x[0]),
    "place": lambda x, b: np.place(b, np.eye(2), x[0]),
    "putmask": lambda x, b: np.putmask(b, np.eye(2), x * x),
    "fill_diagonal": lambda x, b: np.fill_diagonal(b, 3.0),
    "fill_diagonal with tracked values": lambda x, b: np.fill_diagonal(b, x[0]),
    "put_along_axis": lambda x, b: np.put_along_axis(b, TWO, x[:, :1], 1),
    "add.at": lambda x, b: np.add.at(b, ([0, 0], [1, 1]), x[0]),
    "multiply.at": lambda x, b: np.multiply.at(b, 0, x[1]),
    "maximum.at": lambda x, b: np.maximum.at(b, (0, [0, 1]), 0.1 * x[0]),
    "out= of a ufunc": lambda x, b: np.add(x, 1.0, out=b),
    "out= of a ufunc, into an operand": lambda x, b: np.multiply(x, b, b),
    "out= of a reduction": lambda x, b: np.sum(x * x, axis=0, out=b[1]),
    "out= of a method of ufuncs": lambda x, b: np.add.reduce(x * x, out=b[0]),
    "out= of cumsum": lambda x, b: np.cumsum(x, axis=1, out=b),
    "out= of matmul": lambda x, b: np.matmul(x, x, out=b),
    "out= of clip": lambda x, b: np.clip(x, -1.0, 1.0, out=b),
    "out= of concatenate": lambda x, b: np.concatenate([x[:1], x[:1]], out=b),
    "out= of floor": lambda x, b: np.floor(x, out=b),
    "out= of fix": lambda x, b: np.fix(x, b),
}
STATEMENTS = {
    name: statement
    for name, statement in list(globals().items())
    if name.startswith(("set_", "add_to", "multiply_mask", "write_"))
}
WRITES = STATEMENTS | METHODS | {f"numpy.{n}": f for n, f in FUNCTIONS.items()}
# What a buffer has not: views but by slices, properties to be set, bytes.
REFUSED = {
    *(name for name in WRITES if name.startswith("set_property")),
    *("byteswap setfield setflags resize set_diagonal set_flat set_ravel").split(),
    *("set_reshaped set_real_part set_transposed").split(),
}
# What NumPy itself does not do to an array, without asking what is written.
REFUSED_BY_NUMPY = {"set_diagonal", "set_property_imag", "set_property_transposed"}


def after(write, b, x):
    write(x, b)
    return b


def by_numpy(write):
    """The array that NumPy leaves behind, and how it moves with all of x."""
    eps = 1e-6
    ends = [after(write, X + s * eps, X + s * eps) for s in (-1.0, 1.0)]
    return after(write, X.copy(), X.copy()), (ends[1] - ends[0]) / (2 * eps)


# NumPy keeps references for ever when such a call raises: not for the probe.
LEAKING = {"numpy.out= of a method of ufuncs"}


@pytest.mark.parametrize("name", sorted(WRITES.keys() - LEAKING))
def test_a_write_to_a_tracked_array_raises(name):
    """The array itself, and what it becomes after an operation."""
    for start in (lambda x: x, lambda x: x * 1.0):
        for run in (
            lambda f: grad(f)(X),
            lambda f: jvp(f, (X,), (X,)),
            lambda f: grad(lambda x: jvp(f, (x,), (x,))[1])(X),
        ):
            before = X.copy()
            with pytest.raises(MutationError) as caught:
                run(lambda x: lantern.sum(after(WRITES[name], start(x), x)))  # noqa: B023
            assert isinstance(caught.value, TypeError)
            assert MESSAGE.match(str(caught.value)), caught.value
            np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_a_buffer_does_what_numpy_does_or_raises(name):
    def f(x):
        return after(WRITES[name], Buffer(x), x)

    if name in REFUSED:
        with pytest.raises(MutationError):
            f(X)
        with pytest.raises(MutationError):
            grad(lambda x: lantern.sum(f(x)))(X)
        return
    value, slope = jvp(f, (X,), (np.ones((2, 2)),))
    expected, expected_slope = by_numpy(WRITES[name])
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_allclose(slope, expected_slope, atol=1e-8)
    weights = np.array([[1.0, 2.0], [-3.0, 0.5]])
    g = grad(lambda x: lantern.sum(f(x) * weights))(X)
    assert np.sum(g) == pytest.approx(np.sum(expected_slope * weights), abs=1e-7)


@pytest.mark.parametrize("name", sorted(WRITES.keys() - LEAKING - REFUSED_BY_NUMPY))
def test_a_write_to_an_array_never_makes_a_constant_in_silence(name):
    """A plain array that is written to with tracked values."""

    def f(x):
        b = X.copy()
        WRITES[name](x, b)
        assert name in PLAIN, "nothing tracked was written"
        return lantern.sum(x)

    with np.errstate(all="ignore"):
        if name in PLAIN:
            np.testing.assert_array_equal(grad(f)(X), np.ones((2, 2)))
            return
        with pytest.raises((TypeError, ValueError)) as caught:
            grad(f)(X)
    if name == "set_flat":
        return  # NumPy raises, and drops our error
    error = caught.value
    while not isinstance(error, LanternError):  # NumPy replaces some, and keeps ours
        error = error.__cause__
    assert isinstance(error, MutationError | DetachError)
    assert "lantern.Buffer" in str(error)


# What writes no tracked value.
PLAIN = {
    "set_slice",
    "set_property_shape",
    "set_property_dtype",
    "sort",
    "sort along an axis",
    "partition",
    "resize",
    "setflags",
    "byteswap",
    "numpy.fill_diagonal",
}

OPERATORS = "iadd isub imul itruediv ifloordiv imod ipow imatmul".split()


@pytest.mark.parametrize("x", [1.7, X[0, 0], X], ids=["number", "0-d", "array"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_augmented_assignment_binds_the_name_anew(name, x):
    if name == "imatmul" and np.shape(x) == ():
        pytest.skip("numbers have no matrix product")
    assign, plain = (
        getattr(operator, name),
        getattr(operator, name[1:].replace("pow", "pow")),
    )
    plain = {"ipow": operator.pow, "imatmul": operator.matmul}.get(name) or plain

    def f(x):
        y = alias = 2.0 * x
        seen = [y]
        y = assign(y, x * x + 1.0)
        assert alias is seen[0]
        return lantern.sum(y * 3.0 + alias)

    def g(x):
        return lantern.sum(plain(2.0 * x, x * x + 1.0) * 3.0 + 2.0 * x)

    x = np.abs(x)
    np.testing.assert_allclose(grad(f)(x), grad(g)(x), rtol=1e-14)
    np.testing.assert_allclose(jvp(f, (x,), (x,)), jvp(g, (x,), (x,)), rtol=1e-14)


def test_augmented_assignment_leaves_inputs_aliases_and_elements_alone():
    def f(x):
        y = [x, x]
        y[0] += 1.0
        y[1] *= 2.0
        z = x
        z -= 1.0
        return lantern.sum(y[0] * y[1] * z * x)

    x = np.array([2.0, 3.0])
    before = x.copy()
    # (x + 1) 2x (x - 1) x = 2 x⁴ - 2 x²
    np.testing.assert_allclose(grad(f)(x), 8 * x**3 - 4 * x, rtol=1e-14)
    np.testing.assert_array_equal(x, before)


def test_augmented_assignment_keeps_shape_and_type():
    with pytest.raises(LanternError, match="shape"):
        grad(lambda x: lantern.sum(operator.iadd(x, np.ones((3, 2, 2)))))(X)
    single = X.astype(np.float32)
    assert grad(lambda x: lantern.sum(operator.imul(x, X)))(single).dtype == np.float32
    with pytest.raises(LanternError, match="complex"):
        grad(lambda x: lantern.real(lantern.sum(operator.iadd(x, 1j * X))))(X)

"""Arrays whose arithmetic is not NumPy's are refused in words, never misread."""

import io
import re
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

import lantern
from lantern import ArgumentError, LanternError, MissingRuleError, grad, vjp
from lantern.core.namespace import namespace, register_namespace

MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
MATRIX = [[1.0, 2.0], [3.0, 4.0]]


class Foreign:
    """What an array of another library looks like."""

    __array_ufunc__ = None
    dtype, shape = np.dtype(float), (3,)

    def __array__(self, *args, **kwargs):
        return np.ones(3)

    def __mul__(self, other):
        return NotImplemented if isinstance(other, lantern.Tensor) else self

    __rmul__ = __mul__

    def sum(self, **options):
        return 3.0


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_they_are_no_inputs():
    for x in (MASKED, np.matrix(MATRIX), Foreign()):
        with pytest.raises(ArgumentError, match="unsupported array type"):
            grad(lambda x: (x * x).sum())(x)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_they_meet_no_tracked_array():
    meetings = {
        "masked, right": lambda x: x * MASKED,
        "masked, left": lambda x: MASKED * x,
        "masked, by a function": lambda x: np.add(x, MASKED),
        "foreign": lambda x: x * Foreign(),
        "objects": lambda x: np.sum(np.array([1, 2, 3], dtype=object) * x),
    }
    for f in meetings.values():
        with pytest.raises(TypeError) as caught:
            grad(lambda x, f=f: f(x).sum())(np.ones(3))
        assert isinstance(caught.value, LanternError)
    for f in (lambda x: x * np.matrix(MATRIX), lambda x: np.matrix(MATRIX) * x):
        with pytest.raises(ArgumentError, match="matrix"):
            vjp(f, np.eye(2))


def test_they_can_be_converted():
    def f(x):
        return np.sum(x * MASKED.filled(0.0))

    np.testing.assert_array_equal(grad(f)(np.ones(3)), [1.0, 0.0, 3.0])


@pytest.mark.parametrize("y", [np.array("a"), np.datetime64("2020"), np.array(b"a")])
def test_a_result_that_is_no_number_is_refused(y):
    with pytest.raises(ArgumentError, match="must return a scalar"):
        grad(lambda x: y)(1.0)


def test_a_view_of_memory_is_no_array():
    with pytest.raises(ArgumentError, match="cannot differentiate"):
        grad(lambda x: x)(memoryview(b"abc"))


NEEDS_ARRAYS = {
    "softmax": lambda: lantern.softmax(2.0),
    "where": lambda: lantern.where(3.0),
    "empty_like": lambda: lantern.empty_like(2.0),
}


@pytest.mark.parametrize("name", NEEDS_ARRAYS)
def test_a_function_of_arrays_says_that_it_needs_one(name):
    with pytest.raises(lantern.NotArrayError) as caught:
        NEEDS_ARRAYS[name]()
    assert isinstance(caught.value, TypeError)
    assert re.match(r"^\w+: .+[.] .+[.]$", str(caught.value))


def test_lists_are_arrays():
    assert lantern.cumulative_sum([1.0, 2.0]).tolist() == [1.0, 3.0]
    assert lantern.linalg.outer([1.0, 2.0], [3.0]).tolist() == [[3.0], [6.0]]
    assert lantern.take_along_axis([1.0, 2.0], [1], 0).tolist() == [2.0]


def test_what_has_no_rule_computes_on_untracked_tensors():
    x = lantern.Tensor([1.0, 2.0])
    file = io.BytesIO()
    np.savez(file, x=x)
    file.seek(0)
    np.testing.assert_array_equal(np.load(file)["x"], x)
    assert np.apply_over_axes(np.sum, lantern.Tensor(MATRIX), [0]).shape == (1, 2)
    with pytest.raises(lantern.MissingRuleError):
        grad(lambda x: np.apply_over_axes(np.sum, x, [0])[0])(np.ones(2))


@pytest.mark.parametrize("kind", ["Series", "DataFrame", "Index"])
@pytest.mark.parametrize(
    "use",
    {
        "left of an operator": lambda w, t: t * w,
        "right of an operator": lambda w, t: w * t,
        "left of a number": lambda w, t: t / w[0],
        "in a function": lambda w, t: lantern.sin(t) * w,
        "beside an operand": lambda w, t: lantern.where(w > 0, w, t),
        "left of a matrix product": lambda w, t: t.T @ w,
        "as what is differentiated": lambda w, t: lantern.grad(lantern.sum)(t),
    }.items(),
    ids=lambda use: use[0],
)
def test_a_table_of_pandas_is_told_of_its_numbers(kind, use):
    pandas = pytest.importorskip("pandas", reason="its tables are refused by name")
    table = getattr(pandas, kind)([0.5, 1.5])
    with pytest.raises((lantern.ArgumentError, lantern.DetachError), match="to_numpy"):
        lantern.grad(lambda w: lantern.sum(use[1](w, table)))(np.ones(2))
    assert lantern.asarray(table).shape == table.shape  # asked for by name


class Frame:
    """What stands in for a table where pandas is missing: it is known by its module."""

    dtype = np.dtype(float)
    __hash__ = None
    __array_ufunc__ = None

    def __array__(self, *_args, **_options):
        return np.ones(2)


class Columns:
    """A table of several types, which takes part in operators and NumPy's functions."""

    __hash__ = None

    def __array__(self, *_args, **_options):
        return np.ones(2)

    def __array_ufunc__(self, *_args, **_options):
        return np.ones(2)

    def __rmul__(self, other):
        return np.ones(2)

    __mul__ = __rpow__ = __rmul__


Frame.__module__ = Columns.__module__ = "pandas.core.frame"
USES = {
    "in a function": lambda w, t: lantern.exp(t),
    "in an operator": lambda w, t: w * t,
    "in a power": lambda w, t: w**t,
    "beside an operand": lambda w, t: lantern.maximum(w, t),
    "as what is differentiated": lambda w, t: grad(lantern.sum)(t),
    "of the namespace": lambda w, t: namespace(t).exp,
    "of the namespace beside an array": lambda w, t: namespace(t, np.ones(2)),
}


@pytest.mark.parametrize("kind", [Frame, Columns])
@pytest.mark.parametrize("use", USES)
def test_what_has_labels_is_told_of_its_numbers(use, kind):
    with pytest.raises(ArgumentError, match="to_numpy"):
        grad(lambda w: lantern.sum(USES[use](w, kind())))(np.ones(2))
    assert not hasattr(namespace(kind()), "__wrapped__")


class Box:
    """A container that takes over NumPy's functions, as xarray's do."""

    def __init__(self, content):
        self.content = content

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [x.content if isinstance(x, Box) else x for x in inputs]
        return type(self)(getattr(ufunc, method)(*inputs, **options))

    def __mul__(self, other):
        return np.multiply(self, other)

    def __rmul__(self, other):
        return np.multiply(other, self)


class BoxOfNumPy(np.lib.mixins.NDArrayOperatorsMixin, Box):
    """Another one, as NumPy's manual writes it."""


@pytest.mark.parametrize("kind", [Box, BoxOfNumPy])
@pytest.mark.parametrize(
    "f",
    [
        lambda w, box: np.multiply(w, box),
        lambda w, box: np.multiply(box, w),
        lambda w, box: w * box,
        lambda w, box: box * w,
    ],
)
def test_a_container_takes_over_what_it_is_an_operand_of(f, kind):
    two = kind(np.full(2, 2.0))
    for x in (np.ones(2), 3.0):
        found = grad(lambda w: lantern.sum(f(w, two).content * [1.0, 3.0]))(x)
        np.testing.assert_array_equal(found, [2.0, 6.0] if np.ndim(x) else 8.0)


def test_scalars_go_with_the_arrays_of_any_library_and_arrays_do_not():
    class Theirs:
        __hash__ = None

    class Others:
        __hash__ = None

    theirs, others = SimpleNamespace(), SimpleNamespace()
    register_namespace(Theirs, theirs)
    register_namespace(Others, others)
    for scalar in (np.float64(1.0), 1.0):
        assert namespace(scalar, Theirs()) is theirs
        assert namespace(Theirs(), scalar) is theirs
    assert namespace(Theirs(), Theirs()) is theirs
    with pytest.raises(ArgumentError, match=r"Theirs and .*Others: arrays of two"):
        namespace(Theirs(), Others())


def test_what_numbers_of_another_kind_lack_is_named():
    functions = namespace(Decimal(1))
    assert functions.exp(Decimal(0)) == 1
    assert not hasattr(functions, "__wrapped__")
    with pytest.raises(MissingRuleError, match=r"sin: Decimal .*mpmath"):
        functions.sin(Decimal(1))


def test_what_is_no_number_is_named():
    with pytest.raises(lantern.ArgumentError, match=r"sin: expected a number .*'a'"):
        lantern.sin("a")

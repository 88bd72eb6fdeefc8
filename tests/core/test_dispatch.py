"""How an operation starts: the rule sees any operands and options as they were."""

import operator

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import ArgumentError, RuleError, grad
from lantern.core import dispatch
from lantern.core.conjugation import conj
from lantern.core.value import Value
from lantern.op import elementwise, linear, op, registry

A = np.array([[1.0, 2.0], [3.0, 4.0]])
V = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def registered():
    """The registry as it was, behind the operations below."""
    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def scaled():
    @op
    def scaled(x, /, by):
        z_bar = yield x * by[0]
        yield z_bar * by[0]

    return scaled


def product():
    @op
    def product(x, y, /, by):
        z_bar = yield x * y * by[0]
        yield z_bar * by[0] * y
        yield z_bar * by[0] * x

    return product


def total():
    @op
    def total(*xs, by):
        z_bar = yield sum(xs) * by[0]
        for _ in xs:
            yield z_bar * by[0]

    return total


OPTIONS = {
    "one operand": (scaled, lambda f, x, by: f(x, by=by)),
    "one operand, by position": (scaled, lambda f, x, by: f(x, by)),
    "two operands": (product, lambda f, x, by: f(x, 1.0, by=by)),
    "two operands, by position": (product, lambda f, x, by: f(x, 1.0, by)),
    "two of the same": (product, lambda f, x, by: f(x, x, by=by)),
    "any number": (total, lambda f, x, by: f(x, 1.0, 2.0, by=by)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_changes_later_counts_as_it_was(name):
    make, call = OPTIONS[name]
    operation = make()

    def f(x):
        by = [2.0]
        y = call(operation, x, by)
        by[0] = 7.0
        return y

    assert grad(f)(3.0) == (12.0 if "same" in name else 2.0)


def test_axes_that_change_later_count_as_they_were():
    def f(x):
        axes = [1, 0]
        y = lantern.transpose(x, axes)
        axes[:] = 0, 1
        return lantern.sum(y * A)

    np.testing.assert_array_equal(grad(f)(A), A.T)


LISTS = {
    "a constant beside an array": (lambda x: lantern.matmul(A, [[x, 2.0], [3.0, 4.0]])),
    "an array beside a constant": (lambda x: lantern.matmul([[x, 2.0], [3.0, 4.0]], A)),
    "two lists": lambda x: lantern.matmul([[x, 2.0]], [[1.0, x], [1.0, 1.0]]),
    "a tuple": lambda x: lantern.matmul(((x, 2.0),), A),
    "alone": lambda x: scaled()([x, 3.0], [2.0]),
    "a tuple alone": lambda x: scaled()((x, 3.0), [2.0]),
    "elementwise": lambda x: lantern.exp([x, 3.0]),
    "a tuple elementwise": lambda x: lantern.exp((x, 3.0)),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_arrays_to_a_rule(name):
    def f(x):
        return lantern.sum(LISTS[name](x))

    numeric = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
    assert grad(f)(2.0) == pytest.approx(numeric)


def dotted():
    @op
    def dotted(x, y, /):
        z_bar = yield float(np.dot(np.asarray(x), np.asarray(y)))
        yield z_bar * y
        yield z_bar * x

    return dotted


@pytest.mark.parametrize(
    "constant", [V, torch.tensor([1.0, 2.0, 3.0])], ids=["numpy", "torch"]
)
def test_a_rule_may_make_a_number_of_two_arrays(constant):
    dot = dotted()
    np.testing.assert_array_equal(grad(lambda x: dot(x, constant))(V), V)
    np.testing.assert_array_equal(grad(lambda x: dot(constant, x))(V), V)
    np.testing.assert_array_equal(grad(lambda x: dot(x, x))(V), 2 * V)


def test_a_constant_under_pytorchs_names_is_a_constant_of_any_derivative():
    constant, multiply = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), product()
    for f in (
        lambda x: (x * constant).sum(),
        lambda x: (constant * x).sum(),
        lambda x: multiply(constant, x, [1.0]).sum(),
        lambda x: multiply(x, constant, [1.0]).sum(),
    ):
        np.testing.assert_array_equal(grad(f)(V), V)


class Other:
    """An object of another library, which does its arithmetic itself."""

    def __add__(self, other):
        return "the left one's"

    def __radd__(self, other):
        return "the right one's"


@pytest.mark.parametrize(
    "x", [2.0, A, lantern.Buffer(A)], ids=["number", "array", "buffer"]
)
def test_an_operand_that_is_no_number_does_the_arithmetic_itself(x):
    def f(x):
        assert x + Other() == "the right one's"
        assert Other() + x == "the left one's"
        return lantern.sum(x)

    assert np.all(grad(f)(x) == 1.0)


def test_a_number_and_a_list_have_no_sum_as_in_python():
    with pytest.raises(TypeError, match="unsupported operand"):
        grad(lambda x: operator.add(x, [1.0, 2.0]))(2.0)


def yields_nothing(*kinds):
    for kind in kinds:

        @kind
        def nothing(x, /):
            return
            yield

        yield nothing

    @op
    def nothing_of_two(x, y, /):
        return
        yield

    yield lambda x: nothing_of_two(x, x)


@pytest.mark.parametrize("x", [2.0, A], ids=["number", "array"])
def test_a_rule_that_yields_nothing_is_named(x):
    for f in yields_nothing(op, elementwise, linear):
        for call in (f, grad(lambda x, f=f: lantern.sum(f(x)))):
            with pytest.raises(RuleError, match=r"nothing.*: the rule yielded too few"):
                call(x)


def test_what_is_in_a_tuple_is_conjugated_with_it():
    assert conj((1 + 2j, [3j, 4.0])) == (1 - 2j, (-3j, 4.0))


@pytest.mark.parametrize("module", ["parcels", "parcels.boxes.small"])
def test_a_class_tracks_every_type_of_a_package(module, monkeypatch):
    monkeypatch.setattr(dispatch, "_registered", {**dispatch._registered})
    monkeypatch.setattr(dispatch, "_classes", {})
    kind, other = type("Box", (), {"__module__": module}), type("Box", (), {})
    other.__module__ = "other.parcels"

    class Boxed(Value):
        __slots__ = ()

    assert dispatch.value_class(kind()) is not Boxed
    dispatch.register_class("parcels", Boxed)
    assert dispatch.value_class(kind()) is Boxed
    assert dispatch.value_class(other()) is not Boxed


def test_every_operand_of_three_has_its_derivative():
    @linear
    def weighted(x, y, z, /):
        bar = yield x + 2.0 * y + 3.0 * z
        yield bar
        yield 2.0 * bar
        yield 3.0 * bar

    for x in (2.0, V):
        g = grad(lambda *xs: lantern.sum(weighted(*xs)), (0, 1, 2))(x, x, x)
        np.testing.assert_array_equal([np.mean(each) for each in g], [1.0, 2.0, 3.0])


def numbers_of_arrays():
    @op
    def first(x, /):
        z_bar = yield float(x[0])
        yield z_bar * np.eye(len(x))[0]

    @op
    def first_if_asked(x, /):
        z_bar = yield float(x[0])
        yield lambda: z_bar * np.eye(len(x))[0]

    return first, first_if_asked


@pytest.mark.parametrize("f", numbers_of_arrays(), ids=lambda f: f.__name__)
def test_a_rule_may_make_a_number_of_an_array(f):
    np.testing.assert_array_equal(grad(lambda x: 2.0 * f(x))(V), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(grad(lambda x: lantern.exp(0 * f(x)))(V), 0 * V)


@pytest.mark.parametrize("x", [2.0, V], ids=["number", "array"])
def test_an_elementwise_rule_may_compute_a_contribution_when_it_is_asked_for(x):
    @elementwise
    def doubled(x, /):
        z_bar = yield 2.0 * x
        yield lambda: 2.0 * z_bar

    assert np.all(grad(lambda x: lantern.sum(x * doubled(x)))(x) == 4.0 * x)


def starts(f):
    """The name of the function that starts a rule."""
    return f.__code__.co_qualname.partition(".")[0]


def test_operations_start_in_as_few_steps_as_their_kind_allows():
    assert starts(lantern.exp) == starts(lantern.negative) == "_unary_elementwise"
    assert starts(lantern.real) == starts(registry["sum"].function) == "_unary"
    assert starts(registry["polygamma"].function) == "_unary", "it has an option"
    assert starts(registry["concat"].function) == "_variadic"
    assert starts(lantern.floor) == "_constant"
    assert registry["concat"].arity == -1, "as many operands as there are"

    @elementwise
    def given(x, /, **options):
        z_bar = yield x
        yield z_bar

    assert starts(given) == "_unary"


class OnlyTyped:
    dtype = np.dtype(float)


class OnlyConverted:
    def __array__(self):
        return V


@pytest.mark.parametrize("x", [OnlyTyped(), OnlyConverted()], ids=["dtype", "array"])
def test_what_looks_like_an_array_and_is_something_else_is_refused(x):
    with pytest.raises(ArgumentError, match=r"Only.*: unsupported array type"):
        dispatch.value_class(x)(x)


def test_what_is_linear_in_all_operands_keeps_none_of_them():
    assert registry["add"].keeps is False
    assert registry["multiply"].keeps is registry["exp"].keeps is True
    assert registry["sum"].keeps is False

"""The contract of grad: bad input raises at once, the right class in useful words."""

import functools
import re

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    DetachError,
    LanternError,
    NotScalarError,
    ShapeError,
    grad,
    jvp,
    value_and_grad,
    vjp,
)

pytestmark = pytest.mark.usefixtures("probe")
MESSAGE = re.compile(r"^[\w.\[\] =]+: .+[.] .+[.]$", re.DOTALL)
VERBS = {
    "grad": lambda f: lambda x: grad(f)(x),
    "switching": lambda f: lambda x: grad(f, driver="switching")(x),
    "value_and_grad": lambda f: lambda x: value_and_grad(f)(x),
}


def raises(error, words, thunk):
    """Check class, builtin and words of what a thunk raises; the error itself."""
    with pytest.raises(error, match=words) as caught:
        thunk()
    assert isinstance(caught.value, LanternError)
    assert MESSAGE.match(str(caught.value)), "where: what. What to do."
    return caught.value


def square(x):
    return x * x


class Generator:
    def __call__(self, x):
        yield x


class Coroutine:
    async def __call__(self, x):
        return x


async def async_generator(x):
    yield x


NOT_FUNCTIONS = {
    "None": None,
    "a number": 3.0,
    "a name": "sin",
    "a list": [square],
    "an array": np.ones(2),
    "a generator function": Generator.__call__,
    "a generator lambda": lambda x: (yield x),
    "a generator method": Generator().__call__,
    "a generator object": Generator(),
    "a partial generator": functools.partial(Generator.__call__, None),
    "a coroutine function": Coroutine.__call__,
    "a coroutine method": Coroutine().__call__,
    "a coroutine object": Coroutine(),
    "a partial coroutine": functools.partial(Coroutine.__call__, None),
    "an async generator function": async_generator,
}


@pytest.mark.parametrize("name", NOT_FUNCTIONS)
def test_what_is_no_plain_function_is_refused_before_anything_runs(name):
    f = NOT_FUNCTIONS[name]
    for verb in (grad, value_and_grad, lambda g: vjp(g, 1.0)):
        error = raises(ArgumentError, "function", lambda v=verb: v(f))
        assert isinstance(error, TypeError)
    raises(ArgumentError, "jvp: .*function", lambda: jvp(f, (1.0,), (1.0,)))


RESULTS = {
    "None": (lambda x: None, "None"),
    "a tuple": (lambda x: (x, x), "tuple"),
    "a list": (lambda x: [x], "list"),
    "a dict": (lambda x: {"loss": x}, "dict"),
    "a set": (lambda x: {1.0}, "set"),
    "a string": (lambda x: f"{x}", "str"),
    "a bool": (lambda x: x > 0, "bool"),
    "a NumPy bool": (lambda x: np.bool_(True), "bool"),
    "a tracked array": (lambda x: x * np.ones((2, 1)), r"shape \(2, 1\)"),
    "an array of one element": (lambda x: x * np.ones(1), r"shape \(1,\)"),
    "an empty array": (lambda x: x * np.ones(0), r"shape \(0,\)"),
    "an array of bools": (lambda x: np.array(True), "array"),
    "a function": (lambda x: lambda: x, "function"),
    "a class": (lambda x: float, "type"),
    "a generator": (lambda x: (x for _ in range(2)), "generator"),
    "a complex number": (lambda x: x + 1j, "complex"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_is_no_real_number_is_named(name, verb):
    f, got = RESULTS[name]
    words = f"f must return a (scalar|real number).*{got}.*(Use|Take) "
    error = raises(NotScalarError, words, lambda: VERBS[verb](f)(2.0))
    assert isinstance(error, TypeError)


def test_a_real_result_is_not_holomorphic():
    f = grad(abs, holomorphic=True)
    raises(NotScalarError, "complex number, got a real", lambda: f(1 + 2j))
    raises(NotScalarError, "holomorphic=True", lambda: grad(square)(1 + 2j))


ZEROS = {
    "a constant": lambda x: 7.0,
    "an int constant": lambda x: 7,
    "a rounded value": lambda x: lantern.floor(x),
    "a constant times nothing": lambda x: x * 0,
    "a 0-d array": lambda x: np.array(3.0),
}


@pytest.mark.parametrize("name", ZEROS)
def test_what_does_not_depend_on_an_input_has_gradient_zero(name):
    gradient = grad(ZEROS[name])(2.5)
    assert gradient == 0.0
    assert type(gradient) is float
    assert grad(lambda x: lantern.sum(lantern.floor(x)))(np.ones(2)).tolist() == [0, 0]


INPUTS = {
    "a bool": (True, "bool"),
    "a NumPy bool": (np.True_, "bool"),
    "a string": ("1.0", "str"),
    "an object": (object(), "object"),
    "a set": ({1.0}, "set"),
    "a function": (square, "function"),
    "a class": (float, "type"),
    "an int array": (np.arange(3), "int64"),
    "a bool array": (np.array([True, False]), "bool"),
    "a string array": (np.array(["a"]), "<U1"),
    "an object array": (np.array([1.5, None]), "object"),
    "an array of dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "a structured array": (np.zeros(2, [("x", float)]), "x"),
    "a bool leaf": ({"w": [1.0, True]}, "bool"),
    "a string leaf": ([1.0, "name"], "str"),
    "an int array leaf": ((1.0, {"n": np.arange(2)}), "int64"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_has_no_derivative_is_refused_before_f_runs(name):
    x, kind = INPUTS[name]
    ran = []
    for run in (
        lambda: grad(ran.append)(x),
        lambda: value_and_grad(ran.append)(x),
        lambda: vjp(ran.append, x),
        lambda: jvp(ran.append, (x,), (x,)),
    ):
        error = raises(ArgumentError, f"cannot differentiate.*{re.escape(kind)}", run)
        assert isinstance(error, TypeError)
    assert ran == []


ARGNUMS = [1, -2, 5, "y", None, 1.0, True, (0, "a"), (0, 1), (0, 0), (0, -1), slice(1)]


@pytest.mark.parametrize("argnums", ARGNUMS, ids=repr)
def test_wrong_argnums(argnums):
    raises(ArgumentError, "argnums", lambda: grad(square, argnums=argnums)(3.0))


def test_arguments_by_name_cannot_be_differentiated():
    raises(ArgumentError, "by position", lambda: grad(square)(x=3.0))
    assert grad(lambda x, scale: x * scale)(2.0, scale=5.0) == 5.0


@pytest.mark.parametrize("driver", ["tape", None, 3])
def test_an_unknown_driver_is_named(driver):
    raises(ArgumentError, "driver", lambda: grad(square, driver=driver))


@pytest.mark.parametrize("f", [square, lambda x: (x, x, x), lambda x: [x, x]])
def test_has_aux_without_a_pair(f):
    for run in (
        lambda: grad(f, has_aux=True)(3.0),
        lambda: value_and_grad(f, has_aux=True)(3.0),
        lambda: vjp(f, 3.0, has_aux=True),
        lambda: jvp(f, (3.0,), (1.0,), has_aux=True),
    ):
        raises(ArgumentError, r"must return \(value, aux\).*Return a pair", run)


# name: primals, tangents
JVP_STRUCTURES = {
    "a tangent too many": ((1.0,), (1.0, 2.0)),
    "a tangent too few": ((1.0, 2.0), (1.0,)),
    "a list for a tuple": (((1.0, 2.0),), ([1.0, 2.0],)),
    "other keys": (({"a": 1.0},), ({"b": 1.0},)),
    "None for a number": ((1.0,), (None,)),
    "another shape": ((np.ones(3),), (np.ones(2),)),
    "an array for a number": ((1.0,), (np.ones(2),)),
}


@pytest.mark.parametrize("name", JVP_STRUCTURES)
def test_jvp_with_tangents_of_another_structure(name):
    primals, tangents = JVP_STRUCTURES[name]
    error = raises(
        ShapeError, "jvp: expected", lambda: jvp(lambda *x: 1.0, primals, tangents)
    )
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("arguments", [(3.0, 1.0), ((3.0,), 1.0), ({3.0}, {1.0})])
def test_jvp_without_tuples(arguments):
    raises(ArgumentError, "tuple or list", lambda: jvp(square, *arguments))


LEAVES = ["a", 1j, object()]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: type(leaf).__name__)
def test_a_direction_of_a_real_number_is_a_real_number(leaf):
    raises(ArgumentError, "jvp", lambda: jvp(square, (3.0,), (leaf,)))
    raises(ArgumentError, "pullback", lambda: vjp(square, 3.0)[1](leaf))


SEEDS = [1.0, (1.0,), (1.0, (1.0,)), (1.0, [np.ones(2)]), (None, [1.0]), None]


@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_a_pullback_wants_a_seed_of_the_value_s_structure(seed):
    _, pullback = vjp(lambda x: (x * x, [x]), 3.0)
    raises(ShapeError, "pullback: expected", lambda: pullback(seed))
    assert pullback((1.0, [1.0])) == (7.0,)


@pytest.mark.parametrize("shape", [(), (2,), (1, 3), (3, 1)])
def test_a_pullback_does_not_broadcast_its_seed(shape):
    _, pullback = vjp(square, np.ones(3))
    raises(ShapeError, "pullback: expected", lambda: pullback(np.ones(shape)))


@pytest.mark.parametrize(
    "f", [lambda x: {1.0}, lambda x: lambda: x, lambda x: "abc", lambda x: iter([x])]
)
def test_vjp_and_jvp_refuse_a_result_that_is_no_structure_of_numbers(f):
    raises(ArgumentError, "jvp", lambda: jvp(f, (3.0,), (1.0,)))
    raises(ArgumentError, "vjp", lambda: vjp(f, 3.0))


def test_errors_of_an_inner_derivative_come_through_the_outer_one():
    def f(x):
        return x * grad(lambda y: (x, y))(x)

    raises(NotScalarError, "tuple", lambda: grad(f)(3.0))
    raises(NotScalarError, "tuple", lambda: jvp(f, (3.0,), (1.0,)))


STRANGE = {
    "masked": lambda: np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]]),
    "matrix": lambda: np.asarray([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix),
    "sparse": lambda: pytest.importorskip(
        "scipy.sparse", reason="its arrays"
    ).csr_array(np.eye(2)),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of np.matrix
@pytest.mark.parametrize("name", STRANGE)
def test_what_looks_like_an_array_and_is_none(name):
    """Their masks, products and zeros are their own; rules would compute past them."""
    strange, x = STRANGE[name](), np.ones((2, 2))
    words = "unsupported array type"
    for derivative in (grad, lambda f: lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(ArgumentError, match=words):
            derivative(lambda x: lantern.sum(x))(strange)
        with pytest.raises(ArgumentError, match=words):
            derivative(lambda x: lantern.sum(x * strange))(x)
        for f in (lambda x: strange * x, lambda x: lantern.sum(strange @ x)):
            with pytest.raises((ArgumentError, DetachError)):
                derivative(f)(x)


NOT_THAT = {
    "early_exit": lambda: lantern.early_exit(3),
    "jet": lambda: lantern.jet(lantern.sin, (1.0,), (1.0,)),
    "remat_loop": lambda: lantern.remat_loop(lambda y, i: y, 1.0, -3),
    "remat_loop, text": lambda: lantern.remat_loop(lambda y, i: y, 1.0, "a"),
}


@pytest.mark.parametrize("name", NOT_THAT)
def test_an_argument_of_another_kind_is_refused_in_words(name):
    raises(ArgumentError, name.partition(",")[0], NOT_THAT[name])


def test_an_axis_that_arrays_to_be_joined_do_not_have():
    with pytest.raises(ValueError, match="axis 3"):
        grad(lambda x: lantern.concat([x, x], axis=3).sum())(np.ones(2))


def test_the_diagonal_of_no_hessian():
    assert lantern.diag_hessian(lambda x: lantern.sum(x * x))(np.ones(0)).shape == (0,)

"""A tracked value becomes a plain one on purpose or not at all."""

import copy
import decimal
import math
import pickle
import re

import numpy as np
import pytest

import lantern
from lantern import (
    DetachError,
    LanternError,
    MissingRuleError,
    MutationError,
    grad,
    jvp,
)

pytestmark = pytest.mark.usefixtures("probe")
MESSAGE = re.compile(r"^[\w.\[\] =]+: .+[.] .+[.]$", re.DOTALL)


def raises(error, words, thunk):
    """Check class, builtin and words of what a thunk raises; the error itself."""
    with pytest.raises(error, match=words) as caught:
        thunk()
    assert isinstance(caught.value, LanternError)
    assert MESSAGE.match(str(caught.value)), "where: what. What to do."
    return caught.value


DETACHMENTS = {
    "float(x)": float,
    "math.sin(x)": math.sin,
    "math.fsum": lambda x: math.fsum([x, x]),
    "complex(x)": complex,
    "np.array([x, x])": lambda x: np.array([x, x]).sum(),
    "np.asarray(x)": np.asarray,
    "an object array": lambda x: np.array([x], dtype=object).sum(),
    "np.full": lambda x: np.full(3, x).sum(),
}


@pytest.mark.parametrize("x", [2.0, np.array(2.0)], ids=["number", "array"])
@pytest.mark.parametrize("name", DETACHMENTS)
def test_a_tracked_value_never_becomes_a_constant_in_silence(name, x):
    words = "would become a constant.*(lantern[.]|x [+] 0j)"
    for run in (
        lambda: grad(DETACHMENTS[name])(x),
        lambda: jvp(DETACHMENTS[name], (x,), (x,)),
    ):
        error = raises(DetachError, words, run)
        assert isinstance(error, TypeError)


def assigned(x):
    b = np.zeros(2)
    b[0] = x
    return b.sum()


def assigned_slice(x):
    b = np.zeros(2)
    b[:] = x
    return b.sum()


def test_assigning_a_tracked_value_to_an_element_of_an_array():
    raises(DetachError, r"b\[i\] = x.*lantern.stack", lambda: grad(assigned)(2.0))
    raises(DetachError, "lantern.stack", lambda: grad(assigned_slice)(np.ones(2)))
    # NumPy replaces the error for arrays of shape (); it comes back
    raises(
        DetachError,
        r"b\[i\] = x.*lantern.Buffer",
        lambda: grad(assigned)(np.array(2.0)),
    )


@pytest.mark.parametrize("read", [lambda x: x.item(), lambda x: x.tolist()])
def test_item_and_tolist_of_a_tracked_array(read):
    raises(DetachError, "lantern[.]", lambda: grad(read)(np.array(2.0)))


def overwritten(x):
    x[0] = 1.0
    return x.sum()


def added_to(x):
    b = np.zeros(2)
    b += x
    return b.sum()


def test_writing_to_arrays():
    raises(MutationError, "lantern.where", lambda: grad(overwritten)(np.ones(2)))
    raises(LanternError, "add", lambda: grad(added_to)(np.ones(2)))
    into = lambda x: np.sin(x, out=np.ones(2)).sum()  # noqa: E731
    raises(DetachError, "out=", lambda: grad(into)(np.ones(2)))


MISSING = {
    "frexp": lambda x: np.frexp(x)[0].sum(),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_numpy_computes_and_we_do_not_says_so(name):
    error = raises(
        MissingRuleError, f"numpy.{name}", lambda: grad(MISSING[name])(np.ones(2))
    )
    assert isinstance(error, NotImplementedError)


def test_a_function_that_a_number_class_lacks():
    x = decimal.Decimal(1)
    raises(MissingRuleError, "Decimal.*mpmath", lambda: grad(lantern.sin)(x))


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "a copied list": lambda x: copy.deepcopy([{"x": x}])[0]["x"],
    "x.copy()": lambda x: x.copy() if hasattr(x, "copy") else +x,
}


@pytest.mark.parametrize("x", [3.0, np.array(3.0)], ids=["number", "array"])
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_tracked_value_keeps_its_derivative(name, x):
    assert grad(lambda x: COPIES[name](x) * x)(x) == 6.0
    assert jvp(lambda x: COPIES[name](x) * x, (x,), (x,)) == (9.0, 18.0)


@pytest.mark.parametrize("x", [3.0, np.array(3.0)], ids=["number", "array"])
def test_a_tracked_value_cannot_be_pickled(x):
    raises(DetachError, "pickle", lambda: grad(pickle.dumps)(x))


def test_a_list_position_is_a_plain_number():
    with pytest.raises(TypeError):
        grad(lambda x: [1.0, 2.0][x])(1.0)
    assert grad(lambda x: [1.0, 2.0][int(x)] * x)(1.0) == 2.0

"""A value lives as long as its derivative: used later, it raises, wherever it is."""

import threading

import numpy as np
import pytest

import lantern
from lantern import EscapedError, grad, jvp, vjp

pytestmark = pytest.mark.usefixtures("probe")


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


KEEPERS = {
    "grad": lambda f, x: grad(f)(x),
    "switching": lambda f, x: grad(f, driver="switching")(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "vjp": lambda f, x: vjp(f, x),
    "a failing grad": lambda f, x: _failing(f, x),
}


def _failing(f, x):
    with pytest.raises(ZeroDivisionError):
        grad(lambda y: f(y) / 0)(x)


USES = {
    "operator": lambda kept: kept * 2,
    "reflected operator": lambda kept: 2 - kept,
    "negation": lambda kept: -kept,
    "function": lantern.exp,
    "numpy": np.exp,
    "beside an array": lambda kept: np.ones(2) * kept,
    "inside another grad": lambda kept: grad(lambda y: y * kept)(1.0),
    "to the left inside another grad": lambda kept: grad(lambda y: kept * y)(1.0),
    "inside a jvp": lambda kept: jvp(lambda y: y * kept, (1.0,), (1.0,)),
    "as an argument of another grad": lambda kept: grad(lambda y: y * y)(kept),
    "as a seed": lambda kept: vjp(lambda y: y * y, 2.0)[1](kept),
    "as a tangent": lambda kept: jvp(lambda y: y * y, (2.0,), (kept,)),
    "in a stack": lambda kept: lantern.stack([kept, 1.0]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("keep", KEEPERS)
@pytest.mark.parametrize("what", ["input", "result"])
def test_computing_with_one_raises(what, keep, use):
    kept = []

    def f(x):
        kept.append(x if what == "input" else x * x)
        return x * x

    KEEPERS[keep](f, 3.0)
    with pytest.raises(EscapedError, match="derivative"):
        USES[use](kept[0])


@pytest.mark.parametrize("read", [repr, bool, lambda v: v > 1, str])
def test_reading_one_works(read):
    kept = []
    grad(lambda x: kept.append(x) or x)(3.0)
    assert read(kept[0])


@pytest.mark.parametrize("inner", [grad, forward])
def test_an_inner_value_may_not_reach_the_outer_level(inner):
    def f(x):
        kept = []
        inner(lambda y: kept.append(x * y) or y)(2.0)
        return kept[0] * x

    with pytest.raises(EscapedError):
        grad(f)(3.0)


def test_arrays_escape_no_better():
    kept = []
    grad(lambda x: kept.append(x) or x.sum())(np.ones(3))
    for use in (np.sum, lambda a: a[0], lambda a: a @ np.ones(3), lambda a: a.T):
        with pytest.raises(EscapedError):
            use(kept[0])


def test_in_another_thread():
    kept, raised = [], []

    def use():
        try:
            kept[0] + 1
        except EscapedError as error:
            raised.append(error)

    grad(lambda x: kept.append(x * x) or x)(3.0)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(raised) == 1

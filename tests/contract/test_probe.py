"""The probe of conftest.py is itself tested: it finds whatever a test may leave."""

import gc
import threading
from importlib.util import find_spec
from pathlib import Path

import greenlet
import numpy as np
import pytest

import lantern
from lantern.op import registry
from tests.conftest import OURS, SLOW, leftovers

ROOT = Path(__file__).parents[2]


def value(x):
    """A tracked value that outlives its derivative."""
    kept = []
    lantern.grad(lambda x: kept.append(x) or lantern.sum(x * x))(x)
    return kept


def rule():
    suspended = registry["multiply"].rule(2.0, 3.0)
    next(suspended)
    return suspended


def body():
    suspended = greenlet.greenlet(lambda: greenlet.getcurrent().parent.switch())
    suspended.switch()
    return suspended


def test_the_modules_it_looks_for_are_there():
    assert [name for name in OURS if not find_spec(name)] == []


LEFT = {
    "tensor": lambda: value(np.ones(3)),
    "number": lambda: value(2.0),
    "rule": rule,
    "body": body,
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_what_is_left_is_found_until_it_is_gone(left, probe):
    kept = left()
    with pytest.raises(AssertionError):
        probe()
    del kept
    probe()


@pytest.fixture
def earlier():
    return value(np.ones(3))


def test_what_was_there_before_and_garbage_in_circles_are_no_concern(earlier, probe):
    def f(x):
        circle = [x]
        circle.append(circle)
        return x.sum()

    lantern.grad(f)(np.ones(3))
    probe()


def test_garbage_is_no_concern_while_another_thread_is_about_to_collect(probe):
    inside, go_on = threading.Event(), threading.Event()

    def waits(phase, info):
        if threading.current_thread() is other:
            inside.set()
            go_on.wait(0.2)

    other = threading.Thread(target=gc.collect)
    gc.callbacks.append(waits)
    try:
        other.start()
        assert inside.wait(20)
        circle = value(2.0)
        circle.append(circle)
        del circle
        assert leftovers() == []
    finally:
        go_on.set()
        other.join()
        gc.callbacks.remove(waits)


@pytest.mark.parametrize("name", SLOW)
def test_what_is_slow_is_there(name):
    path, _, test = name.partition(".py::")
    if not test:
        assert list(ROOT.glob(f"{path}*"))
        return
    text = (ROOT / f"{path}.py").read_text("utf-8")
    *classes, function = test.split("::")
    assert all(f"class {c}:" in text for c in classes)
    assert f"def {function}" in text

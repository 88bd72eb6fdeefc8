"""An interrupt in a block, or at its door, leaves every ambient state as it was."""

import gc
import random
import signal
import sys
import warnings
from contextvars import ContextVar, copy_context

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.blocks import Setting, from_the_start, mutex
from lantern.eager.hooks import inspectors
from lantern.effects import Effect, handle
from lantern.torch.autograd import forward_ad
from tests.conftest import our_context

# What interrupts a callback of the collector, as that of hypothesis, is lost there, and
# told of by a warning. What is asked here is whether all state is as it was.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


VARIABLE = ContextVar("variable", default="outside")
ask = Effect("ask", default=lambda: 1.0)
ROW = np.array([0.3, 0.7])


def in_settings():
    with Setting(VARIABLE, "a"), Setting(VARIABLE, "b"):
        pass


def in_modes():
    with torch.no_grad(), torch.enable_grad():
        pass
    with torch.inference_mode():
        pass


def in_anomaly():
    with torch.autograd.detect_anomaly(), torch.autograd.detect_anomaly(False):
        pass


@torch.no_grad()
def decorated():
    return torch.is_grad_enabled()


def in_forward_ad():
    with forward_ad.dual_level():
        forward_ad.make_dual(torch.ones(1), torch.ones(1))


def quiet(x):
    with lantern.no_grad(x):
        y = x * x
    return y * x


def backward():
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()


BLOCKS = {
    "Setting": in_settings,
    "torch's modes": in_modes,
    "torch's decorators": decorated,
    "detect_anomaly": in_anomaly,
    "forward_ad": in_forward_ad,
    "no_grad": lambda: lantern.grad(quiet)(2.0),
    "effects": lambda: handle(lambda: ask() + ask(), {ask: lambda: 2.0}),
    "grad": lambda: lantern.grad(lambda x: lantern.sin(x) * x)(2.0),
    "checkpoint": lambda: lantern.grad(lantern.checkpoint(quiet))(2.0),
    "arrays": lambda: lantern.grad(lambda x: lantern.sqrt(x * x).sum())(ROW),
    "batch": lambda: lantern.batch(lambda i: lantern.sin(ROW[i : i + 1]), [0, 1]),
    "backward": backward,
}


def state():
    """What is ambient: the readable rows of the table in lantern/core/README.md."""
    return {
        "context": our_context(),
        "mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomaly": list(inspectors),
        "variable": VARIABLE.get(),
        "NumPy's errors": np.geterr(),
        "warnings": list(warnings.filters),
        "collector": gc.get_threshold(),
        "recursion": sys.getrecursionlimit(),
    }


@pytest.fixture
def alarm():
    """Let an alarm raise as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", BLOCKS)
def test_an_interrupt_leaves_all_ambient_state_as_it_was(name, alarm):
    """While the exception is still alive, as it is in a notebook."""
    run, rng, interrupts = BLOCKS[name], random.Random(0), 0
    run()
    before = state()
    for _ in range(80):
        try:
            alarm(rng.uniform(2e-5, 3e-4))
            for _ in range(1_000):  # one that comes in a finaliser is lost
                run()
        except KeyboardInterrupt:
            interrupts += 1
            assert state() == before
        finally:
            alarm(0)
    assert interrupts > 60


def test_the_first_try_of_a_function_begins_at_its_door():
    def plain():
        try:
            value = 1
        finally:
            value = 2
        return value

    made = from_the_start(plain)
    assert made() == 2
    assert made.__name__ == "plain"
    assert made.__code__.co_exceptiontable[0] == 0x80  # from 0 on


def test_a_try_that_the_compiler_leaves_out_cannot_begin_at_the_door():
    def empty():
        try:
            pass
        finally:
            print("left")

    with pytest.raises(AssertionError, match="empty has no try"):
        from_the_start(empty)


def test_a_block_may_be_left_in_another_context():
    def steps():
        with Setting(VARIABLE, "inside"):
            yield VARIABLE.get()
        yield VARIABLE.get()

    made = steps()
    assert copy_context().run(next, made) == "inside"
    assert copy_context().run(next, made) == "outside"


def test_no_interrupt_leaves_a_lock_locked(alarm):
    lock, rng, interrupts = mutex(), random.Random(0), 0
    held = getattr(lock, "lock", lock)._is_owned
    for _ in range(500):
        try:
            alarm(rng.uniform(2e-5, 2e-4))
            for _ in range(10_000):
                with lock, lock:
                    pass
        except KeyboardInterrupt:
            interrupts += 1
        assert not held()
    assert interrupts > 400

"""Who waits for another thread goes on when that dies, and when an interrupt comes."""

import logging
import signal
import threading
import time
from concurrent.futures.thread import _WorkItem

import numpy as np
import pytest

import lantern
from lantern.errors import ThreadError
from lantern.parallel import thread_team
from lantern.parallel.thread_team import Crew, Job

pytestmark = [pytest.mark.usefixtures("probe"), pytest.mark.timeout(30)]


class Died(BaseException):
    """What ends a thread."""


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(thread_team, "_LOOK", 0.01)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)


def dies(monkeypatch, cls, name, before):
    """Let a helper's thread die at a method: before it is called, or after."""
    plain, main, left = getattr(cls, name), threading.current_thread(), [1]

    def method(self, *args):
        if threading.current_thread() is main or not left:
            return plain(self, *args)
        left.clear()
        if not before:
            plain(self, *args)
        raise Died

    monkeypatch.setattr(cls, name, method)
    return left


def told(function, *args, **kwargs):
    """The result; None where it was said that a thread has died."""
    try:
        return function(*args, **kwargs)
    except ThreadError:
        return None


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("cls", "name"), [(Crew, "next"), (Job, "do"), (Crew, "_help")]
)
def test_a_helper_that_dies_holds_nobody_up(monkeypatch, cls, name, before):
    left = dies(monkeypatch, cls, name, before)
    begun = threading.Event()

    def part(x):
        if threading.current_thread() is threading.main_thread():
            begun.wait(0.2)  # so that the helper has its turn
        else:
            begun.set()
        return x * x

    xs = [1.0, 2.0, 3.0]
    found = told(lantern.parallel_map, part, xs, workers=2)
    assert found in (None, [1.0, 4.0, 9.0])
    assert left == []


@pytest.mark.parametrize("before", [True, False])
def test_a_helper_that_dies_on_the_way_back_holds_nobody_up(monkeypatch, before):
    x = np.arange(6.0).reshape(2, 3)

    def loss(w):
        with lantern.ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda row: ((row * w) ** 2).sum(), x))
        dies(monkeypatch, Job, "do", before)
        return sum(parts)

    expected = 2 * np.ones(3) * (x**2).sum(0)
    found = told(lantern.grad(loss), np.ones(3))
    assert found is None or np.allclose(found, expected)


@pytest.mark.parametrize("asked", [True, False])
def test_a_worker_that_dies_with_a_task_in_hand_holds_nobody_up(monkeypatch, asked):
    """Neither who asks for the result, nor the way back of one that nobody asks for."""
    left = dies(monkeypatch, _WorkItem, "run", before=True)
    monkeypatch.setattr(logging.getLogger("concurrent.futures"), "disabled", True)

    def loss(x):
        with lantern.ThreadPoolExecutor(2) as pool:
            future = pool.submit(lambda: x * x)
            return x * 3 + (future.result() if asked else 0)

    if asked:
        with pytest.raises(ThreadError, match="ThreadPoolExecutor: a thread has died"):
            lantern.grad(loss)(1.0)
    else:
        assert lantern.grad(loss)(1.0) == 3.0
    assert left == []


def test_one_interrupt_frees_the_thread_that_waits():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    go_on, begun = threading.Event(), threading.Event()

    def part(i):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            go_on.wait(20)
        else:
            begun.wait(20)
        return i

    def loss(x):
        return sum(lantern.parallel_map(lambda i: x * part(i), [1.0, 2.0], workers=2))

    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            lantern.grad(loss)(1.0)
        assert not go_on.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        go_on.set()
    assert time.monotonic() - start < 15  # the other thread would wait for 20
    for thread in threading.enumerate():
        if thread.name == "lantern helper":
            thread.join(10)

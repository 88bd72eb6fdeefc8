"""A store whose call is interrupted gives the next call its own answer."""

import signal
import sys
from contextlib import suppress
from datetime import timedelta

import pytest

from lantern.errors import DistributedError
from lantern.torch.distributed import TCPStore
from tests.contract.faults import raising


@pytest.fixture
def store():
    """A store whose hub is a thread of this process."""
    store = TCPStore("127.0.0.1", 0, is_master=True)
    yield store
    store.close()


def test_an_interrupted_wait_leaves_no_answer_behind(store):
    other = TCPStore("127.0.0.1", store.port)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            store.get("late")
    finally:
        signal.signal(signal.SIGALRM, before)
    other.set("late", "answer")
    assert store.add("n", 3) == 3
    assert store.get("late") == b"answer"
    other.close()


def interrupted_at(place, run):
    """Interrupt the store's own code at one of the places where CPython could."""
    left = place

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename != TCPStore._call.__code__.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and "interrupt" in raising(frame.f_code)[frame.f_lasti]:
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            run()
    finally:
        sys.settrace(before)
    return left < 0


def test_an_interrupt_anywhere_leaves_the_store_in_step(store):
    place = 0
    while interrupted_at(place, lambda: store.add("some", 1)):
        store.set("key", str(place))
        assert store.get("key") == str(place).encode(), place
        place += 1
    assert 0 < store.add("some", 0) <= place + 1
    assert place > 5


def test_a_store_that_has_ended_says_so_each_time():
    store = TCPStore("127.0.0.1", 0, is_master=True)
    other = TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=30))
    assert other.add("n", 1) == 1
    store.close()
    for _ in range(3):
        with pytest.raises(DistributedError, match="keeps it has ended"):
            other.add("n", 1)
    other.close()
    for closed in (store, other):
        with pytest.raises(DistributedError, match="has been closed"):
            closed.add("n", 1)

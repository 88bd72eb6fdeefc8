"""Nothing is kept: no cycles, no growth, idle workers without a past."""

import gc
import threading
import weakref

import pytest
from greenlet import greenlet

from lantern.cps import Prompt, reset, shift, worker
from lantern.cps.worker import IDLE_LIMIT
from tests.conftest import set_all_aside

Q = Prompt("q")
ks = []


@pytest.fixture(scope="module", autouse=True)
def _what_was_there_is_not_looked_at():
    set_all_aside()


class Canary:
    """Something whose end can be seen."""


def store(k):
    ks.append(k)


def greenlets():
    gc.collect()
    return sum(issubclass(type(x), greenlet) for x in gc.get_objects())


def pause():
    try:
        shift(store)
    finally:
        pass


def fail():
    shift(lambda k: k())
    raise KeyError


def several(world):
    """A run of each kind, with the world's own handlers."""
    assert world.run(lambda: world.shift(1) + world.shift(1)) == 2
    assert world.run(lambda: world.abort(3)) == 3
    with pytest.raises(KeyError):
        world.run(fail)
    reset(pause)
    ks.pop()()
    reset(pause)
    ks.clear()
    reset(lambda: reset(lambda: shift(store, prompt=Q)), prompt=Q)
    ks.clear()


def test_no_greenlet_and_no_object_is_left(world):
    for _ in range(5):
        several(world)
    before, objects = greenlets(), len(gc.get_objects())
    for _ in range(50):
        several(world)
    assert greenlets() == before
    assert len(gc.get_objects()) <= objects + 5


def test_success_makes_no_reference_cycles(world):
    def program():
        world.run(lambda: world.shift(1) + world.run(lambda: world.shift(2)))
        world.run(lambda: world.abort(3))
        reset(pause)
        ks.pop()()
        reset(pause)
        ks.clear()

    program()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            program()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_values_die_with_the_run(world):
    references = []

    def watch():
        canary = Canary()
        references.append(weakref.ref(canary))
        return canary

    def body():
        world.shift(watch(), after=lambda answer: watch())
        return watch()

    assert isinstance(world.run(body), Canary)
    assert [reference() for reference in references] == [None] * 3


def test_exceptions_die_with_their_handling(world):
    class FailureError(Exception):
        pass

    def body():
        local = Canary()
        references.append(weakref.ref(local))
        world.shift(None)
        error = FailureError()
        references.append(weakref.ref(error))
        raise error

    references = []
    with pytest.raises(FailureError):
        world.run(body)
    gc.collect()  # the body's own frame holds its exception
    assert [reference() for reference in references] == [None] * 2


def test_an_idle_worker_keeps_nothing():
    references = []

    class Body:
        def __call__(self):
            references.append(weakref.ref(self))
            return Canary()

    reset(Body())
    reset(lambda: shift(lambda k: [k(1), Body()()]))
    assert [reference() for reference in references] == [None] * 2


def test_workers_are_used_again():
    seen = set()

    def body():
        from greenlet import getcurrent

        seen.add(id(getcurrent()))

    reset(body)
    for _ in range(20):
        reset(body)
    assert len(seen) == 1


def test_the_pool_has_a_bound():
    """In a thread of its own, whose greenlets are easily told from others."""

    def body():
        for _ in range(5 * IDLE_LIMIT):
            shift(lambda k: k())
        most.append(greenlets())

    def run():
        before = greenlets()
        reset(body)
        after.append(greenlets() - before)

    most, after = [], []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert most[0] > 5 * IDLE_LIMIT
    assert after[0] in (IDLE_LIMIT + 1, IDLE_LIMIT + 2), "the relay, the thread itself"


def test_threads_take_their_workers_with_them():
    def program():
        reset(lambda: [shift(lambda k: k()) for _ in range(10)])
        reset(pause)
        ks.pop()()

    def run():
        thread = threading.Thread(target=program)
        thread.start()
        thread.join()

    for _ in range(5):
        run()
    before = greenlets()
    for _ in range(50):
        run()
    assert greenlets() <= before + 3


def test_many_paused_bodies_at_once():
    def body(i):
        return i + shift(store)

    for i in range(1000):
        reset(lambda i=i: body(i))
    before = greenlets()
    assert [k(1) for k in ks] == list(range(1, 1001))
    ks.clear()
    assert greenlets() < before - 900


def test_a_relay_that_an_interrupt_has_lost_keeps_no_job():
    """Idle workers hold the relay that they left by, and it holds whom it woke last."""
    reset(lambda: reset(lambda: None))  # several idle ones

    def losing():
        worker._thread.relay = None

    reset(losing)
    canary = Canary()
    errand = worker.hire(None, print, canary)  # interrupted before its way
    seen = weakref.ref(canary)
    del errand, canary
    gc.collect()
    assert seen() is None

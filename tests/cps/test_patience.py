"""A long program postpones collections; afterwards and beside it all is usual."""

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from lantern.cps import Prompt, delimit, shift

# CPython 3.14 collects the old in small steps, and knows no such threshold.
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="no threshold for full collections"
)


USUAL = (700, 12, 10)


class Entry:
    catches = False

    def resume(self, answer):
        return answer

    def close(self):
        pass


@pytest.fixture(autouse=True)
def usual():
    """The thresholds, which every test leaves as it found them."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield USUAL
    assert gc.get_threshold() == USUAL
    gc.set_threshold(*before)


def long(waiting, n=20_000):
    """Enough waiting objects for the collector to look at the middle generation."""
    waiting.extend(Entry() for _ in range(n))
    return gc.get_threshold()


def delimited(body):
    waiting = []
    return delimit(lambda: body(waiting), waiting, Prompt("long"))


def test_a_long_program_postpones_collections(usual):
    young, middle, old = delimited(long)
    assert 20_000 < young < 20_000 * 20, "it grows with them"
    assert middle == usual[1]
    assert old > usual[2]


def test_one_whose_many_objects_wait_elsewhere_postpones_full_collections(usual):
    kept = []
    young, middle, old = delimited(lambda waiting: long(kept))
    assert (young, middle) == usual[:2]
    assert old > usual[2]


def test_a_short_one_does_not(usual):
    gc.collect()
    assert delimited(lambda waiting: long(waiting, 10)) == usual


def test_after_an_exception():
    def body(waiting):
        long(waiting)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        delimited(body)


def test_nested_the_inner_one_gives_back_what_it_took(usual):
    def body(waiting):
        delimited(long)
        between = gc.get_threshold()
        return between, long(waiting)

    between, raised = delimited(body)
    assert between in (usual, raised)
    assert raised[2] > usual[2]


def test_during_a_handler_that_runs_in_place_of_its_body(usual):
    def handler(k):
        seen = long([])
        k(seen)
        return seen

    assert delimit(lambda: shift(handler), [], Prompt("long"))[2] > usual[2]


def test_in_two_threads():
    together = threading.Barrier(2)
    seen = []

    def body(waiting):
        together.wait()
        long(waiting)
        together.wait()
        seen.append(gc.get_threshold())

    threads = [threading.Thread(target=delimited, args=(body,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 2


def test_what_the_program_sets_itself_stays():
    def body(waiting):
        long(waiting)
        gc.set_threshold(600, 5, 5)

    delimited(body)
    assert gc.get_threshold() == (600, 5, 5)
    gc.set_threshold(*USUAL)


def test_what_it_sets_itself_amidst_the_program_stays():
    def body(waiting):
        long(waiting)
        gc.set_threshold(600, 5, 5)
        return long(waiting)

    assert delimited(body) == (600, 5, 5)
    gc.set_threshold(*USUAL)


def test_a_program_that_collects_rarely_does_not_collect_more_often():
    def body(waiting):
        gc.set_threshold(50_000, 12, 10)
        waiting.extend(Entry() for _ in range(1_000))
        return long([], 60_000)

    assert delimited(body) == (50_000, 12, 1_000)
    gc.set_threshold(*USUAL)


def test_a_collector_that_is_off_stays_off():
    def body(waiting):
        gc.set_threshold(0, 10, 10)
        long(waiting)
        gc.collect()
        return gc.get_threshold()

    assert delimited(body) == (0, 10, 10)
    gc.set_threshold(*USUAL)


def test_young_garbage_is_still_found():
    class Cycle:
        def __init__(self):
            self.itself = self

    def body(waiting):
        long(waiting, 1_000)
        garbage = weakref.ref(Cycle())
        long(waiting)
        return garbage() is None

    assert delimited(body)


AMIDST = """
import contextvars, gc
from lantern.cps import Prompt, delimit, shift
from lantern.cps.prompt import innermost

others = [contextvars.ContextVar(str(i)) for i in range(40)]

def run():
    for variable in others:
        variable.set(None)
    for i in range(6000):
        gc.set_threshold(1 + i % 60, 1, 10)
        young = [[] for _ in range(i % 31)]
        delimit(lambda: None, [], Prompt("amidst"))
        assert innermost.get() is None

contextvars.copy_context().run(run)
"""


def test_a_collection_amidst_a_change_of_context():
    """In another process: a wrong answer would be memory that is no longer ours."""
    home = Path(__file__).parents[2]
    run = [sys.executable, "-c", AMIDST]
    done = subprocess.run(run, capture_output=True, text=True, cwd=home, check=False)
    assert (done.returncode, done.stderr) == (0, "")

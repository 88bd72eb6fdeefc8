"""Loops of a million operations, deep nesting, small stacks: nothing overflows."""

import sys
import threading

import pytest

from lantern.cps import Prompt, delimit, reset, shift
from lantern.cps.control import NESTING_LIMIT, NESTING_LIMIT_MAIN
from lantern.cps.prompt import innermost
from lantern.errors import NestingError


@pytest.fixture(autouse=True)
def _recursion_limit_untouched():
    limit = sys.getrecursionlimit()
    yield
    assert sys.getrecursionlimit() == limit


def count():
    answer = yield 1
    return answer + 1


@pytest.mark.parametrize(
    ("driver", "n"), [("in place", 1_000_000), ("switching", 100_000)]
)
def test_generator_handlers_under_one_reset(driver, n):
    def body():
        return sum(shift(count) for _ in range(n))

    assert reset(body, prompt=Prompt(driver=driver)) == 2 * n


def test_direct_handlers_under_one_reset(world):
    n = 2500

    def body():
        return sum(shift(lambda k: k(1) + 1) for _ in range(n))

    assert world.run(body) == 2 * n


def test_an_exception_past_many_handlers():
    n = 100_000

    def body():
        for _ in range(n):
            shift(count)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        reset(body)
    depth, traceback = 0, caught.value.__traceback__
    while traceback:
        depth, traceback = depth + 1, traceback.tb_next
    assert depth < 20, "handlers that it only passes add nothing to its traceback"


def test_many_entries_of_delimit():
    class Entry:
        catches = False

        def resume(self, answer):
            return answer + 1

        def close(self):
            pass

    assert delimit(lambda: 0, [Entry()] * 1_000_000, Prompt()) == 1_000_000


def test_pauses_in_a_long_loop():
    def body():
        for i in range(5_000):
            shift(lambda k, i=i: (i, k))
        return "end"

    pauses = 0
    state = reset(body)
    while state != "end":
        i, k = state
        assert i == pauses
        pauses += 1
        state = k()
    assert pauses == 5_000


def nest(n):
    return 0 if n == 0 else 1 + reset(lambda: nest(n - 1))


def nest_through_c(n):
    """Each level inside a call from C, which takes some of the C stack."""
    if n == 0:
        return 0
    return 1 + next(map(lambda m: reset(lambda: nest_through_c(m)), [n - 1]))


def nest_handlers(n):
    return 0 if n == 0 else 1 + shift(lambda k: k(nest_handlers(n - 1)))


def without_end():
    return reset(without_end)


def in_thread(stack_size, f):
    """The outcome of f in a thread whose C stack has that size."""
    outcome = []

    def run():
        try:
            outcome.append(f())
        except Exception as error:
            outcome.append(type(error))

    before = threading.stack_size(stack_size)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return outcome[0]


def test_nested_resets_are_not_bound_by_the_recursion_limit():
    assert sys.getrecursionlimit() < 3000
    assert nest(3000) == 3000
    assert nest_through_c(1000) == 1000


def test_the_limit_comes_with_a_clear_error():
    assert nest(NESTING_LIMIT_MAIN) == NESTING_LIMIT_MAIN
    with pytest.raises(NestingError, match=r"nested 10001 deep\. Use a loop"):
        nest(NESTING_LIMIT_MAIN + 1)
    with pytest.raises(RecursionError):
        without_end()
    assert nest(10) == 10


@pytest.mark.parametrize("size", [128 * 1024, 256 * 1024, 0])
def test_threads_with_small_stacks(size):
    assert in_thread(size, lambda: nest(NESTING_LIMIT)) == NESTING_LIMIT
    assert in_thread(size, lambda: nest_through_c(500)) == 500
    assert in_thread(size, lambda: reset(lambda: nest_handlers(2000))) == 2000
    assert in_thread(size, without_end) is NestingError


def test_handlers_do_not_count_as_nesting():
    def body():
        for _ in range(NESTING_LIMIT_MAIN + 10):
            shift(lambda k: k())
        return reset(lambda: "one level")

    assert reset(body) == "one level"


def test_bodies_inside_handlers_count_as_nesting():
    def depth():
        return reset(lambda: innermost.get().depth)

    assert depth() == 1
    assert delimit(depth, [], Prompt("in place")) == 1
    assert reset(lambda: shift(lambda k: k(depth()))) == 2
    assert reset(depth) == 2

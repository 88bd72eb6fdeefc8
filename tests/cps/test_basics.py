"""The laws of shift and reset, before any derivative exists."""

import gc
import weakref

import pytest

from lantern.cps import Prompt, reset, shift
from lantern.errors import AlreadyResumedError, NoDelimiterError

DRIVERS = ("in place", "switching")


def yielding(value, then=lambda answer: answer):
    """A generator handler: k(value), and what becomes of its answer."""

    def handler():
        return then((yield value))

    return handler


def direct(value, then=lambda answer: answer):
    """The same in direct style."""
    return lambda k: then(k(value))


@pytest.fixture(params=DRIVERS)
def prompt(request):
    return Prompt("test", driver=request.param)


@pytest.mark.parametrize("style", [yielding, direct])
class TestLaws:
    def test_reset_of_a_value(self, prompt, style):
        assert reset(lambda: 7, prompt=prompt) == 7

    def test_calling_k_at_once_is_no_capture(self, prompt, style):
        assert reset(lambda: 1 + shift(style(4)), prompt=prompt) == 5

    def test_the_handler_gets_the_answer_of_the_rest(self, prompt, style):
        handler = style(4, lambda answer: 10 * answer)
        assert reset(lambda: 1 + shift(handler), prompt=prompt) == 50

    def test_handlers_wait_newest_first(self, prompt, style):
        order = []

        def body():
            for name in "abc":
                shift(style(None, lambda answer, n=name: order.append(n)))

        reset(body, prompt=prompt)
        assert order == ["c", "b", "a"]

    def test_a_delimiter_ends_the_capture(self, prompt, style):
        def inner():
            handler = style(1, lambda answer: answer * 100)
            return reset(lambda: 2 + shift(handler), prompt=prompt)

        assert 1 + inner() == 301

    def test_a_named_delimiter_further_out(self, prompt, style):
        outer = Prompt("outer", driver=prompt.driver)
        log = []

        def inner():
            shift(style(1, lambda answer: log.append("outer") or answer), prompt=outer)
            log.append("inner")
            return 2

        result = reset(lambda: 10 * reset(inner, prompt=prompt), prompt=outer)
        assert (result, log) == (20, ["inner", "outer"])

    def test_an_exception_of_the_rest_arrives_at_the_handler(self, prompt, style):
        def catching():
            try:
                return (yield 1)
            except ZeroDivisionError:
                return "caught"

        def catching_directly(k):
            try:
                return k(1)
            except ZeroDivisionError:
                return "caught"

        handler = catching if style is yielding else catching_directly
        assert reset(lambda: shift(handler) / 0, prompt=prompt) == "caught"


def test_both_styles_in_one_program(prompt):
    def body():
        a = shift(yielding(2, lambda answer: answer + 1))
        b = shift(direct(3, lambda answer: answer * 10))
        return a * b

    assert reset(body, prompt=prompt) == 61


def test_abort_runs_finally_and_gives_the_handlers_value(prompt):
    def never_yields():
        return "aborted"
        yield

    for handler in (never_yields, lambda k: "aborted"):
        log = []

        def body(handler=handler, log=log):
            try:
                shift(handler)
                log.append("not reached")
            finally:
                log.append("finally")

        assert reset(body, prompt=prompt) == "aborted"
        assert log == ["finally"]


def test_a_stored_continuation_goes_on_later(prompt):
    stored = []

    def body():
        x = shift(lambda k: stored.append(k) or "paused")
        y = shift(lambda k: stored.append(k) or "paused again")
        return x + y

    assert reset(body, prompt=prompt) == "paused"
    assert reset(lambda: [stored.pop()(20)]) == ["paused again"]
    assert stored.pop()(3) == 23


def test_one_shot(prompt):
    stored = []
    reset(lambda: shift(lambda k: stored.append(k)), prompt=prompt)
    assert stored[0](5) == 5
    with pytest.raises(AlreadyResumedError, match="one-shot"):
        stored[0](5)
    stored.clear()


def test_a_second_yield_is_a_second_call(prompt):
    def greedy():
        yield 1
        yield 2

    with pytest.raises(AlreadyResumedError, match="one-shot"):
        reset(lambda: shift(greedy), prompt=prompt)


def test_a_dropped_continuation_unwinds_its_body(prompt):
    log, stored = [], []

    def body():
        try:
            shift(lambda k: stored.append(k))
        finally:
            log.append("finally")

    reset(body, prompt=prompt)
    assert log == []
    stored.clear()
    assert log == ["finally"]


def test_an_exception_crosses_a_delimiter_once_with_its_traceback(prompt):
    error = KeyError("mine")

    def faulty():
        raise error

    with pytest.raises(KeyError) as caught:
        reset(faulty, prompt=prompt)
    assert caught.value is error
    names = [entry.name for entry in caught.traceback]
    assert names.count("faulty") == 1


def test_shift_without_a_delimiter():
    with pytest.raises(NoDelimiterError, match="reset"):
        shift(yielding(1))
    with pytest.raises(NoDelimiterError):
        reset(lambda: shift(yielding(1), prompt=Prompt("elsewhere")))


@pytest.mark.parametrize("driver", DRIVERS)
def test_many_operations_at_the_default_recursion_limit(driver):
    count = 1_000_000 if driver == "in place" else 50_000

    def body():
        total = 0
        for _ in range(count):
            total += shift(yielding(1, lambda answer: answer + 1))
        return total

    assert reset(body, prompt=Prompt("long", driver=driver)) == 2 * count


def test_nothing_is_left_behind(prompt):
    class Canary:
        pass

    canaries = []

    def body():
        canary = Canary()
        canaries.append(weakref.ref(canary))
        shift(yielding(1))
        shift(direct(1))
        return canary is not None

    for _ in range(20):
        assert reset(body, prompt=prompt)
    gc.collect()
    assert [ref() for ref in canaries] == [None] * 20

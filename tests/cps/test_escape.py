"""Continuations that are stored: called later, elsewhere, never, or dropped."""

import functools
import gc
import sys
import threading

import pytest

from lantern.cps import Prompt, Task, delimit, reset, shift
from lantern.errors import AlreadyResumedError, ResumptionError


def pause():
    """Stop here: reset returns ``("paused", k)``."""
    return shift(lambda k: ("paused", k))


def test_k_is_called_after_reset_has_returned():
    _, k = reset(lambda: 1 + 2 * pause())
    assert k(10) == 21


def test_a_paused_program_pauses_again():
    def body():
        total = 0
        while total < 10:
            total += pause()
        return total

    state = reset(body)
    steps = 0
    while isinstance(state, tuple):
        steps += 1
        state = state[1](3)
    assert (state, steps) == (12, 4)


def test_generators_by_shift():
    """Coroutines from the two operators: what ``yield`` does, from any depth."""

    def numbers(n):
        if n:
            numbers(n - 1)
            shift(lambda k: (n, k))

    def iterate(body):
        state = reset(body)
        while state is not None:
            value, k = state
            yield value
            state = k()

    assert list(iterate(lambda: numbers(4))) == [1, 2, 3, 4]


def test_waiting_handlers_are_not_part_of_k():
    log = []

    def waiting():
        answer = yield
        log.append(answer)
        return "answered"

    def body():
        shift(waiting)
        return 1 + shift(lambda k: log.append(k) or "stored")

    assert reset(body) == "answered"
    k, answer = log
    assert answer == "stored"
    assert k(1) == 2
    assert len(log) == 2


def test_k_is_called_from_the_body_of_another_prompt():
    p, q = Prompt("p"), Prompt("q")
    _, k = reset(lambda: 1 + shift(lambda k: ("paused", k), prompt=p), prompt=p)
    assert reset(lambda: 10 * k(1), prompt=q) == 20


def test_k_runs_inside_the_delimiters_of_its_caller():
    p, q = Prompt("p"), Prompt("q")

    def body():
        shift(lambda k: ks.append(k), prompt=p)
        return 1 + shift(lambda k: 10 * k(1), prompt=q)

    ks = []
    reset(body, prompt=p)
    assert reset(lambda: 100 + ks.pop()(), prompt=q) == 10 * (100 + 2)


def test_k_is_called_from_inside_another_handler():
    def first():
        return 1 + pause()

    _, k = reset(first)

    def second():
        return shift(lambda other: k(10) + other(100))

    assert reset(second) == 11 + 100


def test_k_is_called_from_a_delimiter_inside_its_own_handler():
    assert reset(lambda: 1 + shift(lambda k: 2 * reset(lambda: k(4)))) == 10


def test_k_is_called_from_another_greenlet():
    from greenlet import greenlet

    def handler(k):
        return greenlet(k).switch(4)

    assert reset(lambda: 1 + shift(handler)) == 5


def test_k_of_a_rest_of_a_handler():
    """The handler itself is captured: two continuations of one reset, both stored."""
    ks = []

    def handler(k):
        ks.append(k)
        return 100 + pause()

    state = reset(lambda: 1 + shift(handler))
    assert state[0] == "paused"
    assert reset(lambda: ks.pop()(1) + state[1](2)) == 2 + 102


def test_throw_raises_at_the_shift():
    def body():
        try:
            pause()
        except KeyError as error:
            return f"caught {error}"

    assert reset(body)[1].throw(KeyError(1)) == "caught 1"
    assert reset(body)[1].throw(KeyError) == "caught "
    with pytest.raises(ValueError, match="mine"):
        reset(body)[1].throw(ValueError("mine"))


def test_one_shot():
    _, k = reset(lambda: 1 + pause())
    assert k(1) == 2
    for call in (k, functools.partial(k.throw, KeyError)):
        with pytest.raises(AlreadyResumedError, match="one-shot"):
            call()


def test_a_program_that_calls_its_own_k():
    ks = []

    def body():
        shift(lambda k: ks.append(k) or k(1))
        ks[0](2)

    with pytest.raises(AlreadyResumedError):
        reset(body)


def test_repr_shows_the_state():
    prompt = Prompt("p")
    _, k = reset(lambda: shift(lambda k: ("paused", k)), prompt=prompt)
    assert repr(k) == "<Resumption of <Prompt 'p', in place>: waiting>"
    k()
    assert repr(k).endswith(": resumed>")
    kept = []
    delimit(lambda: shift(kept.append), [], prompt)
    assert repr(kept[0]).endswith(": aborted>")


def test_k_belongs_to_its_thread():
    _, k = reset(lambda: 1 + pause())
    caught = []

    def elsewhere():
        try:
            k(1)
        except ResumptionError as error:
            caught.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "another thread" in caught[0]
    assert k(1) == 2, "the attempt has not spent it"


def test_k_of_a_thread_that_has_ended():
    ks = []
    thread = threading.Thread(target=lambda: reset(lambda: shift(ks.append)))
    thread.start()
    thread.join()
    with pytest.raises(ResumptionError, match="another thread"):
        ks[0]()


def test_a_dropped_k_unwinds_its_body():
    log = []

    def body():
        try:
            pause()
        finally:
            log.append("finally")

    state = reset(body)
    assert log == []
    del state
    assert log == ["finally"]


def test_a_handler_that_ignores_k_aborts_before_reset_returns():
    log = []

    def body():
        try:
            shift(lambda k: log.append("handler"))
        finally:
            log.append("finally")

    reset(body)
    log.append("after")
    assert log == ["handler", "finally", "after"]


def test_a_body_that_is_aborted_is_told_why():
    told = []

    def body():
        try:
            shift(lambda k: 1)
        except BaseException as error:
            told.append(str(error))
            raise

    assert reset(body) == 1
    assert told == ["a handler has returned without calling k"]


ks = []  # a global: a paused frame that reached its own k would keep it for ever


def store(k):
    ks.append(k)


def test_a_handler_that_is_aborted_itself_unwinds_its_body_first():
    outer, log = Prompt("outer"), []

    def inner_body():
        try:
            shift(lambda k: shift(lambda _: "aborted", prompt=outer))
        finally:
            log.append("inner")

    def outer_body():
        try:
            reset(inner_body)
        finally:
            log.append("outer")

    assert reset(outer_body, prompt=outer) == "aborted"
    assert log == ["inner", "outer"]


def test_a_k_in_a_cycle_unwinds_its_body_when_collected():
    def body():
        try:
            shift(store)
        finally:
            log.append("finally")

    log = []
    reset(body)
    cycle = [ks.pop()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert log == ["finally"]


def test_a_k_dropped_in_another_thread_unwinds_in_its_own():
    log = []

    def body():
        try:
            shift(store)
        finally:
            log.append(threading.get_ident())

    reset(body)
    thread = threading.Thread(target=ks.clear)
    thread.start()
    thread.join()
    reset(lambda: None)
    assert log == [threading.get_ident()]


def test_a_k_through_two_bodies_unwinds_both():
    p, q = Prompt("p"), Prompt("q")
    log = []

    def inner():
        try:
            shift(store, prompt=p)
        finally:
            log.append("inner")

    def outer():
        try:
            reset(inner, prompt=q)
        finally:
            log.append("outer")

    reset(outer, prompt=p)
    ks.clear()
    assert log == ["inner", "outer"]
    reset(outer, prompt=p)
    thread = threading.Thread(target=ks.clear)
    thread.start()
    thread.join()
    reset(lambda: None)
    reset(lambda: None)
    assert log == ["inner", "outer"] * 2


def test_a_body_dropped_in_another_thread_unwinds_where_a_task_has_ended():
    log = []

    def aborted():
        return shift(lambda k: "aborted")

    def body():
        try:
            shift(store)
        finally:
            log.append("finally")

    assert reset(lambda: Task(aborted).go_on()) == "aborted"
    for _ in range(2):  # in both of the workers that are idle now
        reset(body)
        thread = threading.Thread(target=ks.clear)
        thread.start()
        thread.join()
        reset(lambda: None)
        reset(lambda: None)
    assert log == ["finally"] * 2


def test_an_exception_in_finally_of_a_dropped_body_is_reported(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def body():
        try:
            shift(store)
        finally:
            raise ValueError("in finally")

    reset(body)
    ks.clear()
    assert [str(report.exc_value) for report in reported] == ["in finally"]


def test_unwinding_a_dropped_body_sees_no_delimiter_of_the_place(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    place = Prompt("place")

    def body():
        try:
            shift(store)
        finally:
            shift(lambda k: "must not abort whoever dropped k", prompt=place)

    reset(body)
    assert reset(lambda: ks.clear() or "unharmed", prompt=place) == "unharmed"
    assert "no delimiter of <Prompt 'place'" in str(reported[0].exc_value)


def test_in_place_k_cannot_be_stored():
    log = []

    def body():
        try:
            shift(store)
        finally:
            log.append("finally")

    assert delimit(body, [], Prompt()) is None
    assert log == ["finally"]
    k = ks.pop()
    with pytest.raises(ResumptionError, match="reset around"):
        k()


def test_a_scheduler_of_paused_bodies():
    """What batching needs: bodies wait until all do, then each gets its own row."""
    calls = []

    def square(x):
        return shift(lambda k: calls.append((x, k)))

    def example(x):
        return results.append((x, square(x) + square(x + 1)))

    results = []
    for x in range(5):
        reset(lambda x=x: example(x))
    groups = []
    while calls:
        group = calls[:]
        calls.clear()
        groups.append(len(group))
        for x, k in group:
            k(x * x)
    assert groups == [5, 5]
    assert results == [(x, x**2 + (x + 1) ** 2) for x in range(5)]

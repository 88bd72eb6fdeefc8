"""Nested delimiters, told apart by their prompts."""

import contextvars
import threading

import pytest

from lantern.cps import Prompt, delimit, reset, shift
from lantern.errors import NoDelimiterError


def resume(value, after=lambda answer: answer):
    def generator():
        answer = yield value
        return after(answer)

    return generator


def test_shift_finds_the_nearest_delimiter_of_its_prompt():
    p, q = Prompt("p"), Prompt("q")
    log = []

    def inner():
        a = shift(resume(1, lambda x: log.append("q") or x), prompt=q)
        b = shift(resume(2, lambda x: log.append("p") or x), prompt=p)
        c = shift(resume(3, lambda x: log.append("nearest") or x))
        return a + b + c

    def body():
        answer = reset(inner, prompt=q)
        log.append("inner is over")
        return answer

    assert reset(body, prompt=p) == 6
    assert log == ["nearest", "q", "inner is over", "p"]


@pytest.mark.parametrize("style", ["direct", "generator"])
@pytest.mark.parametrize("driver", ["in place", "switching"])
@pytest.mark.parametrize("inner", [reset, None], ids=["reset", "delimit"])
@pytest.mark.parametrize("outer", [reset, None], ids=["reset", "delimit"])
def test_shift_captures_through_an_inner_delimiter(style, driver, inner, outer):
    p, q = Prompt("p", driver=driver), Prompt("q")

    def run(how, body, prompt):
        return how(body, prompt=prompt) if how else delimit(body, [], prompt)

    def generator():
        answer = yield 4
        return answer + 100

    def direct(k):
        return k(4) + 100

    def within():
        shift(resume(0, lambda answer: answer + 0.5), prompt=q)
        return 10 * shift(direct if style == "direct" else generator, prompt=p)

    def body():
        return 1 + run(inner, within, q)

    assert run(outer, body, p) == 1 + 40 + 0.5 + 100


@pytest.mark.parametrize("driver", ["in place", "switching"])
def test_an_abort_through_an_inner_delimiter_runs_every_finally(driver):
    p, q = Prompt("p", driver=driver), Prompt("q")
    log = []

    def handler():
        return "aborted"
        yield

    def waiting():
        try:
            yield
        finally:
            log.append("waiting handler")

    def within():
        shift(waiting, prompt=q)
        try:
            shift(handler, prompt=p)
        finally:
            log.append("inner body")

    def body():
        try:
            reset(within, prompt=q)
        finally:
            log.append("outer body")

    assert reset(body, prompt=p) == "aborted"
    assert log == ["inner body", "waiting handler", "outer body"]


def test_k_goes_on_in_the_greenlet_that_called_shift():
    from greenlet import getcurrent

    p, q = Prompt("p"), Prompt("q")
    here = []

    def within():
        here.append(getcurrent())
        shift(lambda k: k(), prompt=p)
        here.append(getcurrent())

    def body():
        here.append(getcurrent())
        reset(within, prompt=q)
        here.append(getcurrent())

    reset(body, prompt=p)
    outer_before, inner_before, inner_after, outer_after = here
    assert inner_before is inner_after
    assert outer_before is outer_after
    assert outer_before is not inner_before


@pytest.mark.parametrize("driver", ["in place", "switching"])
def test_a_handler_runs_outside_the_inner_delimiters(driver):
    p, q = Prompt("p", driver=driver), Prompt("q")

    def before():
        return shift(resume(0), prompt=q)

    def generator():
        before()
        return (yield)

    for handler in (generator, lambda k: before()):
        with pytest.raises(NoDelimiterError):
            reset(
                lambda h=handler: reset(lambda: shift(h, prompt=p), prompt=q), prompt=p
            )


def test_a_subclass_with_slots_names_itself():
    class Level(Prompt):
        __slots__ = ("level",)

        def __init__(self, name):
            super().__init__(name, driver="switching")
            self.level = 3

    level = Level("grad")
    assert repr(level) == "<Level 'grad', switching>"
    assert repr(Prompt()) == "<Prompt in place>"
    assert reset(lambda: shift(resume(level.level), prompt=level), prompt=level) == 3


def test_without_a_delimiter():
    p, q = Prompt("p"), Prompt("q")
    with pytest.raises(NoDelimiterError, match="reset"):
        shift(lambda k: k())
    with pytest.raises(NoDelimiterError, match="'q'"):
        reset(lambda: shift(lambda k: k(), prompt=q), prompt=p)
    assert issubclass(NoDelimiterError, RuntimeError)


def test_a_delimiter_is_over_when_its_body_is():
    contexts = []
    reset(lambda: contexts.append(contextvars.copy_context()))
    delimit(lambda: contexts.append(contextvars.copy_context()), [], Prompt())
    for context in contexts:
        with pytest.raises(NoDelimiterError):
            context.run(shift, resume(1))


def test_a_paused_body_is_no_delimiter():
    contexts, ks = [], []

    def body():
        contexts.append(contextvars.copy_context())
        shift(ks.append)

    reset(body)
    with pytest.raises(NoDelimiterError):
        contexts[0].run(shift, resume(1))
    ks.pop()()


def test_a_delimiter_is_not_seen_from_another_thread():
    caught = []

    def elsewhere():
        try:
            shift(resume(1))
        except NoDelimiterError as error:
            caught.append(error)

    def body():
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(elsewhere,))
        thread.start()
        thread.join()

    reset(body)
    assert len(caught) == 1


def test_one_prompt_serves_recursive_programs():
    prompt = Prompt()

    def tree(depth):
        if depth == 0:
            return shift(resume(1, lambda answer: answer + 1), prompt=prompt)
        return sum(reset(lambda: tree(depth - 1), prompt=prompt) for _ in range(2))

    assert reset(lambda: tree(6), prompt=prompt) == 2**6 * 2

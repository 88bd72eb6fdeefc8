"""Context variables in a body: inherited, kept to itself when paused, handed back."""

import asyncio
import contextvars
import decimal
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from lantern.cps import Prompt, reset, shift
from lantern.cps.context import _original

var = contextvars.ContextVar("var", default="default")
other = contextvars.ContextVar("other", default="default")


@pytest.fixture(autouse=True)
def _fresh_variables():
    token, token_of_other = var.set("host"), other.set("host")
    yield
    var.reset(token)
    other.reset(token_of_other)


def pause():
    return shift(lambda k: k)


def divide():
    return np.float64(1) / np.float64(0)


def test_a_body_inherits_errstate_and_precision():
    with np.errstate(divide="raise"), decimal.localcontext(prec=5):

        def body():
            with pytest.raises(FloatingPointError):
                divide()
            return str(decimal.Decimal(1) / 3)

        assert reset(body) == "0.33333"
        assert reset(lambda: shift(lambda k: body())) == "0.33333"


def test_what_a_body_sets_is_set_after_reset_as_after_a_call():
    reset(lambda: var.set("body"))
    assert var.get() == "body"
    assert other.get() == "host"


def test_a_with_block_in_a_body_leaves_nothing():
    before = list(contextvars.copy_context().items())

    def body():
        with np.errstate(divide="ignore"), decimal.localcontext(prec=3):
            return shift(lambda k: k(divide()))

    assert reset(body) == np.inf
    assert list(contextvars.copy_context().items()) == before


def test_what_is_set_before_an_exception_or_an_abort_is_kept():
    def body(end):
        var.set("body")
        end()

    with pytest.raises(ZeroDivisionError):
        reset(lambda: body(lambda: 1 / 0))
    assert var.get() == "body"
    var.set("host")
    reset(lambda: body(lambda: shift(lambda k: None)))
    assert var.get() == "body"


def test_a_paused_with_block_does_not_reach_the_host():
    def body():
        with np.errstate(divide="raise"), decimal.localcontext(prec=4):
            pause()
            with pytest.raises(FloatingPointError):
                divide()
            return str(decimal.Decimal(1) / 3)

    k = reset(body)
    with np.errstate(divide="ignore"):
        assert divide() == np.inf, "the host has its own state while the body waits"
        assert len(str(decimal.Decimal(1) / 3)) > 6
        assert k() == "0.3333"
        assert divide() == np.inf
    with warnings.catch_warnings(), pytest.raises(RuntimeWarning):
        warnings.simplefilter("error")
        divide()


def test_a_token_is_valid_after_a_pause():
    def body():
        token = var.set("body")
        seen = [var.get()]
        pause()
        seen.append(var.get())
        var.reset(token)
        seen.append(var.get())
        return seen

    k = reset(body)
    var.set("host has moved on")
    assert k() == ["body", "body", "host"]
    assert var.get() == "host has moved on"


def test_a_body_that_was_paused_hands_back_at_its_end():
    def body():
        var.set("body")
        pause()
        other.set("body")

    k = reset(body)
    assert var.get() == "host"
    k()
    assert (var.get(), other.get()) == ("body", "body")


def test_a_dropped_body_hands_back_nothing():
    def body():
        var.set("body")
        pause()

    k = reset(body)
    del k
    assert var.get() == "host"


def test_handlers_share_the_variables_of_the_body(world):
    def body():
        var.set("body")
        seen.append(world.shift(None, before=lambda: seen.append(var.get())))
        seen.append(var.get())
        world.shift(None, before=lambda: var.set("handler"))
        seen.append(var.get())
        world.shift(None, after=lambda answer: seen.append(var.get()))
        var.set("end of body")

    seen = []
    world.run(body)
    assert seen == ["body", None, "body", "handler", "end of body"]
    assert var.get() == "end of body"


def test_nested_bodies_hand_back_one_by_one():
    p, q = Prompt("p"), Prompt("q")

    def inner():
        assert var.get() == "outer"
        var.set("inner")
        return shift(lambda k: k(1), prompt=p)

    def outer():
        var.set("outer")
        reset(inner, prompt=q)
        return var.get()

    assert reset(outer, prompt=p) == "inner"
    assert var.get() == "inner"


def test_no_variable_of_ours_is_left_in_the_host():
    context = contextvars.Context()

    def program():
        reset(lambda: 1 + shift(lambda k: k(1)))
        k = reset(pause)
        k()
        return [variable.name for variable in contextvars.copy_context()]

    assert context.run(program) == []


def test_asyncio_tasks_each_have_their_own():
    async def task(name):
        var.set(name)
        k = reset(lambda: (var.get(), pause(), var.get()))
        await asyncio.sleep(0)
        return k()

    async def main():
        return await asyncio.gather(*(task(i) for i in range(10)))

    assert asyncio.run(main()) == [(i, None, i) for i in range(10)]


def test_an_event_loop_inside_a_body():
    async def main():
        await asyncio.sleep(0)
        return var.get()

    assert reset(lambda: asyncio.run(main())) == "host"


def test_threads_are_those_that_gevent_has_put_aside(monkeypatch):
    aside = SimpleNamespace(get_original=lambda module, name: f"{module}'s {name}")
    monkeypatch.setitem(sys.modules, "gevent.monkey", aside)
    assert _original("local") == "threading's local"
    monkeypatch.delitem(sys.modules, "gevent.monkey")
    assert _original("local") is threading.local

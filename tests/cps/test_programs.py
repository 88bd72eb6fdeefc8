"""Random programs in every world against the machine of ``machine.py``."""

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lantern.cps import Prompt, delimit, reset, shift
from lantern.errors import NoDelimiterError
from tests.cps.machine import FailureError, Machine


class Runner:
    """Evaluates the language of the machine with the library.

    Args:
        driver: of all prompts.
        style: "generator" or "direct", where a handler can be written in both.
    """

    def __init__(self, driver: str, style: str) -> None:
        self.prompts = [Prompt(name, driver=driver) for name in "pq"]
        self.style = style
        self.trace: list[int] = []
        self.saved: list[Any] = []

    def outcome(self, program: Any) -> Any:
        try:
            result = "value", self.run(program)
        except FailureError as error:
            result = "error", repr(error)
        except NoDelimiterError:
            result = "error", "MissingError()"
        while self.saved:
            self.saved.pop()
        return result, self.trace

    def run(self, e: Any) -> Any:
        match e:
            case ("const", n):
                return n
            case ("log", tag):
                self.trace.append(tag)
                return 0
            case ("raise", n):
                raise FailureError(n)
            case ("add", first, second):
                total = self.run(first)
                return total + self.run(second)
            case ("try", first, second):
                try:
                    return self.run(first)
                except FailureError:
                    pass
                return self.run(second)
            case ("finally", first, second):
                try:
                    return self.run(first)
                finally:
                    self.run(second)
            case ("reset", "reset", prompt, body):
                return reset(lambda: self.run(body), prompt=self.prompts[prompt])
            case ("reset", "delimit", prompt, body):
                return delimit(lambda: self.run(body), [], self.prompts[prompt])
            case ("saved", value):
                return self.call_saved(self.run(value))
            case ("shift", prompt, handler):
                named = None if prompt is None else self.prompts[prompt]
                return shift(self.handler(handler), prompt=named)
        raise AssertionError(e)

    def call_saved(self, value: Any) -> Any:
        while self.saved:
            k = self.saved.pop()
            if "waiting" in repr(k):
                return k(value)
        return value

    def handler(self, handler: Any) -> Any:
        mode, pre, value, post = handler
        run = self.run

        def direct(k):
            first = run(pre)
            if mode == "store":
                self.saved.append(k)
            if mode in ("abort", "store"):
                return first
            v = run(value)
            if mode == "catch":
                try:
                    answer = k(v)
                except FailureError:
                    answer = 1000
            else:
                answer = k.throw(FailureError(v)) if mode == "throw" else k(v)
            return 2 * answer + run(post)

        def generator():
            first = run(pre)
            if mode == "abort":
                return first
            v = run(value)
            if mode == "catch":
                try:
                    answer = yield v
                except FailureError:
                    answer = 1000
            else:
                answer = yield v
            return 2 * answer + run(post)

        if self.style == "direct" or mode in ("store", "throw"):
            return direct
        return generator


def expressions(depth: int, shifts: bool = True) -> Any:
    """Programs up to a depth; without shifts where ``finally`` must be simple."""
    leaves = st.one_of(
        st.tuples(st.just("log"), st.integers(0, 99)),
        st.tuples(st.just("const"), st.integers(0, 4)),
        st.tuples(st.just("raise"), st.integers(0, 4)),
    )
    if depth == 0:
        return leaves
    sub = st.deferred(lambda: expressions(depth - 1, shifts))
    simple = st.deferred(lambda: expressions(depth - 1, shifts=False))
    kinds, prompts = st.sampled_from(["reset", "delimit"]), st.integers(0, 1)
    modes = st.sampled_from(["resume", "abort", "catch", "throw", "store"])
    branches = [
        st.tuples(st.sampled_from(["add", "try"]), sub, sub),
        st.tuples(st.just("finally"), sub, simple),
        st.tuples(st.just("reset"), kinds, prompts, sub),
    ]
    if shifts:
        handler = st.tuples(modes, sub, sub, sub)
        somewhere = st.one_of(st.none(), prompts)
        one = st.tuples(st.just("shift"), somewhere, handler)
        branches += [one, one, st.tuples(st.just("saved"), sub)]
    return st.one_of(leaves, *branches)


PROGRAMS = st.tuples(
    st.just("reset"), st.sampled_from(["reset", "delimit"]), st.just(0), expressions(4)
)
LOG, THROW = ("log", 1), ("throw", ("log", 2), ("log", 3), ("log", 4))


@pytest.mark.parametrize("style", ["generator", "direct"])
@pytest.mark.parametrize("driver", ["in place", "switching"])
@example(
    # finally of an aborted body raises, through the k of a captured handler
    program=(
        *("reset", "reset", 0),
        (
            "finally",
            ("shift", None, ("abort", ("try", ("shift", 0, THROW), LOG), LOG, LOG)),
            ("raise", 3),
        ),
    )
)
@given(program=PROGRAMS)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
def test_every_world_agrees_with_the_machine(driver, style, program):
    hook, sys.unraisablehook = sys.unraisablehook, lambda report: None
    try:  # what a dropped body raises in finally is reported, and expected
        assert Runner(driver, style).outcome(program) == Machine().run(program)
    finally:
        sys.unraisablehook = hook

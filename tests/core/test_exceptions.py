"""Exceptions pass through a derivative untouched, and the next one is right."""

import signal
import threading
import traceback

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp
from lantern.op import op

pytestmark = pytest.mark.usefixtures("probe", "own_rules")


class UserError(Exception):
    """An exception of the user's own, with arguments of its own."""

    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.code, self.detail = code, detail


VERBS = {
    "grad": lambda f, x: grad(f)(x),
    "switching": lambda f, x: grad(f, driver="switching")(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (1.0,)),
    "vjp": lambda f, x: vjp(f, x)[1](1.0),
}
DRIVERS = ["in place", "switching"]


def errors():
    return [
        UserError(3, {"why": "because"}),
        ValueError("no"),
        StopIteration("user"),
        GeneratorExit("user"),
        KeyboardInterrupt(),
        SystemExit(3),
        MemoryError("user"),
        RecursionError("user"),
        ExceptionGroup("several", [ValueError(1), KeyError(2)]),
    ]


def failing_rule(error, where):
    """An operation that raises in its forward or in its backward step."""

    @op
    def fails(x, /):
        if where == "forward":
            raise error
        z_bar = yield x * 1.0
        if where == "backward":
            raise error
        yield z_bar

    return fails


def caught(thunk):
    """What a thunk raises, and the names of the functions in its traceback."""
    try:
        thunk()
    except BaseException as error:
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        error.__traceback__ = None
        return error, names
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("error", errors(), ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_an_exception_of_f_keeps_identity_traceback_and_context(verb, error):
    def innermost(x):
        raise error

    def f(x):
        return innermost(lantern.sin(x * x) * x)

    got, names = caught(lambda: VERBS[verb](f, 2.0))
    assert got is error
    assert names[-2:] == ["f", "innermost"]
    assert got.__cause__ is None
    assert got.__context__ is None


BACKWARD = [e for e in errors() if not isinstance(e, StopIteration)]


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("error", BACKWARD, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("driver", DRIVERS)
def test_an_exception_of_a_rule_keeps_identity_and_traceback(driver, error, where):
    fails = failing_rule(error, where)

    def f(x):
        return lantern.exp(fails(x * x)) * x

    got, names = caught(lambda: grad(f, driver=driver)(0.5))
    assert got is error
    assert names[-1] == "fails"
    assert got.__cause__ is None
    assert got.__context__ is None


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_stop_iteration_in_a_rule_is_an_error_and_no_end(driver, where):
    fails = failing_rule(StopIteration("user"), where)
    error, _ = caught(lambda: grad(fails, driver=driver)(0.5))
    assert type(error) is RuntimeError
    assert type(error.__cause__) is StopIteration


@pytest.mark.parametrize("x", [2.0, np.array([2.0, 3.0])], ids=["number", "array"])
def test_a_pullback_that_failed_can_be_called_again(x):
    fail = [True]

    @op
    def sometimes(x, /):
        z_bar = yield x * x
        if fail:
            raise UserError(1, fail.pop())
        yield z_bar * 2 * x

    value, pullback = vjp(lambda x: sometimes(x) * 3, x)
    assert type(caught(lambda: pullback(value))[0]) is UserError
    np.testing.assert_allclose(pullback(value)[0], value * 6 * x)


def noting_rules(events):
    """Three operations that note when their frames are left."""

    def make(name):
        @op
        def note(x, /):
            try:
                z_bar = yield x * 2.0
                yield z_bar * 2.0
            finally:
                events.append(name)

        return note

    return [make(name) for name in "abc"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_waiting_rules_are_closed_newest_first(driver):
    events = []
    a, b, c = noting_rules(events)

    def failing(x):
        keep = c(b(a(x)))
        raise UserError(keep, None)

    def failing_in_backward(x):
        return failing_rule(ValueError("back"), "backward")(c(b(a(x))))

    for f in (failing, failing_in_backward):
        del events[:]
        caught(lambda f=f: grad(f, driver=driver)(2.0))
        assert events == ["c", "b", "a"]
    del events[:]
    assert grad(lambda x: c(b(a(x))), driver=driver)(2.0) == 8.0
    assert events == ["c", "b", "a"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_waiting_rule_is_closed_even_if_one_fails_to(driver):
    events = []
    a, b, c = noting_rules(events)

    @op
    def fails_to_close(x, /):
        try:
            z_bar = yield x * 2.0
            yield z_bar * 2.0
        finally:
            events.append("failed")
            raise UserError(2, "in finally")

    def f(x):
        raise ValueError(c(fails_to_close(b(a(x)))))

    error, _ = caught(lambda: grad(f, driver=driver)(2.0))
    assert type(error) is UserError
    assert events == ["c", "failed", "b", "a"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_finally_and_except_of_the_user_run_once(driver):
    events = []

    def f(x):
        try:
            y = x * x
            try:
                y = failing_rule(UserError(1, 2), "forward")(y)
            except UserError:
                events.append("except")
                return y * x
            finally:
                events.append("inner")
        finally:
            events.append("outer")

    assert grad(f, driver=driver)(2.0) == 12.0
    assert events == ["except", "inner", "outer"]


@pytest.mark.parametrize("verb", VERBS)
def test_an_exception_raised_in_finally_replaces_the_first(verb):
    def f(x):
        try:
            raise KeyError(x * x)
        finally:
            raise UserError(1, None)

    error, names = caught(lambda: VERBS[verb](f, 2.0))
    assert type(error) is UserError
    assert type(error.__context__) is KeyError
    assert names[-1] == "f"


@pytest.mark.parametrize("inner", ["grad", "jvp", "vjp", "switching"])
@pytest.mark.parametrize("outer", ["grad", "jvp", "vjp", "switching"])
def test_an_inner_derivative_that_fails_may_be_caught_by_the_outer_function(
    outer, inner
):
    def f(x):
        try:
            return VERBS[inner](lambda y: (x * y) / 0, 3.0)
        except ZeroDivisionError:
            return x * x

    result = VERBS[outer](f, 3.0)
    assert result in (6.0, (6.0,), (9.0, 6.0))


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_signal_interrupts_either_pass(driver, where):
    @op
    def interrupted(x, /):
        if where == "forward":
            signal.raise_signal(signal.SIGINT)
        z_bar = yield x * x
        signal.raise_signal(signal.SIGINT)
        yield z_bar * 2 * x

    error, names = caught(lambda: grad(interrupted, driver=driver)(2.0))
    assert type(error) is KeyboardInterrupt
    assert "interrupted" in names


@pytest.mark.parametrize("verb", VERBS)
def test_endless_recursion_of_the_user(verb):
    def endless(x):
        return endless(x * 1.0) + 1.0

    error, names = caught(lambda: VERBS[verb](endless, 1.0))
    assert isinstance(error, RecursionError)
    assert names.count("endless") > 100
    assert VERBS[verb](lambda x: x * x, 3.0) in (6.0, (6.0,), (9.0, 6.0))


def test_a_thread_that_fails_does_not_hurt_the_others():
    raised, results = [], []

    def fail():
        raised.append(caught(lambda: grad(lambda x: x * {}["x"])(2.0))[0])

    def work():
        results.append(grad(lambda x: lantern.exp(x * x))(0.5))

    threads = [threading.Thread(target=t) for t in (fail, work) * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in raised] == [KeyError] * 8
    assert set(results) == {grad(lambda x: lantern.exp(x * x))(0.5)}

"""Aborts, exceptions, one-shot, and what handlers must not do."""

import functools
import traceback

import pytest

from lantern.cps import Prompt, delimit, reset, shift
from lantern.errors import AlreadyResumedError, ArgumentError


class FailureError(Exception):
    pass


def test_an_abort_runs_finally(world):
    log = []

    def body():
        try:
            world.abort("value")
        finally:
            log.append("finally")

    assert world.run(body) == "value"
    assert log == ["finally"]


def test_an_abort_passes_except_exception(world):
    def body():
        try:
            world.abort("value")
        except Exception:
            return "caught"

    assert world.run(body) == "value"


def test_a_body_that_swallows_the_abort_does_not_change_its_value(world):
    log = []

    def body():
        try:
            world.abort("value")
        except BaseException:
            log.append(world.shift("still works"))
        return "made up"

    assert world.run(body) == "value"
    assert log == ["still works"]


def test_an_exception_in_finally_during_an_abort_reaches_the_caller(world):
    def body():
        try:
            world.abort("value")
        finally:
            raise FailureError("in finally")

    with pytest.raises(FailureError, match="in finally"):
        world.run(body)


def test_an_exception_of_the_rest_arrives_at_the_handler(world):
    def body():
        world.catch(FailureError, "caught")
        raise FailureError

    assert world.run(body) == "caught"


def test_an_exception_travels_past_handlers_that_do_not_catch_it(world):
    log = []

    def body():
        world.shift(0, lambda answer: ("oldest", answer))
        world.catch(FailureError, "caught")
        world.catch(KeyError, "wrong")
        world.shift(0, lambda answer: log.append("must not run"))
        raise FailureError

    assert world.run(body) == ("oldest", "caught")
    assert log == []


def test_an_exception_that_nobody_catches_leaves_reset_as_it_is(world):
    error = FailureError("mine")

    def fail_here():
        raise error

    def body():
        world.shift(0)
        fail_here()

    with pytest.raises(FailureError) as caught:
        world.run(body)
    assert caught.value is error
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-2:] == ["body", "fail_here"]
    assert names.count("fail_here") == 1
    assert error.__context__ is None


def test_a_traceback_names_the_handler_that_raised_and_none_that_was_passed():
    def raises():
        try:
            yield
        except FailureError:
            raise KeyError("another") from None

    def passes():
        yield

    def body(*handlers):
        for handler in handlers:
            shift(handler)
        raise FailureError

    for handlers, error, names in (
        ([passes, passes], FailureError, {"body"}),
        ([passes, raises, passes], KeyError, {"raises"}),
    ):
        with pytest.raises(error) as caught:
            reset(lambda handlers=handlers: body(*handlers))
        frames = traceback.extract_tb(caught.value.__traceback__)
        found = {frame.name for frame in frames}
        assert found & {"body", "raises", "passes"} == names


def test_the_end_of_a_handler_raises_to_the_next_older_one(world):
    def after(answer):
        raise FailureError

    def body():
        world.catch(FailureError, "caught")
        world.shift(0, after)

    assert world.run(body) == "caught"


def test_what_a_handler_raises_before_the_hand_over_shift_raises(world):
    def before():
        raise FailureError("in the forward step")

    def body():
        try:
            world.shift(1, before=before)
        except FailureError as error:
            return str(error)

    assert world.run(body) == "in the forward step"


def test_after_an_exception_all_that_wait_are_ended_newest_first(world):
    log = []

    def waiting(name):
        def generator():
            try:
                yield
            finally:
                log.append(name)

        def direct(k):
            try:
                k()
            finally:
                log.append(name)

        shift(generator if world.style == "generator" else direct)

    def body():
        for name in "abc":
            waiting(name)
        raise FailureError

    with pytest.raises(FailureError):
        world.run(body)
    assert log == ["c", "b", "a"]
    assert world.run(lambda: world.shift(3)) == 3


@pytest.mark.parametrize(
    "error",
    [
        StopIteration("mine"),
        GeneratorExit("mine"),
        KeyboardInterrupt("mine"),
        SystemExit("mine"),
        RecursionError("mine"),
        StopAsyncIteration("mine"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["body", "handler's end", "forward step"])
def test_special_exceptions_are_not_confused_with_control(world, error, where):
    def fail(_=None):
        raise error

    def body():
        world.shift(0)
        if where == "body":
            world.shift(1)
            fail()
        elif where == "handler's end":
            world.shift(1, after=fail)
        else:
            world.shift(1, before=fail)

    if (
        isinstance(error, StopIteration)
        and world.style == "generator"
        and where != "body"
    ):
        with pytest.raises(RuntimeError) as caught:  # Python's own rule, PEP 479
            world.run(body)
        assert caught.value.__cause__ is error
    else:
        with pytest.raises(type(error)) as caught:
            world.run(body)
        assert caught.value is error
    assert world.run(lambda: world.shift(3)) == 3


def test_greenlet_exit_is_an_exception_like_others(world):
    from greenlet import GreenletExit

    def body():
        world.shift(0)
        raise GreenletExit("mine")

    with pytest.raises(GreenletExit, match="mine"):
        world.run(body)
    assert world.run(lambda: world.catch(GreenletExit, 1)) is None


def test_a_stop_iteration_of_the_rest_can_be_caught(world):
    def body():
        world.catch(StopIteration, "caught")
        next(iter(()))

    assert world.run(body) == "caught"


def test_a_second_yield_says_one_shot():
    closed = []

    def twice():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    for prompt in (Prompt(), Prompt(driver="switching")):
        for run in (reset, lambda body, prompt: delimit(body, [], prompt)):
            with pytest.raises(AlreadyResumedError, match="one-shot"):
                run(lambda: shift(twice), prompt=prompt)
    assert closed == [True] * 4


def test_a_handler_that_yields_a_second_time_is_closed_though_someone_holds_it():
    held, closed = [], []

    def twice():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    class Held:
        __code__ = twice.__code__

        def __call__(self):
            held.append(twice())
            return held[-1]

    with pytest.raises(AlreadyResumedError, match="one-shot"):
        reset(lambda: shift(Held()))
    assert closed == [True]


def test_a_second_yield_after_an_exception_says_one_shot():
    def twice():
        try:
            yield 1
        except FailureError:
            yield 2

    def body():
        shift(twice)
        raise FailureError

    with pytest.raises(AlreadyResumedError, match="one-shot"):
        reset(body)


def test_an_error_that_a_handler_raises_itself_takes_the_place_of_the_one_it_caught():
    def handler():
        try:
            yield 1
        except FailureError:
            raise RuntimeError("its own") from None

    def body():
        shift(handler)
        raise FailureError

    with pytest.raises(RuntimeError, match="its own"):
        reset(body)


def test_a_second_call_of_k_says_one_shot(world):
    if world.style == "generator":
        pytest.skip("a generator handler has no k")

    def twice(k):
        k(1)
        return k(2)

    with pytest.raises(AlreadyResumedError, match="one-shot"):
        world.run(lambda: shift(twice))


class Object:
    def generator(self):
        answer = yield 1
        return answer + 1

    def __call__(self):
        answer = yield 1
        return answer + 1


def with_arguments(value, *, plus):
    answer = yield value
    return answer + plus


@pytest.mark.parametrize(
    "handler",
    [
        Object().generator,
        Object(),
        functools.partial(with_arguments, 1, plus=1),
        functools.partial(functools.partial(with_arguments, 1), plus=1),
        functools.partial(Object()),
    ],
    ids=["bound method", "object", "partial", "partial twice", "partial of object"],
)
def test_generator_functions_are_recognised_in_disguise(handler):
    assert reset(lambda: shift(handler)) == 2


def test_callables_of_k_are_recognised_in_disguise():
    class Direct:
        def __call__(self, k):
            return k(1) + 1

    assert reset(lambda: shift(Direct())) == 2
    assert reset(lambda: shift(functools.partial(lambda a, k: k(a) + 1, 1))) == 2
    assert reset(lambda: shift(str)).startswith("<Resumption")


async def coroutine_function(k):
    pass


async def async_generator_function(k):
    yield


def generator_function():
    yield


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: reset(3), "reset: 3 is no function"),
        (lambda: reset(None), "reset: None"),
        (lambda: shift(3), "shift: 3 is no function"),
        (lambda: reset(lambda: shift("x")), "shift: 'x'"),
        (lambda: reset(coroutine_function), "asynchronous"),
        (lambda: reset(async_generator_function), "asynchronous"),
        (lambda: reset(lambda: shift(coroutine_function)), "asynchronous"),
        (lambda: reset(lambda: shift(async_generator_function)), "asynchronous"),
        (lambda: reset(generator_function), "thunk"),
        (lambda: reset(lambda: 1, prompt="p"), "must be a Prompt, got 'p'"),
        (lambda: reset(lambda: shift(len, prompt=3)), "must be a Prompt, got 3"),
        (lambda: Prompt(driver="fast"), "driver is 'fast'"),
        (lambda: reset(lambda: shift(lambda k: k.throw(3))), "3 is no exception"),
        (lambda: reset(lambda: shift(functools.partial(with_arguments))), "value"),
    ],
)
def test_bad_input_is_refused_with_what_came(call, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        call()
    assert isinstance(caught.value, TypeError)


def test_a_generator_handler_takes_no_k():
    def confused(k):
        yield 1

    for driver in ("in place", "switching"):
        with pytest.raises(ArgumentError, match="takes no arguments") as caught:
            reset(lambda: shift(confused), prompt=Prompt(driver=driver))
        assert "confused" in str(caught.value)


def test_the_traceback_of_a_deep_exception_shows_no_library_between():
    def level(n):
        if n == 0:
            raise FailureError
        return reset(lambda: level(n - 1))

    with pytest.raises(FailureError) as caught:
        level(5)
    files = [
        frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)
    ]
    ours = [name for name in files if "lantern/cps" in name.replace("\\", "/")]
    assert len(ours) == 2 * 5, "per reset only the reset and its wait"

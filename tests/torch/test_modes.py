"""Modes as decorators: they hold while the body runs, and never for its caller."""

import asyncio
import inspect
import warnings

import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
MODES = {
    "no_grad": lambda t: t.no_grad(),
    "no_grad without parentheses": lambda t: t.no_grad,
    "enable_grad": lambda t: t.enable_grad(),
    "enable_grad without parentheses": lambda t: t.enable_grad,
    "set_grad_enabled(False)": lambda t: t.set_grad_enabled(False),
    "set_grad_enabled(True)": lambda t: t.set_grad_enabled(True),
    "inference_mode": lambda t: t.inference_mode(),
    "inference_mode(False)": lambda t: t.inference_mode(False),
    "inference_mode without parentheses": lambda t: t.inference_mode,
}


def state(torch):
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def to_its_end(torch, mode):
    @mode
    def body(n):
        for i in range(n):
            seen.append(state(torch))
            seen.append((yield i))
        return "end"

    seen, log = [], [inspect.isgeneratorfunction(body)]
    steps = body(2)
    log += [next(steps), state(torch), steps.send("a"), state(torch)]
    try:
        steps.send("b")
    except StopIteration as end:
        log.append(end.value)
    return log, seen, state(torch)


def thrown_into(torch, mode):
    @mode
    def body():
        while True:
            try:
                yield state(torch)
            except KeyError as error:
                seen.append((str(error), state(torch)))

    seen, steps = [], body()
    log = [next(steps), steps.throw(KeyError("k")), state(torch)]
    try:
        steps.throw(IndexError("i"))
    except IndexError as error:
        log.append(str(error))
    return log, seen, state(torch)


def closed(torch, mode):
    @mode
    def body():
        try:
            yield 1
        finally:
            seen.append(state(torch))

    seen, steps = [], body()
    next(steps)
    steps.close()
    return seen, state(torch)


def mode_set_in_the_body(torch, mode):
    @mode
    def body():
        torch.set_grad_enabled(True)
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    steps = body()
    return [next(steps), state(torch), next(steps), state(torch)]


def plain_function(torch, mode):
    @mode
    def body(x, *, y=2):
        """Its words."""
        return state(torch), x + y

    return body(1), body(1, y=3), body.__name__, body.__doc__, state(torch)


def anonymous(torch, mode):
    return mode(lambda: state(torch))(), state(torch)


def method(torch, mode):
    class Model:
        @mode
        def run(self):
            return state(torch)

        @staticmethod
        @mode
        def free():
            return state(torch)

    return Model().run(), Model.free(), state(torch)


def of_a_class(torch, mode):
    class Model:
        def __init__(self):
            self.state = state(torch)

        def run(self):
            return state(torch)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = mode(Model)()
    return made.state, made.run(), [(w.category, str(w.message)) for w in caught]


def recursive(torch, mode):
    @mode
    def body(n):
        return [state(torch), *(body(n - 1) if n else [])]

    return body(2), state(torch)


def left_by_an_error(torch, mode):
    @mode
    def body():
        raise KeyError("k")

    with pytest.raises(KeyError):
        body()
    return state(torch)


KINDS = [
    to_its_end, thrown_into, closed, mode_set_in_the_body, plain_function, anonymous,
    method, of_a_class, recursive, left_by_an_error,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("outer", [True, False], ids=["tracked", "untracked"])
@pytest.mark.parametrize("mode", MODES)
def test_decorated_as_under_pytorch(mode, outer, kind):
    found = []
    for torch in (ours, theirs):
        with torch.set_grad_enabled(outer):
            found.append(kind(torch, MODES[mode](torch)))
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", MODES)
def test_a_coroutine_runs_in_its_mode_and_nobody_else_does(mode):
    @MODES[mode](ours)
    async def body():
        seen = [state(ours)]
        await asyncio.sleep(0)
        return [*seen, state(ours)]

    async def other():
        seen = []
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(state(ours))
        return seen

    async def both():
        return await asyncio.gather(body(), other())

    expected = MODES[mode](ours)(lambda: state(ours))()
    assert inspect.iscoroutinefunction(body)
    assert asyncio.run(both()) == [[expected] * 2, [state(ours)] * 3]
    steps = body()
    steps.send(None)
    assert state(ours) == (True, False)
    steps.close()


@pytest.mark.parametrize("mode", MODES)
def test_an_asynchronous_generator_runs_in_its_mode(mode):
    expected = MODES[mode](ours)(lambda: state(ours))()

    @MODES[mode](ours)
    async def body():
        try:
            while True:
                await asyncio.sleep(0)
                try:
                    seen.append((yield state(ours)))
                except KeyError:
                    seen.append(state(ours))
        finally:
            await asyncio.sleep(0)
            seen.append(state(ours))

    async def caller():
        steps = body()
        found = [await anext(steps), state(ours), await steps.asend("sent")]
        found.append(await steps.athrow(KeyError("k")))
        await steps.aclose()
        return [*found, state(ours)]

    seen = []
    assert inspect.isasyncgenfunction(body)
    outside = (True, False)
    assert asyncio.run(caller()) == [expected, outside, expected, expected, outside]
    assert seen == ["sent", expected, expected]


class TestSubclass:
    """A mode with more to it is entered whole, also as a decorator."""

    @pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
    def test_is_what_a_decorated_function_runs_in(self, torch):
        log = []

        class Logged(torch.no_grad):
            def __enter__(self):
                log.append("in")
                return super().__enter__()

            def __exit__(self, *exception):
                log.append("out")
                return super().__exit__(*exception)

        assert Logged()(lambda: torch.is_grad_enabled())() is False
        assert log == ["in", "out"]

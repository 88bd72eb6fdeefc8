"""Effects and handlers: what a program asks for, and who decides what it means."""

import asyncio
import contextvars
import gc
import math
import threading

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern import stop_gradient as plain
from lantern.effects import Effect, UnhandledEffectError, handle, with_rest
from lantern.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("probe")
ask = Effect("ask")
tell = Effect("tell", default=lambda value: None)
DERIVATIVES = {
    "grad": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
}


def constant(name):
    return 3.0


def through(name):
    answer = yield 3.0
    return answer


KINDS = {
    "function": constant,
    "generator": through,
    "rest": with_rest(lambda k, name: k(3.0)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_handler_outside_or_inside_a_derivative(name, kind):
    derivative = DERIVATIVES[name]

    def program(x):
        return x * ask("a") * x + ask("b")

    def inside(x):
        return handle(lambda: program(x), {ask: KINDS[kind]})

    assert derivative(inside)(2.0) == 12.0
    assert handle(lambda: derivative(program)(2.0), {ask: KINDS[kind]}) == 12.0


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_handler_sees_the_answer_while_it_can_still_be_differentiated(name):
    def squared(name):
        answer = yield 3.0
        return answer * answer

    def f(x):
        return handle(lambda: x * ask("a"), {ask: squared}) + x

    assert DERIVATIVES[name](f)(2.0) == 2 * 9 * 2.0 + 1.0
    assert grad(grad(f))(2.0) == 18.0


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_handler_that_never_goes_on_ends_the_body(name):
    finals = []

    def give_up(value):
        return value * 10.0
        yield

    def f(x):
        def body():
            try:
                return ask(x * x) + 1e9
            finally:
                finals.append("final")

        return handle(body, {ask: give_up}) * x

    assert DERIVATIVES[name](f)(2.0) == 30.0 * 4.0
    assert finals == ["final"]


def test_handlers_nest_and_an_inner_one_may_ask_the_outer_one():
    def outer(name):
        return f"outer {name}"

    def inner(name):
        return f"inner of {ask(name)}"

    def inner_generator(name):
        answer = yield ask(name)
        return f"{answer}, then {ask('again')}"

    def body():
        return handle(lambda: ask("x"), {ask: inner})

    assert handle(body, {ask: outer}) == "inner of outer x"
    nested = lambda: handle(lambda: ask("x"), {ask: inner_generator})  # noqa: E731
    assert handle(nested, {ask: outer}) == "outer x, then outer again"
    assert handle(lambda: [tell(1), ask("y")], {ask: outer}) == [None, "outer y"]


def test_several_effects_and_defaults():
    told = []

    def program():
        tell("begin")
        return ask("a") + ask("b")

    handlers = {tell: told.append, ask: lambda name: name.upper()}
    assert handle(program, handlers) == "AB"
    assert told == ["begin"]
    assert tell("nobody") is None


@pytest.mark.parametrize("kind", KINDS)
def test_exceptions_of_bodies_and_handlers(kind):
    def fails(*args):
        raise KeyError("handler")

    def body():
        try:
            return ask("a")
        except KeyError:
            return "caught in the body"

    handler = {"rest": with_rest(fails)}.get(kind, fails)
    assert handle(body, {ask: handler}) == "caught in the body"
    with pytest.raises(ZeroDivisionError):
        handle(lambda: ask("a") / 0, {ask: KINDS[kind]})
    with pytest.raises(UnhandledEffectError):
        ask("a")


def test_a_generator_handler_catches_what_the_rest_raises():
    def safe(name):
        try:
            answer = yield 0.0
        except ZeroDivisionError:
            answer = "saved"
        return answer

    assert handle(lambda: 1 / ask("a"), {ask: safe}) == "saved"


def test_the_rest_may_be_kept_and_called_later():
    def f(x):
        later = []

        def keep(k, name):
            later.append(k)
            return name

        names = [handle(lambda: x * ask("a") + ask("b"), {ask: with_rest(keep)})]
        names.append(later.pop()(3.0))
        return later.pop()(x) * len(names)

    assert grad(f)(5.0) == 8.0
    assert jvp(f, (5.0,), (1.0,)) == (40.0, 8.0)


def test_misuse_is_named():
    with pytest.raises(UnhandledEffectError, match=r"ask: no handler.*handle\("):
        ask("a")
    with pytest.raises(ArgumentError, match="no effect"):
        handle(lambda: 1, {"ask": constant})
    with pytest.raises(ArgumentError, match="handler of ask"):
        handle(lambda: 1, {ask: 3.0})
    assert repr(ask) == "<Effect 'ask'>"


def test_tasks_and_threads_have_handlers_of_their_own():
    async def task(n):
        def program():
            return ask("x") * n

        await asyncio.sleep(0)
        return handle(lambda: grad(lambda x: x * program())(1.0), {ask: lambda _: n})

    async def main():
        return await asyncio.gather(*map(task, range(5)))

    assert asyncio.run(main()) == [n * n for n in range(5)]
    seen = []

    def in_thread():
        try:
            ask("x")
        except UnhandledEffectError:
            seen.append("none")
        context.run(lambda: seen.append(ask("x")))

    def start():
        nonlocal context
        context = contextvars.copy_context()
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()

    context = None
    handle(start, {ask: constant})
    assert seen == ["none", 3.0]


# A probabilistic program: who runs it chooses how its gradient is estimated.

sample = Effect("sample")
observe = Effect("observe")


class Normal:
    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale

    def log_density(self, x):
        z = (x - self.mean) / self.scale
        return -0.5 * z * z - lantern.log(self.scale) - 0.5 * math.log(2 * math.pi)


def reparameterised(noise):
    return lambda distribution: distribution.mean + distribution.scale * next(noise)


def score_function(noise):
    def handler(distribution):
        drawn = plain(distribution.mean) + plain(distribution.scale) * next(noise)
        loss = yield drawn
        score = distribution.log_density(drawn)
        return loss + plain(loss) * (score - plain(score))

    return handler


def estimates(make, samples=4000):
    """Gradients of E[(z - 3)^2], z ~ N(m, s): 2 (m - 3) and 2 s."""
    noise = np.random.default_rng(0).normal(size=samples)
    noise = np.concatenate([noise, -noise])  # antithetic: less variance
    draws = iter(noise.tolist())

    def loss(m, s):
        handler = {sample: make(draws)}
        return handle(lambda: (sample(Normal(m, s)) - 3.0) ** 2, handler)

    return np.array([grad(loss, argnums=(0, 1))(2.0, 0.5) for _ in noise])


@pytest.mark.parametrize("make", [reparameterised, score_function])
def test_a_handler_chooses_how_a_gradient_is_estimated(make):
    found = estimates(make)
    error = found.std(axis=0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - [-2.0, 1.0]) < 4 * error)
    assert np.all(error < 0.1)


def test_a_dry_run_records_what_a_program_would_draw():
    def program(n):
        z = sample(Normal(0.0, 1.0))
        for _ in range(n):
            observe(Normal(z, 1.0), 1.0)
        return z

    drawn, scores = [], []

    def dry(distribution):
        drawn.append(distribution.mean)
        return distribution.mean

    handlers = {sample: dry, observe: lambda d, x: scores.append(d.log_density(x))}
    assert handle(lambda: program(3), handlers) == 0.0
    assert drawn == [0.0]
    assert scores == [Normal(0.0, 1.0).log_density(1.0)] * 3


def test_a_guard_against_nan_and_a_policy_of_recomputation():
    layer = Effect("layer", default=lambda f, x: f(x))
    calls = []

    def counted(x):
        calls.append("forward")
        return lantern.tanh(x)

    def net(x):
        return lantern.sum(layer(counted, layer(counted, x)))

    @lantern.op.op
    def recomputed(x, /, f):
        z_bar = yield f(x)
        yield vjp(f, x)[1](z_bar)[0]

    def finite(f, x):
        y = f(x)
        if not np.all(np.isfinite(plain(y))):
            raise FloatingPointError(f.__name__)
        return y

    try:
        x = np.array([0.5, 1.0])
        expected = grad(net)(x)
        assert len(calls) == 2
        again = handle(lambda: grad(net)(x), {layer: lambda f, x: recomputed(x, f=f)})
        assert len(calls) == 2 + 4
        np.testing.assert_array_equal(again, expected)
        with pytest.raises(FloatingPointError, match="counted"):
            handle(lambda: grad(net)(x * np.nan), {layer: finite})
    finally:
        del lantern.op.registry["recomputed"]
        lantern.core.operation.by_code.pop(recomputed.rule.__code__)


def test_nothing_is_left_behind():
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        handle(lambda: ask("a") * 2, {ask: through})
        handle(lambda: ask("a") * 2, {ask: KINDS["rest"]})
    gc.collect()
    assert len(gc.get_objects()) - before < 30

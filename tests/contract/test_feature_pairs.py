"""Every feature inside every other: each pair gives what the plain program gives.

A *form* takes a function and returns one that computes the same in another way: through
a checkpoint, a hook, a rule of its own, a paused program, a derivative whose value it
is. A *way* takes a derivative. So the plain function knows every answer, and what is
true of it (finite differences) is true of all.
"""

import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.effects import Effect, handle, with_rest
from lantern.errors import (
    ArgumentError,
    MissingRuleError,
    NoDelimiterError,
    RuleError,
)
from lantern.testing import check_grads

FORMS = {}
WAYS = {}


def form(make):
    FORMS[make.__name__] = make
    return make


def way(take):
    WAYS[take.__name__] = take
    return take


def middle(pair):
    return (pair[0] + pair[1]) * 0.5


def zeros_like(x):
    return lantern.stop_gradient(x) * 0.0


def ones_like(x):
    return zeros_like(x) + 1.0


# What steers the reverse pass.


@form
def checkpoint(f):
    return lantern.checkpoint(f)


@form
def remat_sqrt(f):
    def step(y, i):
        return f(y) if i == 1 else y + 0.0

    return lambda x: lantern.remat_loop(step, x, 4)


@form
def remat_log(f):
    def step(y, i):
        return f(y) if i == 2 else y * 1.0

    return lambda x: lantern.remat_loop(step, x, 5, "log")


@form
def hook(f):
    return lambda x: lantern.hook(lambda g: g * 1.0, f(lantern.hook(lambda g: None, x)))


@form
def hook_of_a_tree(f):
    def g(x):
        tree = lantern.hook(lambda g: None, {"a": x, "b": (x * 1.0, 3.0)})
        return middle((f(tree["a"]), f(tree["b"][0])))

    return g


@form
def no_grad(f):
    def g(x):
        with lantern.no_grad(x):
            constant = f(x)
        return f(x) + (constant - lantern.stop_gradient(constant))

    return g


@form
def stop_gradient(f):
    return lambda x: f(x) + (lantern.stop_gradient(f(x)) - lantern.stop_gradient(f(x)))


@form
def debug(f):
    def g(x):
        with lantern.debug(shape="ignore"):
            return f(x)

    return g


@form
def backward_steps(f):
    def g(x):
        steps = lantern.backward_steps(lambda t: lantern.sum(f(x) * t), ones_like(x))
        (result,) = [cotangents[0] for op, cotangents in steps if op.is_input]
        return result

    return g


# What does something with the rest of the program.


@form
def bracket(f):
    def g(x):
        with lantern.bracket(contextlib.nullcontext()):
            return f(x)

    return g


@form
def both_ways(f):
    def g(x):
        with lantern.both_ways(contextlib.nullcontext):
            return f(x)

    return g


@form
def with_answer(f):
    @lantern.with_answer
    def rule(x, /):
        _, z_bar = yield f(x)
        yield vjp(f, x)[1](z_bar + 0.0 * lantern.stop_gradient(x))[0]

    return rule


@form
def early_exit(f):
    return lambda x: lantern.early_exit(lambda leave: [leave(f(x))])


@form
def effect(f):
    ask = Effect("ask")
    return lambda x: handle(lambda: ask(x), {ask: f})


@form
def effect_and_answer(f):
    ask = Effect("ask")

    def handler(x):
        answer = yield x * 1.0
        return f(answer)

    return lambda x: handle(lambda: ask(x) + 0.0, {ask: handler})


@form
def effect_with_rest(f):
    ask = Effect("ask")
    handler = with_rest(lambda k, x: k(x * 1.0))
    return lambda x: handle(lambda: f(ask(x)) * 1.0, {ask: handler})


@form
def effect_that_escapes(f):
    ask = Effect("ask")

    def g(x):
        later = []
        handler = with_rest(lambda k, x: later.append(k))
        handle(lambda: f(ask(x)) * 1.0, {ask: handler})
        return later.pop()(x * 1.0)

    return g


@form
def program(f):
    def body():
        y = f(lantern.pause("x") * 1.0)
        lantern.pause("go on")
        return y

    def g(x):
        paused = lantern.Program(body)
        paused.resume(x)
        paused.resume()
        return paused.result

    return g


# Several at once.


@form
def thread(f):
    def g(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(copy_context().run, f, x).result()

    return g


@form
def parallel_map(f):
    return lambda x: middle(lantern.parallel_map(f, [x, x * 1.0], workers=2))


@form
def batch(f):
    return lambda x: middle(lantern.batch(f, [x, x * 1.0]))


@form
def fork(f):
    return lambda x: middle(lantern.fork(lambda: f(x), lambda: f(x * 1.0)))


@form
def vmap(f):
    return lambda x: middle(lantern.vmap(f)(lantern.stack([x, x * 1.0])))


@form
def vmap_of_another(f):
    weights = np.array([0.25, 0.75])
    return lambda x: lantern.sum(lantern.vmap(lambda t: f(x) * t)(weights), axis=0)


# Rules.


@form
def custom_rule(f):
    @lantern.custom_rule
    def rule(x, /):
        y, pullback = vjp(f, x)
        z_bar = yield y
        yield pullback(z_bar)[0]

    return rule


@form
def custom_vjp(f):
    rule = lantern.custom_vjp(lambda x: f(x))
    rule.defvjp(lambda x: vjp(f, x), lambda pullback, z_bar: pullback(z_bar))
    return lambda x: rule(x)


@form
def custom_jvp(f):
    rule = lantern.custom_jvp(lambda x: f(x))
    rule.defjvp(lambda primals, tangents: jvp(f, primals, tangents))
    return lambda x: rule(x)


@form
def root(f):
    return lambda x: lantern.root(lambda z, x: z - f(x), zeros_like(x), x)


@form
def fixed_point(f):
    return lambda x: lantern.fixed_point(lambda z, x: f(x) + 0.0 * z, zeros_like(x), x)


@form
def buffer(f):
    def g(x):
        b = lantern.Buffer(np.zeros((3, *np.shape(x))))
        b[0] = x
        b[1] = b[0] * 3.0
        b[2] = f(b[0])
        b[1] = b[2] * 3.0
        b[0] = b[1] - b[2]
        return (b[0] + b[1] + b[2]) / 6.0

    return g


# The value of f as a derivative by something else.


@form
def value_of_vjp(f):
    return lambda x: vjp(f, x)[0]


@form
def value_of_jvp(f):
    return lambda x: jvp(f, (x,), (ones_like(x),))[0]


@form
def value_of_linearize(f):
    return lambda x: lantern.linearize(f, x)[0]


@form
def value_of_jet(f):
    return lambda x: lantern.jet(f, (x,), ([ones_like(x)],))[0]


@form
def gradient(f):
    return lambda x: grad(lambda t: lantern.sum(f(x) * t))(ones_like(x))


@form
def gradient_by_captures(f):
    return lambda x: grad(lambda t: lantern.sum(f(x) * t), driver="switching")(
        ones_like(x)
    )


@form
def tangent(f):
    return lambda x: jvp(lambda t: f(x) * t, (1.0,), (1.0,))[1]


@form
def second_pull(f):
    def g(x):
        _, pullback = vjp(lambda t: f(x + (t - t)) * t, ones_like(x))
        pullback(0.0 * x)
        return pullback(ones_like(x))[0]

    return g


@form
def jacobian(f):
    return lambda x: lantern.jacfwd(lambda t: f(x) * t)(1.0)


@form
def jacobian_by_rows(f):
    return lambda x: lantern.jacrev(lambda t: f(x) * t)(1.0)


# The ways. Directions and weights are unlike each other.

WEIGHTS = {"number": 1.7, "array": np.array([0.7, -1.1, 0.4])}
DIRECTIONS = {
    "number": (0.6, -0.4),
    "array": (np.array([0.3, -0.5, 0.9]), np.array([1.3, 0.5, -0.2])),
}


def kind_of(x):
    return "array" if np.shape(x) else "number"


def scalar(f):
    return lambda x: lantern.sum(f(x) * WEIGHTS[kind_of(x)])


def directions(x):
    return DIRECTIONS[kind_of(x)]


def pushed(f, x, i=0):
    return jvp(f, (x,), (directions(x)[i],))


def two(x):
    return np.stack([x, 0.9 * x])


@way
def by_gradient(f, x):
    return lantern.value_and_grad(scalar(f))(x)


@way
def by_captures(f, x):
    return grad(scalar(f), driver="switching")(x)


@way
def by_pulls(f, x):
    value, pullback = vjp(f, x)
    return value, [pullback(directions(x)[i]) for i in (0, 1, 0)]


@way
def by_push(f, x):
    return pushed(f, x)


@way
def by_pushes(f, x):
    value, pushforward = lantern.linearize(f, x)
    return value, [pushforward(directions(x)[i]) for i in (0, 1, 0)]


@way
def by_rows(f, x):
    return lantern.jacrev(f)(x)


@way
def by_columns(f, x):
    return lantern.jacfwd(f)(x)


@way
def by_hessian(f, x):
    return lantern.hessian(scalar(f))(x)


@way
def by_pull_of_gradient(f, x):
    return lantern.vhp(scalar(f), x, directions(x)[0])


@way
def by_gradient_of_push(f, x):
    return grad(lambda x: lantern.sum(pushed(f, x)[1]))(x)


@way
def by_gradient_of_pull(f, x):
    return grad(lambda x: lantern.sum(vjp(f, x)[1](directions(x)[0])[0]))(x)


@way
def by_push_of_push(f, x):
    return pushed(lambda x: pushed(f, x)[1], x, 1)


@way
def by_third_order(f, x):
    return pushed(grad(lambda x: lantern.sum(grad(scalar(f))(x))), x)


@way
def by_series(f, x):
    return lantern.jet(f, (x,), ([directions(x)[0], 0.0 * x],))


@way
def by_map(f, x):
    return lantern.vmap(f)(two(x))


@way
def by_map_of_gradient(f, x):
    return lantern.vmap(grad(scalar(f)))(two(x))


@way
def by_map_of_push(f, x):
    return lantern.vmap(lambda x: pushed(f, x)[1])(two(x))


@way
def by_gradient_of_map(f, x):
    return grad(lambda xs: lantern.sum(lantern.vmap(scalar(f))(xs)))(two(x))


@way
def by_gradient_in_debug(f, x):
    with lantern.debug(shape="ignore"):
        return grad(scalar(f))(x), pushed(f, x), vjp(f, x)[1](directions(x)[1])


@way
def by_steps(f, x):
    steps = lantern.backward_steps(scalar(f), x)
    return [cotangents for op, cotangents in steps if op.is_input]


@way
def by_programs(f, x):
    def body(x):
        y = f(x) * lantern.pause()
        lantern.pause()
        return lantern.sum(y * WEIGHTS[kind_of(x)])

    programs = [lantern.Program(grad(body), x) for x in (x, 0.9 * x)]
    for value in (1.0, None):
        for paused in programs:
            paused.resume(value)
    return [paused.result for paused in programs]


@way
def by_batch(f, x):
    return list(lantern.batch(grad(scalar(f)), list(two(x))))


@way
def by_threads(f, x):
    return lantern.parallel_map(grad(scalar(f)), list(two(x)), workers=2)


@way
def by_checkpoint(f, x):
    return grad(lantern.checkpoint(scalar(f)))(x)


@way
def by_hook(f, x):
    return grad(lambda x: scalar(f)(lantern.hook(lambda g: 2.0 * g, x)))(x)


@way
def by_two_uses(f, x):
    return grad(lambda x: scalar(f)(0.1 * f(x)) + scalar(f)(x))(x)


@way
def by_no_use(f, x):
    return grad(lambda x: (f(x), scalar(lambda x: x * x)(x))[1])(x)


POINTS = {"number": 0.8, "array": np.array([0.8, -0.3, 1.2])}


def plain_number(x):
    return lantern.sin(x) * x + x * x * 0.5


def plain_array(x):
    return np.tanh(x) * x[::-1] + lantern.sum(x * x) * 0.1 * x


PLAIN = {"number": plain_number, "array": plain_array}
# What knows only one answer of its program cannot be asked for several, nor forward.
ONE_ANSWER = {
    *("by_gradient", "by_captures", "by_rows", "by_steps", "by_programs", "by_batch"),
    *("by_threads", "by_checkpoint", "by_hook", "by_two_uses", "by_no_use"),
    *("by_map_of_gradient", "by_pull_of_gradient", "by_third_order", "by_hessian"),
}


def leaves(y):
    return [np.asarray(leaf, dtype=float) for leaf in lantern.tree_leaves(y)]


@pytest.fixture(scope="module")
def answers():
    return {
        (kind, name): leaves(take(PLAIN[kind], POINTS[kind]))
        for kind in PLAIN
        for name, take in WAYS.items()
    }


def check(f, kind, name, answers):
    got = leaves(WAYS[name](f, POINTS[kind]))
    for a, b in zip(got, answers[kind, name], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10, err_msg=name)


def refusal(way, *forms):
    """What a combination that cannot work says; of two forms, it may say it."""
    if "with_answer" in forms and (way not in ONE_ANSWER or len(forms) > 1):
        error, match = MissingRuleError, "Use grad or value_and_grad"
    elif "thread" in forms and way == "by_captures":
        error, match = NoDelimiterError, "in the same thread"
    else:
        return contextlib.nullcontext()
    if len(forms) > 1:
        return contextlib.suppress(error)
    return pytest.raises(error, match=match)


@pytest.mark.parametrize("kind", PLAIN)
def test_the_plain_program_is_differentiated_right(kind):
    check_grads(PLAIN[kind], (POINTS[kind],), order=2)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_in_every_way(name, kind, answers, probe):
    f = FORMS[name](PLAIN[kind])
    for way in WAYS:
        with refusal(way, name):
            check(f, kind, way, answers)


@pytest.mark.parametrize("outer", FORMS)
def test_a_form_around_every_other(outer, answers, probe):
    first = list(FORMS).index(outer)  # so that all pairs meet all ways somewhere
    ways = itertools.islice(itertools.cycle(WAYS), first, None)
    for (kind, inner), way in zip(itertools.product(PLAIN, FORMS), ways, strict=False):
        f = FORMS[outer](FORMS[inner](PLAIN[kind]))
        with refusal(way, outer, inner):
            check(f, kind, way, answers)


# What all examples of a vmap share is differentiated through every rule.


@lantern.custom_rule
def product(a, x, /):
    z_bar = yield lantern.sin(a * x)
    yield lantern.sum(z_bar * lantern.cos(a * x) * x)
    yield z_bar * lantern.cos(a * x) * a


@lantern.custom_vjp
def ported_product(a, x):
    return lantern.sin(a * x)


def _pulled_product(saved, z_bar):
    a, x = saved
    bar = z_bar * lantern.cos(a * x)
    return lantern.sum(bar * x), bar * a


ported_product.defvjp(lambda a, x: (lantern.sin(a * x), (a, x)), _pulled_product)


@lantern.custom_jvp
def moved_product(a, x):
    return lantern.sin(a * x)


@moved_product.defjvp
def _moved_product(primals, tangents):
    (a, x), (a_dot, x_dot) = primals, tangents
    return lantern.sin(a * x), lantern.cos(a * x) * (a_dot * x + a * x_dot)


RULES = {
    "custom_rule": product,
    "custom_vjp": ported_product,
    "custom_jvp": moved_product,
    "root": lambda a, x: lantern.root(
        lambda z, a, x: z - lantern.sin(a * x), zeros_like(x), a, x
    ),
    "fixed_point": lambda a, x: lantern.fixed_point(
        lambda z, a, x: lantern.sin(a * x), 0.0 * np.ones(np.shape(x)), a, x
    ),
    "checkpoint": lantern.checkpoint(lambda a, x: lantern.sin(a * x)),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_the_examples_of_a_vmap_share(rule, probe):
    xs, a = np.array([[1.0, 2.0], [3.0, 0.5], [0.1, 0.7]]), 0.7
    plain = lambda a: lantern.sum(lantern.sin(a * xs))  # noqa: E731
    by_closure = lambda a: lantern.sum(lantern.vmap(lambda x: rule(a, x))(xs))  # noqa: E731
    for f in (
        by_closure,
        lambda a: lantern.sum(lantern.vmap(rule, in_axes=(None, 0))(a, xs)),
    ):
        for derivative in (
            lambda f: grad(f)(a),
            lambda f: vjp(f, a)[1](2.0),
            lambda f: jvp(f, (a,), (1.0,)),
            lambda f: lantern.linearize(f, a)[1](1.0),
            lambda f: grad(grad(f))(a),
        ):
            np.testing.assert_allclose(derivative(f), derivative(plain), rtol=1e-8)


def test_a_rule_in_a_vmap_refuses_what_it_closes_over():
    def f(w):
        @lantern.custom_rule
        def scaled(x, /):
            z_bar = yield w * x
            yield z_bar * w

        return lantern.sum(lantern.vmap(scaled)(w * np.ones(2)))

    with pytest.raises(RuleError, match="not among its operands"):
        grad(f)(3.0)


def test_stop_gradient_and_no_grad_reach_the_levels_around_a_vmap():
    def f(x):
        with lantern.no_grad(x):
            constant = x * x
        return constant * x + lantern.stop_gradient(x) * x

    xs = np.array([1.0, 2.0])
    gradient = grad(lambda xs: lantern.sum(lantern.vmap(f)(xs)))(xs)
    assert gradient.tolist() == [2.0, 6.0]
    assert jvp(lantern.vmap(f), (xs,), (np.ones(2),))[1].tolist() == [2.0, 6.0]


def test_a_map_inside_is_no_derivative():
    count = lambda x: x * lantern.nestlevel(x)  # noqa: E731
    assert lantern.vmap(count)(np.ones(2)).tolist() == [0.0, 0.0]
    assert lantern.vmap(grad(count))(np.ones(2)).tolist() == [1.0, 1.0]


def test_vmap_does_not_hide_batched():
    lantern.vmap(lambda x: x)(np.ones(2))

    @lantern.batched
    def double(x):
        return 2.0 * x

    assert lantern.batch(double, [1.0, 2.0]) == [2.0, 4.0]


def test_a_bracket_stays_open_in_debug():
    seen = []

    def f(x):
        with lantern.bracket(contextlib.closing(Closing(seen))):
            y = x * x
        return lantern.hook(lambda g: seen.append("back"), y)

    with lantern.debug():
        grad(f)(3.0)
    assert seen == ["back", "closed"]


class Closing:
    def __init__(self, seen):
        self.seen = seen

    def close(self):
        self.seen.append("closed")


def test_parallel_calls_of_a_batched_function(probe):
    @lantern.batched
    def step(xs, *, w):
        return lantern.tanh(xs @ w)

    def read(w, xs):
        return sum(
            h.sum() for h in lantern.batch(lambda x: step(step(x, w=w), w=w), xs)
        )

    parts = [[np.array([1.0, 2.0])], [np.array([0.5, -1.0]), np.array([3.0, 0.1])]]
    w = np.array([[0.3, -0.2], [0.5, 0.1]])
    got = grad(
        lambda w: sum(lantern.parallel_map(lambda p: read(w, p), parts, workers=2))
    )
    want = grad(lambda w: sum(read(w, p) for p in parts))
    np.testing.assert_allclose(got(w), want(w), rtol=1e-12)


def test_a_checkpoint_keeps_what_a_buffer_was():
    def f(x):
        b = lantern.Buffer(np.zeros(2))
        b[0] = x
        y = lantern.sum(lantern.checkpoint(lambda b: b * b)(b))
        b[0] = 7.0
        return y

    assert grad(f)(3.0) == 6.0


def test_a_rule_in_a_checkpoint_sees_the_answer():
    @lantern.with_answer
    def score(x, /):
        answer, _ = yield 1.0
        yield answer

    f = lantern.checkpoint(lambda x: score(x) * 5.0)
    assert grad(lambda x: f(x) + 2.0)(3.0) == 7.0


def test_to_leave_a_checkpoint_early():
    def f(x, result):
        def body(leave):
            return lantern.checkpoint(lambda x: leave(result(x)))(x)

        return lantern.early_exit(body) * x

    assert grad(f)(3.0, lambda x: 2.0) == 2.0
    assert grad(f)(3.0, lambda x: x) == 6.0
    with pytest.raises(ArgumentError, match="left early"):
        grad(f)(3.0, lambda x: x * x)
    inside = lantern.checkpoint(lambda x: f(x, lambda x: x))
    assert grad(inside)(3.0) == 6.0


@pytest.mark.usefixtures("probe")
class TestABatchInAMap:
    def test_a_row_as_the_result(self):
        z = lantern.vmap(lambda x: lantern.batch(cell, [x, 2 * x])[1])(np.ones(3))
        np.testing.assert_allclose(z, np.full(3, np.tanh(2.0)))

    def test_gradients_of_each_example(self):
        def f(x, w):
            return sum(lantern.batch(lambda e: cell(x * e @ w).sum() * e, [1.0, 2.0]))

        x, w = np.linspace(-1, 1, 8).reshape(4, 2), np.arange(6.0).reshape(2, 3) / 5
        gradient = lantern.grad(f, argnums=(0, 1))
        x_bar, w_bar = lantern.vmap(gradient, in_axes=(0, None))(x, w)
        for row, *found in zip(x, x_bar, w_bar, strict=True):
            for a, b in zip(found, gradient(row, w), strict=True):
                np.testing.assert_allclose(a, b)


@lantern.batched
def cell(x):
    return lantern.tanh(x)

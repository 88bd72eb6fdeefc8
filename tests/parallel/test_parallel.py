"""Parts of a program in several threads, there and back: to the last bit the same."""

import contextvars
import gc
import itertools
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, parallel_map, value_and_grad, vjp
from lantern.errors import ArgumentError
from lantern.op import op
from lantern.staging.native.background import wait

pytestmark = pytest.mark.usefixtures("probe", "own_rules", "threads_switch_often")
RNG = np.random.default_rng(0)
WEIGHTS, BATCHES = RNG.normal(size=(5, 5)), RNG.normal(size=(7, 3, 5))


def part(w, x, i=0):
    """Uses the shared weights often and unevenly, reads slices, has a branch."""
    y = x
    for n in range(2 + i % 3):
        y = lantern.tanh(y @ w + w[n])
    if i % 2:
        y = lantern.where(y > 0, y * w[0], y)
    return lantern.sum(y * y) * (w[1, 1] + i)


def of_arrays(map_):
    def f(w, xs):
        parts = map_(lambda x, i: part(w, x, i), xs, range(len(xs)))
        total = 0.0
        for y in parts:
            total = total * w[0, 0] + y
        return total + lantern.sum(w)

    return lambda w: f(w, BATCHES)


def of_inputs(map_):
    """The parts are tracked themselves, and share nothing."""
    return lambda w: lantern.sum(lantern.stack(map_(lambda x: part(x, x), [w, w * 2])))


def of_numbers(map_):
    def f(x):
        def one(n):
            y = x
            for i in range(30):
                y = lantern.sin(y) * (x + n) if i % 3 else y + x * y
            return y

        return sum(map_(one, range(9)))

    return f


def sequential(f, *xs):
    return list(map(f, *xs))


PROGRAMS = {
    "arrays": (of_arrays, WEIGHTS),
    "inputs": (of_inputs, WEIGHTS),
    "numbers": (of_numbers, 0.3),
}
VERBS = {
    "grad": value_and_grad,
    "switching": lambda f: value_and_grad(f, driver="switching"),
    "vjp": lambda f: lambda x: (vjp(f, x)[0], *vjp(f, x)[1](1.0)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0 + 1,)),
}


def bits(results):
    return [np.asarray(result).tobytes() for result in results]


@pytest.mark.parametrize("workers", [2, 5, None])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_as_the_sequential_program(name, verb, workers):
    make, x = PROGRAMS[name]
    expected = bits(VERBS[verb](make(sequential))(x))
    for _ in range(3):
        found = VERBS[verb](make(partial(parallel_map, workers=workers)))(x)
        assert bits(found) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pullback_is_called_many_times(name):
    make, x = PROGRAMS[name]
    _, expected = vjp(make(sequential), x)
    _, found = vjp(make(partial(parallel_map, workers=3)), x)
    for seed in (1.0, -2.0, 1.0):
        assert bits(found(seed)) == bits(expected(seed))


ORDERS = ["".join(order) for n in (2, 3) for order in itertools.product("rf", repeat=n)]


@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_of_derivatives(order):
    def derivative(f, mode):
        return grad(f) if mode == "r" else lambda x: jvp(f, (x,), (1.0,))[1]

    expected, found = (
        of_numbers(map_) for map_ in (sequential, partial(parallel_map, workers=3))
    )
    for mode in order:
        expected, found = derivative(expected, mode), derivative(found, mode)
    assert found(0.3) == expected(0.3)


def test_second_derivatives_of_arrays():
    def second(f):
        return lambda w: grad(lambda v: lantern.sum(grad(f)(v) * v))(w)

    expected = second(of_arrays(sequential))(WEIGHTS)
    found = second(of_arrays(partial(parallel_map, workers=3)))(WEIGHTS)
    assert bits([found]) == bits([expected])


def test_maps_inside_maps():
    def f(map_):
        def row(w, x):
            return sum(map_(lambda y: lantern.sum(lantern.tanh(y * w) * x), x))

        return lambda w: sum(map_(lambda x: row(w * 2.0, x) * w[0, 0], BATCHES))

    w = WEIGHTS[:1]
    expected = grad(f(sequential))(w)
    found = grad(f(partial(parallel_map, workers=3)))(w)
    assert bits([found]) == bits([expected])


def test_derivatives_inside_the_parts():
    def f(map_):
        return lambda x: sum(map_(lambda n: grad(lambda y: x * y**n)(x), range(1, 6)))

    for D in VERBS.values():
        assert D(f(partial(parallel_map, workers=3)))(1.5) == D(f(sequential))(1.5)


def test_both_passes_run_in_several_threads(meets):
    """Both halves of an operation meet their counterparts of another part."""

    def f(x):
        return sum(parallel_map(lambda n: meets(x * n), (1.0, 2.0), workers=2))

    assert grad(f)(3.0) == 2 * 3.0 + 2 * 4 * 3.0


def test_context_variables_reach_the_parts():
    variable = contextvars.ContextVar("variable", default="none")

    def f(x):
        variable.set("inside")
        with np.errstate(over="raise"):
            seen = parallel_map(lambda i: (variable.get(), np.geterr()["over"]), "ab")
        assert seen == [("inside", "raise")] * 2
        return x

    contextvars.copy_context().run(grad(f), 1.0)


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("verb", ["grad", "vjp"])
def test_the_first_exception_in_order_is_raised(verb, where):
    closed = []

    @op
    def breaks(x, /, i):
        try:
            if where == "forward" and i in (2, 4):
                time.sleep(0.01 * (4 - i))
                raise KeyError(i)
            z_bar = yield x * x
            if where == "backward" and i in (2, 4):
                raise KeyError(i)
            yield z_bar * 2 * x
        finally:
            closed.append(i)

    def f(x):
        ys = parallel_map(lambda i: breaks(x * 2.0, i=i), range(6), workers=3)
        return sum(ys)

    first = 2 if where == "forward" else 4  # backward, the last part comes first
    with pytest.raises(KeyError) as info:
        grad(f)(3.0) if verb == "grad" else vjp(f, 3.0)[1](1.0)
    assert info.value.args == (first,)
    if verb == "grad":
        assert set(closed) >= {2, 4}
        assert len(closed) == len(set(closed))


def test_an_exception_of_a_part_is_caught_by_a_rule_outside():
    @op
    def fails(x, /):
        yield x * 1.0
        raise KeyError("back")

    @op
    def guarded(x, /):
        try:
            z_bar = yield x * 1.0
        except KeyError:
            z_bar = 7.0
        yield z_bar

    def f(x):
        g = guarded(x * x)
        ys = parallel_map(lambda n: fails(g * n) if n == 2.0 else x * n, (1.0, 2.0))
        return sum(ys)

    assert grad(f)(3.0) == 7.0 * 6.0 + 1.0
    _, pullback = vjp(f, 3.0)
    assert [pullback(1.0), pullback(1.0)] == [(43.0,)] * 2


def test_the_user_may_catch_and_go_on():
    def f(x):
        try:
            parallel_map(lambda n: x * x / n, (1.0, 0.0), workers=2)
        except ZeroDivisionError:
            return x * 3.0

    assert grad(f)(2.0) == 3.0


@pytest.mark.parametrize("derivative", [grad, lambda f: lambda x: vjp(f, x)[1](1.0)[0]])
def test_a_part_may_use_what_an_earlier_one_has_computed(derivative):
    def f(x, earlier=0, later=1):
        shared, ready = {}, threading.Event()

        def part(i):
            if i == earlier:
                shared["y"] = x * x
                ready.set()
                return x * 1.0
            assert ready.wait(10)
            return shared["y"] * x

        return sum(parallel_map(part, range(2), workers=2))

    assert derivative(f)(2.0) == 1.0 + 12.0
    with pytest.raises(ArgumentError, match="a task uses a tracked value"):
        derivative(lambda x: f(x, 1, 0))(2.0)
    assert f(2.0, 1, 0) == 2.0 + 8.0


def test_threads_of_a_part():
    def in_thread(run):
        results = []
        thread = threading.Thread(target=lambda: results.append(run()))
        thread.start()
        thread.join()
        return results[0]

    def f(x, context=False, used=True):
        def part(n):
            y = x * n
            run = partial(contextvars.copy_context().run, lambda: y * y)
            z = in_thread(run if context else lambda: y * y)
            return z * 1.0 if used else z

        return sum(parallel_map(part, (1.0, 2.0), workers=2))

    assert grad(f)(3.0, context=True) == 30.0
    assert grad(f)(3.0, used=False) == 30.0
    with pytest.raises(ArgumentError, match="If it starts threads"):
        grad(f)(3.0)


def join_helpers():
    """Wait for threads whose results nobody needs any more."""
    for thread in threading.enumerate():
        if thread.name == "lantern helper":
            thread.join(20)


def test_an_interrupt_does_not_wait_for_the_threads_and_they_leave_nothing():
    begun, go_on = threading.Event(), threading.Event()

    def part(i):
        if i == 0:
            begun.set()
            go_on.wait(20)
        return i

    def interrupt():
        begun.wait(20)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)
        go_on.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        grad(lambda x: sum(parallel_map(lambda i: x * part(i), range(4), workers=2)))(
            2.0
        )
    thread.join()
    join_helpers()


def test_an_interrupt_in_a_part_is_raised_at_once():
    done, interrupted = [], threading.Event()

    def part(i):
        if threading.current_thread() is threading.main_thread():
            interrupted.set()
            raise KeyboardInterrupt
        interrupted.wait(20)
        done.append(i)
        return i

    with pytest.raises(KeyboardInterrupt):
        grad(lambda x: sum(parallel_map(lambda i: x * part(i), range(99), workers=2)))(
            2.0
        )
    join_helpers()
    assert len(done) < 99


def test_brackets_and_answers_inside_the_parts():
    events, lock = [], threading.Lock()

    class Span:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            with lock:
                events.append(("enter", self.name))

        def __exit__(self, *error):
            with lock:
                events.append(("exit", self.name))

    @lantern.with_answer
    def score_function(log_probability, /, draw):
        loss, _ = yield draw
        yield loss

    def f(map_):
        def part(x, i):
            with lantern.bracket(Span(i)):
                y = x * x
            return y * score_function(lantern.log(x), i)

        return lambda x: sum(map_(lambda i: part(x, i), range(1, 4)))

    expected = grad(f(sequential))(0.5)
    del events[:]
    assert grad(f(partial(parallel_map, workers=3)))(0.5) == expected
    for i in range(1, 4):
        assert [kind for kind, name in events if name == i] == ["enter", "exit"]


def test_outside_of_derivatives_and_small_maps():
    assert parallel_map(lambda x, y: x * y, [1, 2, 3], [4, 5]) == [4, 10]
    assert parallel_map(str, []) == []
    assert grad(lambda x: parallel_map(lambda n: x * n, [5.0])[0])(2.0) == 5.0
    before = threading.active_count()
    parallel_map(lambda _: threading.active_count(), range(8))
    assert threading.active_count() == before


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match="expected a function"):
        parallel_map(3, [1])
    for workers in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="workers"):
            parallel_map(abs, [1], workers=workers)


def test_nothing_is_left_behind():
    f = of_arrays(partial(parallel_map, workers=2))
    grad(f)(WEIGHTS)
    wait()  # until what earlier tests compile in the background is there
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(5):
            grad(f)(WEIGHTS)
        assert len(gc.get_objects()) - before < 100
    finally:
        gc.enable()

"""Memory: nothing is kept, nothing grows, nothing is shared, nothing goes deep."""

import contextlib
import gc
import itertools
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp
from lantern.core.value import base
from lantern.op import op
from lantern.staging.native.background import wait

DRIVERS = ["in place", "switching"]
VERBS = {
    "grad": lambda f: grad(f),
    "switching": lambda f: grad(f, driver="switching"),
    "value_and_grad": lambda f: value_and_grad(f),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "second": lambda f: grad(lambda x: total(grad(f)(x))),
    "forward over reverse": lambda f: lambda x: jvp(grad(f), (x,), (x,)),
}


def total(x):
    """The sum of an array's elements; a number itself."""
    return lantern.sum(x) if np.shape(base(x)) else x


@pytest.fixture
def without_collector():
    """Only reference counting frees memory: a cycle would stay. Nobody else works."""
    wait()  # until what earlier tests compile in the background is there
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def network(x):
    hidden = lantern.tanh(x * x + 0.5)
    parts = lantern.stack([hidden[0], lantern.sum(hidden), hidden[-1] * 2.0])
    return lantern.logsumexp(lantern.where(parts > 0, parts, 0.1 * parts))


class Float(float):
    """A float that can be referred to weakly."""


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("without_collector")
class TestNoCycles:
    def test_an_input_array_and_all_that_was_computed_are_freed_at_once(self, verb):
        inside = []

        def f(x):
            y = network(x)
            inside.append(weakref.ref(base(x * 1.0)))
            return y

        x = np.linspace(-1.0, 1.0, 4)
        inside.append(weakref.ref(x))
        VERBS[verb](f)(x)
        del x
        assert [r() is None for r in inside] == [True] * len(inside)

    def test_an_input_number_is_freed_at_once(self, verb):
        x = Float(0.5)
        inside = weakref.ref(x)
        VERBS[verb](lambda x: lantern.exp(x) * x + x**3 / 2)(x)
        del x
        assert inside() is None

    def test_a_dropped_function_is_freed_at_once(self, verb):
        def f(x):
            return x * x

        inside = weakref.ref(f)
        VERBS[verb](f)(2.0)
        del f
        assert inside() is None


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("without_collector")
def test_ten_thousand_calls_do_not_grow(verb):
    def f(x):
        return lantern.sin(x) * x

    run = VERBS[verb](f)
    for _ in range(4000):  # fills the interpreter's free lists
        run(0.5)
    blocks = sys.getallocatedblocks()
    for _ in range(10_000):
        run(0.5)
    assert sys.getallocatedblocks() - blocks < 50


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.usefixtures("without_collector")
def test_calls_that_fail_do_not_grow(driver):
    def f(x):
        return lantern.sin(x) * x / 0

    def run(times):
        for _ in range(times):
            with pytest.raises(ZeroDivisionError):
                grad(f, driver=driver)(0.5)

    run(100)
    gc.collect()
    blocks = sys.getallocatedblocks()
    run(1000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 50


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.usefixtures("own_rules", "without_collector")
def test_saved_arrays_are_freed_as_the_backward_pass_goes(driver):
    """The first operation is resumed last: by then all that came later is gone."""
    made, alive = [], []

    @op
    def first(x, /):
        z_bar = yield x * 1.0
        alive.extend(r() is not None for r in made)
        yield z_bar

    def f(x):
        y = first(x)
        for _ in range(5):
            y = lantern.tanh(y * y)
            made.append(weakref.ref(base(y)))
        return lantern.sum(y)

    grad(f, driver=driver)(np.ones(3))
    assert alive == [False] * 5


@pytest.mark.usefixtures("own_rules", "without_collector")
def test_arrays_that_no_rule_needs_are_freed_in_the_forward_pass():
    made, alive = [], []

    def f(x):
        y = x
        for _ in range(5):
            y = y + 1.0
            made.append(weakref.ref(base(y)))
        alive.extend(r() is not None for r in made)
        return lantern.sum(y)

    grad(f)(np.ones(3))
    assert alive == [False] * 4 + [True]


@pytest.mark.usefixtures("own_rules", "without_collector")
@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("forward", [lantern.jvp, lantern.jet])
def test_a_forward_mode_keeps_no_rule(forward, stops):
    made, alive = [], []

    def f(x):
        y = lantern.exp(x)
        for _ in range(5):
            with lantern.no_grad(x) if stops else contextlib.nullcontext():
                y = lantern.tanh(y * y)
            made.append(weakref.ref(base(y)))
        alive.extend(r() is not None for r in made)
        return lantern.sum(y)

    ones = np.ones(3)
    forward(f, (ones,), ([ones] if forward is lantern.jet else ones,))
    assert alive == [False] * 4 + [True]


def peak(run):
    """The largest number of bytes that a call holds at once."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_nodes_that_accumulate_need_few_arrays():
    def f(x):
        nodes = [x, x]
        while len(nodes) < 10:
            total = nodes[0]
            for node in nodes[1:]:
                total = total + node
            nodes.append(total)
        return lantern.sum(nodes[-1] * nodes[-1])

    x = np.ones(100_000)
    np.testing.assert_array_equal(grad(f)(x), np.full_like(x, 131072.0))
    assert peak(lambda: grad(f)(x)) < 25 * x.nbytes


def test_a_weight_used_often_collects_in_one_buffer():
    x = np.ones(100_000)

    def f(x):
        return sum(x[i] * float(i) for i in range(50))

    expected = np.zeros_like(x)
    expected[:50] = range(50)
    np.testing.assert_array_equal(grad(f)(x), expected)
    assert peak(lambda: grad(f)(x)) < 3 * x.nbytes


def chain(x):
    """A hundred thousand operations."""
    y = x
    for _ in range(50_000):
        y = y * x
        y = y + x
    return y


@pytest.mark.parametrize("verb", ["grad", "pullback", "jvp"])
def test_a_chain_of_a_hundred_thousand_operations(verb):
    x, y, slope = 0.5, 0.5, 1.0
    for _ in range(50_000):
        y, slope = y * x + x, slope * x + y + 1.0
    result = VERBS[verb](chain)(x)
    expected = x * slope if verb == "jvp" else slope
    assert np.ravel(result)[-1] == pytest.approx(expected, rel=1e-13)


def test_a_chain_needs_few_bytes_per_operation():
    assert peak(lambda: grad(chain)(0.5)) < 100_000 * 500


@pytest.mark.parametrize("x", [1.0, np.ones(2)], ids=["number", "array"])
@pytest.mark.parametrize("verb", ["grad", "jvp"])
def test_a_value_used_a_hundred_thousand_times(x, verb):
    def f(x):
        return total(sum(itertools.repeat(x * 3.0, 100_000), x))

    result = VERBS[verb](f)(x)
    expected = np.ones_like(x) if verb == "grad" else [np.sum(x), np.sum(x)]
    np.testing.assert_array_equal(result, 300_001.0 * np.array(expected))


def recursion(depth):
    """x to the power of depth + 1, by recursion."""

    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    return lambda x: power(x, depth)


def in_thread(run, stack=None):
    """Run in a thread with a stack of its own."""
    results = []
    before = threading.stack_size(stack) if stack else None
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    thread.join()
    if stack:
        threading.stack_size(before)
    return results[0]


@pytest.mark.parametrize("verb", ["grad", "switching", "value_and_grad", "jvp"])
def test_recursion_900_deep_at_the_default_limit(verb):
    assert sys.getrecursionlimit() == 1000
    result = in_thread(lambda: VERBS[verb](recursion(900))(1.0))
    assert np.ravel(result)[-1] == 901.0


@pytest.mark.parametrize("verb", ["grad", "jvp"])
def test_recursion_10_000_deep_at_a_raised_limit(verb):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        result = in_thread(lambda: VERBS[verb](recursion(10_000))(1.0), 512 * 2**20)
    finally:
        sys.setrecursionlimit(limit)
    assert np.ravel(result)[-1] == 10_001.0

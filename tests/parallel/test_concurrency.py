"""Derivatives in threads, tasks and generators, interleaved: none notices another.

Every result is compared, to the last bit, with the one computed alone.
"""

import asyncio
import contextvars
import gc
import itertools
import queue
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import greenlet
import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.errors import NoDelimiterError

pytestmark = pytest.mark.usefixtures("probe", "threads_switch_often")
THREADS = 16
_MATRIX = np.random.default_rng(0).normal(size=(4, 4))


def chain(n):
    """A function of its own for each n, with branches and an inner derivative."""

    def f(x):
        y = x
        for i in range(20 + n):
            slope = grad(lambda z, y=y: z * y)
            y = lantern.sin(y) * (x + n) if i % 3 else y + slope(x)
        return y

    return f


def network(n):
    def f(x):
        hidden = lantern.tanh(_MATRIX @ x + n)
        return lantern.logsumexp(hidden * x[n % 4]) + lantern.max(hidden)

    return f


TASKS = {
    "grad": lambda n: grad(chain(n))(0.3 + n / 10),
    "switching": lambda n: grad(chain(n), driver="switching")(0.3 + n / 10),
    "jvp": lambda n: jvp(chain(n), (0.3 + n / 10,), (1.0,)),
    "second": lambda n: grad(grad(chain(n % 3)))(0.3 + n / 10),
    "arrays": lambda n: grad(network(n))(np.linspace(-1, 1, 4)).tobytes(),
    "pullback": lambda n: vjp(network(n), np.linspace(-1, 1, 4))[1](1.0)[0].tobytes(),
}


def in_threads(run, arguments):
    """Call a function once in each thread, all starting together."""
    barrier = threading.Barrier(len(arguments))

    def work(argument):
        barrier.wait()
        return run(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(work, arguments))


@pytest.mark.parametrize("name", TASKS)
def test_threads_that_differentiate_different_functions(name):
    run = TASKS[name]
    alone = [run(n) for n in range(THREADS)]
    assert in_threads(run, range(THREADS)) == alone
    assert len(set(map(str, alone))) == THREADS


def test_threads_that_do_all_of_it_at_once():
    names = [name for name, _ in zip(itertools.cycle(TASKS), range(THREADS))]
    jobs = list(enumerate(names))
    alone = [TASKS[name](n) for n, name in jobs]
    assert in_threads(lambda job: TASKS[job[1]](job[0]), jobs) == alone


def test_one_function_of_grad_is_shared_by_all_threads():
    derivative = grad(chain(3))
    points = [0.1 * i for i in range(THREADS)]
    assert in_threads(derivative, points) == [derivative(x) for x in points]


def test_one_pullback_is_called_by_one_thread_after_another():
    _, pullback = vjp(network(1), np.linspace(-1, 1, 4))
    expected = pullback(1.0)[0]
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(pullback, 1.0).result()[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_that_await_between_derivatives(name):
    run = TASKS[name]

    async def task(n):
        results = []
        for _ in range(3):
            await asyncio.sleep(0)
            results.append(run(n))
        return results

    async def main():
        return await asyncio.gather(*map(task, range(8)))

    assert asyncio.run(main()) == [[run(n)] * 3 for n in range(8)]


def test_a_task_may_run_a_loop_inside_a_differentiated_function():
    async def halves(x):
        await asyncio.sleep(0)
        return x / 2

    async def both(x):
        return sum(await asyncio.gather(halves(x), halves(x * x)))

    for D in (grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]):
        assert D(lambda x: asyncio.run(both(x)) * x)(2.0) == 8.0


@pytest.mark.parametrize(
    "derivative", [grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]]
)
def test_a_differentiated_function_that_computes_in_threads(derivative):
    """Sums of powers of two: exact in any order."""

    def f(x):
        with ThreadPoolExecutor(8) as pool:
            parts = pool.map(lambda i: (x * 2.0**i) * x, range(THREADS))
            return sum(parts) + pool.submit(lambda: x * x).result()

    assert derivative(f)(3.0) == 6.0 * (2.0**THREADS - 1) + 6.0


def test_derivatives_inside_threads_inside_a_derivative():
    def f(x):
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda i: grad(lambda y: x * y * y)(float(i)), (1, 2)))

    assert grad(f)(5.0) == 6.0


def test_generators_that_are_interleaved():
    def walk(x, derivative):
        for n in range(1, 5):
            yield derivative(lambda y, n=n: y**n * x)(x)

    def values(derivative, x):
        return list(walk(x, derivative))

    pairs = zip(walk(2.0, grad), walk(3.0, grad), strict=True)
    interleaved = list(itertools.chain.from_iterable(pairs))
    assert interleaved[::2] == values(grad, 2.0)
    assert interleaved[1::2] == values(grad, 3.0)


@pytest.mark.parametrize("driver", ["in place", "switching"])
def test_a_generator_of_the_outer_level_runs_inside_an_inner_derivative(driver):
    def powers(x):
        y = x
        while True:
            yield y
            y = y * x

    def f(x):
        steps = powers(x)
        next(steps)
        slope = grad(lambda y: y * y * next(steps), driver=driver)(3.0)  # 6 x^2
        return slope * next(steps)  # 6 x^5

    assert grad(f, driver=driver)(2.0) == 30 * 16.0
    assert jvp(f, (2.0,), (1.0,)) == (6 * 32.0, 30 * 16.0)


class RunsOnDeletion:
    """Takes a derivative when it is collected."""

    def __init__(self, results):
        self.results = results

    def __del__(self):
        self.results.append(grad(lambda x: x * x * x)(3.0))


@pytest.mark.parametrize("driver", ["in place", "switching"])
def test_reentrancy_from_a_finaliser(driver, own_rules):
    results = []

    @lantern.op.op
    def holds(x, /):
        keep = RunsOnDeletion(results)
        z_bar = yield x * x
        del keep
        yield z_bar * 2 * x

    def f(x):
        RunsOnDeletion(results)
        return holds(x) * x

    assert grad(f, driver=driver)(2.0) == 12.0
    assert results == [27.0, 27.0]


def test_reentrancy_from_the_garbage_collector():
    results = []

    def on_collection(phase, info):
        results.append(grad(lambda x: x * x * x)(3.0))

    def f(x):
        y = x
        for _ in range(10):
            y = y * x
            gc.collect()
        return y

    gc.callbacks.append(on_collection)
    try:
        assert grad(f)(1.0) == 11.0
    finally:
        gc.callbacks.remove(on_collection)
    assert set(results) == {27.0}


def test_reentrancy_from_a_signal_handler():
    results = []
    before = signal.signal(
        signal.SIGUSR1, lambda *_: results.append(grad(lambda x: x**3)(3.0))
    )

    def f(x):
        y = x
        for _ in range(10):
            signal.raise_signal(signal.SIGUSR1)
            y = y * x
        return y

    try:
        assert grad(f)(1.0) == 11.0
        assert grad(f, driver="switching")(1.0) == 11.0
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert results == [27.0] * 20


@pytest.mark.parametrize("driver", ["in place", "switching"])
def test_context_variables_reach_into_and_out_of_a_differentiated_function(driver):
    variable = contextvars.ContextVar("variable", default="none")

    def f(x):
        seen = variable.get()
        variable.set("inside")
        with np.errstate(all="raise"):
            settings = np.geterr()
            y = lantern.exp(x)
            assert np.geterr() == settings
        return y if seen == "outside" else x

    def run():
        variable.set("outside")
        with np.errstate(divide="ignore"):
            settings = np.geterr()
            assert grad(f, driver=driver)(0.0) == 1.0
            assert np.geterr() == settings
        return variable.get()

    assert contextvars.copy_context().run(run) == "inside"


# Channels: values go from one thread, task or greenlet to another and back.


def squares_in_sequence(x):
    total = x * 0.0
    for n in range(1, 6):
        total = total + lantern.sin(x * n) * x
    return total


def squares_through_threads(x):
    """A producer, a worker and a consumer, each in its own thread."""
    products, results = queue.Queue(maxsize=2), queue.Queue()

    def produce():
        for n in range(1, 6):
            products.put(x * n)
        products.put(None)

    def work():
        while (product := products.get()) is not None:
            results.put(lantern.sin(product) * x)
        results.put(None)

    threads = [threading.Thread(target=target) for target in (produce, work)]
    for thread in threads:
        thread.start()
    total = x * 0.0
    while (result := results.get()) is not None:
        total = total + result
    for thread in threads:
        thread.join()
    return total


def squares_through_tasks(x):
    """The same in one thread, with queues of asyncio."""

    async def produce(products):
        for n in range(1, 6):
            await products.put(x * n)
        await products.put(None)

    async def work(products, results):
        while (product := await products.get()) is not None:
            await results.put(lantern.sin(product) * x)
        await results.put(None)

    async def main():
        products, results = asyncio.Queue(1), asyncio.Queue(1)
        tasks = asyncio.gather(produce(products), work(products, results))
        total = x * 0.0
        while (result := await results.get()) is not None:
            total = total + result
        await tasks
        return total

    return asyncio.run(main())


def squares_through_greenlets(x):
    """The same with greenlets of the user's own, which switch to each other."""
    consumer = greenlet.getcurrent()

    def produce():
        for n in range(1, 6):
            consumer.switch(x * n)

    def work(product):
        while True:
            product = consumer.switch(lantern.sin(product) * x)

    producer, worker = greenlet.greenlet(produce), greenlet.greenlet(work)
    total = x * 0.0
    for _ in range(5):
        total = total + worker.switch(producer.switch())
    producer.switch()
    worker.throw()
    return total


CHANNELS = [squares_through_threads, squares_through_tasks, squares_through_greenlets]
MODES = {
    "grad": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "vjp": lambda f: lambda x: vjp(f, x)[1](x * 0 + 1)[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0 + 1,))[1],
    "second": lambda f: grad(lambda x: grad(f)(x) * x),
}


# The switching driver captures a stack; these programs have several.
SEVERAL_STACKS = (squares_through_threads, squares_through_greenlets)
PAIRS = [
    (program, mode)
    for program, mode in itertools.product(CHANNELS, MODES)
    if mode != "switching" or program not in SEVERAL_STACKS
]


@pytest.mark.parametrize(("program", "mode"), PAIRS)
def test_values_go_through_channels(program, mode):
    derivative = MODES[mode]
    expected = derivative(squares_in_sequence)(0.7)
    found = derivative(program)(0.7)
    if program is squares_through_threads:  # sums in the order of execution
        assert found == pytest.approx(expected, rel=1e-14)
    else:
        assert found == expected


@pytest.mark.parametrize("program", CHANNELS)
def test_arrays_go_through_channels(program):
    x = np.linspace(-1, 1, 5)
    expected = grad(lambda x: lantern.sum(squares_in_sequence(x)))(x)
    found = grad(lambda x: lantern.sum(program(x)))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_independent_parts_in_a_thread_pool_give_the_same_bits():
    """Each part has an input of its own, so no sum depends on the order."""
    inputs = [np.random.default_rng(i).normal(size=(4, 4)) for i in range(8)]

    def part(x):
        return lantern.sum(lantern.tanh(x @ x) @ _MATRIX)

    def sequential(xs):
        return sum(map(part, xs))

    def in_pool(xs):
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(part, xs))

    for _ in range(5):
        for found, expected in zip(
            grad(in_pool)(inputs), grad(sequential)(inputs), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_an_exception_in_a_channel_leaves_nothing_behind():
    def f(x):
        results = queue.Queue()

        def work():
            try:
                results.put(x * {}["missing"])
            except KeyError as error:
                results.put(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise results.get()

    for derivative in MODES.values():
        with pytest.raises(KeyError, match="missing") as info:
            derivative(f)(2.0)
        info.value.__traceback__ = None
        del info


def test_the_switching_driver_refuses_other_stacks():
    def in_pool(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: x * x).result()

    def in_greenlet(x):
        return greenlet.greenlet(lambda: x * x).switch()

    for f in (in_pool, in_greenlet):
        assert grad(f)(3.0) == 6.0
        with pytest.raises(NoDelimiterError, match="switching") as info:
            grad(f, driver="switching")(3.0)
        info.value.__traceback__ = None
        del info

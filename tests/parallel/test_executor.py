"""A thread pool's tasks in a derivative: to the last bit the sequential program's."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import decimal
import gc
import itertools
import queue
import threading
import time
from concurrent.futures import CancelledError, Future
from concurrent.futures.thread import BrokenThreadPool

import greenlet
import numpy as np
import pytest

import lantern
from lantern import ThreadPoolExecutor, grad, jvp, value_and_grad, vjp
from lantern.errors import ArgumentError, EscapedError
from lantern.op import op
from lantern.staging.native.background import wait

pytestmark = pytest.mark.usefixtures("probe", "own_rules", "threads_switch_often")
RNG = np.random.default_rng(0)
WEIGHTS, BATCHES = RNG.normal(size=(5, 5)), RNG.normal(size=(7, 3, 5))
TIMES = 20


class Sequential:
    """The sequential program: a task runs where it is submitted."""

    def __init__(self, workers):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, f, *args):
        future = Future()
        future.set_result(f(*args))
        return future

    def map(self, f, *xs):
        return list(map(f, *xs))


def part(w, x, i=0):
    """Uses the shared weights often and unevenly, reads slices, has a branch."""
    y = x
    for n in range(1 + 3 * i % 4):
        y = lantern.tanh(y @ w + w[n % len(w)])
    if i % 2:
        y = lantern.where(y > 0, y * w[0], y)
    return lantern.sum(y * y) * (w[1, 1] + i)


# Programs of a pool and shared weights. Each has at least five tasks.


def asked_in_order(Pool, w):
    with Pool(3) as pool:
        futures = [pool.submit(part, w, x, i) for i, x in enumerate(BATCHES)]
    return sum(future.result() for future in futures) * w[0, 0]


def asked_in_the_opposite_order(Pool, w):
    with Pool(3) as pool:
        futures = [pool.submit(part, w, x, i) for i, x in enumerate(BATCHES)]
        total = 0.0
        while futures:
            total = total * w[0, 1] + futures.pop().result()
    return total


def mapped(Pool, w):
    with Pool(3) as pool:
        total = lantern.sum(w * w)
        for y in pool.map(part, [w] * 7, BATCHES, range(7)):
            total = total * w[1, 0] + y
    return total


def steps_between(Pool, w):
    """The caller computes while tasks run, with the values that they use."""
    with Pool(3) as pool:
        y, futures = w, []
        for i, x in enumerate(BATCHES):
            y = lantern.sin(y) * w
            futures.append(pool.submit(part, y, x, i))
            y = y + w[i % 5]
        return sum(future.result() for future in futures) + lantern.sum(y)


def results_of_earlier_tasks(Pool, w):
    with Pool(8) as pool:
        future = pool.submit(part, w, BATCHES[0])
        for i, x in enumerate(BATCHES[1:], 1):
            future = pool.submit(
                lambda y, x, i: part(w, x, i) * y.result(), future, x, i
            )
        return future.result()


def tasks_in_tasks(Pool, w):
    def inner(x):
        with Pool(2) as pool:
            futures = [pool.submit(part, w, x, i) for i in range(3)]
            y = lantern.sum(w * x[0])
            return sum(future.result() for future in futures) * y

    with Pool(3) as pool:
        return sum(pool.map(inner, BATCHES)) * part(w, BATCHES[0])


def derivatives_in_tasks(Pool, w):
    def inner(x):
        return lantern.sum(grad(lambda v: part(v, x, 1) * w[0, 2])(w * 2.0) * x[0])

    with Pool(3) as pool:
        return sum(pool.map(inner, BATCHES))


def tasks_in_derivatives(Pool, w):
    def loss(v):
        with Pool(3) as pool:
            return sum(pool.map(lambda x: part(v, x, 1) * part(w, x), BATCHES[:5]))

    return lantern.sum(grad(loss)(w * 0.5) * w)


def tasks_in_a_checkpoint(Pool, w):
    def segment(v):
        with Pool(3) as pool:
            return sum(pool.map(lambda x: part(v, x, 1) * v[0, 0], BATCHES[:5]))

    return lantern.checkpoint(segment)(w * 0.5) * w[0, 1]


def checkpoints_in_tasks(Pool, w):
    shared = lantern.checkpoint(lambda x: lantern.tanh(x @ w) * w[0, 0])

    def one(x):
        return lantern.sum(shared(x) * shared(x * w[1, 1]))

    with Pool(3) as pool:
        return sum(pool.map(one, BATCHES[:5]))


def quiet_blocks(Pool, w):
    """In tasks, and beside them."""

    def one(x):
        with lantern.no_grad(w):
            scale = part(w, x, 2)
        return lantern.checkpoint(lambda v: part(v, x, 1))(w * 2.0) * scale

    with Pool(3) as pool:
        futures = []
        for x in BATCHES[:5]:
            futures.append(pool.submit(one, x))
            with lantern.no_grad(w):
                scale = lantern.sum(w * w)
            futures.append(pool.submit(part, w * scale, x))
        return sum(future.result() for future in futures)


def groups_one_after_another(Pool, w):
    with Pool(3) as pool:
        for i in range(3):
            w = w * sum(pool.map(part, [w] * 5, BATCHES, [i] * 5)) * 0.01
    return lantern.sum(w)


def numbers(Pool, w):
    x = w[0, 0]

    def one(n):
        y = x
        for i in range(30):
            y = lantern.sin(y) * (x + n) if i % 3 else y + x * y
        return y

    with Pool(3) as pool:
        return sum(pool.map(one, range(9)))


PROGRAMS = [
    asked_in_order,
    asked_in_the_opposite_order,
    mapped,
    steps_between,
    results_of_earlier_tasks,
    tasks_in_tasks,
    derivatives_in_tasks,
    tasks_in_derivatives,
    tasks_in_a_checkpoint,
    checkpoints_in_tasks,
    quiet_blocks,
    groups_one_after_another,
    numbers,
]
VERBS = {
    "grad": value_and_grad,
    "switching": lambda f: value_and_grad(f, driver="switching"),
    "vjp": lambda f: lambda x: (vjp(f, x)[0], *vjp(f, x)[1](1.0)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0 + 1,)),
    "second": lambda f: lambda x: [grad(lambda v: lantern.sum(grad(f)(v) * v))(x)],
    "forward": lambda f: lambda x: [lantern.hvp(f, x, x)],
    "linearize": lambda f: lambda x: [lantern.linearize(f, x)[1](x)],
    "debug": lambda f: lambda x: debugged(f, x),
    "steps": lambda f: lambda x: stepped(f, x),
    "none": lambda f: lambda x: [f(x)],
}


def debugged(f, x):
    with lantern.debug():
        return value_and_grad(f)(x)


def stepped(f, x):
    steps = lantern.backward_steps(f, x)
    return [steps.value, *(x[0] for op, x in steps if op.is_input)]


def bits(results):
    return [np.asarray(result).tobytes() for result in results]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_bits_as_the_sequential_program(program, verb):
    derivative = VERBS[verb]
    expected = bits(derivative(lambda w: program(Sequential, w))(WEIGHTS))
    for _ in range(TIMES if verb == "grad" else 3):
        found = derivative(lambda w: program(ThreadPoolExecutor, w))(WEIGHTS)
        assert bits(found) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pullback_is_called_many_times(program):
    expected = vjp(lambda w: program(Sequential, w), WEIGHTS)[1]
    found = vjp(lambda w: program(ThreadPoolExecutor, w), WEIGHTS)[1]
    for seed in (1.0, -2.0, 1.0):
        assert bits(found(seed)) == bits(expected(seed))


def random_program(seed, Pool, w):
    """Tasks, tasks in tasks, and steps of the caller, with values of each other."""
    rng = np.random.default_rng(seed)

    def steps(values, rng):
        y = values[rng.integers(len(values))]
        for kind in rng.integers(5, size=rng.integers(1, 5)):
            z = values[rng.integers(len(values))]
            y = [
                lambda y, z: lantern.tanh(y @ z),
                lambda y, z: y * z + y,
                lambda y, z: lantern.where(y > 0, y, z * 0.5),
                lambda y, z: y + z[1],
                lambda y, z: y * w[1, 2] - w,
            ][kind](y, z)
        return lantern.tanh(y)

    def task(values, seed, earlier=None, depth=0):
        rng = np.random.default_rng(seed)
        if earlier is not None:
            values = [*values, earlier.result()]
        y = steps(values, rng)
        if rng.random() < 0.4 and depth < 2:
            with Pool(2) as pool:
                seeds = rng.integers(100, size=3)
                futures = [
                    pool.submit(task, [*values, y], s, None, depth + 1) for s in seeds
                ]
                y = steps([*values, y], rng)
                y = sum((future.result() for future in futures), y)
        return y

    values, futures = [w], []
    with Pool(3) as pool:
        for kind in rng.integers(4, size=8):
            if kind == 0:
                values.append(steps(values, rng))
            elif kind == 1 and futures:
                values.append(futures[rng.integers(len(futures))].result())
            else:
                earlier = futures[-1] if kind == 2 and futures else None
                seed = rng.integers(100)
                futures.append(pool.submit(task, list(values), seed, earlier))
        total = sum(lantern.sum(value * value) for value in values)
        for future in futures:
            total = total * w[0, 0] + lantern.sum(future.result())
    return total


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    for verb in ("grad", "vjp", "second"):
        expected, found = (
            bits(VERBS[verb](lambda w, P=P: random_program(seed, P, w))(WEIGHTS / 2))
            for P in (Sequential, ThreadPoolExecutor)
        )
        assert found == expected


def test_it_is_the_standard_executor():
    variable = contextvars.ContextVar("variable", default="none")
    assert issubclass(ThreadPoolExecutor, concurrent.futures.ThreadPoolExecutor)
    names = []
    with ThreadPoolExecutor(2, "name", names.append, ("started",)) as pool:
        assert list(pool.map(lambda x, y: x * y, [1, 2, 3], [4, 5])) == [4, 10]
        thread = pool.submit(lambda: threading.current_thread().name).result()
        assert thread.startswith("name")
        token = variable.set("here")
        with decimal.localcontext(prec=5), np.errstate(over="raise"):
            seen = pool.submit(
                lambda: (variable.get(), decimal.getcontext().prec, np.geterr()["over"])
            )
        variable.reset(token)
        assert seen.result() == ("here", 5, "raise")
        future = pool.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            future.result()
    assert set(names) == {"started"}
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, 1)


@pytest.mark.parametrize("kind", ["tasks", "tasks in tasks", "checkpoint"])
def test_both_passes_run_in_several_threads(kind, meets):
    """Both halves of an operation meet their counterparts of another task."""

    def task(x):
        if kind != "tasks in tasks":
            return meets(x)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(meets, x).result()

    def f(x):
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(task, x)]
            y = x * 2.0  # goes back between the two
            futures.append(pool.submit(task, y))
            return sum(future.result() for future in futures)

    f = lantern.checkpoint(f) if kind == "checkpoint" else f
    threads = threading.active_count()
    assert grad(f)(3.0) == 30.0
    _, pullback = vjp(f, 3.0)
    assert [pullback(1.0), pullback(2.0)] == [(30.0,), (60.0,)]
    assert threading.active_count() == threads


def test_each_task_goes_back_inside_what_brackets_it():
    variable = contextvars.ContextVar("variable")
    seen = []

    @op
    def looks(x, /):
        z_bar = yield x * 1.0
        seen.append(variable.get())
        yield z_bar

    def f(x):
        def task(n):
            return looks(x) * n

        with ThreadPoolExecutor(2) as pool:
            futures = []
            for n in range(4):
                with lantern.both_ways(lambda n=n: setting(variable, n)):
                    futures.append(pool.submit(task, n))
            return sum(future.result() for future in futures)

    assert grad(f)(1.0) == 6.0
    assert seen == [3, 2, 1, 0]


@contextlib.contextmanager
def setting(variable, value):
    token = variable.set(value)
    yield
    variable.reset(token)


def test_what_stands_between_two_tasks_waits_for_the_second():
    """Tasks that would contribute to one another's rules go back in turns."""
    with ThreadPoolExecutor(2) as pool:

        def f(x):
            y = pool.submit(lambda: x * x).result()
            z = y * x
            first, second = pool.submit(lambda: z * y), pool.submit(lambda: z * x)
            return first.result() * second.result()  # x**9

        assert grad(f)(1.5) == pytest.approx(9 * 1.5**8, rel=1e-14)


def test_a_value_that_comes_after_a_task_is_refused_in_it():
    def of_the_caller(x, pool):
        values = queue.Queue()
        future = pool.submit(lambda: values.get(timeout=20) * 2.0)
        values.put(x * x)
        return future.result()

    def of_a_later_task(x, pool):
        values = queue.Queue()
        future = pool.submit(lambda: values.get(timeout=20) * 2.0)
        pool.submit(lambda: values.put(x * x))
        return future.result()

    def of_its_own_caller(x, pool):
        def outer():
            with ThreadPoolExecutor(1) as inner:
                return of_the_caller(x * 1.0, inner)

        return pool.submit(outer).result()

    def of_the_task_before_it(x, pool):
        values = queue.Queue()
        pool.submit(lambda: values.put(x * x))
        return pool.submit(lambda: values.get(timeout=20) * 2.0).result()

    for f in (of_the_caller, of_a_later_task, of_its_own_caller):
        with ThreadPoolExecutor(2) as pool:
            for verb in ("grad", "vjp"):
                with pytest.raises(ArgumentError, match="after it was submitted"):
                    VERBS[verb](lambda x, f=f: f(x, pool))(3.0)
            assert f(3.0, pool) == 18.0
            assert jvp(lambda x, f=f: f(x, pool), (3.0,), (1.0,)) == (18.0, 12.0)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            assert f is of_its_own_caller or grad(f)(3.0, pool) == 12.0
    with ThreadPoolExecutor(2) as pool:
        assert grad(of_the_task_before_it)(3.0, pool) == 12.0


def test_exceptions_of_tasks():
    def f(x, ask):
        with ThreadPoolExecutor(2) as pool:
            future = pool.submit(lambda: x * x / 0.0)
            y = pool.submit(lambda: x * x).result()
            try:
                return future.result() if ask else y
            except ZeroDivisionError as error:
                assert ask == "caught"
                error.__traceback__ = None
                return y * 2.0

    assert grad(f)(3.0, "") == 6.0
    assert grad(f)(3.0, "caught") == 12.0
    for driver in ("in place", "switching"):
        with pytest.raises(AssertionError):
            grad(f, driver=driver)(3.0, "asked")


@pytest.mark.parametrize("verb", ["grad", "vjp"])
def test_the_first_exception_on_the_way_back_is_raised(verb):
    closed = []

    @op
    def breaks(x, /, i):
        try:
            z_bar = yield x * x
            if i in (2, 4):
                raise KeyError(i)
            yield z_bar * 2 * x
        finally:
            closed.append(i)

    def f(x):
        y = breaks(x, i=6) * x
        with ThreadPoolExecutor(3) as pool:
            return sum(pool.map(lambda i: breaks(x * y, i=i), range(6)))

    with pytest.raises(KeyError) as info:
        VERBS[verb](f)(3.0)
    assert info.value.args == (4,)  # the last task comes first
    if verb == "grad":
        assert sorted(closed) == list(range(7))


def test_a_pullback_that_failed_can_be_called_again():
    @op
    def breaks(x, /, i):
        z_bar = yield x * x
        if z_bar < 0 and i == 4:
            raise KeyError(i)
        yield z_bar * 2 * x

    def f(x):
        with ThreadPoolExecutor(3) as pool:
            return sum(pool.map(lambda i: breaks(x, i=i), range(5)))

    _, pullback = vjp(f, 3.0)
    for _ in range(5):
        with pytest.raises(KeyError):
            pullback(-1.0)
        assert pullback(1.0) == (30.0,)


def test_cancelled_and_refused_tasks():
    def f(x):
        go_on = threading.Event()
        pool = ThreadPoolExecutor(1)
        running = pool.submit(lambda: (go_on.wait(20), x * x)[1])
        waiting = [pool.submit(lambda: x * 5.0) for _ in range(3)]
        assert waiting[0].cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(lambda: x)
        go_on.set()
        with pytest.raises(CancelledError):
            waiting[1].result()
        return running.result() * x

    assert grad(f)(2.0) == 12.0
    assert vjp(f, 2.0)[1](1.0) == (12.0,)
    with ThreadPoolExecutor(1) as pool:
        pass
    with pytest.raises(RuntimeError, match="after shutdown"):
        grad(lambda x: pool.submit(lambda: x), driver="switching")(2.0)


# The standard pool lets the initializer's exception end its thread.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_pool_that_breaks():
    def f(x):
        # Left only when its thread, which holds the task until it ends, is over.
        with ThreadPoolExecutor(1, initializer=divmod, initargs=(1, 0)) as pool:
            with pytest.raises(BrokenThreadPool):
                pool.submit(lambda: x * x).result()
            with pytest.raises(BrokenThreadPool):
                pool.submit(lambda: x * x)
        return x * 3.0

    assert grad(f)(2.0) == 3.0


def test_the_way_back_waits_for_tasks_that_are_still_running():
    ended = []

    def f(x, pool):
        values, returned = queue.Queue(), threading.Event()

        def task():
            values.put(x * x)
            returned.wait(20)
            time.sleep(0.02)
            ended.append(x * 3.0)

        pool.submit(task)
        y = values.get(timeout=20)
        threading.Timer(0.01, returned.set).start()
        return y * x

    with ThreadPoolExecutor(1) as pool:
        assert grad(f)(3.0, pool) == 27.0
        assert ended
        value, pullback = vjp(lambda x: f(x, pool), 3.0)
        assert value == pullback(1.0)[0] == 27.0
        assert len(ended) == 1  # with the end of f its values are refused
        del ended[:]


def test_a_value_that_escapes_into_a_later_task_is_refused():
    kept = []
    grad(lambda x: (kept.append(x), x * x)[1])(3.0)
    with ThreadPoolExecutor(1) as pool, pytest.raises(EscapedError):
        pool.submit(lambda: kept[0] * 2.0).result()
    kept.clear()


def test_quiet_tasks():
    def f(x):
        with ThreadPoolExecutor(2) as pool:
            with lantern.no_grad(x):
                y = pool.submit(lambda: x * x)
            z = pool.submit(lambda: x * x)
            with lantern.no_grad(x):
                return y.result() * z.result()

    def g(x):
        def task(n):
            with lantern.no_grad(x):
                y = x * n
            return x * y

        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(task, range(5)))

    assert grad(f)(2.0) == 0.0
    for _ in range(TIMES):
        assert grad(g)(2.0) == 20.0
    _, pullback = vjp(g, 2.0)
    assert [pullback(1.0), pullback(2.0)] == [(20.0,), (40.0,)]


def test_a_task_is_submitted_while_another_one_is_quiet():
    def f(x):
        inside, leave = threading.Event(), threading.Event()

        def quiet():
            with lantern.no_grad(x):
                inside.set()
                assert leave.wait(20)
                y = x * x
            return x * y

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(quiet)
            assert inside.wait(20)
            second = pool.submit(lambda: (x * x, threading.get_ident()))
            z, thread = second.result()
            leave.set()
            assert thread != threading.get_ident()
            return first.result() * z

    assert grad(f)(2.0) == 4.0 * 4.0 + 8.0 * 4.0


def test_nothing_is_left_behind():
    def f(w):
        return mapped(ThreadPoolExecutor, w) + tasks_in_tasks(ThreadPoolExecutor, w)

    def fails(x):
        with contextlib.suppress(ZeroDivisionError):
            ThreadPoolExecutor(1).submit(lambda: x / 0.0).result()
        return x

    def run():
        grad(f)(WEIGHTS)
        grad(fails, driver="switching")(1.0)
        vjp(f, WEIGHTS)[1](1.0)
        vjp(f, WEIGHTS)

    run()
    wait()  # until what earlier tests compile in the background is there
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(5):
            run()
        assert len(gc.get_objects()) - before < 100
    finally:
        gc.enable()


# Event loops.


def chain(x, n):
    """Three steps, the first and last of which use the shared value."""
    y = lantern.sin(x * n)
    return [lambda: y * x, lambda y: lantern.tanh(y) * y, lambda y: y * x[n % 5] + y]


def one_by_one(x):
    """All first steps, then all second ones, then all third ones."""
    chains = [chain(x, n) for n in range(1, 7)]
    ys = [first() for first, _, _ in chains]
    ys = [second(y) for (_, second, _), y in zip(chains, ys, strict=True)]
    ys = [third(y) for (_, _, third), y in zip(chains, ys, strict=True)]
    return lantern.sum(sum(ys))


async def stepwise(x, n):
    first, second, third = chain(x, n)
    await asyncio.sleep(0)
    y = first()
    await asyncio.sleep(0)
    y = second(y)
    await asyncio.sleep(0)
    return third(y)


def gathered(x):
    async def main():
        return await asyncio.gather(*(stepwise(x, n) for n in range(1, 7)))

    return lantern.sum(sum(asyncio.run(main())))


def grouped(x):
    async def main():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(stepwise(x, n)) for n in range(1, 7)]
        return [task.result() for task in tasks]

    return lantern.sum(sum(asyncio.run(main())))


def passed_on(x):
    """Each task for one kind of step, with queues between them."""

    async def feed(out):
        for steps in [chain(x, n) for n in range(1, 7)]:
            out.put_nowait((steps[0](), *steps[1:]))

    async def work(inbox, out):
        for _ in range(6):
            y, step, *steps = await inbox.get()
            out.put_nowait((step(y), *steps))

    async def main():
        queues = [asyncio.Queue() for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            group.create_task(feed(queues[0]))
            for pair in itertools.pairwise(queues):
                group.create_task(work(*pair))
        return [queues[-1].get_nowait()[0] for _ in range(6)]

    return lantern.sum(sum(asyncio.run(main())))


def through_greenlets(x):
    """Greenlets of the user's own, which take turns."""
    here = greenlet.getcurrent()

    def run(n):
        first, second, third = chain(x, n)
        here.switch()
        y = first()
        here.switch()
        y = second(y)
        here.switch()
        return third(y)

    greenlets = [greenlet.greenlet(run) for _ in range(6)]
    ys = [g.switch(n) for n, g in enumerate(greenlets, 1)]
    for _ in range(3):
        ys = [g.switch() for g in greenlets]
    return lantern.sum(sum(ys))


@pytest.mark.parametrize("verb", ["grad", "vjp", "jvp", "second"])
@pytest.mark.parametrize("f", [gathered, grouped, passed_on, through_greenlets])
def test_tasks_in_turns_are_the_program_of_their_turns(f, verb):
    x = np.linspace(-1.0, 1.0, 5)
    expected = bits(VERBS[verb](one_by_one)(x))
    for _ in range(TIMES):
        assert bits(VERBS[verb](f)(x)) == expected


def in_executor(pool, w):
    async def main():
        loop = asyncio.get_running_loop()
        tasks = (loop.run_in_executor(pool, part, w, x, 1) for x in BATCHES)
        return await asyncio.gather(*tasks)

    return sum(asyncio.run(main()))


def to_thread(pool, w):
    async def main():
        asyncio.get_running_loop().set_default_executor(pool)
        tasks = (asyncio.to_thread(part, w, x, 1) for x in BATCHES)
        return await asyncio.gather(*tasks)

    return sum(asyncio.run(main()))


@pytest.mark.parametrize("f", [in_executor, to_thread])
def test_threads_of_an_event_loop(f):
    def sequential(w):
        return sum([part(w, x, 1) for x in BATCHES])

    expected = bits(VERBS["grad"](sequential)(WEIGHTS))
    for _ in range(TIMES):
        with ThreadPoolExecutor(3) as pool:
            assert bits(VERBS["grad"](lambda w: f(pool, w))(WEIGHTS)) == expected


def test_it_may_stand_for_the_standard_class(monkeypatch):
    """Also in programs that are not the user's own."""

    def f(w):
        async def main():
            tasks = (asyncio.to_thread(part, w, x, 1) for x in BATCHES)
            return await asyncio.gather(*tasks)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            parts = pool.map(part, [w] * 7, BATCHES)
        return sum(asyncio.run(main())) * sum(parts)

    def sequential(w):
        parts = [part(w, x) for x in BATCHES]
        return sum([part(w, x, 1) for x in BATCHES]) * sum(parts)

    expected = bits(VERBS["grad"](sequential)(WEIGHTS))
    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", ThreadPoolExecutor)
    for _ in range(TIMES):
        assert bits(VERBS["grad"](f)(WEIGHTS)) == expected


# Zygote's channel example: what one end puts in, the other takes out, elsewhere.


def test_a_channel_between_a_task_and_its_caller():
    def f(x, Pool):
        with Pool(1) as pool:
            channel = queue.Queue()

            def produce():
                for n in range(1, 6):
                    channel.put(lantern.sin(x * n) * x)

            pool.submit(produce)
            total = x * 0.0
            for _ in range(5):
                total = total * x + channel.get(timeout=20)
            return lantern.sum(total)

    x = np.linspace(-1.0, 1.0, 5)
    expected = bits(VERBS["grad"](lambda x: f(x, Sequential))(x))
    for _ in range(TIMES):
        assert bits(VERBS["grad"](lambda x: f(x, ThreadPoolExecutor))(x)) == expected

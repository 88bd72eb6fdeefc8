"""Threads, tasks, foreign greenlets, and the end of the interpreter."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import lantern
from lantern.cps import Prompt, delimit, reset, shift, worker
from lantern.errors import ResumptionError

PROMPT = Prompt("shared", driver="switching")


def program(i, wait=lambda: None):
    """Uses everything, and is ``expected(i)`` twice for whoever runs it."""

    def handler():
        wait()
        answer = yield 2
        wait()
        return answer * 3

    def direct(k):
        wait()
        return k(5) + 1

    def body():
        five = shift(direct)
        wait()
        paused = reset(lambda: i + shift(lambda k: k))
        return shift(handler, prompt=PROMPT) + five + paused(0)

    return reset(body, prompt=PROMPT), delimit(body, [], PROMPT)


def expected(i):
    return 3 * (i + 2 + 5) + 1


def test_sixteen_threads_at_once():
    barrier = threading.Barrier(16)

    def work(i):
        barrier.wait()
        return [program(100 * i + j, lambda: time.sleep(0)) for j in range(20)]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, range(16)))
    for i, result in enumerate(results):
        assert result == [(expected(100 * i + j),) * 2 for j in range(20)]


def test_tasks():
    async def work(i):
        k = reset(lambda: i + shift(lambda k: k))
        await asyncio.sleep(0)
        return program(i)[0] + k(1)

    async def main():
        return await asyncio.gather(*(work(i) for i in range(20)))

    assert asyncio.run(main()) == [expected(i) + i + 1 for i in range(20)]


def test_greenlets_of_another_library():
    """They stop inside bodies and handlers, and go on in turn, as under gevent."""
    from greenlet import getcurrent, greenlet

    hub, ready, results = getcurrent(), [], []

    def wait():
        ready.append(getcurrent())
        hub.switch()

    ready.extend(
        greenlet(lambda i=i: results.append((i, program(i, wait)))) for i in range(8)
    )
    while ready:
        ready.pop(0).switch()
    assert sorted(results) == [(i, (expected(i),) * 2) for i in range(8)]


def test_gevent():
    gevent = pytest.importorskip("gevent", reason="gevent is not installed")
    jobs = [gevent.spawn(program, i, lambda: gevent.sleep(0)) for i in range(20)]
    gevent.joinall(jobs, raise_error=True)
    assert [job.value for job in jobs] == [(expected(i),) * 2 for i in range(20)]


def test_a_switch_to_a_greenlet_that_waits_is_an_error_of_its_own():
    from greenlet import getcurrent

    main = getcurrent()
    with pytest.raises(ResumptionError, match="switched to by someone else"):
        reset(lambda: main.switch())
    assert program(3)[0] == expected(3)


def test_an_exception_thrown_at_one_who_waits():
    """As a timeout of gevent does: the body is on its own then."""
    from greenlet import getcurrent, greenlet

    main, log = getcurrent(), []

    def waiting():
        try:
            reset(body)
        except TimeoutError:
            log.append("timeout")
        log.append(reset(lambda: 1 + shift(lambda k: k(1))))

    def body():
        inside.append(getcurrent())
        main.switch()
        log.append("body goes on")

    inside = []
    outer = greenlet(waiting)
    outer.switch()
    outer.throw(TimeoutError)
    assert log == ["timeout", 2]
    inside.pop().switch()
    assert log == ["timeout", 2, "body goes on"]
    assert program(3)[0] == expected(3)


@pytest.mark.parametrize(
    "leave",
    [lambda outer: outer.throw(TimeoutError), lambda outer: outer.switch()],
    ids=["by an exception", "by a switch"],
)
def test_a_body_does_not_come_back_to_one_who_has_left_it(leave):
    from greenlet import getcurrent, greenlet

    main, log = getcurrent(), []

    def waiting():
        try:
            reset(body)
        except (TimeoutError, ResumptionError):
            main.switch()
        log.append("woken")

    def body():
        inside.append(getcurrent())
        main.switch()

    inside = []
    outer = greenlet(waiting)
    outer.switch()
    leave(outer)
    inside.pop().switch()
    assert log == []
    outer.switch()
    assert log == ["woken"]


def test_what_a_body_raises_as_its_greenlet_is_ended_comes_out():
    from greenlet import getcurrent

    main, inside = getcurrent(), []

    def body():
        inside.append(getcurrent())
        try:
            shift(lambda k: main.switch(k))
        finally:
            raise OSError("cleaning up")

    with pytest.raises(ResumptionError, match="switched to by someone else"):
        reset(body)
    with pytest.raises(OSError, match="cleaning up"):
        inside.pop().throw()


def test_an_interrupt_of_the_relay_is_not_lost():
    reset(lambda: None)
    with pytest.raises(KeyboardInterrupt):
        worker._thread.relay.throw(KeyboardInterrupt)
    assert program(3)[0] == expected(3)


PRELUDE = """
import sys, threading, builtins
from lantern.cps import reset, shift, delimit, Prompt
def pause():
    try: shift(saved.append)
    finally: print("finally")
saved = []
"""


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("reset(pause)", ""),
        ("reset(pause); builtins.kept = saved", ""),
        ("reset(pause); cycle = [saved.pop()]; cycle.append(cycle)", ""),
        ("reset(pause); import atexit; atexit.register(saved.clear)", "finally\n"),
        ("t = threading.Thread(target=reset, args=(pause,)); t.start(); t.join()", ""),
        ("reset(lambda: sys.exit(0))", ""),
        ("reset(lambda: shift(lambda k: sys.exit(0)))", ""),
        ("delimit(lambda: shift(lambda k: sys.exit(0)), [], Prompt())", ""),
    ],
)
def test_the_interpreter_ends_in_silence(script, output):
    assert run_python(PRELUDE + script) == output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_inside_a_body():
    script = """
def body():
    import os
    pid = os.fork()
    value = 1 + shift(lambda k: k(1))
    if pid:
        os.waitpid(pid, 0)
    return value
print(reset(body), flush=True)
"""
    assert run_python(PRELUDE + script) == "2\n2\n"


def run_python(script):
    """What a fresh interpreter prints, where it must not complain."""
    root = os.path.dirname(os.path.dirname(lantern.__file__))
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout

"""A program is paused in the middle of its forward pass, fed, and differentiated."""

import asyncio
import gc
import threading

import numpy as np
import pytest

import lantern
from lantern import Program, grad, jvp, pause, value_and_grad, vjp
from lantern.errors import ArgumentError, NoDelimiterError, ResumptionError

pytestmark = pytest.mark.usefixtures("probe")
DERIVATIVES = {
    "grad": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "second": lambda f: grad(grad(lambda x: f(x) * x)),
}


def deep(w, depth=3):
    """Asks for data from deep inside: no function on the way knows of it."""
    if depth:
        return deep(w * 2.0, depth - 1) + w
    return w * pause("data") * w


def plain(data):
    def f(w):
        return 64.0 * w * data * w + 7.0 * w

    return f


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_derivative_is_paused_fed_and_finished(name):
    derivative = DERIVATIVES[name]
    program = Program(derivative(deep), 3.0)
    assert (program.request, program.done) == ("data", False)
    assert grad(lambda x: x * x)(3.0) == 6.0  # something else meanwhile
    program.resume(5.0)
    assert program.done
    assert program.request is None
    assert program.result == derivative(plain(5.0))(3.0)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_many_paused_programs_are_fed_in_any_order(name):
    derivative = DERIVATIVES[name]

    def f(w):
        y = w
        for i in range(3):
            y = y * w + pause(i) * w
        return y

    programs = [Program(derivative(f), float(n)) for n in range(1, 6)]
    for i in range(3):
        for n, program in enumerate(programs[::-1] if i % 2 else programs):
            assert program.request == i
            program.resume(float(program is programs[n]) + i)
    alone = []
    for n in range(1, 6):
        program = Program(derivative(f), float(n))
        while not program.done:
            i = program.request
            turn = i % 2 == 0 or n == 3
            program.resume(float(turn) + i)
        alone.append(program.result)
    assert [program.result for program in programs] == alone


def test_arrays_and_values_of_an_outer_derivative_are_fed():
    def loss(w):
        return lantern.sum((pause("x") @ w - pause("y")) ** 2)

    w, x, y = np.ones(3), np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0])
    program = Program(value_and_grad(loss), w)
    program.resume(x)
    program.resume(y)
    value, gradient = program.result
    residual = x @ w - y
    np.testing.assert_allclose(value, residual @ residual)
    np.testing.assert_allclose(gradient, 2 * x.T @ residual)

    def outer(a):  # what is fed belongs to a derivative around the program
        inner = Program(grad(lambda v: v * v * pause()), 3.0)
        inner.resume(a * a)
        return inner.result

    assert grad(outer)(2.0) == 6.0 * 2 * 2.0


def test_generators_pause_through_their_consumers():
    def readings():
        while (reading := pause("next")) is not None:
            yield reading

    def loss(w):
        return sum((w * reading - 1.0) ** 2 for reading in readings())

    program = Program(grad(loss), 2.0)
    for reading in (1.0, 3.0, None):
        program.resume(reading)
    assert program.result == 2 * (2 - 1) * 1 + 2 * (6 - 1) * 3


def test_plain_functions_await_through_a_driver():
    """The differentiated functions are plain; the event loop is outside."""

    def loss(w):
        return (w * pause(fetch(2.0)) - pause(fetch(1.0))) ** 2

    async def fetch(value):
        await asyncio.sleep(0)
        return value

    async def drive(program):
        while not program.done:
            program.resume(await program.request)
        return program.result

    async def main():
        programs = [Program(grad(loss), float(n)) for n in range(4)]
        return await asyncio.gather(*map(drive, programs))

    assert asyncio.run(main()) == [4.0 * (2 * n - 1) for n in range(4)]


def test_exceptions_go_in_and_out():
    def f(w):
        try:
            return w * pause("first")
        except KeyError:
            return w * w * pause("second")

    program = Program(grad(f), 3.0)
    program.throw(KeyError("no data"))
    program.resume(2.0)
    assert program.result == 12.0

    program = Program(grad(f), 3.0)
    with pytest.raises(ZeroDivisionError):
        program.throw(ZeroDivisionError())
    with pytest.raises(ResumptionError, match=r"it is over"):
        program.resume()
    with pytest.raises(ResumptionError, match="no result"):
        program.result
    with pytest.raises(ZeroDivisionError):
        Program(lambda: 1 / 0)


def test_a_dropped_program_is_unwound():
    events = []

    def f(w):
        try:
            return w * pause()
        finally:
            events.append("unwound")

    for derivative in DERIVATIVES.values():
        del events[:]
        program = Program(derivative(f), 3.0)
        assert events == []
        del program
        gc.collect()
        assert events == ["unwound"]


def test_misuse_is_named():
    with pytest.raises(NoDelimiterError):
        pause("nobody listens")
    with pytest.raises(ArgumentError, match="not yet called"):
        Program(3.0)
    program = Program(pause, "x")
    assert repr(program) == "<Program: waiting for 'x'>"
    raised = []

    def elsewhere():
        try:
            program.resume(1.0)
        except ResumptionError as error:
            raised.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "another thread" in raised[0]
    program.resume(2.0)  # it was not harmed
    assert program.result == 2.0
    assert repr(program) == "<Program: done>"
    with pytest.raises(ResumptionError, match="done"):
        program.resume()


def test_a_program_that_feeds_itself_is_refused():
    programs = []

    def body():
        pause()
        programs[0].resume()

    programs.append(Program(body))
    with pytest.raises(ResumptionError, match="running"):
        programs[0].resume()
    programs.clear()


def test_programs_nest():
    def inner():
        return pause("inner") + 1

    def outer():
        program = Program(inner)
        program.resume(pause("outer"))
        return program.result

    program = Program(outer)
    assert program.request == "outer"
    program.resume(1)
    assert program.result == 2

"""An exception at any line of the library poisons nothing: the next call is right."""

import contextvars
import linecache
import sys

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp


class Injected(BaseException):
    """Raised from a trace function, at a line of the library."""


def is_with(frame):
    """Whether a line is a `with`: it is traced once more before the block is left.

    An exception there would skip `__exit__`, as no real one can.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith("with ")


def program(x):
    y = lantern.sin(x) * x + 2.0 / x
    slope = grad(lambda z: z * y * z)(x)
    return jvp(lambda z: lantern.where(z > 0, z * slope, y), (x,), (1.0,))[1]


def array_program(x):
    y = lantern.tanh(x @ x.T)[0] + x.sum(axis=0)[:2]
    return lantern.logsumexp(lantern.where(y > 0, y, 0.5 * y))


PROGRAMS = {
    "numbers": lambda: grad(program)(1.5),
    "arrays": lambda: grad(array_program)(np.arange(6.0).reshape(2, 3) / 6),
    "pullback": lambda: vjp(lambda x: lantern.sin(x) * x, 1.5)[1](2.0)[0],
    "switching": lambda: grad(lambda x: lantern.sin(x) * x, driver="switching")(1.5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_at_any_line_of_the_library_poisons_nothing(name, probe):
    run = PROGRAMS[name]
    home = lantern.__file__.rpartition("__init__")[0]
    expected = run()
    remaining = 0

    def trace(frame, event, argument):
        nonlocal remaining
        if not frame.f_code.co_filename.startswith(home):
            return None
        if event == "line" and not is_with(frame):
            remaining -= 1
            if remaining == 0:
                raise Injected
        return trace

    def injected_at(line):
        nonlocal remaining
        remaining = line
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            run()
        except Injected:
            return True
        finally:
            sys.settrace(before)
        return False

    line = 1
    while (context := contextvars.copy_context()).run(injected_at, line):
        np.testing.assert_array_equal(context.run(run), expected)
        line += 1
    assert line > 50, "the whole call was traced"
    probe()

"""An exception at any line of the library poisons nothing: the next call is right."""

import contextvars
import gc
import linecache
import sys
from collections import Counter
from contextlib import suppress

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


def checkpointed(x):
    y = lantern.checkpoint(lambda x: lantern.sin(x) * x)(x)
    with lantern.no_grad(x):
        scale = x * x
    return lantern.hook(lambda g: 2.0 * g, y) * scale


def stepped():
    *_, (_, cotangents) = lantern.backward_steps(array_program, SQUARE)
    return cotangents[0]


SQUARE = np.arange(4.0).reshape(2, 2) / 6
PROGRAMS = {
    "checkpoint": lambda: grad(checkpointed)(1.5),
    "checkpoint and pullback": lambda: vjp(checkpointed, 1.5)[1](1.0)[0],
    "steps": stepped,
    "numbers": lambda: grad(program)(1.5),
    "arrays": lambda: grad(array_program)(np.arange(6.0).reshape(2, 3) / 6),
    "pullback": lambda: vjp(lambda x: lantern.sin(x) * x, 1.5)[1](2.0)[0],
    "switching": lambda: grad(lambda x: lantern.sin(x) * x, driver="switching")(1.5),
}


HOME = lantern.__file__.rpartition("__init__")[0]


def traced(run, on_line):
    """Run with a function called at every line of the library, before the line."""

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        if event == "line" and not is_with(frame):
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    gc.disable()  # it would run lines of ours, at moments of its own
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)
        gc.enable()


def injected(run, line, visit):
    """Run until a line has been reached for the given time, and raise there."""

    def on_line(current):
        nonlocal visit
        if current == line:
            visit -= 1
            if visit == 0:
                raise Injected

    with pytest.raises(Injected):
        traced(run, on_line)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_at_any_line_of_the_library_poisons_nothing(name, probe):
    """At the first visits of every line, and at the last."""
    run, visits = PROGRAMS[name], Counter()
    expected = run()
    traced(run, lambda line: visits.update([line]))
    for line, count in visits.items():
        for visit in sorted({1, 2, count} & set(range(1, count + 1))):
            context = contextvars.copy_context()
            context.run(injected, run, line, visit)
            np.testing.assert_array_equal(context.run(run), expected)
    assert len(visits) > 50, "the whole call was traced"
    probe()


def test_an_exception_at_any_line_leaves_nothing_frozen(probe):
    """A block that was cut short may leave later derivatives slower, never wrong."""
    w = np.ones(3)

    def run():
        with lantern.debug(), lantern.debug():
            return grad(lambda x: checkpointed(lantern.sum(x * w)))(np.ones(3))

    expected, visits = run(), Counter()
    traced(run, lambda line: visits.update([line]))
    for line in visits:
        context = contextvars.copy_context()
        with suppress(pytest.fail.Exception):  # a line that it does not need again
            context.run(injected, run, line, 1)
        np.testing.assert_array_equal(context.run(run), expected)
        assert w.flags.writeable, line

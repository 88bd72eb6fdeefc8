"""The cases of the contract, in families: each is a function that raises if it is lost.

A case is lost on a wrong value, a hang, a crash, an error of another class or without
the words that a user needs, or when the probe after it fails.
"""

import asyncio
import functools
import gc
import io
import itertools
import os
import re
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import cps, grad, jvp, vjp, vmap
from lantern.errors import (
    AlreadyResumedError,
    ArgumentError,
    FileFormatError,
    NoDelimiterError,
)
from tests import numpy_walk
from tests.contract.programs import PROGRAMS

HOME = Path(__file__).parents[2]
same = np.testing.assert_equal


def raises(kind, words, call):
    """Check that a call raises an error of a class, with these words."""
    with pytest.raises(kind, match=re.escape(words)):
        call()


def generator():
    answer = yield 4
    return 10 * answer


def escaping():
    kept = []

    def handler(k):
        kept.append(k)
        return 1

    try:
        first = cps.reset(lambda: 2 * cps.shift(handler))
        return first, kept.pop()(21)
    finally:
        kept.clear()


def twice(k):
    return k(1) + k(2)


def control():
    """Laws of the two operators, under both drivers."""
    for driver in ("in place", "switching"):
        p, q = cps.Prompt("p", driver=driver), cps.Prompt("q", driver=driver)

        def reset(body, p=p):
            return cps.reset(body, prompt=p)

        def shift(handler, p=p):
            return cps.shift(handler, prompt=p)

        def outer(p=p, q=q):
            inner = functools.partial(cps.shift, lambda k: 10 * k(3), prompt=q)
            return cps.reset(
                lambda: 1 + cps.reset(lambda: 2 + inner(), prompt=p), prompt=q
            )

        values = {
            "reset of a value": (lambda r=reset: r(lambda: 5), 5),
            "k and on": (lambda r=reset, s=shift: r(lambda: 1 + s(lambda k: k(4))), 5),
            "twice around": (
                lambda r=reset, s=shift: r(lambda: s(lambda k: 2 * k(3)) + 1),
                8,
            ),
            "abort": (lambda r=reset, s=shift: r(lambda: 1 + s(lambda k: 7)), 7),
            "generator": (lambda r=reset, s=shift: r(lambda: 1 + s(generator)), 50),
            "two handlers": (
                lambda r=reset, s=shift: r(lambda: s(generator) + s(generator)),
                800,
            ),
            "past an inner one": (outer, 60),
            "in place": (
                lambda p=p: cps.delimit(
                    lambda: 1 + cps.shift(generator, prompt=p), [], p
                ),
                50,
            ),
        }
        for name, (call, value) in values.items():
            yield f"{name}, {driver}", lambda c=call, v=value: same(c(), v)
        yield (
            f"called twice, {driver}",
            lambda r=reset, s=shift: raises(
                AlreadyResumedError, "one-shot", lambda: r(lambda: s(twice))
            ),
        )
        yield (
            f"no delimiter, {driver}",
            lambda s=shift: raises(NoDelimiterError, "reset", lambda: s(generator)),
        )
    yield "a stored k", lambda: same(escaping(), (1, 42))
    for name, body in {
        "no function": 3,
        "a generator as body": generator,
        "asynchronous": asyncio.sleep,
    }.items():
        yield name, lambda b=body: raises(ArgumentError, "reset", lambda: cps.reset(b))


def exceptions():
    """Faults in the programs: see ``faults.py``."""
    from tests.contract import faults

    faults.put_alarms_on()
    for name, kind in itertools.product(PROGRAMS, faults.KINDS[:5]):

        def case(name=name, kind=kind):
            wrong = []
            faults.try_program(name, {kind}, 60, wrong.append)
            assert not wrong, wrong

        yield f"{name}, {kind}", case


def side_by_side(run, workers=8):
    """The same results in threads that run at once."""
    want, found, barrier = run(), [], threading.Barrier(workers, timeout=30)

    def work():
        barrier.wait()
        found.extend(run() for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 * workers
    for result in found:
        same(result, want)


def in_tasks(run):
    """The same results in tasks of an event loop."""

    async def task():
        await asyncio.sleep(0)
        return run()

    async def all_of_them():
        return await asyncio.gather(*(task() for _ in range(100)))

    want = run()
    for result in asyncio.run(all_of_them()):
        same(result, want)


def in_child(program, *options):
    """A program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, *options, "-c", program],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def forked():
    """A child of this process computes, too."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, repr(grad(lambda x: x * x * x)(3.0)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    same(os.read(reading, 100), b"27.0")
    os.close(reading)
    os.close(writing)


SPAWNED = """
import multiprocessing, lantern
def work(x):
    return lantern.grad(pow, 0)(x, 3)
if __name__ == "__main__":
    print(lantern.grad(lambda x: x * x * x)(3.0))
"""
GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, lantern
def work(x):
    def f(y):
        gevent.sleep(0)
        return y * y * x
    return lantern.grad(f)(3.0)
tasks = [gevent.spawn(work, float(i)) for i in range(50)]
gevent.joinall(tasks)
assert [t.value for t in tasks] == [6.0 * i for i in range(50)]
"""


def concurrency():
    """Threads, tasks, processes."""
    for name, run in PROGRAMS.items():
        yield f"threads, {name}", lambda r=run: side_by_side(r)
        yield f"tasks, {name}", lambda r=run: in_tasks(r)
    yield "fork", forked
    yield "another process", lambda: in_child(SPAWNED)
    try:
        import gevent  # noqa: F401
    except ImportError:
        return
    yield "gevent", lambda: in_child(GEVENT)


def growth(run, steps=200):
    """No step leaves a cycle, and 200 leave next to nothing."""
    for _ in range(120):
        run()
    gc.collect()
    gc.disable()
    try:
        for _ in range(12):  # tables of the interpreter still grow in the first ones
            before = sys.getallocatedblocks()
            for _ in range(steps):
                run()
            cycles, more = gc.collect(), sys.getallocatedblocks() - before
            assert cycles == 0, f"{cycles} objects in cycles"
            if more < steps // 50:
                return
    finally:
        gc.enable()
    raise AssertionError(f"{more} blocks more after {steps} steps, again and again")


def failing(run):
    """A program whose last step fails."""

    def f(x):
        return lantern.sin(run() * 0 + x) / 0

    def step():
        with suppress(ZeroDivisionError):
            grad(f)(1.0)

    return step


def chain(n):
    def f(x):
        for _ in range(n):
            x = x * 1.0 + 0.0
        return x

    same(grad(f)(2.0), 1.0)


def fan_out(n):
    same(grad(lambda x: sum([x] * n, 0.0))(2.0), float(n))


def recursion(n):
    def f(x):
        def down(k):
            return x if k == 0 else down(k - 1) * 1.0

        return down(n)

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(8 * n + 1000)
    try:
        same(grad(f)(2.0), 1.0)
    finally:
        sys.setrecursionlimit(before)


def load():
    """Depth, and what many steps leave."""
    for name, run in PROGRAMS.items():
        if name != "debug":  # keeps a report
            yield f"200 steps, {name}", lambda r=run: growth(r)
    yield "200 failing steps", lambda: growth(failing(lambda: 0.0))
    for n in (1_000, 10_000, 100_000):
        yield f"a chain of {n}", functools.partial(chain, n)
        yield f"a fan of {n}", functools.partial(fan_out, n)
    for n in (100, 1_000):
        yield f"recursion of {n}", functools.partial(recursion, n)


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


def switching(f):
    return grad(f, driver="switching")


def by_pullback(f):
    return lambda x: vjp(f, x)[1](1.0)[0]


MODES = {
    "reverse": grad,
    "forward": forward,
    "switching": switching,
    "pullback": by_pullback,
}


def nesting():
    """Derivatives of derivatives, in all modes to depth 3; closures between them."""
    for depth in (2, 3):
        for modes in itertools.product(MODES, repeat=depth):

            def case(modes=modes):
                f = x6 = lambda x: x**6 + 2.0 * x
                for mode in modes:
                    f = MODES[mode](f)
                factors = {2: 30 * 2.0**4, 3: 120 * 2.0**3}
                same(f(2.0), factors[len(modes)])
                if len(modes) == 2:
                    outer, inner = (MODES[mode] for mode in modes)
                    same(outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0), 1.0)
                    g = outer(lambda x: x * inner(lambda y: x * y * y)(2.0))
                    same(g(3.0), 24.0)
                assert x6(1.0) == 3.0

            yield " of ".join(modes), case


def contract():
    """What goes in, what comes out, and what is said to what does not fit."""
    x = np.arange(1.0, 4.0)
    wrong = {
        "f is no function": (TypeError, "int", lambda: grad(3)),
        "f returns None": (TypeError, "None", lambda: grad(lambda x: None)(1.0)),
        "f returns a tuple": (TypeError, "tuple", lambda: grad(lambda x: (x, x))(1.0)),
        "f returns a string": (TypeError, "str", lambda: grad(lambda x: "x")(1.0)),
        "f returns an array": (TypeError, "shape (3,)", lambda: grad(lambda x: x)(x)),
        "integers": (TypeError, "int", lambda: grad(lambda x: x.sum())(np.arange(3))),
        "truth values": (TypeError, "bool", lambda: grad(lambda x: x.sum())(x > 0)),
        "a string": (TypeError, "str", lambda: grad(lambda x: x)("1")),
        "a generator function": (TypeError, "generator", lambda: grad(generator)(1.0)),
        "float(x)": (TypeError, "float", lambda: grad(lambda x: float(x))(1.0)),
        "math.sin(x)": (
            TypeError,
            "math.sin",
            lambda: grad(lambda x: __import__("math").sin(x))(1.0),
        ),
        "np.array([x])": (
            TypeError,
            "lantern",
            lambda: grad(lambda x: np.array([x, x]).sum())(1.0),
        ),
        "a write to a constant": (
            TypeError,
            "Buffer",
            lambda: grad(lambda y: np.zeros(3).__setitem__(0, y[0]))(x),
        ),
        "a seed of another shape": (
            ValueError,
            "shape",
            lambda: vjp(lambda x: x * x, x)[1](np.ones(2)),
        ),
        "a tangent of another shape": (
            ValueError,
            "shape",
            lambda: jvp(lambda x: x * x, (x,), (np.ones(2),)),
        ),
        "no such argument": (
            TypeError,
            "argnums=3",
            lambda: grad(lambda x: x, argnums=3)(1.0),
        ),
        "axes that do not fit": (
            ValueError,
            "lengths: 3",
            lambda: vmap(lambda x, y: x)(x, x[:2]),
        ),
    }
    for name, (kind, words, call) in wrong.items():
        yield name, lambda k=kind, w=words, c=call: raises(k, w, c)
    kept = []
    grad(lambda x: kept.append(x) or x * x)(3.0)
    escaped = kept.pop()
    late = grad(lambda x: x * escaped)
    yield (
        "a value that escaped",
        lambda: raises(lantern.EscapedError, "stop_gradient", lambda: late(2)),
    )
    right = {
        "a constant": (lambda: grad(lambda x: 3.0)(2.0), 0.0),
        "a whole number": (lambda: grad(lambda x: x * x)(3), 6.0),
        "a dict": (lambda: grad(lambda p: p["a"] * p["b"])({"a": 2.0, "b": 3.0}), None),
        "several": (lambda: grad(lambda x, y: x * y, (0, 1))(2.0, 3.0), (3.0, 2.0)),
        "by name": (lambda: grad(lambda x, y: x * y, "y")(2.0, y=3.0), 2.0),
        "float32": (
            lambda: grad(lambda x: (x * 2.0).sum())(np.ones(2, np.float32)).dtype,
            np.dtype("float32"),
        ),
        "complex": (
            lambda: grad(lambda z: lantern.abs(z) ** 2)(3 + 4j),
            6 + 8j,
        ),
    }
    right["a dict"] = (right["a dict"][0], {"a": 3.0, "b": 2.0})
    for name, (call, value) in right.items():
        yield name, lambda c=call, v=value: same(c(), v)


def of_numpy():
    """Every public function of NumPy: right, or refused by name."""
    for name, function in numpy_walk.functions().items():

        def case(name=name, function=function):
            outcomes = numpy_walk.walk(name, function)
            wrong = {p: r for p, r in outcomes.items() if r.startswith("wrong")}
            assert not wrong, wrong

        yield name, case


INF, NAN = float("inf"), float("nan")
EDGES = {
    "abs at 0": (lantern.abs, 0.0, 0.0),
    "maximum at a tie": (lambda x: lantern.maximum(x, 1.0), 1.0, 0.5),
    "minimum at a tie": (lambda x: lantern.minimum(x, 1.0), 1.0, 0.5),
    "sqrt at 0": (np.sqrt, 0.0, INF),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "x**0.0": (lambda x: x**0.0, 0.0, 0.0),
    "x**1 at 0": (lambda x: x**1, 0.0, 1.0),
    "x**2 at 0": (lambda x: x**2, 0.0, 0.0),
    "clip at a bound": (lambda x: lantern.clip(x, 0.0, 1.0), 1.0, 1.0),
    "clip outside": (lambda x: lantern.clip(x, 0.0, 1.0), 2.0, 0.0),
    "sinc at 0": (lantern.sinc, 0.0, 0.0),
    "hypot at 0": (lambda x: lantern.hypot(x, 0.0), 0.0, 0.0),
    "where, other branch": (lambda x: lantern.where(x > 0, x, np.log(x)), 1.0, 1.0),
    "where, nan there": (lambda x: lantern.where(x > 0, x, x * NAN), 1.0, 1.0),
    "exp of -1000": (np.exp, -1000.0, 0.0),
    "exp of 1000": (np.exp, 1000.0, INF),
    "log of a subnormal": (np.log, 5e-324, INF),
    "log of a small number": (np.log, 2.0**-900, 2.0**900),
    "log1p at 1e-18": (lantern.log1p, 1e-18, 1.0),
    "expm1 at 1e-18": (lantern.expm1, 1e-18, 1.0),
    "tanh at 1000": (np.tanh, 1000.0, 0.0),
    "sin at 0": (np.sin, 0.0, 1.0),
    "square at 1e200": (np.square, 1e150, 2e150),
    "reciprocal at 1e-100": (lambda x: 1 / x, 1e-100, -1e200),
}
ARRAY_EDGES = {
    "max, shared by ties": (np.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    "min, shared by ties": (np.min, [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
    "norm at 0": (np.linalg.norm, [0.0, 0.0], [0.0, 0.0]),
    "prod with one zero": (np.prod, [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    "prod with two zeros": (np.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    "std of a constant": (np.std, [2.0, 2.0], [0.0, 0.0]),
    "logsumexp of -inf": (lantern.logsumexp, [-INF, -INF], [0.0, 0.0]),
    "logsumexp of large": (lantern.logsumexp, [1e4, 0.0], [1.0, 0.0]),
    "sum of nothing": (np.sum, [], []),
    "prod of nothing": (np.prod, [], []),
    "sort is stable": (
        lambda x: (lantern.sort(x) * np.arange(3.0)).sum(),
        [1.0, 1.0, 0.0],
        [1.0, 2.0, 0.0],
    ),
    "cumsum": (lambda x: np.cumsum(x).sum(), [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]),
    "median of two": (np.median, [1.0, 2.0], [0.5, 0.5]),
    "relu at 0": (lambda x: torch_relu(x).sum(), [0.0, 1.0], [0.0, 1.0]),
}


def torch_relu(x):
    return lantern.maximum(x, 0.0) * (x > 0)


def numerics():
    """The conventions at the edges, in reverse and in forward mode."""
    for name, (f, x, slope) in EDGES.items():

        def case(f=f, x=x, slope=slope):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                same(float(grad(f)(x)), slope)
                same(float(jvp(f, (x,), (1.0,))[1]), slope)
                same(grad(lambda x: f(x).sum())(np.array([x])), [slope])

        yield name, case
    for name, (f, x, slope) in ARRAY_EDGES.items():

        def case(f=f, x=x, slope=slope):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(grad(f)(np.array(x)), slope)

        yield name, case


SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (1, 1), (2, 1, 3), (0,), (0, 3)]
KEYS = {
    "a number": 1,
    "from the end": -1,
    "a slice": slice(1, None),
    "backwards": slice(None, None, -1),
    "an ellipsis": (..., 0),
    "a new axis": (None, 1),
    "a list": [2, 0, 2],
    "a mask": np.array([True, False, True]),
    "lists": ([0, 1], [2, 2]),
    "a list and a slice": ([1, 1], slice(1, 3)),
    "nothing": slice(0, 0),
    "an empty list": np.array([], int),
}


def fits(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def shapes():
    """All pairs that broadcast; all kinds of keys; strides."""
    for a, b in itertools.product(SHAPES, repeat=2):
        if not fits(a, b):
            continue

        def case(a=a, b=b):
            x, y = np.cos(np.ones(a)), np.sin(np.ones(b))
            f = lambda x, y: lantern.sum(x * y)  # noqa: E731
            x_bar, y_bar = grad(f, (0, 1))(x, y)
            count = np.broadcast(x, y).size
            assert np.shape(x_bar) == a
            assert np.shape(y_bar) == b
            np.testing.assert_allclose(np.sum(x_bar), count * np.sin(1.0))
            np.testing.assert_allclose(np.sum(y_bar), count * np.cos(1.0))

        yield f"{a} with {b}", case
    x = np.arange(9.0).reshape(3, 3)
    for name, key in KEYS.items():

        def case(key=key):
            want = np.zeros((3, 3))
            np.add.at(want, key, 2 * x[key])
            np.testing.assert_allclose(grad(lambda x: (x[key] ** 2).sum())(x), want)

        yield f"key: {name}", case
    for name, view in {
        "transposed": x.T,
        "reversed": x[::-1, ::-1],
        "repeated": np.broadcast_to(x[0], (3, 3)),
        "Fortran's order": np.asfortranarray(x),
    }.items():

        def case(view=view):
            np.testing.assert_allclose(grad(lambda x: (x * x).sum())(view), 2 * view)

        yield f"an array {name}", case


def aliasing():
    """Inputs stay as they are, and no two gradients share memory."""
    functions = {
        "sum": lambda x, y: (x + y).sum(),
        "product": lambda x, y: (x * y).sum(),
        "matrix product": lambda x, y: (x @ y).sum(),
        "same twice": lambda x, y: (x + x + y).sum(),
        "reshape": lambda x, y: (x.reshape(-1) * y.reshape(-1)).sum(),
        "transpose": lambda x, y: (x.T + y).sum(),
        "concatenate": lambda x, y: np.concatenate([x, y]).sum(),
        "where": lambda x, y: np.where(x > y, x, y).sum(),
        "stack": lambda x, y: np.stack([x, y, x]).sum(),
        "identity": lambda x, y: x.sum() + 0.0 * y.sum(),
    }
    for name, f in functions.items():
        for mode in ("grad", "vjp", "jvp", "vmap"):

            def case(f=f, mode=mode):
                x, y = np.arange(4.0).reshape(2, 2), np.ones((2, 2))
                before = x.tobytes(), y.tobytes()
                if mode == "grad":
                    found = grad(f, (0, 1))(x, y)
                elif mode == "vjp":
                    found = vjp(f, x, y)[1](1.0)
                elif mode == "jvp":
                    found = [jvp(f, (x, y), (y, x))[1]] * 1
                else:
                    both = np.stack([x, y]), np.stack([y, x])
                    found = vmap(grad(f, (0, 1)))(*both)
                assert (x.tobytes(), y.tobytes()) == before
                for a, b in itertools.combinations([x, y, *found], 2):
                    assert a is b is y or not np.shares_memory(a, b)

            yield f"{name}, {mode}", case


TOOLS = {
    "-O": (("-O",), "assert grad(f)(3.0) or True"),
    "-OO": (("-OO",), "grad(f)(3.0)"),
    "-W error": (("-W", "error"), "grad(f)(3.0)"),
    "-X dev": (("-X", "dev"), "grad(f)(3.0)"),
    "a profile": (
        (),
        "import cProfile; p = cProfile.Profile(); p.runcall(grad(f), 3.0)",
    ),
    "a trace": ((), "sys.settrace(lambda *a: None); grad(f)(3.0); sys.settrace(None)"),
    "exit while suspended": ((), "grad(lambda x: sys.exit(0))(3.0)"),
    "no collector": ((), "import gc; gc.disable(); grad(f)(3.0)"),
    "a small stack": (
        (),
        """import threading; threading.stack_size(256 * 1024)
t = threading.Thread(target=grad(f), args=(3.0,)); t.start(); t.join()""",
    ),
    "errors raised": ((), "import numpy; numpy.seterr(all='raise'); grad(f)(3.0)"),
    "at exit": ((), "import atexit; atexit.register(grad(f), 3.0)"),
}


def tools():
    """Interpreters of their own, with options and tools."""
    program = "import sys; from lantern import grad\ndef f(x): return x * x * x\n"
    for name, (options, line) in TOOLS.items():
        yield name, lambda o=options, s=line: in_child(program + s, *o)


def files():
    """A saved file, damaged: refused by name, or a file of the format."""
    kept = io.BytesIO()
    torch.save({"w": torch.arange(6.0).reshape(2, 3), "n": [1, "x", None]}, kept)
    whole = kept.getvalue()

    def load(data):
        with suppress(FileFormatError):
            torch.load(io.BytesIO(data))

    for i in range(40):
        at = i * len(whole) // 40
        yield f"cut at {at}", lambda n=at: load(whole[:n])
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (i % 8)
        yield f"a bit of byte {at}", lambda d=bytes(flipped): load(d)
    yield "empty", lambda: load(b"")
    yield "a pickle", lambda: load(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    yield "whole", lambda: same(torch.load(io.BytesIO(whole))["w"].shape, (2, 3))


def devices():
    """Arrays on a device: of the stand-in for a GPU."""
    from tests.backends import BACKENDS

    backend = BACKENDS["standin"]()
    functions = {
        "product": lambda x: (x * x).sum(),
        "matrix product": lambda x: (x @ x).sum(),
        "tanh": lambda x: lantern.tanh(x).sum(),
        "softmax": lambda x: (lantern.softmax(x, axis=1) * x).sum(),
        "max": lambda x: lantern.max(x, axis=0).sum(),
        "index": lambda x: (x[1] * x[0]).sum(),
        "where": lambda x: lantern.where(x > 0, x * x, x).sum(),
        "logsumexp": lantern.logsumexp,
    }
    x = np.linspace(-1.0, 1.0, 9).reshape(3, 3)
    for name, f in functions.items():

        def case(f=f):
            found = grad(f)(backend.array(x))
            assert type(found) is type(backend.array(x))
            np.testing.assert_allclose(backend.host(found), grad(f)(x), rtol=1e-12)

        yield name, case


FACES = {
    "product": lambda x: (x * x).sum(),
    "division": lambda x: (x / (x + 3)).sum(),
    "power": lambda x: (x**3).sum(),
    "matrix product": lambda x: (x @ x).sum(),
    "tanh": lambda x: x.tanh().sum(),
    "exp": lambda x: x.exp().sum(),
    "relu": lambda x: x.relu().sum(),
    "softmax": lambda x: (x.softmax(1) * x).sum(),
    "logsumexp": lambda x: x.logsumexp(0).sum(),
    "index": lambda x: (x[0] * x[1]).sum(),
    "cat": lambda x: torch.cat([x, 2 * x]).square().sum(),
    "where": lambda x: torch.where(x > 0, x, 2 * x).sum(),
    "norm": lambda x: x.norm(),
    "var": lambda x: x.var(),
    "mean": lambda x: x.mean(),
    "max": lambda x: x.max(),
    "cumsum": lambda x: x.cumsum(0).square().sum(),
    "linear": lambda x: torch.nn.functional.linear(x, x).sum(),
    "cross entropy": lambda x: torch.nn.functional.cross_entropy(
        x, torch.tensor([0, 1, 2])
    ),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, (3,)).square().sum(),
}


def faces():
    """PyTorch's way and the functional way: the same gradients."""
    start = np.linspace(-1.0, 2.0, 9).reshape(3, 3)
    for name, f in FACES.items():

        def eager(f=f):
            x = torch.tensor(start, requires_grad=True)
            f(x).backward()
            return x.grad.numpy()

        def case(f=f, eager=eager):
            want = eager()
            found = grad(f)(torch.tensor(start))
            np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12, atol=1e-14)

        def forward_mode(f=f, eager=eager):
            direction = torch.ones(3, 3, dtype=torch.float64)
            moved = jvp(f, (torch.tensor(start),), (direction,))[1]
            want = eager().sum()
            np.testing.assert_allclose(float(moved), want, rtol=1e-9, atol=1e-12)

        yield f"{name}, reverse", case
        yield f"{name}, forward", forward_mode


FAMILIES = {
    "A": ("control", control),
    "B": ("exceptions and faults", exceptions),
    "C": ("concurrency", concurrency),
    "D": ("depth, load, memory", load),
    "E": ("nesting", nesting),
    "F": ("input and output", contract),
    "G": ("NumPy", of_numpy),
    "H": ("numerics", numerics),
    "I": ("shapes and keys", shapes),
    "J": ("aliasing", aliasing),
    "K": ("context and tools", tools),
    "L": ("files", files),
    "M": ("devices", devices),
    "N": ("both faces", faces),
}

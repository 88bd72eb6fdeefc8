"""Compiled gradients of programs with loops and recursion: beside C, numba and JAX.

The C is written by hand, gradient and all, and is an extension of Python's; numba gets
the same gradients as Python. JAX compiles its own, with ``scan`` where a loop is long;
it differentiates neither a loop that ends when the data say so, nor recursion.
"""

import gc
import importlib
import importlib.util
import math
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.staging_programs import PROGRAMS
from benchmarks.table import Row, Target

SOURCE = Path(__file__).with_name("staging_gradients.c")
DEPTH = 10
PROCESSES = 15  # in which first results are measured
ARGUMENTS: dict[str, tuple[float, ...]] = {
    "sincos": (1.0,),
    "loop": (0.999,),
    "newton": (2.0,),
    "lorenz": (1.0, 1.0, 1.0),
    "tree": (1.001,),
}
CALLS = {"sincos": 1000, "loop": 100, "newton": 1000, "lorenz": 10, "tree": 20}
C_TARGETS = {
    "sincos": Target(1 / 1.3),
    "loop": Target(1 / 1.2),
    "newton": Target(1 / 1.2),
    "lorenz": Target(1 / 1.2),
    "tree": Target(1 / 2.2),
}
JAX_TARGETS = {"loop": Target(4), "lorenz": Target(4)}


def sincos(x: Any) -> Any:
    """Two functions."""
    import lantern

    return lantern.sin(lantern.cos(x))


def loop(x: Any) -> Any:
    """A thousand products."""
    y = x
    for _ in range(1000):
        y = y * x
    return y


def newton(x: Any) -> Any:
    """A square root, by steps until it is exact."""
    y = x
    while abs(y * y - x) > 1e-12 * x:
        y = 0.5 * (y + x / y)
    return y


def lorenz(x: Any, y: Any, z: Any) -> Any:
    """A thousand Runge-Kutta steps."""

    def slope(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z

    def moved(u: Any, c: float, k: Any) -> tuple[Any, ...]:
        return tuple([a + c * b for a, b in zip(u, k, strict=True)])

    u, h = (x, y, z), 0.01
    for _ in range(1000):
        k1 = slope(*u)
        k2 = slope(*moved(u, 0.5 * h, k1))
        k3 = slope(*moved(u, 0.5 * h, k2))
        k4 = slope(*moved(u, h, k3))
        four = zip(u, k1, k2, k3, k4, strict=True)
        u = tuple([a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in four])
    return u[0]


def tree(x: Any, t: Any) -> Any:
    """A product over a tree of tuples."""
    return x if t is None else tree(x, t[0]) * tree(x, t[1]) * t[2]


def built(depth: int, number: float = 1.0) -> Any:
    """A tree of tuples."""
    if depth == 0:
        return None
    return built(depth - 1, number * 0.99), built(depth - 1, number * 1.01), number


def rows(quick: bool) -> list[Row]:
    """For each program a row per peer, and how long it takes to the first result."""
    found = []
    for name, calls in CALLS.items():
        makers: dict[str, Maker] = {
            LANTERN: partial(_lantern, name),
            "C": partial(_c, name),
        }
        if name in ("sincos", "loop", "newton"):
            makers["numba"] = partial(_numba, name)
        if name in ("sincos", "loop", "lorenz"):
            makers["JAX, compiled"] = partial(_jax, name)
        targets = {"C": C_TARGETS[name]}
        if name in JAX_TARGETS:
            targets["JAX, compiled"] = JAX_TARGETS[name]
        found += race(f"staging: {name}", calls, makers, targets, quick=quick)
    for f, args in PROGRAMS.items():
        makers = {
            LANTERN: partial(_compiled, f, args),
            "Lantern, eager": partial(_eager, f, args),
        }
        found += race(f"staging: {f.__name__}", 1, makers, {}, quick=quick)
    found += [*_products(), *_one_call()]
    return [*found, *_first_results(), *_second_results()]


def _compiled(f: Any, args: tuple[Any, ...], by_grad: bool = True) -> Program:
    """A compiled gradient, or f itself compiled, when all passes are done."""
    import lantern
    from lantern.staging.native.background import wait

    compiled = lantern.jit(lantern.grad(f) if by_grad else f)
    compiled(*args)
    wait()
    return lambda: compiled(*args)


def _eager(f: Any, args: tuple[Any, ...]) -> Program:
    import lantern

    gradient = lantern.grad(f)
    return lambda: gradient(*args)


def _many(name: str, f: Callable[..., Any], *more: Any) -> Program:
    """As many calls as are timed together; what they give."""
    args, calls = (*ARGUMENTS[name], *more), CALLS[name]

    def run() -> Any:
        for _ in range(calls):
            result = f(*args)
        return list(result) if isinstance(result, tuple) else result

    return run


def _gradient(name: str) -> tuple[Any, tuple[Any, ...]]:
    import lantern

    f: Any = {
        "sincos": sincos,
        "loop": loop,
        "newton": newton,
        "lorenz": lorenz,
        "tree": tree,
    }[name]
    argnums = (0, 1, 2) if name == "lorenz" else 0
    return lantern.grad(f, argnums), (built(DEPTH),) if name == "tree" else ()


def _lantern(name: str) -> Program:
    import lantern
    from lantern.staging.native.background import wait

    f, more = _gradient(name)
    gradient = lantern.jit(f)
    gradient(*ARGUMENTS[name], *more)
    wait()
    return _many(name, gradient, *more)


@cache
def _extension() -> Any:
    """The module of the C source; None where it cannot be compiled."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    file = Path(tempfile.mkdtemp()) / "staging_gradients.so"
    include = sysconfig.get_paths()["include"]
    options = ["-O3", "-march=native", "-shared", "-fPIC", f"-I{include}"]
    command = [compiler, *options, str(SOURCE), "-o", str(file), "-lm"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    spec = importlib.util.spec_from_file_location("staging_gradients", file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _c(name: str) -> Program | None:
    module = _extension()
    if module is None:
        return None
    if name == "tree":
        module.pack(_packed(built(DEPTH)))
    return _many(name, getattr(module, name))


def _packed(t: Any) -> list[tuple[int, int, float]]:
    """A tree as rows of the places of two subtrees and a number; -1 for none."""
    found: list[Any] = []

    def add(node: Any) -> int:
        if node is None:
            return -1
        place = len(found)
        found.append(None)
        found[place] = (add(node[0]), add(node[1]), node[2])
        return place

    add(t)
    return found


def _numba(name: str) -> Program | None:
    numba = peer("numba")
    if numba is None:
        return None
    math, np = importlib.import_module("math"), importlib.import_module("numpy")

    def sincos_gradient(x: float) -> float:
        return -math.sin(x) * math.cos(math.cos(x))

    def loop_gradient(x: float) -> float:
        ys = np.empty(1000)
        y, y_bar, x_bar = x, 1.0, 0.0
        for i in range(1000):
            ys[i] = y
            y *= x
        for i in range(999, -1, -1):
            x_bar += y_bar * ys[i]
            y_bar *= x
        return x_bar + y_bar

    def newton_gradient(x: float) -> float:
        ys = np.empty(64)
        y, y_bar, x_bar, k = x, 1.0, 0.0, 0
        while abs(y * y - x) > 1e-12 * x:
            ys[k] = y
            y, k = 0.5 * (y + x / y), k + 1
        while k > 0:
            k -= 1
            t = 0.5 * y_bar
            x_bar += t / ys[k]
            y_bar = t - t * x / (ys[k] * ys[k])
        return x_bar + y_bar

    by_name = {
        "sincos": sincos_gradient,
        "loop": loop_gradient,
        "newton": newton_gradient,
    }
    return _many(name, numba.njit(by_name[name]))


def _jax_gradient(name: str) -> Any:
    jax = peer("jax")
    if jax is None:
        return None

    def scanned(x: Any) -> Any:
        return jax.lax.scan(lambda y, _: (y * x, None), x, None, length=1000)[0]

    def steps(x: Any, y: Any, z: Any) -> Any:
        def slope(u: Any) -> Any:
            x, y, z = u
            return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z

        def moved(u: Any, c: float, k: Any) -> Any:
            return tuple(a + c * b for a, b in zip(u, k, strict=True))

        def step(u: Any, _: Any) -> Any:
            h = 0.01
            k1 = slope(u)
            k2 = slope(moved(u, 0.5 * h, k1))
            k3 = slope(moved(u, 0.5 * h, k2))
            k4 = slope(moved(u, h, k3))
            four = zip(u, k1, k2, k3, k4, strict=True)
            return tuple(
                a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in four
            ), None

        return jax.lax.scan(step, (x, y, z), None, length=1000)[0][0]

    f = {
        "sincos": lambda x: jax.numpy.sin(jax.numpy.cos(x)),
        "loop": scanned,
        "lorenz": steps,
    }[name]
    return jax.jit(jax.grad(f, argnums=(0, 1, 2) if name == "lorenz" else 0))


def _jax(name: str) -> Program | None:
    f = _jax_gradient(name)
    if f is None:
        return None
    jax = importlib.import_module("jax")
    return _many(name, lambda *args: jax.block_until_ready(f(*args)))


def _products() -> list[Row]:
    """How long the Hessian's product with a vector takes, in gradients."""
    measured: dict[Any, tuple[Any, ...]] = {
        f: ARGUMENTS[f.__name__] for f in (sincos, loop, newton, lorenz)
    }
    measured[tree] = *ARGUMENTS["tree"], built(DEPTH)
    found = []
    for f, args in (measured | PROGRAMS).items():
        times = _best_of(_compiled(f, args), _compiled(_product(f), args, False))
        detail = ", ".join(f"{1e6 * t:.3g} µs" for t in times)
        label = "Hessian times a vector, in gradients"
        row = f"staging: {f.__name__}"
        target = Target(4, at_most=True)
        found.append(Row(row, label, times[1] / times[0], "×", target, detail))
    return found


def _product(f: Any) -> Any:
    import lantern

    return lambda x, *rest: lantern.hvp(lambda x: f(x, *rest), x, 0.5)


def _best_of(*programs: Program) -> list[float]:
    """The least time of each of some programs, in turns of about 10 ms."""
    best = [float("inf")] * len(programs)
    for _ in range(9):
        for i, run in enumerate(programs):
            count, start = 0, time.process_time()
            while (end := time.process_time()) < start + 0.01:
                for _ in range(100):
                    run()
                count += 100
            best[i] = min(best[i], (end - start) / count)
    return best


def square(x: Any) -> Any:
    """One product."""
    return x * x


def _one_call() -> list[Row]:
    """How long a call of a compiled function takes, beside one of the sine."""
    import lantern
    from lantern.staging.native.background import wait

    compiled, numbers = lantern.jit(square), [0.5] * 100
    compiled(0.5)
    wait()

    def calls(f: Any) -> Program:
        return lambda: deque(map(f, numbers), 0)

    ours, theirs = _best_of(calls(compiled), calls(math.sin))
    detail = f"{1e7 * ours:.3g} ns, {1e7 * theirs:.3g} ns"
    row, target = ("staging: one call", "math.sin's time"), Target(1, at_most=True)
    return [Row(*row, ours / theirs, "×", target, detail)]


def few(x: Any) -> Any:
    """A few products."""
    y = x
    for _ in range(9):
        y = y * x
    return y


def _first_results() -> list[Row]:
    """How long the first call takes, compiling included, beside JAX's: medians.

    Both have compiled the gradient of another loop before: what only the first program
    of all takes is a row of its own. Nothing that earlier runs have left on the disk is
    found, for that is compiled already.
    """
    if peer("jax") is None:
        return []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        runs = [fresh.submit(_first_times).result() for _ in range(PROCESSES)]
    found = []
    for name in runs[0]:
        few = name == "few"
        label = "first program of all" if few else "first result"
        whats = (label, 20), ("all passes done", 8)
        times = np.array([run[name] for run in runs])
        ratios = times[:, 2:] / times[:, :2]
        for k, (what, least) in enumerate(whats):
            ours, theirs = 1e3 * np.median(times[:, [k, 2]], axis=0)
            low, high = ratios[:, k].min(), ratios[:, k].max()
            detail = f"{ours:.1f} ms; JAX {theirs:.0f} ms ({low:.3g} to {high:.3g} ×)"
            target = None if few else Target(least)
            row = f"staging: {name}", f"{what}, JAX's time"
            median = float(np.median(ratios[:, k]))
            found.append(Row(*row, median, "×", target, detail))
    return found


def _second_results() -> list[Row]:
    """How long the first call takes in a process that finds its code: medians."""
    with (
        tempfile.TemporaryDirectory() as kept,
        ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh,
    ):
        _, *runs = [
            fresh.submit(_kept_times, kept).result() for _ in range(PROCESSES + 1)
        ]
    found = []
    for name in runs[0]:
        times = [1e3 * run[name] for run in runs]
        detail = f"{min(times):.2g} to {max(times):.2g} ms"
        is_first = name == "few"
        label = "first program of all" if is_first else "first result"
        row = f"staging: {name}", f"{label}, its code found"
        target = None if is_first else Target(3, at_most=True)
        found.append(Row(*row, float(np.median(times)), "ms", target, detail))
    return found


def _kept_times(folder: str) -> dict[str, float]:
    """Seconds to the first result of each program, whose code is kept in a folder."""
    os.environ["LANTERN_JIT_CACHE"] = folder
    import lantern
    from lantern.staging.native.background import wait

    names = "sincos", "loop", "newton", "lorenz"
    programs = {name: (_gradient(name)[0], ARGUMENTS[name]) for name in names}
    found = {}
    for name, (f, args) in {"few": (lantern.grad(few), (0.5,)), **programs}.items():
        gc.collect()
        found[name] = _seconds(lantern.jit(f), args)
        wait()
    return found


def _first_times() -> dict[str, tuple[float, float, float]]:
    """Seconds to the first result, until all passes are done, and those of JAX."""
    os.environ["LANTERN_JIT_CACHE"] = "off"
    import jax

    import lantern
    from lantern.staging.native.background import wait

    products = partial(jax.lax.scan, lambda y, x: (y * x, None), length=9)
    theirs = jax.jit(jax.grad(lambda x: products(x, jax.numpy.full(9, x))[0]))
    measured: list[Any] = [("few", lantern.grad(few), theirs, (0.5,))]
    for name in ("sincos", "loop", "lorenz"):
        gradient, _ = _gradient(name)
        measured.append((name, gradient, _jax_gradient(name), ARGUMENTS[name]))
    found = {}
    for name, ours, theirs, args in measured:
        gc.collect()  # what others have left is nobody's time
        first = _seconds(lantern.jit(ours), args)
        best = first + _seconds(wait, ())
        gc.collect()
        other = _seconds(lambda *x, f=theirs: jax.block_until_ready(f(*x)), args)
        found[name] = first, best, other
    return found


def _seconds(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.process_time()
    f(*args)
    return time.process_time() - start

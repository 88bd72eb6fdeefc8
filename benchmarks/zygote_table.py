"""The five programs of Zygote's second table, from two operations to a perceptron.

Written in elementary operations, alike for all: a library's own cross entropy or
``logsumexp`` takes no part. Gradients alone; JAX and PyTorch take part compiled, too.

References:
    Innes (2018), Don't unroll adjoint, table 2.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target

TURNS = 1_000
TARGETS = {"PyTorch": Target(1)}
Function = Callable[..., Any]


def sin_cos(xp: Any, x: Any) -> Any:
    """Two operations on one number."""
    return xp.sin(xp.cos(x))


def loop(xp: Any, x: Any) -> Any:
    """A power of one number, by a loop."""
    y = x
    for _ in range(TURNS):
        y = y * x
    return y


def log_sum_exp(xp: Any, x: Any) -> Any:
    """Three operations on one array."""
    return xp.log(xp.exp(x).sum())


def logistic(xp: Any, parameters: Any, images: Any, signs: Any) -> Any:
    """Logistic regression: what it loses on all examples together."""
    weights, bias = parameters
    return xp.log(xp.exp(-signs * (images @ weights + bias)) + 1.0).sum()


def perceptron(xp: Any, parameters: Any, images: Any, classes: Any) -> Any:
    """The cross entropy of two layers."""
    w1, b1, w2, b2 = parameters
    z = xp.tanh(images @ w1 + b1) @ w2 + b2
    return (xp.log(xp.exp(z).sum(1)) - (z * classes).sum(1)).sum()


FUNCTIONS: dict[str, Function] = {
    "SinCos": sin_cos,
    "Loop": loop,
    "LogSumExp": log_sum_exp,
    "logistic regression": logistic,
    "MLP 784-32-10, batch 1": perceptron,
    "MLP 784-32-10, batch 64": perceptron,
}


def data(name: str) -> list[Any]:
    """The arguments behind ``xp``; the derivative is that by the first of them."""
    random = np.random.default_rng(0)
    if name in ("SinCos", "Loop"):
        return [0.999]
    if name == "LogSumExp":
        return [random.standard_normal(100)]
    if name == "logistic regression":
        signs = np.sign(random.standard_normal(100))
        weights = [random.standard_normal(10), np.zeros(())]
        return [weights, random.standard_normal((100, 10)), signs]
    batch = int(name.split()[-1])
    shapes = [(784, 32), (32,), (32, 10), (10,)]
    parameters = [0.05 * random.standard_normal(shape, np.float32) for shape in shapes]
    images = random.random((batch, 784), np.float32)
    classes = np.eye(10, dtype=np.float32)[random.integers(10, size=batch)]
    return [parameters, images, classes]


def rows(quick: bool) -> list[Row]:
    """One row per program and peer."""
    found: list[Row] = []
    for name in FUNCTIONS:
        makers: dict[str, Maker] = {
            who: partial(make, name) for who, make in _libraries(name, quick).items()
        }
        rtol = 1e-3 if name.startswith("MLP") else 1e-9
        benchmark = f"zygote_table {name}"
        found += race(benchmark, 1, makers, TARGETS, quick=quick, rtol=rtol)
    return found


def _libraries(name: str, quick: bool) -> dict[str, Function]:
    """Who can run it: compiling 1,000 operations takes PyTorch and tinygrad minutes."""
    libraries: dict[str, Function] = {
        LANTERN: of_lantern,
        "PyTorch": partial(_torch, "torch", False),
        "Lantern, as lantern.torch": partial(_torch, "lantern.torch", False),
        "autograd": _autograd,
        "MyGrad": _mygrad,
        "JAX op by op": partial(_jax, False),
        "JAX compiled": partial(_jax, True),
    }
    if name == "Loop":
        return {**libraries, "micrograd": _micrograd}
    compiled = {} if quick else {"PyTorch compiled": partial(_torch, "torch", True)}
    return {**libraries, **compiled, "tinygrad": _tinygrad}


def _each(convert: Function, x: Any) -> Any:
    """A list's arrays, or one array, converted."""
    return [convert(part) for part in x] if isinstance(x, list) else convert(x)


def _leaves(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def of_lantern(name: str) -> Program:
    """The gradient of a function at its data, by Lantern."""
    import lantern

    gradient = lantern.grad(partial(FUNCTIONS[name], lantern))
    args = data(name)
    return lambda: gradient(*args)


def _autograd(name: str) -> Program | None:
    autograd, xp = peer("autograd"), peer("autograd.numpy")
    if autograd is None or xp is None:
        return None
    gradient = autograd.grad(partial(FUNCTIONS[name], xp))
    args = data(name)
    return lambda: gradient(*args)


def _jax(compiled: bool, name: str) -> Program | None:
    jax, xp = peer("jax"), peer("jax.numpy")
    if jax is None or xp is None:
        return None
    args = [_each(xp.asarray, x) for x in data(name)]
    gradient = jax.grad(partial(FUNCTIONS[name], xp))
    if compiled:
        gradient = jax.jit(gradient)
    return lambda: jax.block_until_ready(gradient(*args))


def _torch(module: str, compiled: bool, name: str) -> Program | None:
    torch = peer(module)
    if torch is None:
        return None
    f = partial(FUNCTIONS[name], torch)
    if compiled:
        f = torch.compile(f)
    first, *rest = (_each(np.asarray, x) for x in data(name))
    leaves = _each(lambda x: torch.tensor(x).requires_grad_(), first)
    others = [torch.tensor(x) for x in rest]
    return partial(_backward, f, leaves, others)


def _backward(f: Function, leaves: Any, others: list[Any]) -> list[Any]:
    """A gradient where it is left in the leaves: one pass, and the leaves cleared."""
    f(leaves, *others).backward()
    gradients = [leaf.grad for leaf in _leaves(leaves)]
    for leaf in _leaves(leaves):
        leaf.grad = None
    return gradients


def _tinygrad(name: str) -> Program | None:
    tinygrad = peer("tinygrad")
    if tinygrad is None:
        return None
    program = partial(FUNCTIONS[name], tinygrad.Tensor)
    # It takes an array without axes for a constant, which has no gradient.
    first, *rest = (_each(np.atleast_1d, x) for x in data(name))
    leaves = _each(tinygrad.Tensor, first)
    others = [tinygrad.Tensor(x) for x in rest]
    backward = partial(_backward, lambda *args: program(*args).sum(), leaves, others)
    return lambda: [x.numpy() for x in backward()]


def _mygrad(name: str) -> Program | None:
    xp = peer("mygrad")
    if xp is None:
        return None
    f = partial(FUNCTIONS[name], xp)
    first, *rest = data(name)
    leaves = _each(xp.tensor, first)

    # Its leaves clear their gradients themselves.
    def run() -> list[Any]:
        f(leaves, *rest).backward()
        return [leaf.grad for leaf in _leaves(leaves)]

    return run


def _micrograd(name: str) -> Program | None:
    engine = peer("micrograd.engine")
    if engine is None:
        return None
    sys.setrecursionlimit(4 * TURNS)  # it sorts its values by recursion
    (value,) = data(name)

    def run() -> Any:
        x = engine.Value(value)
        FUNCTIONS[name](None, x).backward()
        return x.grad

    return run

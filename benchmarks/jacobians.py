"""Derivatives of higher order and of many outputs, spelled as each library's users do.

JAX takes part twice: operation by operation, as the others compute, and compiled.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.entrant import Maker, Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target

TARGETS = {"PyTorch": Target(1), "autograd": Target(1)}
Function = Callable[..., Any]


def network(xp: Any, x: Any, first: Any, second: Any) -> Any:
    """A map of as many outputs as inputs."""
    return xp.tanh(second @ xp.tanh(first @ x))


def energy(xp: Any, x: Any, weights: Any) -> Any:
    """A function of many variables that depends on all of them together."""
    return xp.log(xp.exp(weights @ x).sum()) + (x * x * x * x).sum()


def chain(xp: Any, x: Any) -> Any:
    """A function of very many variables, each with its neighbour."""
    return (xp.tanh(x[1:] * x[:-1]) + x[1:] * x[1:]).sum()


def loop(xp: Any, x: Any) -> Any:
    """A function of one variable, by a loop."""
    y = x
    for _ in range(10):
        y = xp.sin(y) * x + y * y * 0.1
    return y


def loss(xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    """The squared error of a perceptron for one example."""
    w1, b1, w2, b2 = parameters
    error = xp.tanh(x @ w1 + b1) @ w2 + b2 - y
    return (error * error).sum()


def data(name: str, quick: bool) -> list[Any]:
    """The arguments behind ``xp`` of the function of a benchmark."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape) / np.sqrt(shape[-1])

    if name == "jacobian":
        n = 50 if quick else 200
        return [normal(n), normal(n, n), normal(n, n)]
    if name == "hessian":
        n = 30 if quick else 100
        return [normal(n), normal(50, n)]
    if name == "hvp":
        n = 10_000 if quick else 100_000
        return [normal(n), normal(n)]
    if name == "third":
        return [0.7]
    batch = 16 if quick else 64
    shapes = [(64, 64), (64,), (64, 10), (10,)]
    parameters = [normal(*shape) for shape in shapes]
    return [parameters, normal(batch, 64), normal(batch, 10)]


BENCHMARKS = {
    "jacobian": "jacobian_200",
    "hessian": "hessian_100",
    "hvp": "hvp_100000",
    "third": "third_derivative",
    "per_example": "per_example_gradients",
}
FUNCTIONS: dict[str, Function] = {
    "jacobian": network,
    "hessian": energy,
    "hvp": chain,
    "third": loop,
    "per_example": loss,
}


def rows(quick: bool) -> list[Row]:
    """One row per benchmark and peer."""
    found: list[Row] = []
    for name, benchmark in BENCHMARKS.items():
        libraries: dict[str, Function] = {
            LANTERN: of_lantern,
            "PyTorch": _torch,
            "autograd": _autograd,
            "JAX op by op": partial(_jax, False),
            "JAX compiled": partial(_jax, True),
        }
        makers: dict[str, Maker] = {
            library: partial(make, name, quick) for library, make in libraries.items()
        }
        found += race(benchmark, 1, makers, TARGETS, quick=quick, rtol=1e-7)
    return found


def of_lantern(name: str, quick: bool) -> Program:
    """The derivative of a benchmark's function at its data, by Lantern."""
    import lantern

    f, args = partial(FUNCTIONS[name], lantern), data(name, quick)
    if name == "hvp":
        x, v = args
        return lambda: lantern.jvp(lantern.grad(f), (x,), (v,))[1]
    grad = lantern.grad
    derivative: Function = {
        "jacobian": lambda: lantern.jacobian(f),
        "hessian": lambda: lantern.hessian(f),
        "third": lambda: grad(grad(grad(f))),
        "per_example": lambda: lantern.vmap(grad(f), in_axes=(None, 0, 0)),
    }[name]()
    return lambda: derivative(*args)


def _torch(name: str, quick: bool) -> Program | None:
    torch, func = peer("torch"), peer("torch.func")
    if torch is None or func is None:
        return None
    f = partial(FUNCTIONS[name], torch)
    args = [_each(torch.tensor, x) for x in data(name, quick)]
    if name == "third":
        args = [torch.tensor(x, dtype=torch.float64) for x in data(name, quick)]
    if name == "hvp":
        x, v = args
        return lambda: func.jvp(func.grad(f), (x,), (v,))[1]
    grad = func.grad
    derivative: Function = {
        "jacobian": lambda: func.jacrev(f),
        "hessian": lambda: func.hessian(f),
        "third": lambda: grad(grad(grad(f))),
        "per_example": lambda: func.vmap(grad(f), in_dims=(None, 0, 0)),
    }[name]()
    return lambda: derivative(*args)


def _autograd(name: str, quick: bool) -> Program | None:
    autograd, xp = peer("autograd"), peer("autograd.numpy")
    if autograd is None or xp is None:
        return None
    f, args = partial(FUNCTIONS[name], xp), data(name, quick)
    grad = autograd.grad
    if name == "hvp":
        product = autograd.hessian_vector_product(f)
        return lambda: product(*args)
    if name == "per_example":  # there is no vmap: one example after the other
        one, (parameters, *examples) = grad(f), args

        def each() -> list[Any]:
            pairs = zip(*examples, strict=True)
            gradients = [one(parameters, x, y) for x, y in pairs]
            return [np.stack(parts) for parts in zip(*gradients, strict=True)]

        return each
    derivative: Function = {
        "jacobian": lambda: autograd.jacobian(f),
        "hessian": lambda: autograd.hessian(f),
        "third": lambda: grad(grad(grad(f))),
    }[name]()
    return lambda: derivative(*args)


def _jax(compiled: bool, name: str, quick: bool) -> Program | None:
    jax, xp = peer("jax"), peer("jax.numpy")
    if jax is None or xp is None:
        return None
    f, args = partial(FUNCTIONS[name], xp), data(name, quick)
    args = [_each(xp.asarray, x) for x in args]
    grad = jax.grad
    derivative: Function = {
        "jacobian": lambda: jax.jacrev(f),
        "hessian": lambda: jax.hessian(f),
        "hvp": lambda: lambda x, v: jax.jvp(grad(f), (x,), (v,))[1],
        "third": lambda: grad(grad(grad(f))),
        "per_example": lambda: jax.vmap(grad(f), in_axes=(None, 0, 0)),
    }[name]()
    if compiled:
        derivative = jax.jit(derivative)
    return lambda: jax.block_until_ready(derivative(*args))


def _each(convert: Function, x: Any) -> Any:
    """A list's arrays, or one array, converted."""
    return [convert(part) for part in x] if isinstance(x, list) else convert(x)

"""Random programs against other libraries: ``python -m tests.contract.fuzz``.

Programs of arrays against JAX's gradients, and of numbers against symbolic ones. Each
runs plainly differentiated, and by ``lantern.torch``; some of its operations have rules
written here. ``--jax N`` and ``--symbolic N`` say how many, ``--seed`` where to begin.
"""

import argparse
import random
import sys
import time

import numpy as np

import lantern
import lantern.torch as torch

UNARY = ("sin", "cos", "tanh", "square", "cube", "bounded", "root", "slow", "part")
BINARY = ("+", "-", "*", "/", "max")
OF_ARRAYS = ("matmul", "transpose", "sum", "row", "flip", "softmax")


@lantern.custom_rule
def cube(x, /):
    z_bar = yield x * x * x
    yield 3.0 * z_bar * x * x


@lantern.custom_vjp
def bounded(x):
    return x / (1.0 + x * x)


bounded.defvjp(
    lambda x: (x / (1.0 + x * x), x),
    lambda x, z_bar: (z_bar * (1.0 - x * x) / (1.0 + x * x) ** 2,),
)


def program(rng, arrays, size):
    """Steps on a growing list of values: (operation, positions)."""
    steps = []
    for i in range(size):
        kind = rng.choice(UNARY + BINARY * 2 + (OF_ARRAYS if arrays else ()))
        steps.append((kind, rng.randrange(max(0, i - 3), i + 2), rng.randrange(i + 2)))
    return steps


def run(steps, xp, x, y):
    """The value of a program, in the words of a library."""
    values = [x, y]
    for kind, i, j in steps:
        a, b = values[i], values[j]
        match kind:
            case "+":
                z = a + b
            case "-":
                z = a - b
            case "*":
                z = a * b
            case "/":
                z = a / (b * b + 2.0)
            case "max":
                z = xp.maximum(a, b)
            case "cube":
                z = xp.cube(xp.tanh(a))
            case "square":
                z = xp.tanh(a) * xp.tanh(a)
            case "bounded":
                z = xp.bounded(a)
            case "root":
                z = xp.sqrt(a * a + 1.0)
            case "slow":
                z = xp.log(a * a + 1.0)
            case "part":
                z = xp.exp(-a * a)
            case "matmul":
                z = xp.tanh(a) @ xp.tanh(b)
            case "transpose":
                z = a.T * 1.0
            case "sum":
                z = a + b.sum() / 9.0
            case "row":
                z = a + b[1]
            case "flip":
                z = xp.flip(a) * b
            case "softmax":
                z = xp.softmax(a) * b
            case _:
                z = getattr(xp, kind)(a)
        values.append(z)
    total = values[-1] + values[-2]
    return total.sum() if hasattr(total, "sum") else total


class Words:
    """Functions by the names that programs use."""

    def __init__(self, module, **others):
        self.module = module
        vars(self).update(others)

    def __getattr__(self, name):
        return getattr(self.module, name)


OURS = Words(
    lantern,
    cube=cube,
    bounded=bounded,
    softmax=lambda x: lantern.softmax(x, axis=1),
    flip=lambda x: lantern.flip(x, axis=1),
)
FACE = Words(
    torch,
    cube=lambda x: x * x * x,
    bounded=lambda x: x / (1.0 + x * x),
    softmax=lambda x: torch.softmax(x, 1),
    flip=lambda x: torch.flip(x, (1,)),
)


def by_face(steps, *arrays):
    """The gradients by ``backward``."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays]
    run(steps, FACE, *leaves).backward()
    return [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]


def close(found, want):
    return all(
        np.allclose(a, b, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(b))))
        for a, b in zip(found, want, strict=True)
    )


def against_jax(steps, rng):
    """Whether gradients of a program of arrays agree, by both faces and both modes."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    theirs = Words(
        jnp,
        cube=lambda x: x * x * x,
        bounded=lambda x: x / (1.0 + x * x),
        softmax=lambda x: jax.nn.softmax(x, axis=1),
        flip=lambda x: jnp.flip(x, axis=1),
    )
    x, y = rng.normal(size=(2, 3, 3))
    want = jax.grad(lambda x, y: run(steps, theirs, x, y), (0, 1))(x, y)
    want = [np.asarray(w) for w in want]
    found = lantern.grad(lambda x, y: run(steps, OURS, x, y), (0, 1))(x, y)
    _, moved = lantern.jvp(lambda x, y: run(steps, OURS, x, y), (x, y), (y, x))
    return (
        close(found, want)
        and close(by_face(steps, x, y), want)
        and close([moved], [np.sum(want[0] * y) + np.sum(want[1] * x)])
    )


def against_symbols(steps, rng):
    """Whether first and second derivatives of a program of numbers agree."""
    import sympy

    words = Words(
        sympy,
        cube=lambda x: x * x * x,
        bounded=lambda x: x / (1 + x * x),
        maximum=lambda a, b: (a + b + sympy.sqrt((a - b) ** 2)) / 2,
    )
    a, b = sympy.symbols("a b", real=True)
    x, y = map(float, rng.normal(size=2))
    formula = run(steps, words, a, b)
    first = [sympy.lambdify((a, b), sympy.diff(formula, s), "math") for s in (a, b)]
    want = [d(x, y) for d in first]
    mine = lambda x, y: run(steps, OURS, x, y)  # noqa: E731
    found = lantern.grad(mine, (0, 1))(x, y)
    h = 1e-6
    slopes = [(d(x + h, y) - d(x - h, y)) / (2 * h) for d in first]
    second = lantern.jvp(lambda x: lantern.grad(mine, (0, 1))(x, y), (x,), (1.0,))[1]
    return (
        close(found, want)
        and close(by_face(steps, x, y), want)
        and np.allclose(
            second, slopes, rtol=1e-4, atol=1e-4 * (1 + np.max(np.abs(slopes)))
        )
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", type=int, default=3_000)
    parser.add_argument("--symbolic", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    for name, count, check, arrays in (
        ("JAX", options.jax, against_jax, True),
        ("symbolic", options.symbolic, against_symbols, False),
    ):
        began, failed = time.perf_counter(), 0
        for seed in range(options.seed, options.seed + count):
            steps = program(random.Random(seed), arrays, 3 + seed % 8)
            if not arrays:  # a kink has no symbolic derivative
                steps = [("+" if k == "max" else k, i, j) for k, i, j in steps[:6]]
            if not check(steps, np.random.default_rng(seed)):
                failed += 1
                print(f"wrong: {name}, seed {seed}: {steps}", flush=True)
        seconds = time.perf_counter() - began
        print(f"{name}: {count} programs, {failed} wrong, {seconds:.0f} s", flush=True)
        wrong += failed
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

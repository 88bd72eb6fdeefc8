"""Lantern in one file: numbers, arrays, reverse and forward mode, and a perceptron.

An operation is one generator: it computes its value, yields it to the rest of the
program, gets the value's cotangent back, and yields what each operand receives.
"""

import argparse
from functools import partial
from itertools import count

import numpy as np

levels = count()  # of derivatives: those inside others have higher ones


def op(rule, linear=False):
    """Make a generator an operation; one may be linear in each operand by itself."""

    def function(*operands, **options):
        tracked = [x.level for x in operands if isinstance(x, Value)]
        if not tracked:  # the forward step is all there is
            return next(rule(*operands, **options))
        level = _, waiting = max(tracked)  # the innermost; others are constants to it
        own = [x if getattr(x, "level", None) == level else None for x in operands]
        primals = [y.primal if y else x for x, y in zip(operands, own, strict=True)]
        while own[-1] is None:  # what nobody wants is not computed
            own.pop()
        started = rule(*primals, **options)
        z = Value(next(started), level, started, own)  # the rest of the program ...
        if waiting is not None:
            waiting.append(z)  # ... is what the rule waits for, in reverse mode
            return z
        z.tangent = np.zeros(z.shape)  # ... need not come: z moves as its operands do
        for i, x in enumerate(own):
            slope = None if linear else started.send(1)
            if x:
                xs = *primals[:i], x.tangent, *primals[i + 1 :]
                dz = function(*xs, **options) if linear else x.tangent * slope
                z.tangent = z.tangent + dz
        return z

    return function


class Value:
    """A number or an array that a derivative tracks, and the rule that made it."""

    __array_ufunc__ = None  # an array on the left leaves the operation to us

    def __init__(self, primal, level, rule=None, operands=(), tangent=0.0):
        self.primal, self.level, self.shape = primal, level, np.shape(primal)
        self.rule, self.operands, self.cotangent = rule, operands, None
        self.tangent = tangent

    @op
    def __add__(x, y):  # noqa: N805  # the operands of a rule, here and below
        z_bar = yield x + y
        yield z_bar
        yield z_bar

    @op
    def __mul__(x, y):  # noqa: N805
        z_bar = yield x * y
        yield z_bar * y
        yield z_bar * x

    @op
    def __pow__(x, n):  # noqa: N805
        z_bar = yield (z := x**n)
        yield z_bar * n * x ** (n - 1) if isinstance(n, Value) or n else z_bar * 0
        yield z_bar * z * log(x)

    @partial(op, linear=True)
    def __matmul__(x, y):  # noqa: N805
        z_bar = yield x @ y
        yield z_bar @ y.T
        yield x.T @ z_bar

    @property
    @partial(op, linear=True)
    def T(x):  # noqa: N805
        z_bar = yield x.T
        yield z_bar.T

    __radd__, __rmul__ = __add__, __mul__
    __rmatmul__ = lambda x, y: Value.__matmul__(y, x)  # noqa: E731
    __neg__ = lambda x: x * -1  # noqa: E731
    __sub__ = lambda x, y: x + y * -1  # noqa: E731
    __rsub__ = lambda x, y: x * -1 + y  # noqa: E731
    __truediv__ = lambda x, y: x * y**-1  # noqa: E731
    __rtruediv__ = lambda x, y: x**-1 * y  # noqa: E731


@partial(op, linear=True)
def sum(x, shape=()):
    """The sum over what a shape does not have: the transpose of broadcasting to x's."""
    axes = tuple(range(np.ndim(x) - len(shape)))
    axes += tuple(i for i, n in enumerate(shape, len(axes)) if n == 1)
    tracked = isinstance(x, Value)
    z_bar = yield sum(x, shape=shape) if tracked else np.sum(x, axes).reshape(shape)
    yield z_bar * np.ones(np.shape(x))


@op
def each(x, f, slope):
    """A function of each element; its derivative by operand x and result z."""
    g = partial(each, f=f, slope=slope) if isinstance(x, Value) else f
    z_bar = yield (z := g(x))
    yield z_bar * slope(x, z)


sin = partial(each, f=np.sin, slope=lambda x, z: cos(x))
cos = partial(each, f=np.cos, slope=lambda x, z: -sin(x))
exp = partial(each, f=np.exp, slope=lambda x, z: z)
log = partial(each, f=np.log, slope=lambda x, z: 1 / x)
tanh = partial(each, f=np.tanh, slope=lambda x, z: 1 - z * z)
sqrt = partial(each, f=np.sqrt, slope=lambda x, z: 0.5 / z)


def vjp(f, *primals):
    """The value of f, and its pullback: suspended rules, resumed newest first."""
    level = _, waiting = next(levels), []
    inputs = [Value(x, level) for x in primals]
    result = f(*inputs) + Value(0.0, level)  # tracked, even if f is constant

    def pullback(seed):
        result.cotangent = seed
        for z in reversed(waiting):
            for x in z.operands if z.cotangent is not None else ():
                x_bar = z.rule.send(z.cotangent)
                if x:
                    x_bar = sum(x_bar, shape=x.shape) if x.shape != z.shape else x_bar
                    x.cotangent = x_bar if x.cotangent is None else x.cotangent + x_bar
        return [x.primal * 0 if x.cotangent is None else x.cotangent for x in inputs]

    return result.primal, pullback


def jvp(f, primals, tangents):
    """The value of f, and how it moves: rules are resumed at once."""
    level = next(levels), None
    pairs = zip(primals, tangents, strict=True)
    z = f(*(Value(x, level, tangent=dx) for x, dx in pairs)) + Value(0.0, level)
    return z.primal, z.tangent


def grad(f):
    """The gradient of f, with respect to its first argument."""
    return lambda *primals: vjp(f, *primals)[1](1.0)[0]


def network(x, w1, b1, w2, b2):
    """A perceptron of two layers."""
    return tanh(x @ w1 + b1) @ w2 + b2


def main():
    """Let the perceptron learn the exclusive or."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    y = np.array([[0], [1], [1], [0.0]])
    random = np.random.default_rng(0)
    weights = [random.normal(size=s) for s in ((2, 8), (8,), (8, 1), (1,))]

    for step in range(1001):
        value, pullback = vjp(lambda *ws: sum((network(x, *ws) - y) ** 2), *weights)
        weights = [w - 0.03 * g for w, g in zip(weights, pullback(1.0), strict=True)]
        if step % 200 == 0:
            print(f"step {step:4}  loss {value:.6f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()

"""Lantern in one file: numbers, arrays, reverse and forward mode, and a perceptron.

An operation is one generator: it computes its value, yields it to the rest of the
program, gets the value's cotangent back, and yields what each operand receives.
"""

import argparse
from functools import partial
from itertools import count

import numpy as np
from numpy import cos, exp, log, sin, sqrt, tanh
from numpy.lib.mixins import NDArrayOperatorsMixin

levels = count()  # of derivatives: those inside others have higher ones


class Value(NDArrayOperatorsMixin):
    """A number or an array that a derivative tracks; rules, under NumPy's names."""

    def __init__(self, primal, level, rule=None, operands=(), tangent=0.0):
        self.primal, self.level, self.shape = primal, level, np.shape(primal)
        self.rule, self.operands, self.cotangent = rule, operands, None
        self.tangent = tangent

    def __array_ufunc__(self, ufunc, method, *operands, **options):
        """What NumPy calls for np.sin(x), and for x * y, which is np.multiply(x, y)."""
        rule = method == "__call__" and not options and vars(Value).get(ufunc.__name__)
        return start(rule, *operands) if rule else NotImplemented

    def multiply(x, y):
        z_bar = yield x * y  # forward; then the rest of the program runs
        yield z_bar * y  # backward: what x receives
        yield z_bar * x  # what y receives

    def matmul(x, y):
        z_bar = yield x @ y
        yield z_bar @ y.T
        yield x.T @ z_bar

    def transpose(x):
        z_bar = yield x.T
        yield z_bar.T

    def sum(x, to=()):  # the sum to a shape: the transpose of broadcasting to x's
        wide = (1,) * (np.ndim(x) - len(to)) + to
        axes = tuple(i for i, n in enumerate(wide) if n == 1)
        tracked = isinstance(x, Value)
        z_bar = yield sum(x, to) if tracked else np.sum(x, axes).reshape(to)
        yield z_bar * np.ones(np.shape(x))

    def each(f, slopes, *xs):  # a function of each element, by its slopes
        z_bar = yield f(*xs)
        for slope in slopes:
            yield z_bar * slope(*xs)

    T = property(lambda x: start(Value.transpose, x))
    add = partial(each, np.add, [lambda x, y: 1, lambda x, y: 1])
    subtract = partial(each, np.subtract, [lambda x, y: 1, lambda x, y: -1])
    divide = partial(each, np.divide, [lambda x, y: 1 / y, lambda x, y: -x / y**2])
    power = partial(
        each, pow, [lambda x, n: n and n * x ** (n - 1), lambda x, n: x**n * log(x)]
    )
    negative = partial(each, np.negative, [lambda x: -1])
    sin = partial(each, sin, [lambda x: cos(x)])
    cos = partial(each, cos, [lambda x: -sin(x)])
    exp = partial(each, exp, [lambda x: exp(x)])
    log = partial(each, log, [lambda x: 1 / x])
    tanh = partial(each, tanh, [lambda x: 1 - tanh(x) ** 2])
    sqrt = partial(each, sqrt, [lambda x: 0.5 / sqrt(x)])

    def along(self, z_bar):
        """What the operands receive, along their tangents."""
        total = 0.0
        for x in self.operands:
            x_bar = self.rule.send(z_bar)
            total = total + sum(x_bar * x.tangent) if x else total
        return total


def start(rule, *operands):
    """Compute an operation, whose rule then waits for the rest of the program."""
    tracked = [x.level for x in operands if isinstance(x, Value)]
    if not tracked:  # the forward step is all there is
        return next(rule(*operands))
    level = _, waiting = max(tracked)  # the innermost; others are constants to it
    own = [x if getattr(x, "level", None) == level else None for x in operands]
    started = rule(*(y.primal if y else x for x, y in zip(operands, own, strict=True)))
    while own[-1] is None:  # what nobody wants is not computed
        own.pop()
    z = Value(next(started), level, started, own)
    if waiting is not None:
        waiting.append(z)
    else:  # forward mode: the rule is linear in z_bar; its transpose moves z at once
        z.tangent = grad(z.along)(np.ones(z.shape))
    return z


sum = partial(start, Value.sum)


def vjp(f, primals, seed):
    """The value of f, and what its arguments receive: rules resume, newest first."""
    level = _, waiting = next(levels), []
    inputs = [Value(x, level) for x in primals]
    result = f(*inputs) + Value(0.0, level)  # tracked, even if f is constant
    result.cotangent = seed
    for z in reversed(waiting):
        for x in z.operands if z.cotangent is not None else ():
            x_bar = z.rule.send(z.cotangent)
            if x:
                x_bar = sum(x_bar, x.shape) if x.shape != z.shape else x_bar
                x.cotangent = x_bar if x.cotangent is None else x.cotangent + x_bar
    gradients = [x.primal * 0 if x.cotangent is None else x.cotangent for x in inputs]
    return result.primal, gradients


def jvp(f, primals, tangents):
    """The value of f, and how it moves when its arguments do."""
    level = next(levels), None
    pairs = zip(primals, tangents, strict=True)
    z = f(*(Value(x, level, tangent=dx) for x, dx in pairs)) + Value(0.0, level)
    return z.primal, z.tangent


def grad(f):
    """The gradient of f, with respect to its first argument."""
    return lambda *primals: vjp(f, primals, 1.0)[1][0]


def main():
    """Let a perceptron of two layers learn the exclusive or."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    y = np.array([[0], [1], [1], [0.0]])
    random = np.random.default_rng(0)
    weights = [random.normal(size=s) for s in ((2, 8), (8,), (8, 1), (1,))]

    def loss(w1, b1, w2, b2):
        return sum((tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)

    for step in range(1001):
        value, gradients = vjp(loss, weights, 1.0)
        weights = [w - 0.03 * g for w, g in zip(weights, gradients, strict=True)]
        if step % 200 == 0:
            print(f"step {step:4}  loss {value:.6f}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()

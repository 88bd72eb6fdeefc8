"""The numbers that the papers state, in every variant of the derivative."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


DERIVATIVES = {
    "reverse": grad,
    "switching": partial(grad, driver="switching"),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "forward": forward,
}


def by_loop(x):
    y = 1.0
    for _ in range(3):
        y = y * x
    return y


def swapped(x):
    y, z = x, 2 * x
    for _ in range(3):
        y, z = z, y
    return y


def rotated(x):
    a, b, c = x, 2 * x, 3 * x
    for _ in range(4):
        a, b, c = b, c, a
    return a


# name: function, point, and its derivatives of order 0, 1, 2 and 3 there
SCALAR_FACTS = {
    "2x + x^3": (lambda x: 2 * x + x**3, 3.0, (33, 29, 18, 6)),
    "x^3": (lambda x: x**3, 4.0, (64, 48, 24, 6)),
    "x*x*x": (lambda x: x * x * x, 4.0, (64, 48, 24, 6)),
    "5x + 3": (lambda x: 5 * x + 3, 2.0, (13, 5, 0, 0)),
    "constant": (lambda x: 7.0, 2.0, (7, 0, 0, 0)),
    "identity": (lambda x: x, 2.0, (2, 1, 0, 0)),
    "power by loop": (by_loop, 2.0, (8, 12, 12, 6)),
    "swaps": (swapped, 5.0, (10, 2, 0, 0)),
    "rotations": (rotated, 5.0, (10, 2, 0, 0)),
    "sin": (lantern.sin, math.pi / 2, (1, 0, -1, 0)),
    "root of a square": (lambda x: lantern.sqrt(x**2), 2.0, (2, 1, 0, 0)),
    "root of a negative's square": (lambda x: lantern.sqrt(x**2), -2.0, (2, -1, 0, 0)),
    "sqrt": (lantern.sqrt, 16.0, (4, 1 / 8, -1 / 256, 3 / 8192)),
    "1/x": (lambda x: 1 / x, 2.0, (1 / 2, -1 / 4, 1 / 4, -3 / 8)),
    "exp(2x)": (lambda x: lantern.exp(2 * x), 0.0, (1, 2, 4, 8)),
}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("fact", SCALAR_FACTS)
def test_derivatives_of_a_scalar_function_in_every_mix_of_variants(fact, order):
    f, x, expected = SCALAR_FACTS[fact]
    assert f(x) == pytest.approx(expected[0])
    for mix in itertools.product(DERIVATIVES, repeat=order):
        df = f
        for name in mix:
            df = DERIVATIVES[name](df)
        assert df(x) == pytest.approx(expected[order], rel=1e-13, abs=1e-15), mix


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def tree(vector):
    """A plain list or array of numbers for comparison."""
    return np.array(list(vector), dtype=float)


switching = partial(grad, driver="switching")
HESSIAN_PRODUCTS = {
    "reverse over reverse": lambda f, x, v: grad(lambda y: dot(grad(f)(y), v))(x),
    "switching over reverse": lambda f, x, v: switching(lambda y: dot(grad(f)(y), v))(
        x
    ),
    "reverse over switching": lambda f, x, v: grad(lambda y: dot(switching(f)(y), v))(
        x
    ),
    "pullback over reverse": lambda f, x, v: vjp(grad(f), x)[1](v)[0],
    "forward over reverse": lambda f, x, v: jvp(grad(f), (x,), (v,))[1],
    "forward over switching": lambda f, x, v: jvp(switching(f), (x,), (v,))[1],
    "forward over pullback": lambda f, x, v: jvp(
        lambda y: vjp(f, y)[1](1.0)[0], (x,), (v,)
    )[1],
    "reverse over forward": lambda f, x, v: grad(lambda y: jvp(f, (y,), (v,))[1])(x),
    "switching over forward": lambda f, x, v: switching(
        lambda y: jvp(f, (y,), (v,))[1]
    )(x),
}
P, Q = [2.0, 3.0], [4.0, 5.0]
X, V = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.4, 0.5, 0.6, 0.7])
KERNEL = np.array([0.177578, 0.153097, -0.454294, 0.442411])


def monomial(x):
    return 2 * x[0] ** 2 * x[1] + 3 * x[1]


def sum_of(function):
    return lambda x: lantern.sum(function(x))


# name: f, x, v, value, gradient and Hessian times v
VECTOR_FACTS = {
    "x1 x2": (lambda x: x[0] * x[1], P, Q, 6, (3, 2), (5, 4)),
    "squares": (lambda x: x[0] ** 2 * x[1] ** 2, P, Q, 36, (36, 24), (192, 136)),
    "2 x1^2 x2 + 3 x2": (monomial, P, Q, 33, (24, 11), (88, 32)),
    "sin(x1 + x2)": (
        lambda x: lantern.sin(x[0] + x[1]),
        *(P, Q, math.sin(5), (math.cos(5),) * 2, (-9 * math.sin(5),) * 2),
    ),
    "product": (
        lambda x: x[0] * x[1] * x[2] * x[3],
        *([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], 24),
        *((24, 12, 8, 6), (176, 112, 80, 62)),
    ),
    "product of an array": (
        *(lantern.prod, X, np.array([5.0, 6.0, 7.0, 8.0]), 24),
        *((24, 12, 8, 6), (176, 112, 80, 62)),
    ),
    "sum of tanh": (
        *(sum_of(lantern.tanh), X, V, 3.720006),
        (0.419974, 0.070651, 0.009866, 0.001341),
        (-0.255880, -0.068109, -0.011781, -0.001876),
    ),
    "sum of exp": (
        *(sum_of(lantern.exp), X, V, 84.791025),
        (2.718282, 7.389056, 20.085537, 54.598150),
        (1.087313, 3.694528, 12.051323, 38.218704),
    ),
    "sum of log": (
        *(sum_of(lantern.log), X, V, math.log(24), (1, 1 / 2, 1 / 3, 1 / 4)),
        (-0.4, -0.125, -0.066667, -0.04375),
    ),
    "sum of sqrt": (
        *(sum_of(lantern.sqrt), X, V, 6.146264, (0.5, 0.353553, 0.288675, 0.25)),
        (-0.1, -0.044194, -0.028868, -0.021875),
    ),
    "tanh of a full convolution": (
        lambda kernel: lantern.tanh(kernel @ X),
        *(KERNEL, V, 0.711658),
        (0.493542, 0.987085, 1.480627, 1.974169),
        (-4.214802, -8.429605, -12.644407, -16.859209),
    ),
}


@pytest.mark.parametrize("variant", HESSIAN_PRODUCTS)
@pytest.mark.parametrize("fact", VECTOR_FACTS)
def test_gradients_and_hessian_products(fact, variant):
    f, x, v, value, gradient, product = VECTOR_FACTS[fact]
    got = value_and_grad(f)(x)
    assert got[0] == pytest.approx(value, rel=2e-6)
    np.testing.assert_allclose(tree(got[1]), gradient, rtol=2e-5, atol=6e-7)
    found = HESSIAN_PRODUCTS[variant](f, x, v)
    np.testing.assert_allclose(tree(found), product, rtol=2e-5, atol=6e-7)


def test_hessian_rows_of_a_product():
    rows = [[0, 12, 8, 6], [12, 0, 4, 3], [8, 4, 0, 2], [6, 3, 2, 0]]
    for f, x in ((VECTOR_FACTS["product"][0], list(X)), (lantern.prod, X)):
        for i, row in enumerate(rows):
            found = grad(lambda y, i=i, f=f: grad(f)(y)[i])(x)
            np.testing.assert_allclose(tree(found), row, rtol=1e-14)


def ten_nodes(x):
    nodes = [x, x]
    while len(nodes) < 10:
        nodes.append(sum(nodes))
    return lantern.sum(nodes[-1] ** 2)


def average_pooling(x):
    return lantern.sum(lantern.mean(x.reshape(1, 2, 1, 2), axis=(1, 3)))


BLOCK, COLUMN = np.arange(1.0, 9).reshape(2, 2, 2), np.arange(1.0, 5).reshape(2, 1, 2)
POWERS = np.array([1.0, -1.0, 2.0])
# name: f, arguments, gradients
ARRAY_FACTS = {
    "a product with broadcasting": (
        lambda x, y: lantern.sum(x * y),
        (BLOCK, COLUMN),
        ([1, 2, 1, 2, 3, 4, 3, 4], [4, 6, 12, 14]),
    ),
    "an element read in two places": (
        lambda x: x[0] + x[1] + x[1] + x[2] + x[2],
        (np.ones(3),),
        ([1, 2, 2],),
    ),
    "powers": (
        lambda x: lantern.sum(x**POWERS),
        (np.array([1.0, 2.0, 4.0]),),
        ([1, -0.25, 8],),
    ),
    "average pooling": (average_pooling, (np.eye(2),), ([0.25] * 4,)),
    "one array passed twice": (
        lambda x, y: lantern.sum(2 * x + 3 * y),
        (X, X),
        ([2] * 4, [3] * 4),
    ),
    "ten nodes that accumulate": (ten_nodes, (np.ones((3, 3)),), ([131072] * 9,)),
}


@pytest.mark.parametrize("driver", ["in place", "switching"])
@pytest.mark.parametrize("fact", ARRAY_FACTS)
def test_gradients_of_arrays(fact, driver):
    f, args, expected = ARRAY_FACTS[fact]
    gradients = grad(f, argnums=tuple(range(len(args))), driver=driver)(*args)
    for x, gradient, want in zip(args, gradients, expected, strict=True):
        assert gradient.shape == x.shape
        np.testing.assert_allclose(gradient.ravel(), want, rtol=1e-14)


def test_softmax_and_log_softmax_of_a_row():
    row = np.array([1.0, 2.0, 3.0])
    for f, expected in (
        (lantern.softmax, [0.0900306, 0.2447285, 0.6652409]),
        (lantern.log_softmax, [-2.4076059, -1.4076059, -0.4076059]),
    ):
        np.testing.assert_allclose(vjp(f, row)[0], expected, atol=1e-7)
    loss = grad(lambda x: -lantern.log_softmax(x)[2])(row)
    np.testing.assert_allclose(loss, [0.0900306, 0.2447285, -0.3347591], atol=1e-7)


def test_diagonal_of_the_hessian_of_atan2():
    def f(p):
        return lantern.atan2(p[0], p[1])

    diagonal = [grad(lambda p, i=i: grad(f)(p)[i])([1.0, 2.0])[i] for i in range(2)]
    assert diagonal == pytest.approx([-0.16, 0.16], rel=1e-14)


def test_second_derivative_through_broadcasting():
    x, y = np.array([[1.0], [2.0]]), np.array([3.0, 4.0, 5.0])

    def inner(x):
        return lantern.sum(grad(lambda y: lantern.sum(x**2 * y**3))(y))

    # d/dx of sum over i, j of 3 x_i^2 y_j^2
    np.testing.assert_allclose(grad(inner)(x), 6 * x * (y**2).sum(), rtol=1e-14)

"""Programs of the combinators: plain, staged and interpreted, and their derivatives.

What the eager library gives for the plain program is right.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

import lantern
from lantern.errors import StagingError
from lantern.staging import FUN, IF, LOOP, TREE, WHILE, stage


class Node(NamedTuple):
    left: object
    right: object
    value: float


def leaf(value):
    return Node(None, None, value)


SMALL = Node(leaf(3.0), Node(leaf(4.0), leaf(0.7), 0.5), 2.0)


@FUN
def power(x, n):
    return IF(n > 0, lambda: x * power(x, n - 1), lambda: 1.0)


@FUN
def even(x, n):
    return IF(n == 0, lambda: x, lambda: odd(lantern.sin(x), n - 1))


@FUN
def odd(x, n):
    return IF(n == 0, lambda: 2.0 * x, lambda: even(x * x, n - 1))


def nested(x):
    def outer(j, s):
        def inner(i, y):
            return IF(y > 1.0, lambda: y * 0.5, lambda: y * x + s)

        return s + LOOP(10, x, inner)

    return LOOP(5, 0.0, outer)


def captured(x):
    """A function that uses a number outside of itself, and calls itself."""

    @FUN
    def f(y, n):
        return IF(n > 0, lambda: x * f(lantern.sin(y), n - 1) + y, lambda: x)

    return f(x, 4)


def structures(x):
    state = WHILE(
        {"a": x, "b": [x * 2, 1.0]},
        lambda s: s["a"] < 5.0,
        lambda s: {"a": s["a"] * 1.5, "b": [s["b"][0] + s["a"], s["b"][1] * x]},
    )
    return state["a"] * state["b"][0] + state["b"][1]


PROGRAMS = {
    "straight": (lambda x: lantern.sin(x) * x**3, 1.2),
    "branch": (lambda x: IF(x > 0.0, lambda: lantern.exp(x) * x, lambda: x * x), 0.7),
    "other branch": (lambda x: IF(x > 0.0, lambda: x, lambda: x * x * x), -0.7),
    "constant branch": (lambda x: x * IF(x > 0.0, lambda: x * x, lambda: 1.0), 0.7),
    "while": (lambda x: WHILE(x, lambda t: t > 1.0, lambda t: t * t * 0.3), 2.2),
    "no turn": (lambda x: x * WHILE(x, lambda t: t > 9.0, lambda t: t * 0.5), 2.2),
    "newton": (
        lambda x: WHILE(
            x, lambda y: abs(y * y - x) > 1e-12 * x, lambda y: 0.5 * (y + x / y)
        ),
        2.0,
    ),
    "loop": (lambda x: LOOP(30, 1.0, lambda i, y: lantern.sin(y * x)), 0.9),
    "counted": (lambda x: LOOP(30, x, lambda i, y: y * 0.5 + i * x), 0.9),
    "nested": (nested, 1.3),
    "recursion": (lambda x: power(x, 7), 1.3),
    "mutual recursion": (lambda x: even(x, 5), 1.3),
    "captured": (captured, 0.8),
    "structures": (structures, 1.1),
    "tree": (lambda x: TREE(x, SMALL, lambda a, b, t: a * b * t.value), 1.1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives_of_three_orders(name):
    f, x = PROGRAMS[name]
    program = stage(f, x)
    assert program(x) == f(x)
    for _ in range(3):
        program, f = program.grad(), lantern.grad(f)
        assert program(x) == pytest.approx(f(x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_arguments(name):
    f, x = PROGRAMS[name]
    gradient = stage(f, x).value_and_grad()
    for y in (x * 1.2, x * 0.9):
        expected = lantern.value_and_grad(f)(y)
        assert gradient(y) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_program_walks_any_tree():
    def f(x, tree):
        return TREE(x, tree, lambda a, b, t: lantern.sin(a * b) * t.value)

    gradient = stage(f, 1.1, leaf(2.0), trees=[1]).grad()
    for tree in (None, leaf(1.5), SMALL, Node(SMALL, SMALL, 0.1)):
        assert gradient(0.9, tree) == pytest.approx(lantern.grad(f)(0.9, tree))


def test_gradients_have_the_structure_of_the_arguments():
    def f(p, y):
        return p["a"] * p["b"][0] * y + lantern.exp(p["b"][1])

    p = {"a": 2.0, "b": (3.0, 0.5)}
    expected = lantern.grad(f, argnums=(0, 1))(p, 5.0)
    assert stage(f, p, 5.0).grad((0, 1))(p, 5.0) == expected


def test_the_librarys_own_derivatives_run_on_staged_numbers():
    """The two overloads compose: generators outside, nodes inside."""
    f, x = PROGRAMS["straight"]
    program = stage(lantern.grad(lantern.grad(f)), x)
    assert program(x) == lantern.grad(lantern.grad(f))(x)


def test_what_python_raises_the_interpreter_raises():
    program = stage(lambda x: lantern.log(1.0 / x), 2.0)
    with pytest.raises(ZeroDivisionError):
        program(0.0)
    with pytest.raises(ValueError, match=r"domain|positive"):  # from 3.14 on
        program(-1.0)


def test_zero_and_its_sign_are_kept():
    program = stage(lambda x: (x * 0.0, x * -0.0), 1.0)
    assert [math.copysign(1, z) for z in program(2.0)] == [1, -1]


REFUSED = {
    "bool": lambda x: 1.0 if x > 0 else 2.0,
    "float": math.sin,
    "structure": lambda x: IF(x > 0, lambda: (x, x), lambda: x),
    "string": lambda x: IF(x > 0, lambda: "a", lambda: "b"),
    "loop": lambda x: WHILE((x, "a"), lambda s: s[0] > 0, lambda s: (s[0], s[1] * 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_staged_is_refused(name):
    with pytest.raises(StagingError):
        stage(REFUSED[name], 1.0)


def test_a_gradient_needs_one_float():
    with pytest.raises(StagingError, match="must return one float"):
        stage(lambda x: (x, x), 1.0).grad()


def test_long_arrays_that_differ_in_the_middle_are_two():
    one = np.arange(2000.0)
    other = one.copy()
    other[1000] = 7.0
    program = stage(lambda x: (x * one).sum() + (x * other).sum(), 2.0)
    assert program(1.0) == one.sum() + other.sum()

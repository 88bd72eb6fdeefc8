"""Python's own control flow inside a derivative, against the program unrolled by hand.

Each program is compared in its value and its first and second derivatives.
"""

import contextlib
import functools
import itertools
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from lantern import DetachError, grad, jvp, sin, vjp


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


MODES = {
    "reverse": grad,
    "switching": partial(grad, driver="switching"),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "forward": forward,
}
PROGRAMS = []


def unrolled(point, by_hand):
    """Register a program with what it comes to at a point."""

    def register(program):
        name = f"{program.__name__} at {point}"
        PROGRAMS.append(pytest.param(program, by_hand, point, id=name))
        return program

    return register


@unrolled(3.0, lambda x: x * x)
@unrolled(-3.0, lambda x: -x * x)
def branch(x):
    if x > 0:
        return x * x
    return -x * x


@unrolled(10.0, lambda x: x / 16)
@unrolled(0.5, lambda x: x)
def while_loop(x):
    while x > 1:
        x = x / 2
    return x


@unrolled(0.5, lambda half: 3.0 * half * half * half)
def counted_loop(half):
    y = 3.0
    for _ in range(3):
        y = y * half
    return y


@unrolled(2.0, lambda x: (x * 0 + 1) * (x * 1 + 1) * (x * 2 + 1) * (x * 3 + 1))
def counted_loop_with_index(x):
    y = 1.0
    for i in range(4):
        y *= x * i + 1
    return y


@unrolled(2.0, lambda x: x * 9 + 100.0)
def loop_with_break_continue_and_else(x):
    y = 0.0
    for i in itertools.count():
        if i % 2 == 0:
            continue
        if x * i > 10:
            break
        y = y + x * i
    for i in range(3):
        y = y - 0 * i
    else:
        y = y + 100.0
    return y


for _factors, _product in (
    ([2.0, 3.0, 4.0], 24.0),
    ([1.5, 3.0, 4.0], 18.0),
    ([1.5, 2.0, 3.0], 9.0),
    ([4.0, 3.0, 1.5, 2.0], 36.0),
):

    @unrolled(2.0, lambda x, p=_product: x * p)
    def fold(x, factors=_factors):
        return functools.reduce(lambda a, b: a * b, factors, x)


@unrolled(2.0, lambda x: x**4 * 5 * 3 * 4)
def recursion_over_a_tree(x):
    def walk(tree):
        if tree is None:
            return x
        value, left, right = tree
        return walk(left) * walk(right) * value

    return walk((5.0, (3.0, None, None), (4.0, None, None)))


@unrolled(1.5, lambda x: (x + 1) * (x + 1) * (x + 1) * x * x * x)
def mutual_recursion(x):
    def even(n):
        return 1.0 if n == 0 else x * odd(n - 1)

    def odd(n):
        return (x + 1) * even(n - 1)

    return even(6)


@unrolled(2.0, lambda x: 7 * x * x)
def closure_that_rebinds(x):
    total = 0.0

    def add(y):
        nonlocal total
        total = total + y

    for i in (1, 2, 4):
        add(i * x * x)
    return total


@unrolled(2.0, lambda x: x + x**2 + x**3 + x**4)
def generator(x):
    def powers():
        y = x
        while True:
            yield y
            y = y * x

    return sum(itertools.islice(powers(), 4))


@unrolled(2.0, lambda x: x * 3.0 * (x * x) * 5.0)
def generator_that_receives(x):
    def scale(y):
        while True:
            y = y * (yield y)

    running = scale(x)
    next(running)
    for factor in (3.0, x * x):
        running.send(factor)
    return running.send(5.0)


@unrolled(2.0, lambda x: x * 0 + x * 1 + x * 4)
def comprehensions(x):
    squares = {i: x * i**2 for i in range(3)}
    return sum([squares[i] for i in squares if i >= 0])


@unrolled(2.0, lambda x: (2 - x) * 1 + x * 2 + x * x * 3)
def sorted_values(x):
    ordered = sorted([x * x, x, 2 - x])
    return sum(i * y for i, y in enumerate(ordered, start=1))


@unrolled(2.0, lambda x: (3 * x) * 10 + (5 * x) * 20)
def map_filter_zip(x):
    large = filter(lambda y: y > 4, map(x.__mul__, (1, 3, 5)))
    return sum(y * i for y, i in zip(large, (10, 20), strict=True))


@unrolled(2.0, lambda x: x * x * x * (1 - x))
def builtin_max_min(x):
    return max(x, x * x, 1 - x) * min([x * x, 1 - x, x]) * max(x, 1.0)


@unrolled(2.0, lambda x: x * (x * x) * (2 * x))
def try_finally_and_exceptions(x):
    y = x
    try:
        try:
            raise ValueError(x * x)
        finally:
            y = y * (2 * x)
    except ValueError as error:
        return y * error.args[0]


@unrolled(2.0, lambda x: x * x * x)
def context_managers(x):
    @contextlib.contextmanager
    def doubled(y):
        yield y * x

    with doubled(x) as y, contextlib.suppress(KeyError):
        y = y * x
        raise KeyError
    return y


@unrolled(2.0, lambda x: x * x + 3 * x)
def dict_written_and_read(x):
    d = defaultdict(float, x=x)
    d["y"] += x * d["x"]
    ordered = OrderedDict(d, z=3.0 * x)
    return ordered["y"] + ordered.pop("z")


@dataclass
class Point:
    x: object
    y: object

    @property
    def product(self):
        return self.x * self.y


@unrolled(2.0, lambda x: (x + 1) * (x * x))
def dataclass_and_property(x):
    point = Point(x, x * x)
    return replace(point, x=point.x + 1).product


Pair = namedtuple("Pair", "first second")


@unrolled(2.0, lambda x: x * x + 5 * x)
def namedtuple_and_unpacking(x):
    first, *rest = Pair(x * x, 2 * x)._replace(second=5 * x)
    return first + rest[0]


@unrolled(2.0, lambda x: (x + 1) * (2 * x) - x)
def stack_machine(x):
    stack, queue = [], deque([x, 1, "+", 2 * x, "*", x, "-"])
    operations = {
        "+": lambda a, b: a + b,
        "*": lambda a, b: a * b,
        "-": lambda a, b: a - b,
    }
    while queue:
        token = queue.popleft()
        if isinstance(token, str):
            b, a = stack.pop(), stack.pop()
            stack.append(operations[token](a, b))
        else:
            stack.append(token)
    return stack.pop()


@unrolled(2.0, lambda x: x * 3 * x)
def match_statement(x):
    match {"kind": "scale", "by": [3, x]}:
        case {"kind": "scale", "by": [n, y]} if y > 1:
            return x * n * y


@unrolled(2.0, lambda x: sin(x) + sin(2 * x) + sin(3 * x))
def arguments_of_every_kind(x):
    def f(a, /, *rest, scale=1, **named):
        return sin(a) + sum(map(sin, rest)) + sin(named["last"] * scale)

    return f(x, 2 * x, last=x, scale=3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("program", "by_hand", "point"), PROGRAMS)
def test_a_program_equals_its_unrolled_form(program, by_hand, point, mode):
    D = MODES[mode]
    assert program(point) == by_hand(point)
    assert D(program)(point) == pytest.approx(D(by_hand)(point), rel=1e-14)
    assert D(D(program))(point) == pytest.approx(D(D(by_hand))(point), rel=1e-14)
    step = 1e-4
    difference = (by_hand(point + step) - by_hand(point - step)) / (2 * step)
    assert D(program)(point) == pytest.approx(difference, rel=1e-6)


def product_of_list(xs):
    return xs[0] * product_of_list(xs[1:]) if xs else 1.0


def test_recursion_over_a_list():
    assert grad(product_of_list)([1.0, 2.0, 3.0]) == [6.0, 3.0, 2.0]


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_over_the_rows_of_an_array(mode):
    x = np.arange(6.0).reshape(3, 2)

    def by_rows(scale):
        total = 0.0
        for i, row in enumerate(x):
            for element in row * scale:
                total = total + element * element * (i + 1)
        return total

    weights = np.array([[1.0], [2.0], [3.0]])
    assert MODES[mode](by_rows)(1.5) == 2 * 1.5 * (x * x * weights).sum()
    assert grad(lambda a: sum(sum(row) for row in a))(x).tolist() == [[1.0, 1.0]] * 3


def test_a_memoised_function_takes_no_input_for_an_equal_one():
    def f(x, y):
        @functools.cache
        def square(z):
            return z * z

        return square(x) + 10 * square(y)

    with pytest.raises(DetachError, match="hash: a tracked number is no key"):
        grad(f, argnums=(0, 1))(2.0, 2.0)

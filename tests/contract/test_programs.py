"""Random programs: loops, shared values and branches, by every way to a derivative.

A program is a list of steps; each computes from two earlier values. Its operations are
chosen so that values stay small and no argument leaves its domain.
"""

import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lantern
from lantern import (
    grad,
    jvp,
    tree_leaves,
    tree_map,
    tree_structure,
    value_and_grad,
    vjp,
)
from lantern.testing import difference, inner, random_like

repeatable = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def loop(f, a, b, times):
    for i in range(times):
        a = f.sin(a) * b + a / (i + 2)
    return a


def fold(f, a, b):
    total = b
    for k in (0.5, -1.0, 2.0):
        total = f.tanh(total * k) + a
    return total


SMOOTH = {
    "sum": lambda f, a, b: a + b,
    "difference": lambda f, a, b: a - 0.5 * b,
    "product": lambda f, a, b: a * f.tanh(b),
    "shared": lambda f, a, b: (lambda c: c * c + c)(f.cos(a + b)),
    "quotient": lambda f, a, b: a / (1.5 + f.sin(b)),
    "reflected": lambda f, a, b: 2.0 / (3.0 - f.cos(a)) - b,
    "power": lambda f, a, b: f.tanh(a) ** 3 + (1.2 + f.sin(b)) ** 1.5,
    "power of a number": lambda f, a, b: (1.2 + f.sin(a)) ** f.tanh(b),
    "exp": lambda f, a, b: f.exp(-a * a) * b,
    "log": lambda f, a, b: f.log1p(a * a) - b,
    "root": lambda f, a, b: f.sqrt(1.0 + a * a) + f.sin(b),
    "atan": lambda f, a, b: f.atan(a) * f.asinh(b),
    "angle": lambda f, a, b: f.atan2(a, 1.0 + b * b),
    "length": lambda f, a, b: f.hypot(a, 2.0 + f.sin(b)),
    "sigmoid": lambda f, a, b: f.sigmoid(a) - f.erf(b),
    "negation": lambda f, a, b: -a + (+b),
    "two rounds": partial(loop, times=2),
    "five rounds": partial(loop, times=5),
    "fold": fold,
    "constant": lambda f, a, b: a * 0.0 + 1.25,
}
KINKED = {
    "abs": lambda f, a, b: abs(a) - b,
    "maximum": lambda f, a, b: f.maximum(a, b),
    "relu": lambda f, a, b: f.relu(a) + b,
    "where": lambda f, a, b: f.where(a > b, f.sin(a), f.cos(b)),
}
ARRAYS = {
    "row sums": lambda f, a, b: f.total(a * b),
    "logsumexp": lambda f, a, b: a - f.log_total(b),
    "softmax": lambda f, a, b: f.softmax(a) + b,
    "reversed": lambda f, a, b: a + f.reverse(b),
    "first column": lambda f, a, b: f.first(a) * f.tanh(b),
    "matrix": lambda f, a, b: f.matrix(a) + b,
}
WEIGHTS = np.linspace(-0.4, 0.5, 9).reshape(3, 3)


def wide(a):
    """At least one axis, the last of length 3, so that array steps always fit."""
    return a + np.zeros((2, 3))


OURS = SimpleNamespace(**vars(lantern))
OURS.total = lambda a: lantern.sum(wide(a), axis=-1, keepdims=True)
OURS.log_total = lambda a: lantern.logsumexp(wide(a), axis=-1, keepdims=True)
OURS.reverse = lambda a: wide(a)[..., ::-1]
OURS.first = lambda a: wide(a)[..., :1]
OURS.matrix = lambda a: wide(a) @ WEIGHTS
OURS.softmax = lambda a: lantern.softmax(wide(a))


def steps(*tables):
    names = sorted({name for table in tables for name in table})
    index = st.integers(0, 20)
    return st.lists(
        st.tuples(st.sampled_from(names), index, index), min_size=1, max_size=9
    )


ALL = SMOOTH | KINKED | ARRAYS
STEP = 2e-4  # of differences: programs of many rounds have large high derivatives
NUMBERS = st.floats(-2.0, 2.0, allow_subnormal=False)
POINTS = st.lists(NUMBERS, min_size=1, max_size=3)


def run(program, inputs, f=OURS, finish=lambda y: y):
    """The last value of a program, plus a little of everything else."""
    values = list(inputs)
    for name, i, j in program:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append(ALL[name](f, a, b))
    return finish(values[-1]) + 0.1 * finish(values[len(values) // 2])


SHAPES = [(2, 3), (3,), (2, 1), ()]


@st.composite
def arrays(draw):
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [rng.uniform(-2, 2, shape) for shape in shapes]


def mean(y):
    return lantern.sum(y * 0.3 + 0.0 * np.zeros((1, 1)))


def check_every_way(f, x, smooth=True):
    """Both drivers agree to the last bit, and all modes with one another."""
    value, gradient = value_and_grad(f)(x)
    switched = value_and_grad(f, driver="switching")(x)
    assert switched[0] == value
    pulled = vjp(f, x)
    assert pulled[0] == value
    results = map(tree_leaves, (gradient, switched[1], pulled[1](1.0)[0]))
    for a, b, c in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(c, a, rtol=1e-13, atol=1e-15)
        assert np.shape(a) == np.shape(b) == np.shape(c)
    rng = np.random.default_rng(len(str(x)))
    v = random_like(x, rng)
    slope = inner(gradient, v)
    assert jvp(f, (x,), (v,))[1] == pytest.approx(slope, rel=1e-10, abs=1e-12)
    if not smooth:
        return
    assert difference(f, (x,), (v,), STEP) == pytest.approx(slope, rel=1e-6, abs=1e-7)
    curvature = difference(lambda y: inner(grad(f)(y), v), (x,), (v,), STEP)
    second = [
        inner(jvp(grad(f), (x,), (v,))[1], v),
        inner(grad(lambda y: jvp(f, (y,), (v,))[1])(x), v),
        jvp(lambda y: jvp(f, (y,), (v,))[1], (x,), (v,))[1],
    ]
    for found in second:
        assert found == pytest.approx(second[0], rel=1e-9, abs=1e-10)
        assert found == pytest.approx(curvature, rel=1e-5, abs=1e-6)


@repeatable
@given(steps(SMOOTH), POINTS)
def test_smooth_programs_of_numbers(program, point):
    check_every_way(lambda x: run(program, x), point)


@repeatable
@given(steps(SMOOTH, KINKED), POINTS)
def test_programs_of_numbers_with_branches(program, point):
    check_every_way(lambda x: run(program, x), point, smooth=False)


@repeatable
@given(steps(SMOOTH, ARRAYS), arrays())
def test_smooth_programs_of_arrays(program, point):
    check_every_way(lambda x: run(program, x, finish=mean), point)


@repeatable
@given(steps(SMOOTH, KINKED, ARRAYS), arrays())
def test_programs_of_arrays_with_branches(program, point):
    check_every_way(lambda x: run(program, x, finish=mean), point, smooth=False)


@repeatable
@given(steps(SMOOTH), NUMBERS, NUMBERS)
def test_programs_inside_programs(program, x, y):
    """d/dx of x * d/dy f(x, y), against the mixed difference."""

    def slope(x):
        return x * grad(lambda y: run(program, [x, y]))(y)

    expected = difference(slope, (x,), (1.0,), STEP)
    for found in (grad(slope)(x), jvp(slope, (x,), (1.0,))[1]):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


def torch_functions(torch):
    names = "sin cos tan tanh exp log1p sqrt atan asinh atan2 hypot sigmoid erf relu"
    functions = {name: getattr(torch, name) for name in names.split()}
    functions |= {"maximum": torch.maximum, "where": torch.where}

    def second_first(function):
        return lambda a, b: function(a, torch.as_tensor(b, dtype=torch.float64))

    functions |= {n: second_first(functions[n]) for n in ("atan2", "hypot")}
    broad = lambda a: a + torch.zeros(2, 3, dtype=torch.float64)  # noqa: E731
    weights = torch.from_numpy(WEIGHTS)
    functions |= {
        "total": lambda a: broad(a).sum(-1, keepdim=True),
        "log_total": lambda a: torch.logsumexp(broad(a), -1, keepdim=True),
        "first": lambda a: broad(a)[..., :1],
        "reverse": lambda a: torch.flip(broad(a), (-1,)),
        "matrix": lambda a: broad(a) @ weights,
        "softmax": lambda a: torch.softmax(broad(a), -1),
    }
    return SimpleNamespace(**functions)


@repeatable
@given(steps(SMOOTH, KINKED, ARRAYS), arrays())
def test_programs_agree_with_pytorch(program, point):
    torch = pytest.importorskip("torch", reason="PyTorch, a peer, is not installed")
    tensors = [torch.tensor(x, requires_grad=True) for x in point]
    loss = run(program, tensors, torch_functions(torch), lambda y: (y * 0.3).sum())
    loss.backward()
    found = grad(lambda x: run(program, x, finish=mean))(point)
    for g, tensor in zip(found, tensors, strict=True):
        expected = np.zeros(g.shape) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(g, expected, rtol=1e-10, atol=1e-12)


Pair = namedtuple("Pair", "first second")


@dataclass
class Box:
    content: object
    label: object = None


LEAVES = st.one_of(
    st.floats(-9, 9).map(lambda x: x + 0.0),
    st.lists(st.floats(-9, 9), max_size=3).map(lambda x: np.array(x, dtype=float)),
    st.integers(-9, 9).map(np.float32),
)
STRUCTURES = st.recursive(
    LEAVES | st.none(),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3),
        st.lists(inside, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inside, max_size=3),
        st.dictionaries(st.integers(), inside, max_size=3).map(OrderedDict),
        st.tuples(inside, inside).map(lambda pair: Pair(*pair)),
        inside.map(Box),
    ),
    max_leaves=8,
)


@repeatable
@given(STRUCTURES)
def test_a_gradient_has_the_structure_of_its_argument(tree):
    def square(leaf):
        array = np.ndim(lantern.stop_gradient(leaf))
        return lantern.sum(leaf * leaf) if array else leaf * leaf

    def f(tree):
        return sum(map(square, tree_leaves(tree)), 0.0)

    doubled = grad(f)(tree)
    assert tree_structure(doubled) == tree_structure(tree)
    for g, x in zip(tree_leaves(doubled), tree_leaves(tree), strict=True):
        assert type(g) is type(x)
        np.testing.assert_array_equal(g, 2 * x)
    _, tangent = jvp(f, (tree,), (tree,))
    assert tangent == pytest.approx(2 * f(tree))


@repeatable
@given(STRUCTURES)
def test_structures_are_taken_apart_and_put_together(tree):
    same = tree_map(lambda leaf: leaf, tree)
    assert repr(same) == repr(tree)
    assert tree_structure(same) == tree_structure(tree)
    for a, b in zip(tree_leaves(same), tree_leaves(tree), strict=True):
        assert a is b
    count = tree_map(lambda leaf, other: int(leaf is other), tree, same)
    assert sum(tree_leaves(count)) == len(list(tree_leaves(tree)))


def test_a_long_program_of_everything():
    program = [(name, 3 * i, 5 * i + 1) for i, name in enumerate(sorted(ALL))]
    point = [np.linspace(-1, 1, 6).reshape(2, 3), np.array([0.3, -0.2, 0.9])]
    check_every_way(lambda x: run(program, x, finish=mean), point, smooth=False)
    assert math.isfinite(run(program, point, finish=mean))

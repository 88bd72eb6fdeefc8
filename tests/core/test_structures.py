"""Structures as arguments, and small programs of everything Python has.

Each program comes with its derivative at a point, by hand; it is also compared with
finite differences, in every mode and at second order.
"""

import copy
import functools
import heapq
import itertools
import math
import operator
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    DetachError,
    ShapeError,
    grad,
    jvp,
    register_tree,
    tree_leaves,
    tree_map,
    value_and_grad,
    vjp,
)
from lantern.core.tree import leaf_path, tree_children, tree_paths, tree_replace
from lantern.testing import check_grads

Pair = namedtuple("Pair", "first second")


@dataclass
class Layer:
    weight: object
    bias: object = None
    name: str = field(default="layer", init=False)


@dataclass(frozen=True, slots=True)
class Frozen:
    x: object
    y: object = 2.0


class Named(dict):
    """A subclass of dict with something of its own."""


class Registered:
    def __init__(self, x, label):
        self.x, self.label = x, label

    def __eq__(self, other):
        return (self.x, self.label) == (other.x, other.label)

    __hash__ = None


register_tree(
    Registered,
    lambda tree: [("x", tree.x)],
    lambda tree, children: Registered(children[0], tree.label),
)
# f(p) = sum of k-th leaf times k + 1, squared: its gradient is known for any structure.
TREES = {
    "a number": 2.0,
    "a tuple": (2.0, 3.0),
    "an empty tuple beside": (2.0, ()),
    "a list in a dict": {"a": [2.0, 3.0], "b": 5.0},
    "a named tuple": Pair(2.0, (3.0,)),
    "a dataclass": Layer(2.0, 3.0),
    "a frozen dataclass with slots": Frozen(2.0, [3.0]),
    "None leaves": {"a": None, "b": [2.0, None]},
    "an ordered dict": OrderedDict(b=2.0, a=3.0),
    "a default dict": defaultdict(float, a=2.0, b=3.0),
    "a subclass of dict": Named(a=2.0),
    "a deque": deque([2.0, 3.0], maxlen=5),
    "a namespace": SimpleNamespace(x=2.0, y=[3.0]),
    "a registered class": Registered([2.0, 3.0], "label"),
    "keys of many types": {1: 2.0, None: 3.0, (1, "a"): 4.0},
    "deep": [[[[[[2.0]]]]], {"a": {"b": {"c": (3.0,)}}}],
}


def weighted(tree):
    return sum((k * x for k, x in enumerate(tree_leaves(tree), start=1)), 0.0) ** 2


@pytest.mark.parametrize("name", TREES)
def test_a_gradient_is_like_its_argument(name):
    tree = TREES[name]
    total = weighted(tree) ** 0.5
    places = itertools.count(1)
    expected = tree_map(lambda _: 2 * total * next(places), tree)
    got = grad(weighted)(tree)
    assert got == expected
    assert type(got) is type(tree)
    value, moved = jvp(weighted, (tree,), (tree,))
    assert (value, moved) == (total**2, 2 * total**2)
    assert vjp(weighted, tree)[1](1.0) == (expected,)
    assert weighted(tree) == total**2, "the argument is as before"


def test_structures_mapped_together_have_the_class_of_the_first():
    ordered, plain = OrderedDict(a=1.0, b=[2.0]), {"b": [20.0], "a": 10.0}
    for first, second in itertools.product((ordered, plain), repeat=2):
        both = tree_map(lambda x, y: (x, y), first, second)
        assert type(both) is type(first)
        assert list(both) == list(first)
        assert both == {
            "a": (first["a"], second["a"]),
            "b": [(first["b"][0], second["b"][0])],
        }


def test_a_class_with_fields_that_is_no_tuple_is_a_leaf():
    class Record:
        _fields = ("x",)

    record = Record()
    assert list(tree_leaves([record, (1.0,)])) == [record, 1.0]


def test_what_occurs_twice_is_replaced_once_and_by_one_object():
    twice = [1.0, 2.0]
    new = tree_replace(lambda x: -x, [twice, twice])
    assert new == [[-1.0, -2.0]] * 2
    assert new[0] is new[1]


def test_a_path_leads_to_the_leaf_itself_and_nowhere_for_what_is_no_part():
    leaf, other = object(), object()
    point = SimpleNamespace(x=[other, leaf])
    assert leaf_path({"a": point}, leaf) == "['a'].x[1]"
    assert leaf_path({"a": point}, object()) == leaf_path(leaf, leaf) == ""


DEEP = functools.reduce(lambda inner, _: [inner], range(20_000), 1.0)
WALKS = {
    "leaves": tree_leaves,
    "paths": lambda tree: list(tree_paths(tree)),
    "map": lambda tree: tree_map(lambda x: x, tree),
    "map together": lambda tree: tree_map(lambda x, y: x, tree, tree),
    "replace": lambda tree: tree_replace(lambda x: x, tree),
    "grad": lambda tree: grad(lambda tree: 1.0)(tree),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_structure_that_is_too_deep_is_an_error_and_not_a_part_of_it(name):
    with pytest.raises(RecursionError):
        WALKS[name](DEEP)
    circle = [1.0]
    circle.append(circle)
    with pytest.raises(ArgumentError, match="holds itself"):
        WALKS[name](circle)


def test_a_structure_that_holds_itself_has_no_paths():
    cycle = [{"a": [1.0]}, [2.0], [3.0, [4.0]]]
    cycle[1].append(cycle)
    with pytest.raises(ArgumentError, match=r"list holds itself, at x\[1\]\[1\], so"):
        list(tree_paths(cycle))


def test_what_occurs_twice_in_a_structure_that_is_too_deep_is_no_circle():
    twice = [1.0]
    with pytest.raises(RecursionError):
        tree_map(lambda x: x, [twice, twice, DEEP, twice])


def test_a_class_is_a_container_from_its_registration_on():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    register_tree(
        Pair, lambda pair: vars(pair).items(), lambda _, children: Pair(*children)
    )
    assert list(tree_leaves([Pair(1, (2,)), 3])) == [1, 2, 3]
    assert tree_map(lambda x: 2 * x, Pair(1, 2)).y == 4


def test_what_a_container_carries_beside_its_leaves_is_kept():
    assert grad(weighted)(TREES["a deque"]).maxlen == 5
    assert grad(weighted)(TREES["a default dict"]).default_factory is float
    assert grad(weighted)(TREES["a registered class"]).label == "label"


def test_attrs_classes():
    attrs = pytest.importorskip("attrs", reason="classes of the attrs package")

    @attrs.define
    class Cell:
        weight: object
        _bias: object = 3.0
        name: str = attrs.field(default="cell", init=False)

    @attrs.frozen
    class Net:
        cells: tuple

    net = Net((Cell(2.0), Cell(5.0, 1.0)))
    assert grad(weighted)(net) == Net((Cell(54.0, 108.0), Cell(162.0, 216.0)))
    f = lambda n: n.cells[0].weight * n.cells[1]._bias  # noqa: E731
    assert grad(f)(net) == Net((Cell(1.0, 0.0), Cell(0.0, 2.0)))
    assert grad(lambda x: Cell(x, x * x).weight * Cell(x, x * x)._bias)(2.0) == 12.0


def test_classes_that_optree_knows():
    optree = pytest.importorskip("optree", reason="classes registered with optree")
    everywhere = vars(optree.registry)["__GLOBAL_NAMESPACE"]

    @optree.register_pytree_node_class(namespace=everywhere)
    class Scaled:
        def __init__(self, x, factor):
            self.x, self.factor = x, factor

        def __tree_flatten__(self):
            return (self.x,), self.factor

        tree_flatten = __tree_flatten__

        @classmethod
        def __tree_unflatten__(cls, factor, children):
            return cls(children[0], factor)

        tree_unflatten = __tree_unflatten__

    got = grad(lambda s: s.x[0] * s.x[1] * s.factor)(Scaled([2.0, 3.0], 10))
    assert (type(got), got.x, got.factor) == (Scaled, [30.0, 20.0], 10)


class TestAliases:
    X = np.array([1.0, 2.0])

    def test_each_place_has_its_own_gradient(self):
        a, b = grad(lambda p: (2 * p[0] + 3 * p[1]).sum())([self.X, self.X])
        assert (a.tolist(), b.tolist()) == ([2.0, 2.0], [3.0, 3.0])
        got = grad(lambda p: (p["a"] * p["b"]).sum())({"a": self.X, "b": self.X})
        np.testing.assert_array_equal(got["a"], self.X)
        assert got["a"] is not got["b"]
        assert not np.shares_memory(got["a"], got["b"])

    def test_in_and_beside_a_structure(self):
        f = lambda x, p: (x * p[0] ** 2).sum()  # noqa: E731
        by_x, (by_p,) = grad(f, (0, 1))(self.X, [self.X])
        np.testing.assert_array_equal(by_x, self.X**2)
        np.testing.assert_array_equal(by_p, 2 * self.X**2)

    def test_one_value_in_many_places_collects_from_all(self):
        def f(x):
            places = {"a": x, "b": [x, x]}
            return lantern.sum(
                functools.reduce(operator.add, tree_leaves(places)) + 2 * places["a"]
            )

        np.testing.assert_array_equal(grad(f)(self.X), [5.0, 5.0])
        np.testing.assert_array_equal(vjp(f, self.X)[1](1.0)[0], [5.0, 5.0])

    def test_a_view_and_its_base(self):
        base = np.array([[1.0, 2.0], [3.0, 4.0]])
        by_base, by_row = grad(lambda b, r: (b @ r).sum(), (0, 1))(base, base[0])
        np.testing.assert_array_equal(by_base, [[1.0, 2.0], [1.0, 2.0]])
        np.testing.assert_array_equal(by_row, [4.0, 6.0])


PROGRAMS = []


def at(point, slope):
    """Register a program with a point and its derivative there."""

    def register(f):
        PROGRAMS.append(pytest.param(f, point, slope, id=f.__name__))
        return f

    return register


@at(2.0, 4.0)
def a_dict_written_then_read(x):
    d = {}
    d["x"] = x
    return x * d["x"]


@at(2.0, 2.0)
def three_swaps_in_a_loop(x):
    a, b = x, 2 * x
    for _ in range(3):
        a, b = b, a
    return a


@at(2.0, 2.0)
def four_rotations_in_a_loop(x):
    a, b, c = x, 2 * x, 3 * x
    for _ in range(4):
        a, b, c = b, c, a
    return a


@at(2.0, 12.0)
def a_power_by_a_loop(x):
    n, result = 3, 1
    while n > 0:
        n -= 1
        result = result * x
    return result


@at(1.5, 5.0)
def a_line(x):
    return 5 * x + 3


@at(1.5, 0.0)
def a_constant(x):
    return 7.0


@at(2.0, 12.0)
def a_deep_copy(x):
    box = {"x": [x, {"square": x * x}]}
    other = copy.deepcopy(box)
    box["x"][1]["square"] = 0.0
    return other["x"][0] * copy.copy(other["x"][1]["square"])


class Counting:
    """An object with a mutable field."""

    def __init__(self, total):
        self.total = total

    def add(self, x):
        self.total = self.total + x
        return self

    def __iadd__(self, x):
        return self.add(x)


@at(2.0, 2 * 2.0 + 2 + 3 * 4.0)
def a_mutable_field(x):
    counter = Counting(0.0)
    for k in (1, 2):
        counter.add(x**k) if k == 1 else counter.add(x**2)
    counter += x
    counter.total += x**3
    return counter.total


@at(2.0, 7 * 2.0**6)
def a_box_shared_by_closures(x):
    cell = SimpleNamespace(value=x)

    def square():
        cell.value = cell.value * cell.value

    def read():
        return cell.value

    square()
    once = read()
    return once * once * once * x


@at(2.0, 1 + 8 * 2.0)
def nonlocal_state(x):
    total = 0.0

    def push(y):
        nonlocal total
        total += y

    push(x)
    for _ in range(4):
        push(x * x)
    return total


@at(0.5, 2 * 0.5 + 3 * 0.25 + 4 * 0.125)
def an_evaluation_stack(x):
    stack, total = [x], 0.0
    while len(stack) < 4:
        stack.append(stack[-1] * x)
    while len(stack) > 1:
        total += stack.pop()
    return total


@at(2.0, 2 * 2.0 * (1 + 1 / 4 + 1 / 16))
def a_queue_of_work(x):
    queue, total = deque([(x, 0)]), 0.0
    while queue:
        y, depth = queue.popleft()
        total = total + y * y
        if depth < 2:
            queue.append((y / 2, depth + 1))
    return total


@at(2.0, 1.0 + 4.0 + 12.0)
def map_filter_zip_enumerate(x):
    powers = map(operator.pow, itertools.repeat(x), [1, 2, 3, 4])
    chosen = filter(lambda pair: pair[0] < 3, enumerate(powers))
    return sum(y for (_, y), _ in zip(chosen, "abcd", strict=False))


@at(2.0, 1.0)
def sorted_and_the_median(x):
    return sorted([x * x, -x, x, 3 * x * x, 0.5], key=lambda y: 2 * y)[2]


@at(2.0, 4.0 - 1.0)
def largest_and_smallest(x):
    values = [x, x * x, -x]
    return max(values) + min(values, key=abs(x).__mul__)


@at(2.0, 3.0)
def a_heap_of_pairs(x):
    heap = []
    for i, y in enumerate([3 * x, x, 2 * x]):
        heapq.heappush(heap, (y, i))
    return heapq.heappop(heap)[0] + heapq.heappop(heap)[0]


@at(2.0, 2 * 2.0 + 3 * 4.0)
def comprehensions_of_every_kind(x):
    table = {k: x**k for k in range(4) if k > 1}
    return sum([table[k] for k in {*table}]) + sum(y for y in ())


@at(2.0, 80.0)
def recursion(x):
    def total(n):
        return 0.0 if n == 0 else x + total(n - 1)

    return total(80)


@at(0.3, math.exp(0.3))
def mutual_recursion_of_series(x):
    def even(n, term):
        return term + odd(n + 1, term * x / (n + 1)) if n < 20 else 0.0

    def odd(n, term):
        return term + even(n + 1, term * x / (n + 1))

    return even(0, 1.0)


@at(3.0, 6.0)
def mutual_recursion(x):
    def even(n):
        return x if n == 0 else odd(n - 1) * 1

    def odd(n):
        return x * x if n == 0 else even(n - 1)

    return even(5)


@at(2.0, 6.0)
def try_and_finally(x):
    total = [0.0 * x]
    try:
        try:
            total.append(x)
            raise KeyError("stop")
        finally:
            total.append(5 * x)
    except KeyError:
        return sum(total)


@at(2.0, 4.0)
def an_exception_that_carries_a_value(x):
    class Found(Exception):  # noqa: N818  # not an error
        pass

    def search(y):
        for k in range(10):
            y = y + x if k < 1 else y
            if k == 3:
                raise Found(y * x / 2)

    try:
        search(x)
    except Found as found:
        return found.args[0]


@at(2.0, 3.0)
def context_managers(x):
    log = []

    @contextmanager
    def scaled(y):
        log.append(y)
        yield 2 * y
        log.append(y)

    with ExitStack() as stack, suppress(ZeroDivisionError):
        log.append(0.5 * stack.enter_context(scaled(x)))
        1 / 0
    return sum(log)


@at(2.0, 1 + 4.0 + 12.0)
def a_generator_that_receives(x):
    def accumulate():
        total = 0.0
        while True:
            term = yield total
            total += term

    running = accumulate()
    next(running)
    return [running.send(x**k) for k in (1, 2, 3)][-1]


@at(2.0, 6 * 2.0**5)
def generators_that_delegate(x):
    def powers(n):
        if n > 1:
            yield from powers(n - 1)
        yield x**n

    return math.prod(powers(3))


@at(2.0, 3 * 4.0 * 8)
def decorators(x):
    def twice(f):
        @functools.wraps(f)
        def both(y):
            return f(y) + f(y)

        return both

    @twice
    @twice
    @twice
    def cube(y):
        return y**3

    return cube(x)


@at(2.0, 12.0)
def partial_and_method_calls(x):
    class Polynomial:
        def __init__(self, *coefficients):
            self.coefficients = coefficients

        def __call__(self, y):
            return functools.reduce(lambda a, c: a * y + c, self.coefficients)

    return functools.partial(Polynomial(x, 0.0, 1.0), x)()


@at(2.0, 5.0)
def counters_and_chain_maps(x):
    layers = ChainMap({"a": x}, {"a": 3.0, "b": 4 * x})
    words = Counter("aab")
    return sum(layers[w] * n for w, n in words.items()) - layers["a"]


@at(2.0, 8.0)
def getattr_and_setattr(x):
    box = SimpleNamespace()
    for name in "ab":
        setattr(box, name, x * (1 if name == "a" else x))
    vars(box)["c"] = box.b
    return getattr(box, "missing", box.c) + box.b


@at(2.0, 2.0)
def walrus_star_and_chained_comparison(x):
    if 1 < (y := 3 * x) < 100:
        first, *_, last = [y, 0.0, x, y - x]
        return first - last + x
    return 0.0


@at(2.0, 12.0)
def a_tree_of_objects(x):
    def build(depth):
        return Layer(x, [build(depth - 1)] if depth else None)

    def fold(layer):
        inside = [fold(child) for child in layer.bias or ()]
        return math.prod(inside, start=1) * layer.weight

    return fold(build(2))


@at(2.0, 32.0 - 1)
def accumulate_and_pairwise(x):
    running = itertools.accumulate([x] * 4, operator.mul)
    return sum(b - a for a, b in itertools.pairwise(running))  # x**4 - x


@at(2.0, 48.0)
def hyper_map(x):
    tree = tree_map(lambda y, n: y**n, (x, [x, {"a": x}]), (2, [3, {"a": 4}]))
    return sum(tree_leaves(tree_map(lambda y: 1.0 * y, tree)))


@pytest.mark.parametrize(("f", "point", "slope"), PROGRAMS)
def test_a_program_has_the_derivative_found_by_hand(f, point, slope):
    value, got = value_and_grad(f)(point)
    assert value == pytest.approx(f(point), rel=1e-14)
    assert got == pytest.approx(slope, rel=1e-12)
    assert jvp(f, (point,), (1.0,))[1] == pytest.approx(slope, rel=1e-12)
    check_grads(f, (point,), order=2, atol=1e-6, rtol=1e-6)


def test_product_of_a_list_by_recursion():
    def product(values):
        return values[0] * product(values[1:]) if values else 1.0

    assert grad(product)([1.0, 2.0, 3.0]) == [6.0, 3.0, 2.0]


def test_sine_and_its_derivatives():
    f = lantern.sin
    for expected in (1.0, 0.0, -1.0, 0.0):
        assert f(math.pi / 2) == pytest.approx(expected, abs=1e-15)
        f = grad(f)


def test_square_root_of_a_square():
    f = grad(lambda x: lantern.sqrt(x * x))
    assert (f(2.0), f(-2.0)) == (1.0, -1.0)


def test_ten_accumulating_nodes_keep_few_arrays():
    """131072 times the array, and memory of about 19 arrays, not of 1000s of paths."""
    import tracemalloc

    x = np.ones((200, 200))

    def f(x):
        nodes = [x, x]
        while len(nodes) < 10:
            nodes.append(functools.reduce(operator.add, nodes))
        return lantern.sum(nodes[-1] ** 2)

    grad(f)(x)
    tracemalloc.start()
    got = grad(f)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(got, np.full_like(x, 131072))
    assert peak < 40 * x.nbytes


def test_a_network_of_dataclasses_is_trained():
    net = [Layer(np.full((2, 2), 0.3), np.zeros(2)), Layer(np.array([0.1, -0.2]))]

    def loss(net):
        h = np.tanh(np.ones(2) @ net[0].weight + net[0].bias)
        return (h @ net[1].weight - 1.0) ** 2

    first = loss(net)
    for _ in range(50):
        net = tree_map(lambda p, g: p - 0.1 * g, net, grad(loss)(net))
    assert loss(net) < 1e-3 * first
    assert (net[0].name, net[1].bias) == ("layer", None)


class TestRefusals:
    def test_structures_that_differ(self):
        for a, b in (
            ([1.0], 1.0),
            ({"a": 1.0}, {"b": 1.0}),
            ([1.0], [1.0, 2.0]),
            ({"a": 1.0}, [1.0]),
            ([1.0], {"a": 1.0}),
            ({"a": 1.0}, 1.0),
        ):
            with pytest.raises(ShapeError, match="differ"):
                tree_map(lambda x, y: x, a, b)

    def test_a_leaf_that_is_no_number_is_named(self):
        with pytest.raises(ArgumentError, match="'relu'"):
            grad(lambda p: p["x"])({"x": 1.0, "activation": "relu"})
        with pytest.raises(ArgumentError, match="set"):
            grad(lambda p: 1.0)({1.0, 2.0})

    def test_a_field_that_converts_to_float_is_no_silent_constant(self):
        attrs = pytest.importorskip("attrs", reason="classes of the attrs package")

        @attrs.define
        class Converted:
            x: float = attrs.field(converter=float)

        with pytest.raises(DetachError, match="constant"):
            grad(lambda c: c.x)(Converted(2.0))

    def test_pickling_a_tracked_value_raises(self):
        import pickle

        with pytest.raises(DetachError, match="pickle"):
            grad(lambda x: (pickle.dumps(x), x)[1])(1.0)


def test_a_counter_keeps_its_class():
    found = grad(lambda c: c["x"] * c["y"])(Counter(x=3, y=2))
    assert type(found) is Counter
    assert found == {"x": 2.0, "y": 3.0}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"a": 1, "b": [2]}, [("a", 1), ("b", [2])]),
        ([1, (2,)], [(0, 1), (1, (2,))]),
        ((), []),
        (2.0, None),
        (np.ones(2), None),
    ],
    ids=str,
)
def test_the_parts_of_a_container_have_keys(tree, expected):
    assert tree_children(tree) == expected

"""Python's constructs, a function each: which are compiled, which run as they are.

The table in ``docs/jit.md`` is what ``python -m tests.staging.test_constructs`` prints.

PYTEST_DONT_REWRITE: what is compiled are the functions as they stand, ``assert`` too.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest

import lantern
from lantern.staging.fixed import AGAIN
from tests.staging.outcomes import outcome

SCALE = 2.0
PAGE = Path(__file__).parents[2] / "docs" / "jit.md"


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Model:
    weight: float
    bias: float

    def __call__(self, x):
        return self.weight * x + self.bias


class Tree:
    def __init__(self, left, right, value):
        self.left, self.right, self.value = left, right, value


def assignment(x):
    a, (b, c) = x, (2 * x, 1.0)
    a += b
    return a * c


def branches(x):
    if x > 0 and not x > 5:
        y = x * x
    elif 7 < x <= 9 or x < -3:
        y = -x
    else:
        y = 1.0
    return y if y > 2 else y + 1


def while_loop(x):
    while x > 0.1:
        x = x * 0.5
    return x


def for_range(x, n):
    y = 0
    for i in range(1, n, 2):
        if i == 7:
            continue
        y = y + x * i
        if y > 100:
            break
    else:
        y = -y
    return y


def early_return(x, n):
    for i in range(n):
        for j in range(i):
            if x * j > 3:
                return x * i
    return x


def while_numbers(x, n):
    while n:
        n -= 1
        x = x * 1.1
        if x > 5:
            break
    while 1:
        x = x - 0.5
        if x < 1:
            return x * n


def until_returned(x, n):
    for i in range(n):
        k = 0
        while True:
            k += 1
            x = x * 1.1
            if x > 5:
                return x * k
            if k > 9 - i:
                break
    while True:
        x = x * 0.9
        if x < 0.5:
            return x
        if x > 100:
            return -x


class NoEndError(Exception):
    def __init__(self, turns, x):
        super().__init__(f"no end after {turns} turns")
        self.turns = turns


def raises_its_own(x):
    for i in range(20):
        x = x * 0.5
        if x < 0.01:
            return x * i
    raise NoEndError(20, x)


def over_containers(x):
    total = 0.0
    for name, weight in {"a": 1.0, "b": 2.0}.items():
        total += weight * x * len(name)
    for i, (a, b) in enumerate(zip([x, 2.0], [3.0, x], strict=True)):
        total += a * b + i
    return total


def reduced(x, n, row):
    if any(v > 20.0 for v in row) and all(i < 9 for i in range(n)):
        x = x + max(v * x for v in row)
    return sum(x * i for i in range(n)) + sum(v for v in row if v > x) - sum(row)


def over_a_row(x, row):
    total = 0.0
    for v in row:
        total = total + lantern.sin(v * x)
    return total + row[-1] * len(row)


def comprehensions(x):
    squares = [x * i for i in range(4) if i != 2]
    return sum(squares) + max(squares) + {"k": x}["k"]


def sums_of_some(x, row):
    total = sum(v * x for v in row if v > 0 if v * x < 9)
    count = sum([1 for v in row if v > x])
    return (
        total
        + count
        + any(1 / v > x for v in row if v) * x
        + all(v < 9 for i, v in enumerate(row) if i > x)
    )


def greatest_by(x):
    rows = [(x, 1), (x * x, 2), (-3.0, 3)]
    longest, place = max(rows, key=lambda row: abs(row[0]))
    return longest * place + min(x, -x, key=lambda y: y * y) + max([], default=x)


def next_of_iterators(x):
    rest = iter([x, x * x, 3.0])
    first = next(rest)
    second = next(y for y in (x, 2.0 * x) if type(y) is not str)
    return first * next(rest) + next(rest) + next(rest, second)


def classes_by_type(x, n):
    pair = Point(x, 2.0)
    same = type(pair)(pair.y, pair.x)
    return same.x * x if type(n) is int else same.y


def closures(x):
    def scaled(y, by: Literal[2] = SCALE):
        return y * by * x

    twice = lambda f, y: f(f(y))  # noqa: E731  # what people write
    return twice(scaled, x)


def rebinding(x, n):
    total, least = 0.0, x

    def add(v):
        nonlocal total, least
        total += v
        if v < least:
            least = v

    for i in range(n):
        add(lantern.sin(x * i))
    return total * least


def rebinding_in_expressions(x):
    y = x

    def put(v):
        nonlocal y
        y = v
        return v

    z = put(7.0) if x > 1 else 2.0
    return y * x + z


def recursion(x, n):
    return x if n <= 0 else lantern.sin(recursion(x, n - 1)) + recursion(x, n - 2)


def trees(x, tree):
    if tree is None:
        return x
    return trees(x, tree.left) * trees(x, tree.right) * tree.value


def structures(p):
    return {"sum": p.x + p.y, "pair": (p.x, [p.y, None])}


def objects(x):
    model = Model(x, 1.0)
    return model(2.0) * model.weight


def local_lists(x):
    values = [x]
    for i in range(3):
        values.append(values[-1] * i)
    values[0] = 1.0
    return values[0] + values[2]


def rows_of_lists(x):
    """The least way through a table, which two loops fill in."""
    n = 6
    table = [[0.0] * n for _ in range(n)] + [[x]]
    for i in range(n):
        table[i][0] = table[0][i] = x * i
    for i in range(1, n):
        for j in range(1, n):
            steps = table[i - 1][j], table[i][j - 1], table[i - 1][j - 1] * x
            table[i][j] = min(steps) + x * (i ^ j)
    return table[n - 1][n - 1] * table[-1][0]


def queues(x):
    waiting, sums = deque([(0, x)], maxlen=8), defaultdict(float)
    while waiting:
        depth, v = waiting.popleft()
        sums[depth] += v
        if depth < 3:
            waiting += [(depth + 1, v * 0.5), (depth + 1, v * v)]
    return sums[1] * sums[3] + len(sums)


def counters(x):
    counts = OrderedDict(a=1, b=2)
    return sum(n * x for n in counts.values())


def lists_that_grow(x):
    values = [x]
    for i in range(6):
        values = values + [values[-1] * i + x]  # noqa: RUF005  # it is what is tested
    return sum(values)


def changes_on_one_way(x):
    best, by_name, model = [0.0, x, 2.0], {"a": x}, Model(x, 1.0)
    for i in range(9):
        v = lantern.sin(x * i)
        if v > best[i % 3]:
            best[i % 3] = v
            by_name["a"] += i
        else:
            model.bias = v
    return best[0] + 2 * best[1] + 3 * best[2] + by_name["a"] * model(x)


def changes_in_turns(x, n):
    best, counts, k = [0.0, x], [0, 0, 0], 0
    for i in range(n):
        v = lantern.sin(x * i)
        if v > best[0]:
            best[0], best[1] = v, best[0]
        k = (3 * k + i) % 7
        counts[k % 3] += 1
    return best[0] + 2 * best[1] + counts[0] * x + counts[1]


def filled_in_by_turns(x, n):
    values = [0.0] * n
    for i in range(n):
        values[i] = x * i
    return sum(values)


def appended_on_one_way(x):
    values = [x]
    if x > 1:
        values.append(x * x)
    return sum(values)


def deletions(x):
    values, by_name, y = [x, 1.0, 2.0, x * x], {"a": x, "b": 2.0}, 2 * x
    del values[0], values[-1:], by_name["a"]
    z = y + len(values)
    del y
    return z * by_name["b"] + sum(values)


def deleted_before(x):
    if x > 1:
        del z  # noqa: F821  # Python raises there
    z = x
    return z


def sorted_numbers(x, row):
    least, *_, most = sorted([x, *row])
    pairs = sorted([(v, i) for i, v in enumerate(row)], key=lambda p: (p[0] - x) ** 2)
    row = list(row)
    row.sort(reverse=True)
    names = sorted({"b": 1, "a": 2}.items())
    return least + 10 * most + pairs[0][0] * pairs[0][1] + row[1] * x * names[0][1]


def found_in_lists(x, row):
    place = row.index(max(row))
    return row[place] * place + (x in row) * x + (x not in (1.0, 2)) * x * x


def partial_application(x):
    power = functools.partial(pow, x)
    scaled = functools.partial(lambda a, b, c: a * b + c, x, c=x * x)
    return power(2) + scaled(3.0) + sum(map(scaled, [x, 1.0]))


def shifts(n, k):
    count, m = 0, n
    while m > 0:
        count += m & 1
        m >>= 1
    return count, n << k, n >> k, 1 << 3, (n > 0) << 2


def chosen_by_number(x, i):
    return [x, x * x, 1.0][i]


def integers(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def assertions(x):
    assert x < 100, "too large"
    if x < -100:
        raise ValueError("too small")
    return x


@dataclasses.dataclass(frozen=True)
class Interval:
    low: float
    high: float
    width: float = dataclasses.field(init=False)

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("an empty interval")
        object.__setattr__(self, "width", self.high - self.low)


def finished_objects(x):
    one = Interval(x, 2.0)
    return one.width * Interval(0.0, one.width + 1.0).width


def mathematics(x):
    return math.exp(-abs(x)) + math.atan2(x, 2.0) + round(x) + int(x)


def further_mathematics(x, n):
    return math.gamma(x) + math.lgamma(x) + math.hypot(x, n) + round(x, n) + round(x, 1)


def mathematics_of_rows(x, row):
    total = math.prod(row) * math.prod((x + i for i in range(3)), start=0.5)
    if math.isclose(x, row[0], rel_tol=1e-3):
        total += math.comb(5, 2)
    return total + math.fsum([x, *row, 1e16, -1e16]) + math.dist((x, 1.0, 2), row)


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def force(self, x):
        return -self.stiffness * x

    @property
    def period(self):
        return 1 / self.stiffness


class Damped(Spring):
    def __init__(self, stiffness, damping):
        super().__init__(stiffness)
        self.damping = damping

    def force(self, x):
        return super().force(x) - self.damping * x * super().period


def parents(x, spring):
    return Damped(x, 0.5).force(2.0) + spring.force(x)


def other_fields(x, model):
    point = Point(x, 1.0)._replace(y=x * x)
    for _ in range(3):
        model = dataclasses.replace(model, bias=model.bias * x)
    return model(point.y)


def derivatives(x):
    slope = lantern.grad(lambda y: y * y * x)(x)
    value, moved = lantern.jvp(lantern.sin, (x,), (slope,))
    return value + moved


def none_or_number(x, n):
    best = last = None
    for i in range(n):
        v = x * i - 1.0
        if v < 3.0 and (best is None or v > best[0]):
            best, last = (v, i), v
    return x if best is None else best[0] * best[1] - last


def int_or_float(x):
    return x if x > 0 else 0


def printing(x):
    print(end="")
    return x


def texts(x):
    return f"{x:.2f}"


def arrays(x):
    return np.array([x, 2.0]).sum()


def attempts(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


def attempts_with_jumps(x, n):
    total = 0.0
    for i in range(n):
        try:
            if i > 2 * x:
                break
            total += 1 / (x - i)
        except (ZeroDivisionError, ValueError) as error:
            total = float(len(error.args))
            continue
        else:
            total = total * 0.5
    try:
        y = math.sqrt(x)
    except ValueError:
        y = 0.0
    finally:
        total += 1
    return total + y


def ends_before_jumps(x, n):
    ended = total = 0.0
    for i in range(n):
        try:
            if x * i > 3:
                break
            if x * i == 2:
                continue
            total += x
        finally:
            ended += 1
    try:
        return total * x
    finally:
        total = ended


def jumps_in_an_else(x, n):
    for i in range(2, n):
        for j in range(2, i):
            if i * j > 4 * x:
                break
        else:
            x = x * 1.5
            continue
        if i > 6:
            break
    else:
        return x
    return x * i


def told_in_texts(x, n):
    if n < 0:
        raise ValueError(f"n = {n} is negative, with x = {x:.3f}")
    while x > 1e-3:
        x = x * x / n
        if x > 1e3:
            raise OverflowError(f"no end: {x!r}") from None
    return x


def first_set_in_loops(x, n):
    for i in range(n):
        y = lantern.sin(x * i)
        z = y if i > 2 else 2 * y
    low, high = 0.0, 2.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if middle * middle > x:
            high = middle
        else:
            low = middle
    return i * z + middle


def objects_as_tests(x, tree):
    total, rest = 0.0, tree
    while rest:
        total = total * x + rest.value
        rest = rest.left
    return total if not tree else total + (tree.right or tree).value


class Counter:
    def __init__(self):
        self.entered = 0.0

    def __enter__(self):
        self.entered += 1.0
        return self

    def __exit__(self, *what):
        self.entered = 5.0


def with_blocks(x):
    counter = Counter()
    with counter as c, contextlib.nullcontext(3.0) as three:
        y = c.entered * x * three
    with contextlib.suppress(ZeroDivisionError):
        return y / x + counter.entered
    return -1.0


def others_with_blocks(x):
    with np.errstate(all="ignore"):
        return x * x


class Leaf:
    def value(self, x):
        return x


class Constant(Leaf):
    def __init__(self, number):
        self.number = number

    def value(self, x):
        return self.number


class Product:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def value(self, x):
        return self.left.value(x) * self.right.value(x)


def methods_by_class(x, tree):
    own = Product(Constant(3.0), Product(Leaf(), Leaf()))
    return tree.value(x) + own.value(x)


class Pair:
    """A class that says what operators do."""

    def __init__(self, a, b=1.0):
        self.a = a
        self.b = b

    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)

    def __rmul__(self, k):
        return Pair(k * self.a, k * self.b)

    def __getitem__(self, i):
        return (self.a, self.b)[i]

    def __len__(self):
        return 2

    def __repr__(self):
        return f"Pair {self.b}"

    def dot(self, other):
        return self.a * other.a + self.b * other.b


PAIR = Pair(2.0, 3.0)


def operators(x):
    p = Pair(x, 2.0) + x * PAIR
    return p[0] * len(p) if p else x


def texts_of_objects(x):
    return x * len(f"{PAIR}")


def methods(x, p):
    return x * p.dot(p)


@dataclasses.dataclass
class Sum:
    left: object
    right: object


@dataclasses.dataclass
class Number:
    value: float


class Half(Number):
    pass


def patterns(x, tree):
    match tree:
        case None:
            return x
        case Half(value=v):
            return v * x * 0.5
        case Number(v):
            return v * x
        case Sum(left=left, right=right):
            return patterns(x, left) + x * patterns(x, right)
    return 0.0


def rows_matched(x, row):
    match row:
        case (a, b) if a > b:
            return a * x
        case {"a": b, **others}:
            return b + len(others)
        case [a, *others]:
            return a * x + sum(others)
    return -x


def rows_matched_simply(x, row):
    match row:
        case (a, b) if a > b:
            b = a
        case (_, b):
            pass
        case [b]:
            b = b + 1.0
        case _:
            b, a = 3.0, 2.0
    return b * x


def walrus_in_loops(x, n):
    while (x := x * 0.5) > 0.1:
        if (n := n - 1) == 0:
            break
    return x + n


def walrus_on_some_ways(x):
    return x > 0 and (y := x) > 1 and y


def targets_of_all_kinds(x):
    point, row = Tree(x, 1.0, 2.0), [x, 2 * x, 3.0]
    row[0], row[1] = row[1], row[0]
    point.left, (y, *row[1:]) = row[1], (x, 4.0, 5.0)
    z = point.right = y * point.left

    def emptied():
        row[2] = 0.0
        return 1.0

    row[2] += emptied()
    point.value -= x
    return row[0] * row[2] + z * point.right + point.value


def classes_of_objects(x, t):
    return x if isinstance(t[0], tuple) else 2 * x


def generator_expressions(x):
    return sum(x * i for i in range(3))


def powers(x, n):
    y = 1.0
    for _ in range(n):
        yield y
        y = y * x


def iterators_of_the_library(x):
    row = [x, 2.0, x * x]
    total = sum(a * b for a, b in itertools.combinations(row, 2))
    for i, v in zip(itertools.count(), itertools.accumulate(row), strict=False):
        total += i * v
    return total + sum(filter(None, [0, 1.0, 2.0])) * x


def generators(x):
    def items():
        yield x
        yield from powers(x, 4)

    total = 0.0
    for v in items():
        if v > 5:
            break
        total += v
    return total * sum(powers(x, 3)) + next(items())


def generators_of_unknown_length(x):
    def halves(y):
        while y > 0.1:
            yield y
            y = y * 0.5

    return sum(halves(x))


def matches(x):
    match x:
        case 0.0:
            return 1.0
        case 1.0 | 2.0:
            y = x * 5
        case z if z > 3:
            y = z * z
        case _:
            y = x
    return y


def walrus(x):
    return (y := x * x) + y


def others_lists(x):
    LOG.append(x)
    return x


def random_numbers(x):
    return x + np.random.default_rng(1).random()


LOG: list = []
LEAF = Tree(None, None, 2.0)
CASES = [
    ("assignments, also to several names", assignment, [(1.5,)]),
    ("`if`, `and`, `or`, `not`, chains, `x if c else y`", branches, [(1.0,), (8.0,)]),
    ("`while`", while_loop, [(3.0,), (0.0,)]),
    (
        "`for` over a range, `break`, `continue`, `else`",
        for_range,
        [(1.0, 9), (50.0, 9), (1.0, 0)],
    ),
    ("`return` inside of loops", early_return, [(1.0, 9), (0.1, 3)]),
    (
        "`while` of numbers, with `break`",
        while_numbers,
        [(0.5, 9), (4.0, 9), (0.6, 0), (2.0, -1)],
    ),
    (
        "`while True` with a `return` inside",
        until_returned,
        [(0.5, 3), (4.0, 3), (0.6, 0), (2.0, 1)],
    ),
    ("exceptions of classes of one's own", raises_its_own, [(1.5,), (1e9,)]),
    ("`for` over dicts, `zip`, `enumerate`", over_containers, [(1.5,)]),
    (
        "`for` over a list or tuple of any length",
        over_a_row,
        [(1.5, [0.1 * i for i in range(300)])],
    ),
    ("comprehensions, `sum`, `max`, `len`", comprehensions, [(1.5,)]),
    (
        "`sum`, `any` and `all` of items for which a test holds",
        sums_of_some,
        [(1.5, [1.0, -2.0, 7.0]), (0.5, (0.0, 2.0)), (0.5, []), (math.nan, [1.0])],
    ),
    (
        "`sum`, `max`, `min`, `any`, `all` over ranges and rows of any length",
        reduced,
        [(1.5, 5, [0.1 * i for i in range(300)]), (1.5, 0, [1.0])],
    ),
    (
        "`max` and `min` by a key, or with a default",
        greatest_by,
        [(1.5,), (2.5,), (-0.5,), (math.nan,), (math.inf,)],
    ),
    ("`next` of iterators made inside", next_of_iterators, [(1.5,)]),
    (
        "`type` of numbers and of objects made inside",
        classes_by_type,
        [(1.5, 2), (1.5, True)],
    ),
    ("generator expressions", generator_expressions, [(1.5,)]),
    ("`itertools`, `filter`", iterators_of_the_library, [(1.5,)]),
    ("functions with `yield`, `yield from`", generators, [(1.5,), (2.5,)]),
    ("functions and lambdas inside, closures, defaults", closures, [(1.5,)]),
    ("`nonlocal`", rebinding, [(1.5, 5), (0.5, 0)]),
    ("recursion", recursion, [(0.5, 6), (0.5, 0)]),
    ("trees of the caller's objects", trees, [(1.1, Tree(LEAF, None, 3.0))]),
    ("tuples, named tuples, lists, dicts in and out", structures, [(Point(1.0, 2.0),)]),
    ("data classes and objects made inside", objects, [(1.5,)]),
    ("data classes with `__post_init__`", finished_objects, [(1.5,), (2.5,)]),
    ("operators, tests and items of classes of one's own", operators, [(1.5,)]),
    ("methods of the caller's objects", methods, [(1.5, Pair(2.0))]),
    (
        "methods that differ from class to class of a tree's objects",
        methods_by_class,
        [
            (1.5, Product(Product(Leaf(), Constant(2.0)), Leaf())),
            (1.5, Constant(2.0)),
            (2.0, Product(Leaf(), Constant(3))),
        ],
    ),
    ("lists made inside, and changed there", local_lists, [(1.5,)]),
    (
        "lists that are repeated, joined and filled in",
        rows_of_lists,
        [(0.5,), (2.0,)],
    ),
    (
        "lists as long as a small argument says: a program for each that comes often",
        filled_in_by_turns,
        [(1.5, 9), (0.5, 0)],
    ),
    ("lists that grow in loops", lists_that_grow, [(1.5,)]),
    ("`deque` and `defaultdict` made inside", queues, [(1.5,), (-0.5,)]),
    (
        "assignments to elements and attributes on one way of a branch",
        changes_on_one_way,
        [(1.5,), (-0.5,)],
    ),
    (
        "assignments to elements of short lists in loops, computed places among them",
        changes_in_turns,
        [(1.5, 9), (0.5, 100), (1.5, 0)],
    ),
    ("`del` of names and elements", deletions, [(1.5,)]),
    (
        "`sorted` and `sort` of a few numbers",
        sorted_numbers,
        [(0.5, [3.0, 1.0, 2.0]), (2.0, [0.0, -0.0]), (math.nan, [1.0, 2.0])],
    ),
    (
        "`in` and `index` of rows of numbers",
        found_in_lists,
        [(1.0, [1.0, 3.0, 3.0]), (0.5, [math.nan, 0.5]), (math.nan, [2.0])],
    ),
    ("`functools.partial`", partial_application, [(1.5,)]),
    (
        "`<<`, `>>` and other operators of bits",
        shifts,
        [(5, 2), (-5, 70), (5, -1), (2**61, 1), (2**62, 1), (-(2**62), 1), (3, 64)],
    ),
    ("an index that is computed", chosen_by_number, [(1.5, 0), (1.5, -1), (1.5, 3)]),
    ("integers, without bounds", integers, [(27,), (2**70,)]),
    ("`assert`, `raise`", assertions, [(1.5,), (200.0,), (-200.0,)]),
    ("functions of `math`, `int`, `float`, `round`", mathematics, [(1.5,), (-0.5,)]),
    (
        "`math.gamma`, `lgamma`, `hypot`, `round(x, n)`, by calls of Python's",
        further_mathematics,
        [(1.2345, 2), (2.675, 2), (-1.0, 0), (-0.04, -1), (200.0, 1), (math.inf, 1)],
    ),
    (
        "`math.prod`, `isclose`, and by calls of Python's `fsum` and `dist`",
        mathematics_of_rows,
        [(1.5, [1.4999, 0.1, 2.0]), (1.5, [3.0, 0.1, 1e-9])],
    ),
    (
        "`super`",
        parents,
        [(1.5, Damped(2.0, 3.0)), (0.0, Spring(1.0))],
    ),
    (
        "`dataclasses.replace`, `_replace` of named tuples",
        other_fields,
        [(1.5, Model(2.0, 0.5))],
    ),
    ("`grad`, `jvp`, `vjp`, `hvp` inside", derivatives, [(1.5,)]),
    ("a number that is an int on one way", int_or_float, [(1.5,), (-1.5,)]),
    (
        "a variable that is None on one way, a number or a tuple of some on another",
        none_or_number,
        [(1.5, 9), (-1.5, 9), (1.5, 0)],
    ),
    ("`try`: the way without an exception", attempts, [(2.0,), (0.0,)]),
    (
        "`try` with `else`, `finally`, jumps",
        attempts_with_jumps,
        [(2.5, 9), (2.0, 9), (-1.0, 0)],
    ),
    (
        "`with` of `nullcontext`, `suppress`, classes of one's own",
        with_blocks,
        [(1.5,), (0.0,)],
    ),
    (
        "`try` with `finally`, and jumps out of it",
        ends_before_jumps,
        [(1.5, 9), (0.5, 4), (2.0, 3), (1.0, 0)],
    ),
    (
        "`else` of loops, and jumps in it",
        jumps_in_an_else,
        [(1.5, 9), (0.5, 4), (9.0, 9), (1.0, 0)],
    ),
    (
        "`raise` with texts of numbers",
        told_in_texts,
        [(0.5, 2), (0.5, -2), (9.0, 1), (1.0, 0)],
    ),
    (
        "variables that loops give their first value, read behind them",
        first_set_in_loops,
        [(1.5, 9), (0.5, 1), (3.0, 2), (1.0, 0)],
    ),
    (
        "tests of the caller's objects, `x or y` of them",
        objects_as_tests,
        [(1.5, Tree(LEAF, LEAF, 3.0)), (0.5, LEAF), (0.5, None)],
    ),
    ("`match` on numbers", matches, [(0.0,), (2.0,), (5.0,), (-5.0,)]),
    (
        "`match` on rows",
        rows_matched_simply,
        [(2.0, (1.0, 3.0)), (2.0, (4.0, 3.0)), (2.0, [3.0]), (2.0, 5.0)],
    ),
    (
        "`match` with dicts and `*`",
        rows_matched,
        [(2.0, (2.0, 1.0)), (2.0, {"a": 1.0, "b": 3.0}), (2.0, [1.0, 2.0, 3.0])],
    ),
    (
        "`match` on the caller's objects",
        patterns,
        [
            (2.0, Sum(Number(3.0), Sum(None, Half(0.5)))),
            (2.0, Half(1.0)),
            (2.0, Sum(None, "else")),
        ],
    ),
    ("`:=`", walrus, [(1.5,)]),
    ("`:=` in a loop and its test", walrus_in_loops, [(3.0, 9), (3.0, 2)]),
    (
        "assignments to elements and attributes among others",
        targets_of_all_kinds,
        [(1.5,)],
    ),
    (
        "`isinstance` of the caller's objects",
        classes_of_objects,
        [(1.5, (None, (1.0,))), (1.5, (Point(1.0, 2.0), None)), (1.5, ((), None))],
    ),
    ("`del` of what has no value", deleted_before, [(0.5,), (1.5,)]),
    ("a list that is longer on one way of a branch", appended_on_one_way, [(1.5,)]),
    (
        "`nonlocal` in a part of an expression that may not be evaluated",
        rebinding_in_expressions,
        [(1.5,), (0.5,)],
    ),
    ("`print`, and whatever else is seen outside", printing, [(1.5,)]),
    ("texts", texts, [(1.5,)]),
    ("texts, keys and sorting of such objects", texts_of_objects, [(1.5,)]),
    ("arrays", arrays, [(1.5,)]),
    ("other blocks of `with`", others_with_blocks, [(1.5,)]),
    (
        "functions with `yield`, where it is not known how often",
        generators_of_unknown_length,
        [(1.5,)],
    ),
    ("`:=` where it may not be evaluated", walrus_on_some_ways, [(2.0,), (-1.0,)]),
    ("`Counter`, `OrderedDict`", counters, [(1.5,)]),
    ("changes of lists made outside", others_lists, [(1.5,)]),
    ("functions of other libraries", random_numbers, [(1.5,)]),
]


def is_compiled(f, examples):
    """Whether a function is compiled for some arguments; its results are the same."""
    jitted = lantern.jit(f)
    for args in examples * AGAIN:
        assert outcome(jitted, *args) == outcome(f, *args)
    told = lantern.explain(jitted).splitlines()
    for_ints = [x for x in told if x.startswith("with argument")]
    return not any("runs as it is" in x for x in for_ints or told)


def table():
    """The table of the page."""
    lines = ["| | |", "|---|---|"]
    for name, f, examples in CASES:
        how = "compiled" if is_compiled(f, examples) else "runs as it is"
        lines.append(f"| {name} | {how} |")
    return "\n".join(lines)


@pytest.mark.parametrize("name", [name for name, _, _ in CASES])
def test_results_are_pythons(name):
    f, examples = next((f, examples) for n, f, examples in CASES if n == name)
    is_compiled(f, examples)


@pytest.mark.parametrize("name", [name for name, _, _ in CASES])
def test_gradients_are_the_plain_functions(name):
    f, examples = next((f, examples) for n, f, examples in CASES if n == name)
    gradient = lantern.grad(f)
    jitted = lantern.jit(gradient)
    for args in examples:
        found, right = outcome(jitted, *args), outcome(gradient, *args)
        if found != right:
            assert float(found) == pytest.approx(float(right), rel=1e-12)


def test_the_table_of_the_page(monkeypatch):
    monkeypatch.delenv("LANTERN_JIT", raising=False)
    assert table() in PAGE.read_text()


if __name__ == "__main__":
    print(table())

"""Functions with ``yield``: each item is made when it is asked for, as by Python."""

import pytest

import lantern
from tests.staging.outcomes import is_compiled, outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def powers(x, n):
    y = 1.0
    for _ in range(n):
        yield y
        y = y * x


def endless(x):
    k = 0
    while True:
        k += 1
        if k % 3 == 0:
            continue
        yield x / k


def halved(x, n):
    """Tests of what is not known, with no yield in them."""
    for i in range(n):
        if x > 1.0:
            x = x * 0.5
        elif x < i:
            x = x + i
        while x > 3.0:
            x = x - 1.0
        yield -x if x < 0.5 else x


def of_all_kinds(x):
    first = yield x
    x = x if first is None else 1000.0
    count = yield from counted(x)
    yield from [x, count, 2.0]
    match count:
        case 3:
            yield 0.5
        case _:
            yield 100.0
    if count == 3:
        return
    yield 1000.0


def counted(x):
    count = 0
    for v in powers(x, 5):
        count += 1
        if count == 3:
            break
        yield v
    else:
        yield 1000.0
    return count


def none_at_all(x):
    return
    yield x


def added_up(x):
    total = 0.0
    for i, v in enumerate(powers(x, 6)):
        total = total + v * i
    return total


def left_when_it_is_known(x):
    total = 0.0
    for i, v in enumerate(endless(x)):
        if i == 7:
            break
        total += v
    return total


def left_when_it_is_not_known(x):
    total = 0.0
    for v in powers(x, 8):
        if v > 4.0:
            break
        total += v
    return total


def the_first_of_some(x):
    for v in halved(x, 5):
        if v * v > x:
            return v
    return x


def delegated(x):
    row = list(of_all_kinds(x))
    return sum(row) * len(row) + sum(none_at_all(x))


def asked_one_by_one(x):
    items = powers(x, 3)
    first = next(items)
    second = next(items)
    return first + 2 * second + 3 * next(items) + next(items, x) + next(items, 2 * x)


def two_in_step(x):
    one, other = powers(x, 5), halved(x, 5)
    return sum(a * b for a, b in zip(one, other, strict=True)) + sum(endless_part(x))


def endless_part(x):
    return [v for v, _ in zip(endless(x), range(4), strict=False)]


def recursive(x):
    def walked(depth, v):
        if depth == 0:
            yield v
        else:
            yield from walked(depth - 1, v * 0.5)
            yield v
            yield from walked(depth - 1, v + 1.0)

    total = 0.0
    for v in walked(3, x):
        total = total * 0.5 + v
    return total


class Path:
    def __init__(self, x):
        self.points = [x, 2 * x, 3.0]

    def steps(self):
        for a, b in zip(self.points, self.points[1:], strict=False):
            yield b - a

    def __iter__(self):
        for p in self.points:
            yield p * 2


def methods(x):
    path = Path(x)
    total = 0.0
    for step in path.steps():
        path.points[2] = path.points[2] + step
        total += step * path.points[2]
    return total + sum(path) + max(path.steps())


def effects_in_their_order(x):
    seen = [x]

    def items():
        for i in range(4):
            seen.append(x * i)
            yield sum(seen)
            seen[0] = seen[0] + 1.0

    total = 0.0
    for v in items():
        seen.append(v)
        total += v * len(seen)
    return total + seen[0]


def variables_from_outside(x):
    scale = 1.0

    def items():
        for i in range(4):
            yield scale * x + i

    total = 0.0
    for v in items():
        scale = scale + v
        total += scale
    return total


COMPILED = [
    added_up,
    left_when_it_is_known,
    left_when_it_is_not_known,
    the_first_of_some,
    delegated,
    asked_one_by_one,
    two_in_step,
    recursive,
    methods,
    effects_in_their_order,
    variables_from_outside,
]


def effects_up_to_a_break(x):
    seen = [0.0]

    def items():
        for i in range(5):
            seen[0] += 1.0
            yield x * i

    for v in items():
        if v > 3.0:
            break
    return seen[0] * x


def variables_up_to_a_break(x):
    def items():
        k = 0.0

        def get():
            return k

        for _ in range(5):
            k = k + 1.0
            yield get

    for get in items():
        if get() * x > 3.0:
            break
    return get() * x


def outer_variables_up_to_a_break(x):
    k = 0.0

    def items():
        nonlocal k
        for i in range(5):
            k = k + 1.0
            yield x * i

    for v in items():
        if v > 3.0:
            break
    return k * x


def one_list_up_to_a_break(x):
    def items():
        row = [x, 0.0]
        for i in range(5):
            row[1] = row[1] + i
            yield row

    for row in items():
        if row[0] * row[1] > 3.0:
            break
    return row[1] * x


def rest_behind_a_break(x):
    items = powers(x, 8)
    for v in items:
        if v > 3.0:
            break
    return sum(items)


def asked_on_one_way(x):
    items = powers(x, 8)
    if x > 1.0:
        next(items)
    return next(items)


def ended_on_the_way(x):
    def items():
        for i in range(9):
            if i > 5:
                raise ValueError("too far")
            yield x * i

    for v in items():
        if v > 3.0:
            break
    return v


def ends_with_something(x):
    seen = []

    def items():
        try:
            yield x
            yield 2 * x
        finally:
            seen.append(x)

    for v in items():
        if v > 1.0:
            break
    return len(seen) + v


def how_many_is_not_known(x):
    def items():
        y = x
        while y > 0.1:
            yield y
            y = y * 0.5

    return sum(items())


def without_an_end(x):
    for _ in endless(x):
        x = x * 1.01
        if abs(x) > 9.0:
            break
    return x if any(v * x < 3.0 for v in endless(x)) else 2 * x


def handed_out(x):
    return powers(x, 2)


def sent(x):
    def items():
        y = yield x
        yield y * 2.0

    items = items()
    next(items)
    return items.send(x)


def inside_of_an_expression(x):
    def items():
        y = x > 0.0 and (yield x)
        yield 1.0 if y else 2.0

    return sum(items())


def in_a_lambda(x):
    return sum((lambda: (yield x))())


def raised_in_it(x):
    def items():
        yield x
        next(iter([]))
        yield 2 * x

    return sum(items())


OTHERS = [
    effects_up_to_a_break,
    variables_up_to_a_break,
    outer_variables_up_to_a_break,
    one_list_up_to_a_break,
    rest_behind_a_break,
    asked_on_one_way,
    ended_on_the_way,
    ends_with_something,
    how_many_is_not_known,
    without_an_end,
    sent,
    inside_of_an_expression,
    in_a_lambda,
    raised_in_it,
]
POINTS = (0.1, 0.75, 1.5, 2.5, -1.0)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_items_are_pythons(f, mode):
    assert outcomes(lantern.jit(f), POINTS * 2) == outcomes(f, POINTS * 2)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    of_compiled = lantern.grad(lantern.jit(f, exact=True))
    for jitted in lantern.jit(gradient, exact=True), of_compiled:
        assert outcomes(jitted, POINTS) == outcomes(gradient, POINTS)


@pytest.mark.parametrize("f", COMPILED)
def test_they_are_compiled(f):
    assert is_compiled(f, 1.5)


def test_generators_are_handed_out():
    for f in (handed_out, lambda x: powers(x, 2), lantern.jit(lambda x: powers(x, 3))):
        jitted = lantern.jit(f)
        assert list(jitted(1.5)) == list(f(1.5))
    jitted = lantern.jit(powers)
    assert list(jitted(1.5, 3)) == [1.0, 1.5, 2.25]
    assert "runs as it is" in lantern.explain(jitted)

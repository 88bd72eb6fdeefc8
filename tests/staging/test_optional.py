"""Variables that are None on one way of a program, and numbers on another.

PYTEST_DONT_REWRITE: what is compiled are the functions as they stand, ``assert`` too.
"""

import math
from typing import NamedTuple

import pytest

import lantern
from lantern import sin
from tests.staging.outcomes import outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def the_least(x, n):
    best = None
    for i in range(n):
        v = sin(x * i) * x
        if best is None or v < best:
            best = v
    return best * x


def the_least_of_some(x, n):
    best = where = None
    for i in range(n):
        v = sin(x * i)
        if v < 0.3:
            continue
        if best is None or v < best:
            best, where = v, i
    if best is None:
        return x
    return best + where * x


def the_least_of_many(x, n):
    best = None
    for i in range(40):
        v = sin(x * i) + n
        if v > 0.1 and (best is None or not v >= best):
            best = v
    return -1.0 if best is None else best


def the_last(x, n):
    before, total = None, 0.0
    while n > 0:
        n -= 1
        v = x * n
        if before is not None:
            total += abs(v - before)
        before = v if v > 0.5 else None
    return total


def one_branch(x, n):
    y = None
    if x > 1.0:
        y = x * n
    z = None if y is None or n > 3 else y * y
    return (x if z is None else z) + (0.0 if y is None else y)


def helper(x, n):
    def found(v):
        if v > 1.0:
            return v * v
        for i in range(n):
            if v * i > 1.0:
                return v
        return None

    one, other = found(x), found(x - 1.0)
    if one is None:
        return 0.5 * x
    return one if other is None else one * other


def given_none(x, n):
    def clipped(v, low=None, high=None):
        if low is not None and v < low:
            return low
        return high if high is not None and v > high else v

    top = x if n > 2 else None
    return clipped(x * n, high=top) + clipped(x, low=0.3)


def asked_for_truth(x, n):
    y = n if x > 1.0 else None
    z = x - 1.5 if n > 2 else None
    total = 0.0
    if y:
        total += 1.0
    if not z:
        total += 2.0
    while not z and total < 4.0:
        total += x * x
    return total + (y or x) + (x if z and y else 2.0)


def twice_in_a_turn(x, n):
    first = second = None
    for i in range(n):
        v = sin(x * i)
        if first is None or v > first:
            first, second = v, first
        elif second is None or v > second:
            second = v
    return first if second is None else first - second


def inner_loops(x, n):
    total = 0.0
    for i in range(n):
        found = None
        for j in range(i):
            if x * j > 1.0:
                found = j * x
                break
        total += found if found is not None else 0.25 * x
    return total


def of_outer_variables(x, n):
    best = None

    def seen(v):
        nonlocal best
        if best is None or v < best:
            best = v

    for i in range(n):
        seen(sin(x * i))
    return x if best is None else best


def by_itself(x, n):
    def depth(v, k):
        if k == 0:
            return None
        if v > 2.0:
            return v * x
        return depth(v + 1.0, k - 1)

    found = depth(x, n)
    return x * 2 if found is None else found


def captured_by_itself(x, n):
    low = x if x > 1.0 else None

    def total(k):
        if k == 0:
            return 0.0
        return total(k - 1) + (1.0 if low is None else low * k)

    first = total(n)
    low = None if n > 2 else 0.5
    return first + total(n)


def places(x, n):
    row, where = [x, 2 * x, 3 * x], None
    for i in range(3):
        if row[i] > n:
            where = i
    return row[0] if where is None else row[where]


class Found(NamedTuple):
    value: float
    place: int


def pairs(x, n):
    best = None
    for i in range(n):
        v = sin(x * i)
        if best is None or v < best[0]:
            best = v, i
    if not best:
        return x
    v, i = best
    return v * i + best[1] + len(best) + sum(best)


def named_pairs(x, n):
    best = last = None
    for i in range(n):
        one = Found(x * i - 1.0, i)
        if one.value > 0.5 and (best is None or one.value < best.value):
            best, last = one, (one, (i, best is None))
    total = x if last is None else last[0].value + last[1][0]
    if best:
        for v in best:
            total += v
    return total


def asserted(x, n):
    best = None
    for i in range(n):
        if x * i > 1.0:
            best = x * i
    assert best is not None
    return best


COMPILED = [
    the_least,
    the_least_of_some,
    the_least_of_many,
    the_last,
    one_branch,
    helper,
    given_none,
    asked_for_truth,
    twice_in_a_turn,
    inner_loops,
    of_outer_variables,
    by_itself,
    captured_by_itself,
    places,
    pairs,
    named_pairs,
    asserted,
]


def handed_out(x, n):
    best = None
    for i in range(n):
        if x * i > 2.0:
            best = x
    return best


def handed_out_in_rows(x, n):
    y = x if n > 2 else None
    z = None if x > 1.0 else n
    return [y, x], (z, {"y": y})


def pairs_of_none(x, n):
    best = (x, n) if n > 2 else None
    other = (x,) if n > 2 else (x, n) if n > 1 else None
    return best[0] + len((*best, 1)) + (best < (2.0, 1)), other


def pairs_handed_out(x, n):
    best = ()
    for i in range(n):
        best = (i, x) if x * i > 1.0 else None
    return best


def lists_of_none(x, n):
    best = [x] if n > 2 else None
    return x if best is None else best[0]


def of_two_types(x, n):
    y = None
    for i in range(n):
        y = i if x > 1.0 else x
        if i > 2:
            y = None
    return y


def equal_to_none(x, n):
    y = x if n > 2 else None
    return (y == x) + (y != x) + (x == y) * 2 + (y == None)  # noqa: E711  # is asked, too


def added_to_none(x, n):
    y = x if n > 2 else None
    return 1.0 + y * 2 - (-y) + abs(y) // 2 + math.exp(y) + y**2


def one_of_many(x, n):
    y = x if n > 2 else None
    return max([x, y, 2.0]) + sum([x, y]) + math.fsum([y, x]) + (y in [x, 2.0])


def in_containers(x, n):
    y = x if n > 2 else None
    rows, by_name = [y, x], {"y": y}
    rows.append(y)
    total = 0.0 if rows[0] is None else rows[2]
    return total + (1.0 if by_name["y"] is None else by_name["y"])


def as_a_text(x, n):
    y = x if n > 2 else None
    return len(f"{y is None}") + len(f"{y}") * x


def as_a_key(x, n):
    y = n if x > 1.0 else None
    return {None: 1.0, 1: 2.0}.get(y, x)


def of_a_class(x, n):
    y = x if n > 2 else None
    return isinstance(y, float) + isinstance(x, float) * 2


def of_itself(x, n):
    y = x if n > 2 else None
    z = y
    return 1.0 if z is y else 2.0


def matched(x, n):
    y = n if x > 1.0 else None
    match y:
        case None:
            return x
        case 3:
            return 2 * x
        case [a]:
            return a
    return -x


OTHERS = [
    handed_out,
    handed_out_in_rows,
    pairs_of_none,
    pairs_handed_out,
    lists_of_none,
    of_two_types,
    equal_to_none,
    added_to_none,
    one_of_many,
    in_containers,
    as_a_text,
    as_a_key,
    of_a_class,
    of_itself,
    matched,
]
POINTS = [(x, n) for x in (0.1, 0.75, 1.5, 2.5, -1.0) for n in (0, 1, 3, 7)]


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_results_are_pythons(f, mode):
    assert outcomes(lantern.jit(f), POINTS) == outcomes(f, POINTS)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    of_compiled = lantern.grad(lantern.jit(f, exact=True))
    for jitted in lantern.jit(gradient, exact=True), of_compiled:
        assert outcomes(jitted, POINTS) == outcomes(gradient, POINTS)


@pytest.mark.parametrize("f", COMPILED)
def test_they_are_compiled(f):
    jitted = lantern.jit(f)
    outcomes(jitted, POINTS[8:12])
    assert "runs as it is" not in lantern.explain(jitted)

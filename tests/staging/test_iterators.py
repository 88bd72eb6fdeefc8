"""Iterators while a program is staged: each item is taken when its turn comes."""

import functools
import itertools
import math

import pytest

import lantern
from tests.staging.outcomes import is_compiled, outcome, outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def a_generator_that_reads_what_turns_change(x):
    y = x
    for v in (y * i for i in range(4)):
        y = y + v
    return y


def a_list_that_grows_meanwhile(x):
    values, total = [x, 2.0], 0.0
    for v in values:
        total += v
        if len(values) < 5:
            values.append(v * x)
    return total


def a_list_that_shrinks_meanwhile(x):
    values, total = [x, 2 * x, 3 * x, 4 * x], 0.0
    for v in values:
        total += v
        del values[0]
    return total


def elements_that_change_meanwhile(x):
    values, total = [x, 2 * x, 3 * x], 0.0
    for i, v in enumerate(values):
        values[2] = v * 5 + i
        total += v
    for v in reversed(values):
        values[0] = v * 2
        total += v
    return total


def a_dict_that_grows_meanwhile(x):
    by_name = {"a": x}
    for name in by_name:
        by_name[name + "b"] = x
    return x


def mapped_as_it_is_asked(x):
    seen = [1.0]

    def noted(v):
        seen.append(v)
        return v * len(seen)

    total = x
    for v in map(noted, [x, 2.0, 3.0]):
        total = total + v * len(seen)
        seen.append(v)
    return total


def the_rest_behind_a_break(x):
    rest = iter([x, 2 * x, 3 * x, 4 * x])
    for v in rest:
        if type(v) is not str:
            break
    return x + 10 * sum(rest)


def the_rest_behind_a_break_that_depends(x):
    rest = iter([x, 2 * x, 3 * x, 4 * x])
    for v in rest:
        if v > 2:
            break
    return sum(rest) + x


def the_rest_behind_another_ones_break(x):
    rest = iter([x, 2 * x, 3 * x, 4 * x])
    total = 0.0
    for i, v in enumerate(rest):
        if v > 2:
            break
        total = total + v * i
    return total + sum(rest)


def one_iterator_in_two_loops(x):
    rest, total = (x * i for i in range(6)), 0.0
    for v in rest:
        for w in rest:
            total = total + v * w
            break
    return total


def noted_up_to_a_break(x):
    seen = []

    def noted(v):
        seen.append(v)
        return v

    for v in (noted(u) for u in [x, 2 * x, 3 * x]):
        if v > 2:
            break
    return x * len(seen)


def noted_up_to_the_first(x):
    seen = []

    def is_large(v):
        seen.append(v)
        return v > 2

    y = x if any(is_large(v) for v in [x, 2 * x, 3 * x]) else 2 * x
    z = x if all(map(is_large, [x, 2 * x, 3 * x])) else 2 * x
    return y * z * len(seen)


def known_up_to_the_first(x):
    seen = []

    def noted(v):
        seen.append(v)
        return v

    return x * any(map(noted, [0, 1, 2])) * len(seen)


def keys_as_items_are_taken(x):
    seen = [0.0]

    def noted(v):
        seen.append(v)
        return v

    most = max(map(noted, [x, 3.0, 2.0]), key=lambda v: -v * len(seen))
    last = functools.reduce(lambda a, b: a + b * len(seen), map(noted, [x, 3.0, 2.0]))
    return most * last


def left_by_a_break(x):
    total = 0.0
    for v, w in zip([x, 2 * x, 3 * x], (u * u for u in [1.0, x, 3.0]), strict=True):
        if v * w > x + 3:
            break
        total = total + v * w
    return total


def lists_made_for_an_item(x):
    def doubled(v):
        made = [v]
        made.append(v)
        return sum(made)

    total = 0.0
    for v in map(doubled, [x, 2 * x, 3 * x]):
        if v > 3:
            break
        total = total + v
    return total


def floats_added_up(x):
    large = sum([x, 1e100, 1.0, -1e100])
    small = sum(v * 0.1 for v in [x, 2 * x, 3 * x, x, x, x, x])
    return large + small + sum([1, 2, x, 0.1, 3, x], 0.1)


def of_the_library(x):
    row = [x, 2.0, x * x, 3.0]
    total = sum(a * b for a, b in itertools.pairwise(row))
    total += sum(a * b for a, b in itertools.combinations(row, 2))
    total += sum(x * i - j for i, j in itertools.product(range(3), repeat=2))
    for i, v in zip(itertools.count(1), itertools.chain(row, [x], row), strict=False):
        total += i * v
    for a, b in itertools.zip_longest(row, [x], fillvalue=0.5):
        total += a * b
    total += sum(itertools.islice(itertools.chain.from_iterable([row, row]), 1, 7, 2))
    pairs = map(lambda p, y: p[0] + y, itertools.permutations(row, 2), [x, 2.0, x])
    total += sum(pairs) + sum(itertools.repeat(x, 3))
    return total + len(list(itertools.combinations_with_replacement(row, 2)))


def running_totals(x):
    rows = list(itertools.accumulate([x, 2.0, x * x], lambda a, b: a * b + x))
    rows += itertools.accumulate([x, 1.0], initial=x)
    rows += itertools.starmap(lambda a, b: a * b, [(x, 2.0), (3.0, x)])
    rows += filter(None, [1.0, 0, 2.0])
    rows += filter(lambda v: v is not None, [None, x])
    return sum(v * i for i, v in enumerate(rows))


def left_while_they_run(x):
    items = itertools.accumulate([x, 2.0, 3.0, x])
    total = 0.0
    for v in items:
        total += v
        if total > 4.0:
            break
    return total


def rest_of_a_count(x):
    items = itertools.count(x, 0.5)
    for v in items:
        if v > 2.0:
            break
    return next(items) * x


def kept_by_a_number(x):
    return sum(filter(lambda v: v > 1.0, [x, 0.5, 2.0]))


WRONG_BEFORE = [
    a_generator_that_reads_what_turns_change,
    a_list_that_grows_meanwhile,
    a_list_that_shrinks_meanwhile,
    elements_that_change_meanwhile,
    a_dict_that_grows_meanwhile,
    mapped_as_it_is_asked,
    the_rest_behind_a_break,
    the_rest_behind_a_break_that_depends,
    the_rest_behind_another_ones_break,
    one_iterator_in_two_loops,
    noted_up_to_a_break,
    noted_up_to_the_first,
    known_up_to_the_first,
    keys_as_items_are_taken,
]
COMPILED = [
    a_generator_that_reads_what_turns_change,
    a_list_that_grows_meanwhile,
    a_list_that_shrinks_meanwhile,
    elements_that_change_meanwhile,
    mapped_as_it_is_asked,
    the_rest_behind_a_break,
    one_iterator_in_two_loops,
    known_up_to_the_first,
    keys_as_items_are_taken,
    left_by_a_break,
    lists_made_for_an_item,
    floats_added_up,
    of_the_library,
    running_totals,
    left_while_they_run,
]
OTHERS = [rest_of_a_count, kept_by_a_number]
POINTS = (0.1, 0.75, 1.5, 2.5, -1.0)


@pytest.mark.parametrize("f", [*WRONG_BEFORE, *COMPILED[-6:], *OTHERS])
def test_items_are_taken_when_their_turn_comes(f, mode):
    assert outcomes(lantern.jit(f, exact=True), POINTS) == outcomes(f, POINTS)


@pytest.mark.parametrize("f", [*WRONG_BEFORE, *COMPILED[-6:], *OTHERS])
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    of_compiled = lantern.grad(lantern.jit(f, exact=True))
    for jitted in lantern.jit(gradient, exact=True), of_compiled:
        assert outcomes(jitted, POINTS) == outcomes(gradient, POINTS)


@pytest.mark.parametrize("f", COMPILED)
def test_they_are_compiled(f):
    assert is_compiled(f, 1.5)


def test_sums_of_plain_numbers_are_pythons():
    def f(x):
        return sum([1e100, 1.0, -1e100]) + sum((0.1,) * 10, 0) + x

    assert lantern.jit(f)(0.5) == f(0.5)


def test_nan_and_infinities_in_sums(mode):
    def f(x, y):
        return math.atan(sum([x, y, -x, 1.0], 0.0)), sum([x, y, True, 2**70], 0)

    jitted = lantern.jit(f)
    for args in (1e308, 1e308), (math.inf, 1.0), (math.nan, 1.0), (-0.0, -0.0):
        assert outcome(lambda a: jitted(*a), args) == outcome(lambda a: f(*a), args)

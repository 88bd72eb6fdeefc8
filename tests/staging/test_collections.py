"""Deques and dicts with defaults: those made inside are compiled, others looked at."""

from collections import defaultdict, deque

import pytest

import lantern
from tests.staging.outcomes import is_compiled, outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def both_ends(x):
    row = deque([x, 2.0])
    row.append(x * x)
    row.appendleft(3.0)
    row.extendleft([x, 4.0])
    row.rotate(2)
    row[1] = row[1] * x
    row += [x]
    left = row.popleft() + row.pop()
    return left * row[0] + sum(row) + len(row) + max(row.copy())


def windows(x):
    last, means = deque(maxlen=3), []
    for i in range(6):
        last.append(x * i)
        means.append(sum(last) / len(last))
    return sum(means) * last.maxlen


def windows_of_long_loops(x, n=100):
    last = deque([0.0, 0.0, x], maxlen=3)
    for i in range(n):
        v = x * i - last[0]
        if v > 2.0:
            last.append(v * 0.1)
    return last[0] + 2 * last[1] + 3 * last[2]


def breadth_first(x):
    waiting, total = deque([(0, x)]), 0.0
    while waiting:
        depth, v = waiting.popleft()
        total += v
        if depth < 3:
            waiting.extend([(depth + 1, v * 0.5), (depth + 1, v * 0.25)])
    return total


def defaults(x):
    sums, rows = defaultdict(float), defaultdict(list, {7: [x]})
    for i in range(6):
        sums[i % 3] += x * i
        rows[i % 2].append(x + i)
    by_number = defaultdict(lambda: x * 2)
    total = by_number["a"] + by_number["a"] * by_number["b"]
    total += sums[1] * sum(sums.values()) + sum(map(sum, rows.values()))
    return total + len(by_number) + ("c" in by_number) + by_number.get("c", 0.5)


def defaults_on_one_way(x):
    best = defaultdict(float, {"low": 0.0, "high": 1.0})
    for v in [x, x * 0.5, x * x]:
        if v > best["high"]:
            best["high"] = v
        elif v < best["low"]:
            best["low"] -= v
    return best["high"] * 2 + best["low"]


COMPILED = [
    both_ends,
    windows,
    windows_of_long_loops,
    breadth_first,
    defaults,
    defaults_on_one_way,
]


def longer_on_one_way(x):
    row = deque([x])
    if x > 1.0:
        row.append(2.0)
    return sum(row)


def a_new_key_on_one_way(x):
    by_name = defaultdict(float)
    return (by_name["a"] if x > 1.0 else x) + len(by_name)


def of_two_lengths(x):
    row = deque([x], 2) if x > 1.0 else deque([x], 3)
    return row.maxlen * x


def of_two_defaults(x):
    row = defaultdict(int) if x > 1.0 else defaultdict(float)
    return row["a"], x


def another_default(x):
    row = defaultdict(int)
    row.default_factory = float
    return row["a"], x


def empty(x):
    return deque([x][1:]).pop()


def no_default(x):
    return defaultdict(None, {"a": x})["b"]


def changed_meanwhile(x):
    row = deque([x, 1.0])
    for v in row:
        row.append(v)
    return x


def two_names(x):
    row = other = deque([x])
    row += [2.0]
    return len(other) * x


OTHERS = [
    longer_on_one_way,
    a_new_key_on_one_way,
    of_two_lengths,
    of_two_defaults,
    another_default,
    empty,
    no_default,
    changed_meanwhile,
    two_names,
]
POINTS = (0.1, 0.75, 1.5, 2.5, -1.0)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_results_are_pythons(f, mode):
    assert outcomes(lantern.jit(f), POINTS * 2) == outcomes(f, POINTS * 2)


@pytest.mark.parametrize("f", COMPILED)
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    jitted = lantern.jit(gradient, exact=True)
    assert outcomes(jitted, POINTS) == outcomes(gradient, POINTS)


@pytest.mark.parametrize("f", COMPILED)
def test_they_are_compiled(f):
    assert is_compiled(f, 1.5)


def test_each_result_is_a_new_one(mode):
    def f(x):
        return deque([x, 1.0], 5), defaultdict(int, {"a": x})

    jitted = lantern.jit(f)
    for _ in range(2):
        row, by_name = jitted(1.5)
        row.append(2.0)
        by_name["b"] += 1
        assert row == deque([1.5, 1.0, 2.0])
        assert (row.maxlen, by_name) == (5, {"a": 1.5, "b": 1})
    by_function = lantern.jit(lambda x: defaultdict(lambda: 2.0, {"a": x}))(1.5)
    assert by_function["b"] == 2.0
    assert by_function.default_factory.__code__.co_freevars == ()


def test_lengths_of_the_callers_deques(mode):
    jitted = lantern.jit(lambda row, x: row.maxlen * x)
    for size in (3, 5):
        assert jitted(deque([1.0], size), 1.5) == size * 1.5


def test_defaults_of_the_callers_dicts(mode):
    by_name = defaultdict(float, {"a": 2.0})
    jitted = lantern.jit(lambda by_name, x: by_name["b"] + by_name["a"] * x)
    for _ in range(2):
        assert jitted(by_name, 1.5) == 3.0
        assert by_name.pop("b") == 0.0


def test_the_callers_deques_are_changed(mode):
    def f(row, x):
        row += [x]
        return len(row) * x

    row, jitted = deque([1.0]), lantern.jit(f)
    assert [jitted(row, 1.5) for _ in range(2)] == [3.0, 4.5]
    assert row == deque([1.0, 1.5, 1.5])

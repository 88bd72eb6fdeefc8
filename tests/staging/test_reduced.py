"""``sum``, ``max``, ``any`` of as many items as is known when the program runs."""

import pytest

import lantern
from lantern import sin
from lantern.staging import python_functions
from tests.staging.outcomes import is_compiled, outcomes


@pytest.fixture(params=["interpret", "O0", "O2"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def sums(x, n, row):
    return sum(x * i for i in range(n)) + sum(v * x for v in row) + sum(row)


def sums_of_sums(x, n, row):
    return sum(
        sum(x * i - j for j in range(i + 1)) * v for i in range(n) for v in (1, x)
    )


def nested(x, n, row):
    return sum(sum(x * i - j * v for j in range(i)) for i, v in enumerate(row[:3]))


def nested_loops(x, n, row):
    return sum(i * sum(x * i - j for j in range(i + 1)) for i in range(n))


def with_a_step(x, n, row):
    return sum(sin(x * i) for i in range(n, -n, -2)) + sum(range(n))


def extremes(x, n, row):
    most = max(sin(x * i) for i in range(n)) + max(range(n)) + max(row)
    return most * min(v * v - x for v in row) + min(row)


def told(x, n, row):
    asked = []

    def is_large(v):
        asked.append(v)
        return v > 2.0

    found = any(x * i > 3.0 for i in range(n)), all(v < x for v in row), any(row)
    return found, all(range(n)), any(i > 2 for i in range(n)), any(map(is_large, asked))


def with_tests(x, n, row):
    total = sum(x * i for i in range(n) if i % 2) + sum([v for v in row if v > x])
    if any(v > 2.0 for v in row if v < x) or all(i * x < 9.0 for i in range(n) if i):
        total += 1.0
    return total + sum(1 for v in row if v > 1.0) * x


def extremes_with_tests(x, n, row):
    kept = [1, 2, 3]
    return max(i * x for i in kept if i != 2) + min(i for i in kept if i > n)


def counted(x, n, row):
    """What is left where an item is asked for that is none."""
    return all(1.0 / (x - i) < 3.0 for i in range(n))


def two_types(x, n, row):
    return max(x if i > 2 else i for i in range(n)) * 2


def captured(x, n, row):
    scale = x

    def scaled(v):
        nonlocal scale
        scale = scale * 0.5
        return v * scale

    return sum(scaled(v) for v in row) + scale


def shadowed(x, n, row):
    def sum(items):
        return [v * x for v in items][-1]

    return sum(v + 1.0 for v in row[:2]) + sum(v for v in (x, 2 * x) if v)


COMPILED = [
    sums,
    nested_loops,
    with_a_step,
    extremes,
    with_tests,
    counted,
]
OTHERS = [
    sums_of_sums,
    nested,
    told,
    extremes_with_tests,
    two_types,
    captured,
    shadowed,
]
ROWS = [[0.5, 2.5, -1.0], [0.1 * i for i in range(300)], [2, 0.5, 3], (1.0,), []]
POINTS = [(x, n, row) for x in (0.3, 1.5, -2.0) for n in (0, 1, 5) for row in ROWS]


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_results_are_pythons(f, mode):
    assert outcomes(lantern.jit(f), POINTS) == outcomes(f, POINTS)


@pytest.mark.parametrize("f", [*COMPILED, *OTHERS])
def test_gradients_too(f, mode):
    gradient = lantern.grad(f)
    jitted = lantern.jit(gradient, exact=True)
    both = outcomes(jitted, POINTS), outcomes(gradient, POINTS)
    for found, right in zip(*both, strict=True):
        if found != right:  # zeros differ in their sign
            assert float(found) == float(right) == 0.0


@pytest.mark.parametrize("f", COMPILED)
@pytest.mark.parametrize("row", ROWS[1:2])
def test_they_are_compiled(f, row):
    assert is_compiled(f, 1.5, 5, row)


def test_sums_that_keep_what_rounding_loses_are_pythons(monkeypatch):
    """Later Pythons add up floats so; a loop does not."""
    monkeypatch.setattr("lantern.staging.reductions.COMPENSATES", True)
    assert isinstance(python_functions.COMPENSATES, bool)
    jitted = lantern.jit(lambda x, n: sum(x * i for i in range(n)))
    assert jitted(1.5, 100) == 7425.0
    assert "runs as it is" in lantern.explain(jitted)

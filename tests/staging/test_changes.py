"""What one way of a branch alone changes, and who may still ask for it."""

import pytest

import lantern


@pytest.fixture(params=["interpret", "O0", "O2", "tiers"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def outcome(f, x):
    try:
        return repr(f(x))
    except Exception as error:
        return type(error), str(error)


def check(f, points):
    """Value and gradient are the plain function's to the last bit."""
    gradient = lantern.grad(f)
    exact = [
        (f, lantern.jit(f, exact=True)),
        (gradient, lantern.jit(gradient, exact=True)),
    ]
    exact.append((gradient, lantern.grad(lantern.jit(f, exact=True))))
    for plain, jitted in exact:
        for x in points:
            assert outcome(jitted, x) == outcome(plain, x)
    for plain in f, gradient:
        jitted = lantern.jit(plain)
        for x in points:
            found, right = outcome(jitted, x), outcome(plain, x)
            if found != right:
                assert float(found) == pytest.approx(float(right), rel=1e-12)
    return "runs as it is" not in lantern.explain(jitted)


def a_function_that_outlives_a_branch(x):
    def made(y):
        def get():
            return y

        if x > 0:
            y = 2 * x
            return get
        y = 3 * x
        return get

    return made(x)() * x


def test_a_variable_of_one_way_is_not_asked_for_behind_it(mode):
    assert not check(a_function_that_outlives_a_branch, (1.5, -1.5))

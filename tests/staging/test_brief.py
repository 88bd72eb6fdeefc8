"""Programs that run as Python until there is machine code: what they give, and when."""

import math
from itertools import count

import pytest

import lantern
from lantern.staging.dispatch import staged
from lantern.staging.interpret import run
from lantern.staging.native import background, brief, native
from lantern.staging.native.background import wait
from lantern.staging.native.brief import SpentError
from lantern.staging.native.engine import is_available
from tests.staging.random_programs import program
from tests.staging.test_jit import OTHERS, PROGRAMS, newton

pytestmark = pytest.mark.skipif(not is_available(), reason="there is no native code")


@pytest.fixture(autouse=True)
def _tiers(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "tiers")
    monkeypatch.setenv("LANTERN_JIT_CACHE", "off")


def outcome(f):
    try:
        return repr(f())
    except Exception as error:
        return type(error), str(error)


def halved(x, least):
    turns = 0
    while x > least:
        x, turns = x * 0.999, turns + 1
    return x * turns + lantern.sqrt(x)


def native_of(f):
    return next(iter(f.__self__.known.values())).native


@pytest.mark.parametrize("f", [*PROGRAMS, *OTHERS])
def test_they_are_what_is_interpreted(f):
    examples, found = (PROGRAMS | OTHERS)[f], []
    for way in (f, lantern.grad(f)):
        try:
            program = staged(way, examples[0])[0]
        except (lantern.errors.StagingError, TypeError):  # of ints
            continue
        written = brief.brief(program.function)
        if written is None:
            continue
        numbers = program.take_apart(examples[0])
        assert list(written(*numbers)) == run(program.function, numbers)
        found.append(way)
    assert found or f not in (newton, *list(PROGRAMS)[:4])


@pytest.mark.parametrize("by_grad", [False, True])
def test_a_first_result_waits_for_no_machine_code(by_grad, monkeypatch):
    monkeypatch.setattr(background, "FIRST", 0.2)
    f = lantern.grad(halved) if by_grad else halved
    jitted = lantern.jit(f)
    assert jitted(1.0, 0.5) == pytest.approx(f(1.0, 0.5), rel=1e-12)
    assert native_of(jitted).address is None
    wait()
    assert native_of(jitted).level == native_of(jitted).best
    assert jitted(1.0, 0.5) == pytest.approx(f(1.0, 0.5), rel=1e-12)


@pytest.mark.parametrize("least", [1e-6, 0.9])
def test_what_takes_long_is_compiled_at_once(least, monkeypatch):
    monkeypatch.setattr(background, "FIRST", 0.2)
    wait()  # what others have begun
    jitted = lantern.jit(halved)
    for x in (least, 1e-7):  # the second call takes long in any case
        assert jitted(1.0, x) == halved(1.0, x)
    assert native_of(jitted).level == 0
    wait()
    assert native_of(jitted).level == native_of(jitted).best
    assert jitted(1.0, 1e-7) == halved(1.0, 1e-7)


def test_a_derivative_from_outside_that_takes_long():
    gradient = lantern.grad(lantern.jit(halved))
    for least in (0.5, 1e-6):
        assert gradient(1.0, least) == pytest.approx(
            lantern.grad(halved)(1.0, least), rel=1e-12
        )


def test_what_is_known_to_take_long_is_not_tried(monkeypatch):
    def long(x):
        y = x
        for _ in range(100_000):
            y = y * 0.999 + x
        return y

    jitted = lantern.jit(long)
    assert jitted(0.5) == long(0.5)
    assert native_of(jitted).level >= 0
    assert brief.brief(native_of(jitted)._main) is None


def test_turns_are_counted():
    program = staged(halved, (1.0, 0.5))[0]
    written = brief.brief(program.function)
    assert written(1.0, 0.5)[0] == halved(1.0, 0.5)
    with pytest.raises(SpentError):
        written(1.0, 0.0)


@pytest.mark.parametrize("x", [-1.0, 0.0, math.nan, math.inf, 1e300])
def test_what_the_plain_function_raises(x):
    def f(x):
        y = x
        for _ in range(6):
            y = y / x - math.log(x) * 1e300 + y * 1e300
        return y

    assert outcome(lambda: lantern.jit(f)(x)) == outcome(lambda: f(x))


def test_powers_that_may_be_complex_are_left_to_machine_code():
    def f(x):
        y = x
        while y < 1.0:
            y = y + x**1.5
        return y

    assert brief.brief(staged(f, (0.5,))[0].function) is None
    assert lantern.jit(f)(0.5) == f(0.5)


def test_what_has_no_machine_code_after_all(monkeypatch):
    """The thread that finds it has the plain function run from then on."""
    calls = count()

    def refuse(self):
        next(calls)
        raise lantern.errors.StagingError("native code: none.")

    monkeypatch.setattr(native.Native, "text", property(refuse))
    jitted = lantern.jit(halved)
    assert jitted(1.0, 0.5) == halved(1.0, 0.5)
    wait()
    assert jitted(1.0, 0.5) == halved(1.0, 0.5)
    assert "native code: none" in lantern.explain(jitted)
    assert next(calls)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    _, f = program(seed)

    def g(x, y, n):
        return f(x, y, n, None, [0.5, x, 1.5])

    for way in (g, lantern.grad(g)):
        try:
            made = staged(way, (0.7, 0.3, 4))[0]
        except Exception:
            continue
        written = brief.brief(made.function)
        if written is not None:
            check(written, made, [(x, 0.3, 4) for x in (0.7, -1.3, 0.0, 2.5)])


def check(written, made, examples):
    for args in examples:
        numbers = made.take_apart(args)
        right = outcome(lambda: run(made.function, numbers))  # noqa: B023  # at once
        found = outcome(lambda: list(written(*numbers)))  # noqa: B023
        assert found == right or found[0] is SpentError

"""Machine code that is there at once: what it gives, and when there is better."""

import ctypes
import math
import re
from itertools import count, product

import pytest

import lantern
from lantern.staging.dispatch import staged
from lantern.staging.interpret import run
from lantern.staging.ir import BailOutError
from lantern.staging.native import background, native
from lantern.staging.native import slots as module
from lantern.staging.native.background import wait
from lantern.staging.native.engine import is_available, suspended
from lantern.staging.native.slots import SpentError, is_possible, slots
from lantern.staging.native.tables import LIBM
from tests.staging.outcomes import outcome
from tests.staging.random_programs import program
from tests.staging.test_jit import OTHERS, PROGRAMS, newton

pytestmark = pytest.mark.skipif(
    not is_available() or not is_possible(), reason="there is no such native code"
)


@pytest.fixture(autouse=True)
def _tiers(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "tiers")
    monkeypatch.setenv("LANTERN_JIT_CACHE", "off")


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
        written = slots(program.function)
        if written is None:
            continue
        numbers = program.take_apart(examples[0])
        assert repr(list(written(*numbers))) == repr(run(program.function, numbers))
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
    monkeypatch.setattr(module, "MOST_DONE", 20_000)
    wait()  # what others have begun
    jitted = lantern.jit(halved)
    for x in (least, 1e-7):  # the second call takes long in any case
        assert jitted(1.0, x) == halved(1.0, x)
    assert native_of(jitted).level == 0
    wait()
    assert native_of(jitted).level == native_of(jitted).best
    assert jitted(1.0, 1e-7) == halved(1.0, 1e-7)


def test_a_derivative_from_outside_that_takes_long(monkeypatch):
    monkeypatch.setattr(module, "MOST_DONE", 20_000)
    gradient = lantern.grad(lantern.jit(halved))
    for least in (0.5, 1e-6):
        assert gradient(1.0, least) == pytest.approx(
            lantern.grad(halved)(1.0, least), rel=1e-12
        )


def test_what_is_known_to_take_long_is_not_tried(monkeypatch):
    monkeypatch.setattr(module, "MOST_DONE", 20_000)

    def long(x):
        y = x
        for _ in range(100_000):
            y = y * 0.999 + x
        return y

    jitted = lantern.jit(long)
    assert jitted(0.5) == long(0.5)
    assert native_of(jitted).level >= 0
    assert slots(native_of(jitted)._main) is None


def test_turns_are_counted():
    program = staged(halved, (1.0, 0.5))[0]
    written = slots(program.function)
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


def test_powers_that_are_complex():
    def f(x, y):
        while y < 1.0:
            y = y + x**1.5
        return y

    written = slots(staged(f, (0.5, 0.5))[0].function)
    assert written(0.5, 0.5)[0] == f(0.5, 0.5)
    with pytest.raises(BailOutError):
        written(-0.5, 0.5)


def test_what_waits_for_a_signals_handler_has_the_arena():
    program = staged(lantern.grad(halved), (1.0, 0.5))[0]
    written, count = slots(program.function), ctypes.c_uint64.from_address(suspended())
    count.value += 1
    with pytest.raises(BailOutError):
        written(1.0, 0.5)
    count.value -= 1
    assert list(written(1.0, 0.5)) == run(program.function, [1.0, 0.5])


NUMBERS = {
    float: [0.7, -1.5, 0.0, -0.0, 3.0, 1e300, -5e-324, 1e19, math.inf, math.nan],
    int: [3, -7, 0, 1, -1, 2**53 + 1, 2**62, -(2**63), 2**63 - 1, 2**63],
    bool: [False, True],
}
OPERATIONS = {
    (float, float): [
        *(lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y),
        *(lambda x, y: x / y, lambda x, y: x**y, lambda x, y: -x + abs(y)),
        *(lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x > y),
        *(lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y),
        *(lambda x, y: math.atan2(x, y), lambda x, y: math.fmod(x, y)),
        *(lambda x, y: int(x) * int(y), lambda x, y: lantern.where(x < y, x, y)),
        *(lambda x, y: (x < y) & (y != 1.0), lambda x, y: (x < y) | (x == 1.0)),
        *(lambda x, y: lantern.maximum(x, y), lambda x, y: lantern.minimum(x, y)),
        *(lambda x, y: lantern.sign(x) + y, lambda x, y: lantern.sign(x * y)),
        *(lambda x, y: not x < y, lambda x, y: x if x < y else y * 2.0),
    ],
    (int, int): [
        *(lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y),
        *(lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y),
        *(lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x > y),
        *(lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y),
        *(lambda x, y: -x + abs(y), lambda x, y: x & y, lambda x, y: (x | 3) ^ y),
        *(lambda x, y: x + 0.5, lambda x, y: float(x) * y),
    ],
    (float, int): [
        *(lambda x, y: x + y, lambda x, y: x < y, lambda x, y: x / y),
        *(lambda x, y: y - x, lambda x, y: x if x < y else 2.0 * y),
    ],
    (bool, int): [lambda x, y: x + y, lambda x, y: x == y, lambda x, y: x / (y + 1)],
    (bool, bool): [lambda x, y: x & y, lambda x, y: x + y, lambda x, y: x ^ y],
}


# Errors, complex numbers, what is not finite or large, and division by -1.
_ODD = r"Error|j|inf|nan|\d{16}|e\+|-1\)"


@pytest.mark.parametrize(
    ("kinds", "f"), [(kinds, f) for kinds, fs in OPERATIONS.items() for f in fs]
)
def test_operations(kinds, f):
    """It is what is interpreted; what is large, or raises, may leave the program."""
    program = staged(f, tuple(NUMBERS[kind][1] for kind in kinds))[0]
    written, done = slots(program.function), 0
    for args in product(*(NUMBERS[kind] for kind in kinds)):
        right = outcome(lambda: run(program.function, program.take_apart(args)))  # noqa: B023
        found = outcome(lambda: list(written(*program.take_apart(args))))  # noqa: B023
        done += found == right
        assert found == right or found[0] is BailOutError, args
        assert found == right or re.search(_ODD, f"{right} {args}"), args
    assert done >= 4


@pytest.mark.parametrize("name", [*LIBM, "sqrt"])
def test_functions(name):
    f = getattr(lantern, name)
    program = staged(lambda x: f(x), (0.5,))[0]
    written, done = slots(program.function), 0
    for x in NUMBERS[float]:
        right = outcome(lambda: run(program.function, [x]))  # noqa: B023
        found = outcome(lambda: list(written(x)))  # noqa: B023
        done += found == right
        assert found == right or re.search(_ODD, f"{right} {x}"), x
    assert done


def test_what_is_handed_on_changes_places():
    def f(x, y, z):
        for _ in range(4):
            x, y, z = y, z + 0.0, x
        return x, y, z

    program = staged(f, (1.0, 2.0, 3.0))[0]
    assert slots(program.function)(1.0, 2.0, 3.0) == f(1.0, 2.0, 3.0)


def test_tapes_of_loops_in_loops():
    def f(x, n):
        y, i = x, 0
        while i < n:
            if y > 1.0:
                j = 0
                while j < i:
                    y, j = y * 0.5 + lantern.sin(x), j + 1
            y, i = y * y + x, i + 1
        return y

    for way in (lantern.grad(f), lantern.grad(lantern.grad(f))):
        program = staged(way, (0.9, 5))[0]
        for args in ((0.9, 0), (0.9, 1), (0.9, 5), (-1.3, 7)):
            right = run(program.function, args)
            assert list(slots(program.function)(*args)) == right


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
        written = slots(made.function)
        if written is not None:
            check(written, made, [(x, 0.3, 4) for x in (0.7, -1.3, 0.0, 2.5)])


def check(written, made, examples):
    for args in examples:
        numbers = made.take_apart(args)
        right = outcome(lambda: run(made.function, numbers))  # noqa: B023  # at once
        found = outcome(lambda: list(written(*numbers)))  # noqa: B023
        assert found == right or found[0] in (SpentError, BailOutError)

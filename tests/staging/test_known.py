"""Gradients whose code is known before they are staged to their end."""

import math
import os

import pytest

import lantern
from lantern.op import op, registry
from lantern.staging import known
from lantern.staging.known import Awaited
from lantern.staging.native.background import wait

FACTOR = 3.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where code is kept, and nothing is at first: not what earlier tests began."""
    wait()
    monkeypatch.setenv("LANTERN_JIT", "tiers")
    monkeypatch.setenv("LANTERN_JIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def made(jitted):
    """The one program of a compiled function."""
    (found,) = jitted.__self__.known.values()
    return found


def flat(x):
    """The numbers in a result."""
    return [z for y in x for z in flat(y)] if isinstance(x, tuple) else [x]


def turns(x, y):
    """A loop with a branch, and numbers from outside."""
    for i in range(20):
        if x > y:
            x = x * 0.9 - y * 0.1 * FACTOR
        else:
            y = lantern.sin(y) * x + i * 0.01
    return x * y


def until(x, y):
    """A loop that ends when the data say so."""
    while abs(x * x - y) > 1e-9:
        x = 0.5 * (x + y / x)
    return x / (1.0 + y)


def formula(x, y):
    """No loop: it is interpreted at first."""
    return lantern.exp(-x * x) * math.pi + (y if y > 0.5 else -y) / x


GRADIENTS = [lantern.grad, lantern.value_and_grad]


@pytest.mark.parametrize("argnums", [0, 1, (0,), (1, 0)])
@pytest.mark.parametrize("derivative", GRADIENTS)
@pytest.mark.parametrize("f", [turns, until, formula])
def test_the_second_is_found(f, derivative, argnums):
    plain = derivative(f, argnums)
    first = lantern.jit(plain)
    right = first(1.3, 0.7)
    wait()
    assert type(made(first).program) is not Awaited
    second = lantern.jit(plain)
    assert second(1.3, 0.7) == first(1.3, 0.7) == right
    found = made(second)
    assert isinstance(found.program, Awaited)
    assert not vars(found.program).keys() & {"function", "result", "flags"}
    for args in [(0.4, 1.9), (2.0, 2.0)]:
        assert second(*args) == first(*args)
        assert flat(second(*args)) == pytest.approx(flat(plain(*args)), rel=1e-12)
    assert lantern.explain(second) == lantern.explain(first)
    assert found.native.text == made(first).native.text
    assert flat(found.program(1.3, 0.7)) == pytest.approx(flat(right), rel=1e-12)


def test_what_leaves_the_program_is_the_plain_functions():
    plain = lantern.grad(formula)
    lantern.jit(plain)(1.3, 0.7)
    wait()
    jitted = lantern.jit(plain)
    jitted(1.3, 0.7)
    with pytest.raises(ZeroDivisionError):
        jitted(0.0, 0.7)
    assert jitted(2, 0.7) == plain(2, 0.7)
    assert jitted(1.3, 0.7) == pytest.approx(plain(1.3, 0.7))
    assert len(jitted.__self__.known) == 2


def test_other_arguments_than_the_last(monkeypatch):
    """The builtin runs one signature's code alone; for others the rest is staged."""
    plain = lantern.grad(turns)
    for args in [(1.3, 0.7), (1.3, 2)]:
        lantern.jit(plain)(*args)
    wait()
    jitted = lantern.jit(plain)
    for _ in range(3):
        for args in [(1.3, 0.7), (1.3, 2)]:
            assert jitted(*args) == pytest.approx(plain(*args), rel=1e-12)


def test_guards_are_asked(monkeypatch):
    plain = lantern.grad(turns, (0, 1))
    lantern.jit(plain)(1.3, 0.7)
    wait()
    jitted = lantern.jit(plain)
    before = jitted(1.3, 0.7)
    assert isinstance(made(jitted).program, Awaited)
    for factor in (4.0, -1.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert jitted(1.3, 0.7) == pytest.approx(plain(1.3, 0.7), rel=1e-12)
    assert jitted(1.3, 0.7) == before


def power(c, n):
    """Functions that differ in a constant."""

    def f(x, y):
        for _ in range(n):
            x = x * y + c
        return x * (y - c)

    return f


CONSTANTS = [0.5, -0.5, 0.0, -0.0, 1, 1.0, True, 2, 2.0, 1e300, 0.1, 0.1 + 2**-56]


def test_what_differs_has_other_code():
    """Each function is asked for twice, and none finds another one's code."""
    names = set()
    for _ in range(2):
        for n in (3, 7):
            for c in CONSTANTS:
                for argnums in (0, 1, (0,), (0, 1), (1, 0)):
                    plain = lantern.grad(power(c, n), argnums)
                    jitted = lantern.jit(plain)
                    found, right = jitted(1.1, 0.3), plain(1.1, 0.3)
                    assert type(found) is type(right)
                    assert found == pytest.approx(right, rel=1e-12)
        wait()
        names.add(type(made(jitted).program))
    assert Awaited in names


OPERATORS = [
    lambda x, y: x - y,
    lambda x, y: y - x,
    lambda x, y: x / y,
    lambda x, y: y / x,
    lambda x, y: x * y,
    lambda x, y: x * y if x > y else x + y,
    lambda x, y: x * y if x < y else x + y,
    lambda x, y: x + y if x > y else x * y,
    lambda x, y: lantern.sin(x) * y,
    lambda x, y: lantern.cos(x) * y,
    lambda x, y: lantern.sin(y) * x,
]


def test_what_differs_in_its_operations_has_other_code():
    for _ in range(2):
        for f in OPERATORS:
            plain = lantern.grad(f, (0, 1))
            assert lantern.jit(plain)(1.1, 0.3) == pytest.approx(plain(1.1, 0.3))
        wait()


def is_found(plain, *args):
    """Whether the second of two functions finds the code of the first."""
    for _ in range(2):
        jitted = lantern.jit(plain)
        assert jitted(*args) == pytest.approx(plain(*args), rel=1e-12)
        wait()
    return isinstance(made(jitted).program, Awaited)


def test_a_rule_of_the_users_is_not_looked_for():
    @op
    def odd_product(x, y, /):
        z_bar = yield x * y
        yield z_bar * y * 2.0
        yield z_bar * x

    try:
        assert not is_found(lantern.grad(lambda x: odd_product(x, x)), 1.5)
    finally:
        registry.pop("odd_product", None)


def test_trees_and_inner_derivatives_are_not_looked_for():
    assert not is_found(lantern.grad(lambda x, t: x * t[0]), 1.5, (2.0, None))
    assert not is_found(lambda x: lantern.grad(lambda y: y * y * x)(x), 1.5)
    assert is_found(lantern.grad(turns), 1.5, 0.5)


def test_second_derivatives():
    plain = lantern.grad(lantern.grad(turns))
    for _ in range(2):
        assert lantern.jit(plain)(1.5, 0.5) == pytest.approx(plain(1.5, 0.5), rel=1e-11)
        wait()


def test_other_files_of_lanterns_have_other_code(monkeypatch):
    plain = lantern.grad(formula)
    assert is_found(plain, 1.3, 0.7)
    monkeypatch.setattr(known, "_library", lambda: "another")
    jitted = lantern.jit(plain)
    jitted(1.3, 0.7)
    wait()
    assert not isinstance(made(jitted).program, Awaited)
    monkeypatch.setattr(known, "_library", lambda: None)
    assert not is_found(plain, 1.3, 0.7)


def test_files_of_one_size_and_time_of_writing_are_told_apart(tmp_path, monkeypatch):
    file = tmp_path / "rule.py"
    monkeypatch.setattr(known, "_FOLDERS", [str(tmp_path)])
    found = set()
    for text in ("y = x + 1", "y = x + 2"):
        file.write_text(text)
        os.utime(file, (1.0, 1.0))
        found.add(known._library.__wrapped__())
    assert len(found) == 2


def test_code_that_is_gone_is_made_again(folder):
    plain = lantern.grad(turns)
    assert is_found(plain, 1.3, 0.7)
    *codes, note = sorted(folder.iterdir(), key=lambda x: -x.stat().st_size)
    (noted,) = (x for x in codes if x.stem.encode() in note.read_bytes())
    noted.unlink()
    jitted = lantern.jit(plain)
    assert jitted(1.3, 0.7) == pytest.approx(plain(1.3, 0.7), rel=1e-12)
    wait()
    assert noted.exists()

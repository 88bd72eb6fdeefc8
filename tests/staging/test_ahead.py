"""Ahead of time: what is compiled before it is called, and the texts it becomes."""

import ast

import pytest

import lantern
from lantern.errors import StagingError
from lantern.staging import Ahead
from tests.staging.test_jit import PROGRAMS, newton
from tests.staging.test_joins import clipped, total
from tests.staging.test_trees import KINDS, shape_of

ORDERS = {
    "value": lambda f: f,
    "gradient": lantern.grad,
    "both": lantern.value_and_grad,
    "second": lambda f: lantern.grad(lantern.grad(f)),
}
NEWTON = """
def grad_of_newton(a0):
    v1 = 1e-12 * a0
    v2 = a0
    tape3_0 = []
    while True:
        v4 = v2 * v2
        v5 = v4 - a0
        v6 = abs(v5)
        v7 = v6 > v1
        if not v7:
            break
        v8 = a0 / v2
        v9 = v2 + v8
        v10 = 0.5 * v9
        tape3_0.append((v2, v8))
        v2 = v10
    v11 = 1.0
    v12 = 0.0
    for k14 in reversed(range(len(tape3_0))):
        v15, v16 = tape3_0[k14]
        v17 = v11 * 0.5
        v18 = v17 / v15
        v19 = v12 + v18
        v20 = -v18
        v21 = v20 * v16
        v22 = v17 + v21
        v11, v12 = v22, v19
    v23 = v12 + v11
    return v23
"""


def defined(text):
    """The last function that a text defines."""
    space = {}
    exec(compile(text, "<emitted>", "exec"), space)
    return space[ast.parse(text).body[-1].name]


def test_the_adjoint_of_newtons_loop_as_python():
    assert lantern.emit_python(lantern.grad(newton), 2.0) == NEWTON.strip()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_emitted_python_runs(f, order):
    g = ORDERS[order](f)
    emitted = defined(lantern.emit_python(g, *PROGRAMS[f][0]))
    for args in PROGRAMS[f]:
        try:
            expected = g(*args)
        except Exception as error:
            with pytest.raises((type(error), ArithmeticError)):
                emitted(*args)
        else:
            assert emitted(*args) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ["attributes", "tuples", "lists", "slots"])
def test_emitted_python_walks_trees(name):
    f, make = KINDS[name]
    tree = shape_of(make)
    emitted = defined(lantern.emit_python(lantern.grad(f), 0.9, tree))
    for t in (tree, None, make(tree, None, 2.0)):
        assert emitted(1.1, t) == pytest.approx(lantern.grad(f)(1.1, t), rel=1e-12)


def test_emitted_python_has_structures_and_types():
    def f(p, n):
        return {"total": total(p[0], n), "rest": [p[1]["a"], (clipped(p[0]), None)]}

    emitted = defined(lantern.emit_python(f, (1.5, {"a": 2.0}), 3))
    for args in (((1.5, {"a": 2.0}), 3), ((-0.5, {"a": 0.0}), 0)):
        assert repr(emitted(*args)) == repr(f(*args))


@pytest.mark.parametrize("mode", ["tiers", "interpret", "O0", "O2"])
def test_compiled_before_it_is_called(mode, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", mode)
    calls = []

    def f(x):
        return newton(x) * 2.0

    made = lantern.compile(lantern.grad(f), 2.0)
    assert type(made) is Ahead
    assert not calls
    assert made(2.0) == pytest.approx(lantern.grad(f)(2.0), rel=1e-12)
    assert "loop" in made.ir
    assert "while" in made.python
    assert ("define" in made.llvm) == (mode != "interpret")
    assert made.time > 0
    assert repr(made).startswith("<compiled grad_of_f, ")


def test_what_cannot_be_compiled_is_refused():
    with pytest.raises(StagingError, match=r"print.*test_ahead\.py, line"):
        lantern.compile(lambda x: print(x), 1.0)
    with pytest.raises(StagingError):
        lantern.emit_python(lambda x: print(x), 1.0)


def test_the_text_of_llvm():
    text = lantern.show_llvm(lantern.grad(newton), 2.0)
    assert "define" in text
    assert "fdiv double" in text


def test_a_value_that_nobody_needs_is_not_computed():
    gradient = lantern.grad(lambda x: lantern.sin(lantern.cos(x)))
    text = lantern.compile(gradient, 1.0).llvm
    assert text.count("call double @sin(") == 1  # of the adjoint of the cosine
    assert text.count("call double @cos(") == 2

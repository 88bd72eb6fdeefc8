"""The debugger in a terminal: the program's lines, and another cotangent."""

import io

import pytest

import lantern
from lantern.debugger import Session
from lantern.debugging.debugger import Terminal


def f(x):
    y = lantern.sin(x)
    return y * 3.0  # what comes first on the way back


@pytest.fixture
def terminal():
    with Session(f, 0.5) as session:
        yield Terminal(session, stdout=io.StringIO())


def answer(terminal, line):
    terminal.stdout.seek(0)
    terminal.stdout.truncate()
    terminal.onecmd(line)
    return terminal.stdout.getvalue()


@pytest.mark.parametrize("command", ["l", "list"])
def test_list_shows_the_program_around_the_line(terminal, command):
    lines = answer(terminal, command).splitlines()
    (here,) = [line for line in lines if "->" in line]
    assert here.endswith("return y * 3.0  # what comes first on the way back")
    assert any(line.endswith("y = lantern.sin(x)") for line in lines)
    terminal.onecmd("s")
    assert "-> " in answer(terminal, "l")
    terminal.onecmd("c")
    assert "none comes next" in answer(terminal, "l")


def test_set_goes_on_with_another_cotangent(terminal):
    assert "cotangent 2.0" in answer(terminal, "set 2 * cotangent")
    terminal.onecmd("continue")
    assert terminal.session.gradient == 2 * lantern.grad(f)(0.5)


@pytest.mark.parametrize("wrong", ["set", "set 1 +", "set [1.0, 2.0]", "set unknown"])
def test_a_slip_is_told_and_changes_nothing(terminal, wrong):
    assert "Error" in answer(terminal, wrong)
    terminal.onecmd("continue")
    assert terminal.session.gradient == lantern.grad(f)(0.5)

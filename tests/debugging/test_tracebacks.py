"""What is printed of an uncaught error has the user's frames; the exception has all."""

import os
import subprocess
import sys
import traceback

import numpy as np
import pytest

import lantern
from lantern.debugging.tracebacks import shortened, without_ours

SCRIPT = """
import sys, threading
import lantern

def inner(x):
    return lantern.sin("a") * x

def f(x):
    return inner(x)

def run():
    lantern.grad(f)(2.0)

if "thread" in sys.argv:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
elif "theirs" in sys.argv:
    raise RuntimeError("not ours")
else:
    run()
"""


def shown(tmp_path, *words, **variables):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    home = os.path.dirname(os.path.dirname(lantern.__file__))
    variables |= {"PYTHONPATH": home}
    done = subprocess.run(
        [sys.executable, script, *words],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    return done.stderr


@pytest.mark.parametrize("words", [(), ("thread",)])
def test_the_users_frames_are_shown(tmp_path, words):
    printed = shown(tmp_path, *words)
    assert "in f\n" in printed
    assert "in inner\n" in printed
    assert "got 'a' of type str" in printed
    assert os.path.join("lantern", "") not in printed.replace("LANTERN", "")
    assert "LANTERN_TRACEBACKS=full" in printed


def test_the_variable_shows_all(tmp_path):
    printed = shown(tmp_path, LANTERN_TRACEBACKS="full")
    assert os.path.join("transforms", "reverse.py") in printed
    assert "left out" not in printed


def test_another_error_is_printed_as_python_does(tmp_path):
    printed = shown(tmp_path, "theirs")
    assert printed.endswith("RuntimeError: not ours\n")


def failed():
    def f(x):
        try:
            return lantern.sin("a") * x
        except TypeError as error:
            raise RuntimeError("mine") from error

    with pytest.raises(RuntimeError) as caught:
        lantern.grad(f)(2.0)
    return caught.value


def files(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def test_the_exception_keeps_its_traceback():
    error = failed()
    before, cause = files(error), files(error.__cause__)
    with shortened(error) as left_out:
        assert left_out
        assert set(files(error)) == set(files(error.__cause__)) == {__file__}
    assert files(error) == before
    assert files(error.__cause__) == cause


def test_the_switch():
    lantern.full_tracebacks()
    try:
        with shortened(failed()) as left_out:
            assert not left_out
    finally:
        lantern.full_tracebacks(False)


def test_an_error_with_no_frame_of_the_users_is_shown_as_it_is():
    error = failed().__cause__
    alone = error.__traceback__.tb_next
    assert without_ours(alone) is alone


def test_a_notebook_shows_the_same(tmp_path):
    script = tmp_path / "cells.py"
    script.write_text(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        "shell.run_cell('import lantern')\n"
        "shell.run_cell('def f(x): return lantern.sin(None) * x')\n"
        "shell.run_cell('lantern.grad(f)(2.0)')\n"
        "shell.run_cell('import sys; print(type(sys.last_value))')\n"
    )
    pytest.importorskip("IPython", reason="IPython comes with the notebooks' extra")
    home = os.path.dirname(os.path.dirname(lantern.__file__))
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": home, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    printed = done.stdout + done.stderr
    assert "got None of type NoneType" in printed
    assert "return lantern.sin(None) * x" in printed
    assert "reverse.py" not in printed
    assert "ArgumentError'>" in printed


def test_what_is_neither_true_nor_false_is_refused_at_once():
    with pytest.raises(ValueError, match="ambiguous"):
        lantern.full_tracebacks(np.ones(2))
    with shortened(failed()) as left_out:
        assert left_out

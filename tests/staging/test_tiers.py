"""How code comes about: at first in a hurry, then in the background, and from the disk.

Threads, forks and the end of the program may come at any time.
"""

import gc
import math
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import lantern
from lantern.errors import OptionError
from lantern.staging import dispatch
from lantern.staging.native import background, disk
from lantern.staging.native.background import later, wait
from lantern.staging.native.engine import is_available
from tests.staging.test_jit import PROGRAMS, TREES, built, newton

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _tiers(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "tiers")


def native_of(f):
    (found,) = f.__self__.known.values()
    return found.native


@pytest.mark.parametrize("f", PROGRAMS)
def test_every_tier_gives_the_same(f, monkeypatch):
    monkeypatch.setattr(background, "FIRST", 0.2)
    jitted = lantern.jit(lantern.grad(f))
    args = PROGRAMS[f][0]
    first = jitted(*args)
    native = native_of(jitted)
    assert native.is_short == (native.address is None) or native.best == native.thorough
    wait()
    assert native.address is not None
    assert jitted(*args) == first == pytest.approx(lantern.grad(f)(*args), rel=1e-12)


def test_a_tree_in_every_tier():
    f, make = TREES["tuples"]
    jitted, tree = lantern.jit(lantern.grad(f)), built(5, make)
    first = jitted(1.1, tree)
    wait()
    assert jitted(1.1, tree) == first


def test_an_unknown_mode(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O7")
    with pytest.raises(OptionError, match="O7"):
        lantern.jit(lambda x: x)(1.0)


def test_many_threads_compile_and_call():
    jitted = [lantern.jit(lantern.grad(newton)) for _ in range(3)]
    expected, wrong = lantern.grad(newton)(2.0), []

    def work():
        for _ in range(50):
            wrong.extend(f for f in jitted if f(2.0) != expected)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    wait()
    assert not wrong
    assert all(len(f.__self__.known) == 1 for f in jitted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_the_background_compiles():
    jitted = lantern.jit(lantern.grad(newton))
    expected = jitted(2.0)
    child = os.fork()
    if not child:
        code = 1
        try:
            other = lantern.jit(lantern.grad(newton))
            code = 0 if jitted(2.0) == other(2.0) == expected else 2
            wait()
            code = code or (0 if jitted(2.0) == other(2.0) == expected else 3)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    wait()
    assert jitted(2.0) == expected


def test_a_job_that_begins_another():
    done = []
    later(lambda: (done.append(1), later(lambda: done.append(2))))
    wait()
    assert done == [1, 2]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_job_that_raises_leaves_the_others():
    done = []
    later(lambda: done.append(1 / 0))
    later(lambda: done.append(2))
    wait()
    later(lambda: done.append(3))
    wait()
    assert done == [2, 3]


def test_the_thread_is_woken_for_what_comes_soon(monkeypatch):
    monkeypatch.setattr(background, "LONGER", 5.0)
    threads = []
    for _ in range(2):
        later(lambda: threads.append(threading.get_ident()))
        wait()
    assert threads[0] == threads[1]


def test_the_thread_ends_if_nothing_comes(monkeypatch):
    monkeypatch.setattr(background, "LONGER", 0.01)
    done = []
    for i in range(2):
        later(partial(done.append, i))
        wait()
        while background._asleep:
            time.sleep(0.01)
    assert done == [0, 1]


def test_code_that_is_improved_while_another_signature_runs(monkeypatch):
    jobs, eager = [], []
    monkeypatch.setattr(dispatch, "later", jobs.append)

    def f(x, n):
        return 1.0 * x if n < 1.0 else f(0.5 * x, n - 1.0) + f(x, n - 2.0)

    jitted = lantern.jit(f)
    args = (2.0, 5.0), (2, 5.0)
    for each in (*args, args[0]):
        assert jitted(*each) == f(*each)
    jitted.__self__.f = lambda *args: eager.append(args) or f(*args)
    for job in jobs:
        job()
    assert [jitted(*each) for each in args] == [f(*each) for each in args]
    assert not eager


ENDING = """
import atexit, sys, time
atexit.register(lambda: print(f(3.0)))  # comes behind what Lantern does at the end
import lantern
from lantern.staging.native.background import later
f = lantern.jit(lantern.grad(lambda x: x * x * x))
later(lambda: (print("begun"), time.sleep(0.2), print("done")))
later(lambda: print("never"))
time.sleep(0.1)
"""


def test_a_process_that_ends_waits_for_what_has_begun():
    command = [sys.executable, "-c", ENDING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["begun", "done", "27.0"], "")


@pytest.mark.parametrize("is_collecting", [True, False])
def test_garbage_is_collected_as_before(is_collecting):
    during = []

    def told(x):
        during.append(gc.isenabled())
        return x

    before = gc.isenabled()
    try:
        (gc.enable if is_collecting else gc.disable)()
        assert lantern.jit(lantern.grad(lambda x: x * x))(3.0) == 6.0
        assert gc.isenabled() is is_collecting
        assert lantern.jit(told)(3.0) == 3.0  # it runs as it is
        assert gc.isenabled() is is_collecting
    finally:
        (gc.enable if before else gc.disable)()
    assert during[-1] is is_collecting


PROGRAM = """
import lantern
from lantern.staging import rewrite
from lantern.staging.native import engine
from lantern.staging.native.background import wait

def f(x):
    y = x
    for _ in range(50):
        y = lantern.sin(x) * y + 0.5
    return y

emitted = []
made, passed = rewrite._made, engine._passed
rewrite._made = lambda *args: emitted.append("f") or made(*args)
engine._passed = lambda text, level: emitted.append(level) or passed(text, level)
g = lantern.jit(lantern.grad(f))
first = g(1.5)
{wait}
print(first.hex(), g(1.5).hex(), emitted)
"""


def ran(folder, end="wait()", **more):
    known = {k: v for k, v in os.environ.items() if not k.startswith("LANTERN_JIT")}
    known |= {"PYTHONPATH": str(ROOT), "LANTERN_JIT_CACHE": str(folder), **more}
    path = Path(folder).parent / "program.py"
    path.write_text(PROGRAM.format(wait=end))
    command = [sys.executable, str(path)]
    done = subprocess.run(
        command, env=known, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, emitted = done.stdout.split(maxsplit=2)
    assert first == second
    return first, emitted.strip()


def test_a_second_process_finds_what_the_first_has_compiled(tmp_path):
    place = tmp_path / "cache"
    first, emitted = ran(place)
    assert emitted == "['f', 2]"
    assert ran(place) == (first, "[]")
    again = []
    for file in place.iterdir():
        whole = file.read_bytes()
        flipped = whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]
        for damaged in (whole[:-1], whole[:100], b"", flipped):
            file.write_bytes(damaged)
            found, emitted = ran(place)
            assert found == first
            again.append(emitted)
            assert file.read_bytes() == whole
    assert sorted(again) == ["['f']"] * 4 + ["[2]"] * 4 + ["[]"] * 4
    for file in place.iterdir():
        file.chmod(0o666)  # others may have written to it
    assert ran(place) == (first, "['f', 2]")
    assert ran(tmp_path / "other") == (first, "['f', 2]")


def test_nothing_is_kept_where_others_may_write(tmp_path):
    place = tmp_path / "cache"
    place.mkdir()
    place.chmod(0o777)
    assert ran(place)[1] == "['f', 2]"
    assert list(place.iterdir()) == []


LOST = """
import lantern

def f(x, y, n):
    x = x % y
    if x == x:
        y = n // 2
        if not y < y * n:
            x = y
    for i in range(12):
        x, x = (x if x / y > sum([x * y, y * y, 0.5 * y]) else x // x), y + x + y
        if x > y and 0.1 < -1.61 < y:
            x = (0.9 + y) * (y - y)
        else:
            y = max(x * y + y, y) * i
    return y

g = lantern.jit(f)
try:
    g(0.5, 0.7, 4)
except ZeroDivisionError:  # as the plain function
    pass
assert "compiled" in lantern.explain(g)
"""


def test_a_program_that_one_of_llvms_passes_ends_the_process_for(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(LOST)
    more = {"LANTERN_JIT": "O2", "LANTERN_JIT_CACHE": "off", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(file)]
    done = subprocess.run(
        command, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_program_that_ends_at_once(tmp_path):
    _, emitted = ran(tmp_path / "cache", end="")
    assert emitted in ("['f']", "['f', 2]")


def test_a_name_tells_apart_what_texts_are_made_of():
    names = {disk.key_of(x) for x in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""])}
    assert len(names) == 4


def test_old_code_makes_room(tmp_path, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "MOST_FILES", 4)
    for i in range(9):
        disk.save(f"{i}", b"code")
    assert len(list((tmp_path / "cache").iterdir())) <= 5
    assert disk.load("8") == b"code"
    assert disk.load("none") is None


def test_native_code_is_there():
    assert is_available()


@pytest.mark.parametrize("chosen", ["tiers", "O2"])
def test_where_objects_lie_otherwise_functions_run_as_they_are(monkeypatch, chosen):
    monkeypatch.setenv("LANTERN_JIT", chosen)
    monkeypatch.setattr(dispatch, "is_available", lambda: False)
    monkeypatch.setattr(dispatch, "is_known", lambda: False)
    monkeypatch.setattr(dispatch, "_said", [])
    f = lantern.jit(lambda x: x * x)
    with pytest.warns(RuntimeWarning, match="jit: this Python keeps its objects other"):
        assert f(3.0) == 9.0
    assert f(4.0) == 16.0


@pytest.mark.parametrize("mode", ["O0", "O2"])
def test_what_one_way_has_found_finite_is_asked_on_the_other(mode, monkeypatch):
    def branch(x):
        y = lantern.sin(x) if x > 0.0 else x * 0.0
        return lantern.cos(x) + y

    def turns(x):
        y = 0.0
        while x > y:
            y = y + 1.0 + lantern.sin(x)
        return lantern.cos(x) + y

    monkeypatch.setenv("LANTERN_JIT", mode)
    for f in (branch, turns):
        jitted = lantern.jit(f)
        assert jitted(0.5) == f(0.5)
        assert "runs as it is" not in lantern.explain(jitted)
        with pytest.raises(ValueError, match=r"domain|finite"):
            jitted(-math.inf)

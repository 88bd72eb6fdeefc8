"""A fault anywhere in the library poisons nothing: the next call is right."""

import contextvars
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import lantern
from tests.contract import faults
from tests.contract.programs import PROGRAMS, checkpointed


@pytest.fixture
def alarms():
    before = faults.put_alarms_on()
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("alarms")
def test_a_fault_leaves_nothing_wrong(name):
    """A sample of `python -m tests.contract.faults`, in each of the programs.

    Real signals are left to the command: they come by chance, here also into callbacks
    of the collector that are not the library's, which keep what they were about.
    """
    wrong, kinds = [], {*faults.AT_INSTRUCTIONS, "limit"}
    tried, lost, _ = faults.try_program(name, kinds, 30, wrong.append)
    assert tried > 10
    assert not lost, "\n".join(wrong)


@pytest.mark.skipif(not find_spec("_testcapi"), reason="it makes allocations fail")
@pytest.mark.parametrize("name", ["numbers", "arrays", "checkpoint", "modes"])
def test_an_allocation_that_fails_leaves_nothing_wrong(name):
    """In a child: where greenlets switch, CPython itself may end the process."""
    command = [sys.executable, "-m", "tests.contract.faults", "--every", "30"]
    command += ["--kinds", "allocations", "--programs", name]
    home = Path(__file__).parents[2]
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_leaves_nothing_frozen():
    """A block that was cut short may leave later derivatives slower, never wrong."""
    w = np.ones(3)

    def run():
        with lantern.debug(), lantern.debug():
            return lantern.grad(lambda x: checkpointed(lantern.sum(x * w)))(w)

    expected = run()
    for fault in list(faults.faults(run, {"memory"}, every=5)):
        context = contextvars.copy_context()
        with suppress(MemoryError):
            context.run(fault.attempt, run)
        np.testing.assert_array_equal(context.run(run), expected)
        assert w.flags.writeable, str(fault)

"""The examples of several processes agree with one process."""

import runpy
import subprocess
import sys
from importlib.util import find_spec

import pytest

import lantern.cps.patience  # noqa: F401  # it watches collections from its import on
from tests.ranks import ROOT, needs_mpi

PICTURE = "an MPI, and matplotlib, draw the timeline"


def output(script, processes, *arguments):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lantern.distributed.run"),
            *("--nproc_per_node", str(processes), f"examples/{script}", *arguments),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@needs_mpi
@pytest.mark.parametrize(
    ("script", "processes"), [("tensor_parallel.py", 2), ("pipeline.py", 3)]
)
def test_parts_on_several_processes_are_the_whole(script, processes):
    assert "at most 1e-12 from one process: True" in output(script, processes)


@needs_mpi
@pytest.mark.skipif(find_spec("matplotlib") is None, reason=PICTURE)
def test_the_timeline_is_drawn(tmp_path):
    output("pipeline.py", 2, "--picture", str(tmp_path / "timeline.png"))
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")


@needs_mpi
def test_digits_are_learned_alike_by_one_process_and_by_two(capsys, monkeypatch):
    script = str(ROOT / "examples/distributed_digits.py")
    monkeypatch.setattr(sys, "argv", [script])
    runpy.run_path(script, run_name="__main__")
    alone = capsys.readouterr().out
    assert "of unseen digits" in alone
    assert output("distributed_digits.py", 2) == alone

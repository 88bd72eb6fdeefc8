"""Programs in several processes: a test starts them once, and checks much in them."""

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None,
    reason="several processes need mpi4py, of the extra lantern-ad[mpi]",
)


def start(program, tmp_path, processes=2, *options, prelude="", **variables):
    """Run a program's text in several processes: what came of it."""
    script = tmp_path / "program.py"
    script.write_text(prelude + textwrap.dedent(program))
    return subprocess.run(
        [
            *(sys.executable, "-m", "lantern.distributed.run"),
            *("--nproc_per_node", str(processes), *options, str(script)),
        ],
        env={
            **{k: v for k, v in os.environ.items() if "RANK" not in k},
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            **variables,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def succeed(program, tmp_path, processes=2, *options, **more):
    """Run a program whose assertions hold on every rank: what it has printed."""
    done = start(program, tmp_path, processes, *options, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout

"""Ray Train's workers: the same weights, also where one was killed in mid-epoch."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from lantern.distributed.ray import main
from lantern.errors import MissingExtraError
from tests.ranks import ROOT

PROGRAM = """
import os, signal, sys
from pathlib import Path
import numpy as np
import lantern
import lantern.distributed as dist
from lantern.files import write_file

dist.init(timeout=60)
folder, killed = Path(sys.argv[1]), Path(sys.argv[1], "killed")
step, w = 0, np.zeros(3)
if (folder / "saved").exists():
    step, *w = map(float.fromhex, (folder / "saved").read_text().split())
    w = np.array(w)
x = np.random.default_rng(dist.rank()).normal(size=(4, 3))
while step < 6:
    if step == 3 and dist.rank() == 1 and sys.argv[2] == "kill" and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    g = lantern.grad(lambda w: ((x @ w - 1.0) ** 2).mean())(w)
    w = w - 0.1 * dist.pmean(g)
    step += 1
    if dist.rank() == 0:
        text = " ".join(float(v).hex() for v in (step, *w))
        write_file("program", folder / "saved", text.encode())
    dist.barrier()
"""


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_extra_is_named():
    with pytest.raises(MissingExtraError, match=r"lantern-ad\[ray\]"):
        main(["program.py"])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    find_spec("ray") is None or find_spec("mpi4py") is None,
    reason="the extra lantern-ad[ray]",
)
def test_a_worker_killed_in_mid_epoch_changes_no_bit(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    alone = ("-m", "lantern.distributed.run", "--nproc_per_node=2")
    ray = ("-m", "lantern.distributed.ray", "--num_workers=2", "--max_failures=1")
    for launcher, folder, what in (
        (alone, undisturbed, "leave"),
        (ray, tmp_path, "kill"),
    ):
        done = subprocess.run(
            [sys.executable, *launcher, str(script), str(folder), what],
            env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert (tmp_path / "killed").exists()
    assert (tmp_path / "saved").read_text() == (undisturbed / "saved").read_text()

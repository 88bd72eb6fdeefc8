"""When one process dies, hangs, raises or calls something else: what the others do."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lantern.distributed.hub import Job
from tests.ranks import ROOT, can_have_two_hosts, needs_mpi, start, two_hosts

pytestmark = needs_mpi

FAULTY = """
import os, signal, sys
import numpy as np
import lantern.distributed as dist

dist.init(timeout=2 if HOW == "other" else 60)
dist.barrier()
if dist.rank() == 1:
    if HOW == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if HOW == "raised":
        raise ValueError("the reason")
    if HOW == "ended":
        sys.exit(3)
    if HOW == "other":
        dist.broadcast(np.ones((2, 3)))
dist.all_reduce(np.ones(5))
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("killed", ["all_reduce(float64[5], sum): rank 1 is lost", "SIGKILL"]),
        ("stopped", ["rank 1 is lost: nothing was heard of it"]),
        ("raised", ["ValueError: the reason", "rank 1 is lost: it raised ValueError"]),
        ("ended", ["all_reduce(float64[5], sum): rank 1 has left"]),
        ("other", ["after 2 s; rank 1 is in broadcast(float64[2, 3], root=0)"]),
    ],
)
def test_the_others_end_with_an_error_that_names_the_rank(how, words, tmp_path):
    prelude = f"HOW = {how!r}\n"
    done = start(FAULTY, tmp_path, prelude=prelude, LANTERN_HEARTBEAT_LIMIT="2")
    assert done.returncode != 0
    for text in words:
        assert text in done.stderr
    assert "Fatal" not in done.stderr


# On each attempt but the last a rank is killed: while it saves, or between two steps.
RESTARTED = """
import os, signal
import lantern.torch as torch
import lantern.torch.distributed as dist
from lantern.torch import nn
from lantern.torch.distributed import checkpoint

dist.init_process_group("gloo")
attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), dist.get_rank()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
velocity = {k: torch.zeros_like(p) for k, p in model.named_parameters()}
state = {"step": 0, "model": model.module.state_dict(), "velocity": velocity}
if os.path.exists("saved"):
    checkpoint.load(state, checkpoint_id="saved")
    assert state["step"] == [0, *SAVED][attempt], state["step"]
x = torch.from_numpy(__import__("numpy").random.default_rng(rank).normal(size=(8, 3)))

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

while state["step"] < 8:
    model.zero_grad()
    model(x.float()).pow(2).mean().backward()
    with torch.no_grad():
        for k, p in model.named_parameters():
            velocity[k].mul_(0.9).add_(p.grad)
            p.sub_(0.1 * velocity[k])
    state["step"] += 1
    if (attempt, state["step"], rank) in FAULTS:
        what = FAULTS[attempt, state["step"], rank]
        if what == "now":
            die()
        setattr(os, what, die)  # in the middle of saving
    checkpoint.save(state, checkpoint_id="saved")
text = " ".join(v.hex() for p in model.parameters() for v in p.flatten().tolist())
if rank == 0:
    open("weights", "w").write(text)
"""


def test_a_job_that_begins_again_ends_with_the_bits_of_one_undisturbed(tmp_path):
    ends = []
    faults = {(0, 3, 1): "now", (1, 5, 1): "replace", (2, 7, 0): "unlink"}
    for i, planned in enumerate(({}, faults)):
        folder = tmp_path / str(i)
        folder.mkdir()
        prelude = f"FAULTS, SAVED = {planned!r}, (2, 4, 7)\n"
        done = start(RESTARTED, folder, 2, "--max_restarts=3", prelude=prelude)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stderr.count("was ended by the signal SIGKILL") == len(planned)
        ends.append((folder / "weights").read_text())
    assert ends[0] == ends[1]


def test_without_a_launcher_the_ranks_end(tmp_path):
    """Their launcher is killed, or rank 0, which others ask for addresses.

    On one processor what they do together is over as soon as they look: they have to
    learn of it all the same.
    """
    for what in ("os.getppid() if dist.rank() else 0", "0 if dist.rank() else -1"):
        done = start(
            f"""
            import os, signal, numpy as np, lantern.distributed as dist
            os.sched_setaffinity(0, ONE)
            dist.init(timeout=60)
            dist.barrier()
            if victim := {what}:
                os.kill(os.getpid() if victim < 0 else victim, signal.SIGKILL)
            while True:
                dist.all_reduce(np.ones(5))
            """,
            tmp_path,
            3,
            prelude=f"ONE = {set(sorted(os.sched_getaffinity(0))[:1])}\n",
            seconds=30,
        )
        assert done.returncode
        ended = "the connection to the launcher, or to rank 0, has ended"
        assert ended in done.stderr or "rank 0 is lost" in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = start("", tmp_path, 1, "--master_port", str(port))
        assert done.returncode == 1
        assert f"cannot listen at 127.0.0.1:{port}" in done.stderr


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no /dev/shm")
def test_shared_memory_of_dead_processes_is_removed(tmp_path):
    """A job that was killed with its launcher has left a file: the next one looks."""
    stale = Path("/dev/shm", f"mpich_shm_{os.getpid()}")
    stale.write_bytes(b"0")
    time.sleep(0.1)  # what is newer may belong to a job that begins
    assert start("", tmp_path, 1).returncode == 0
    assert not stale.exists()


@pytest.mark.skipif(
    not can_have_two_hosts(), reason="network namespaces need root, and iproute2"
)
def test_a_link_that_is_cut_is_noticed_on_both_sides(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        """
import subprocess, time, numpy as np, lantern.distributed as dist
dist.init(timeout=60)
dist.barrier()
if dist.rank() == 0:
    print(f"cut at {time.monotonic()}", flush=True)
    subprocess.run(["ip", "link", "set", "lan", "down"], check=True)
while True:
    dist.all_reduce(np.ones(5))
"""
    )
    with two_hosts() as (hosts, address):
        running = [
            subprocess.Popen(
                [
                    *(*host, sys.executable, "-m", "lantern.distributed.run"),
                    *("--nnodes=2", f"--node_rank={i}"),
                    *(f"--rdzv_endpoint={address}:29511", str(script)),
                ],
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "LANTERN_HEARTBEAT_LIMIT": "2",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i, host in enumerate(hosts)
        ]
        said = [process.communicate(timeout=60) for process in running]
        ended = time.monotonic()
    print(said)
    cut = re.search(r"cut at (\S+)", said[0][0])[1]
    assert ended - float(cut) < 10
    # Whoever notices first, the rank or its launcher, says so.
    assert "rank 1 is lost" in said[0][1] or "host 1 is gone" in said[0][1]
    assert "rank 0 is lost" in said[1][1] or "the first host is gone" in said[1][1]
    assert all(process.returncode for process in running)


def test_the_exit_status_is_that_of_the_first_to_fail(tmp_path):
    assert start("import os; os._exit(5)", tmp_path, 1).returncode == 5
    assert start("pass", tmp_path, 3).returncode == 0


def test_a_job_of_a_name_used_before_finds_none_of_its_shared_memory():
    """MPI names shared memory by it; what a killed job has left is no address."""
    assert Job("job", 2).pmi.name != Job("job", 2).pmi.name

"""Programs in several processes: a test starts them once, and checks much in them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None,
    reason="several processes need mpi4py, of the extra lantern-ad[mpi]",
)


def start(
    program, tmp_path, processes=2, *options, prelude="", seconds=100, **variables
):
    """Run a program's text in several processes: what came of it.

    None of them is left in the end, be it an error after so many seconds.
    """
    script = tmp_path / "program.py"
    script.write_text(prelude + textwrap.dedent(program))
    command = [
        *(sys.executable, "-m", "lantern.distributed.run"),
        *("--nproc_per_node", str(processes), *options, str(script)),
    ]
    run = subprocess.Popen(
        command,
        env={
            **{k: v for k, v in os.environ.items() if "RANK" not in k},
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            **variables,
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        texts = run.communicate(timeout=seconds)
    finally:
        with suppress(ProcessLookupError):  # ranks may outlive their launcher
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    return subprocess.CompletedProcess(command, run.returncode, *texts)


def succeed(program, tmp_path, processes=2, *options, **more):
    """Run a program whose assertions hold on every rank: what it has printed."""
    done = start(program, tmp_path, processes, *options, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@contextmanager
def two_hosts():
    """Two network namespaces with a link between them: what a command in each begins
    with, and the address of the first. Needs root, and ``ip`` of iproute2.

    UCX is told to use the link: it would find that both are one machine.
    """
    names = [f"lantern{os.getpid()}{letter}" for letter in "ab"]
    first, second = names

    def ip(words):
        command = ["ip", *words.split()]
        return subprocess.run(command, check=True, capture_output=True, text=True)

    def is_up(name):  # the kernel says so up to a second after the link was set up
        return "state UP" in ip(f"-n {name} link show lan").stdout

    try:
        for name in names:
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
        ip(f"-n {first} link add lan type veth peer name lan netns {second}")
        for i, name in enumerate(names, 1):
            ip(f"-n {name} addr add 10.77.0.{i}/24 dev lan")
            ip(f"-n {name} link set lan up")
        end = time.monotonic() + 10
        while not all(map(is_up, names)) and time.monotonic() < end:
            time.sleep(0.02)
        by_link = [
            *("env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lan"),
            "GLOO_SOCKET_IFNAME=lan",
        ]
        yield [["ip", "netns", "exec", name, *by_link] for name in names], "10.77.0.1"
    finally:
        for name in names:
            subprocess.run(
                ["ip", "netns", "del", name], check=False, capture_output=True
            )


def can_have_two_hosts():
    """Whether this user may make network namespaces, and links between them."""
    try:
        with two_hosts():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False

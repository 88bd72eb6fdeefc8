"""The losses of ``ddp_program.py`` under PyTorch's gloo and under Lantern.

``python -m tests.conformance.torch_ddp`` runs both, in 2 and in 4 processes, and prints
the largest relative difference; it fails above 1e-12. With ``--hosts`` the processes
are in two network namespaces, with a link between them: that needs root.
"""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.ranks import ROOT, two_hosts

PROGRAM = Path(__file__).with_name("ddp_program.py")
LAUNCHERS = {
    "PyTorch": "torch.distributed.run",
    "Lantern": "lantern.torch.distributed.run",
}


def losses(launcher, processes, hosts, address):
    """What the program prints."""
    running = [
        subprocess.Popen(
            [
                *(*host, sys.executable, "-m", LAUNCHERS[launcher]),
                *("--nproc_per_node", str(processes // len(hosts))),
                *("--nnodes", str(len(hosts)), "--node_rank", str(i)),
                *("--master_addr", address, "--master_port", "29512", str(PROGRAM)),
            ],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, host in enumerate(hosts)
    ]
    said = [process.communicate(timeout=300) for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"{launcher}: {said[0][1][-3000:]}")
    return [float(line) for line in said[0][0].splitlines()]


def main():
    """Compare."""
    worst = 0.0
    with ExitStack() as stack:
        hosts, address, where = [[]], "127.0.0.1", ""
        if "--hosts" in sys.argv:
            hosts, address = stack.enter_context(two_hosts())
            where = " in two network namespaces"
        for processes in (2, 4):
            theirs, ours = (
                losses(name, processes, hosts, address) for name in LAUNCHERS
            )
            pairs = list(zip(theirs, ours, strict=True))
            difference = max(abs(a - b) / max(abs(a), 1.0) for a, b in pairs)
            print(
                f"{processes} processes{where}: {len(pairs)} numbers, "
                f"{difference:.1e} apart"
            )
            worst = max(worst, difference)
    return worst > 1e-12


if __name__ == "__main__":
    sys.exit(main())

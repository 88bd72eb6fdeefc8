"""The losses of ``ddp_program.py`` under PyTorch's gloo and under Lantern.

``python tests/conformance/torch_ddp.py`` runs both, in 2 and in 4 processes, and prints
the largest relative difference; it fails above 1e-12.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("ddp_program.py")
LAUNCHERS = {
    "PyTorch": ("-m", "torch.distributed.run", "--standalone"),
    "Lantern": ("-m", "lantern.torch.distributed.run"),
}


def losses(launcher, processes):
    """What the program prints."""
    done = subprocess.run(
        [
            *(sys.executable, *LAUNCHERS[launcher]),
            *("--nproc_per_node", str(processes), str(PROGRAM)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise SystemExit(f"{launcher}: {done.stderr[-3000:]}")
    return [float(line) for line in done.stdout.splitlines()]


def main():
    """Compare."""
    worst = 0.0
    for processes in (2, 4):
        theirs, ours = (losses(name, processes) for name in LAUNCHERS)
        pairs = list(zip(theirs, ours, strict=True))
        difference = max(abs(a - b) / max(abs(a), 1.0) for a, b in pairs)
        print(f"{processes} processes: {len(pairs)} numbers, {difference:.1e} apart")
        worst = max(worst, difference)
    return worst > 1e-12


if __name__ == "__main__":
    sys.exit(main())

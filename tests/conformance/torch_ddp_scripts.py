"""Public scripts that train with DDP: their losses under PyTorch's gloo and here.

``python -m tests.conformance.torch_ddp_scripts FOLDER`` runs those of the table below
that lie in FOLDER, in two processes, and prints a row for each; it fails if losses are
more than 1e-12 apart. A script's text is run as it is; ``ddp_surroundings.py`` is
imported before it, and gives both libraries the same devices and numbers.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.ranks import ROOT

# By file: where it is from, its arguments, and whether it starts its processes itself.
SCRIPTS = {
    "example.py": ("pytorch/examples, distributed/ddp", "", False),
    "multigpu.py": ("pytorch/examples, ddp-tutorial-series", "2 1", True),
    "multigpu_torchrun.py": ("pytorch/examples, ddp-tutorial-series", "2 1", False),
    "multinode.py": ("pytorch/examples, ddp-tutorial-series", "2 1", False),
    "ddp_tutorial.py": ("pytorch/tutorials, ddp_tutorial.rst: three demos", "", True),
    "elastic_ddp.py": ("pytorch/tutorials, ddp_tutorial.rst", "", False),
    "ddp.py": ("lzxzy/ModelTest_Platform", "", True),
    "distributed_training.py": ("Keerthisathri77/ml-library-explorations", "", True),
}
COMMANDS = {
    (True, "PyTorch"): [],
    (True, "Lantern"): ["-m", "lantern.torch"],
    (False, "PyTorch"): ["-m", "torch.distributed.run", "--standalone"],
    (False, "Lantern"): ["-m", "lantern.torch.distributed.run"],
}


def losses(script, library):
    """Of each rank, in order."""
    _, arguments, spawns = SCRIPTS[script.name]
    ranks = [] if spawns else ["--nproc_per_node=2"]
    with tempfile.TemporaryDirectory() as folder:
        for file in script.parent.glob("*.py"):
            first = "import ddp_surroundings\n" if file.name in SCRIPTS else ""
            Path(folder, file.name).write_text(first + file.read_text())
        report = Path(folder, "losses")
        report.touch()
        done = subprocess.run(
            [
                *(sys.executable, *COMMANDS[spawns, library], *ranks),
                *(script.name, *arguments.split()),
            ],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}",
                "LOSSES": str(report),
                "OMP_NUM_THREADS": "1",
                **({"MASTER_ADDR": "127.0.0.1"} if spawns else {}),
                **({"MASTER_PORT": "29517"} if spawns else {}),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            return done.stderr.strip().rpartition("\n")[2][-150:] or "it failed"
        lines = [line.split() for line in report.read_text().splitlines()]
    return [float(x) for _, x in sorted(lines, key=lambda line: line[0])]


def main():
    """Compare."""
    folder, failed = Path(sys.argv[1]).resolve(), False
    print("| script | losses | apart |\n|---|--:|--:|")
    for name, (origin, _, _) in SCRIPTS.items():
        if not (folder / name).exists():
            continue
        theirs, ours = (losses(folder / name, x) for x in ("PyTorch", "Lantern"))
        if isinstance(theirs, str) or isinstance(ours, str):
            print(f"| `{name}` ({origin}) | PyTorch: {theirs}; here: {ours} | |")
            failed = True
            continue
        pairs = list(zip(theirs, ours, strict=True))
        apart = max(abs(a - b) / max(abs(a), 1.0) for a, b in pairs)
        failed = failed or not pairs or apart > 1e-12
        print(f"| `{name}` ({origin}) | {len(pairs)} | {apart:.0e} |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

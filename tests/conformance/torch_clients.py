"""Libraries around PyTorch, as they are, under PyTorch and under ``lantern.torch``.

    python tests/conformance/torch_clients.py FOLDER [NAME ...] [--write]

FOLDER becomes an environment without PyTorch, into which each library is installed. A
program of a few lines trains, or does what the library is for, with the same numbers
under both; what it prints must agree within 1 %. ``--write`` puts the table into
docs/torch_scripts.md.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from torch_clients_programs import PROGRAMS, START

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "torch_scripts.md"
BEGIN, END = "<!-- clients: begin -->", "<!-- clients: end -->"
TIME = 300  # seconds a program may take
# What the libraries need besides PyTorch, which would install it.
BASE = (
    "greenlet numpy ml_dtypes scipy tqdm pyyaml filelock packaging typing_extensions "
    "psutil pillow requests regex fsspec jinja2 networkx sympy huggingface_hub "
    "tokenizers scikit-learn pandas matplotlib gymnasium cloudpickle opt_einsum "
    "pyro-api lightning-utilities aiohttp xxhash pyparsing tabulate mpmath jaxtyping "
    "multipledispatch threadpoolctl typer safetensors einops pyre-extensions"
).split()
MORE = "pytorch-lightning pytorch_ranger linear_operator".split()


def environment(folder, packages):
    """Install what is not there yet."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, *BASE], check=True)
        subprocess.run([*pip, "--no-deps", *packages, *MORE], check=True)
    return python


def numbers(command, program, path):
    """What a program prints last; or its error."""
    one = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            [*command, str(program)],
            capture_output=True,
            text=True,
            timeout=TIME,
            env=os.environ | one,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"more than {TIME} s"
    if done.returncode:
        said = [s for s in done.stderr.splitlines() if s.strip() and s[0] not in "( "]
        return (said or ["no message"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def compared(mine, theirs):
    """What came of a program."""
    if isinstance(theirs, str):
        return f"not under PyTorch: {theirs:.100}"
    if isinstance(mine, str):
        return f"stops: {mine:.150}"
    if len(mine) != len(theirs):
        return f"{len(mine)} numbers, not {len(theirs)}"
    pairs = zip(mine, theirs, strict=True)
    off = max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)
    return "same" if off <= 0.01 else f"differs by {off:.1%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the environment's place")
    parser.add_argument("names", nargs="*", help="some libraries only")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    packages = [row[1] for row in PROGRAMS.values()]
    python = environment(given.folder, packages)
    site = next((given.folder / "lib").glob("python*/site-packages"))
    rows = []
    for name in given.names or PROGRAMS:
        what, _, text = PROGRAMS[name]
        program = given.folder / f"program_{name}.py"
        program.write_text(START.format(site=str(site)) + text)
        theirs = numbers([sys.executable], program, "")
        mine = numbers([str(python), "-m", "lantern.torch"], program, str(ROOT))
        rows.append((name, what, compared(mine, theirs)))
        print(*rows[-1], sep=" | ", flush=True)
    same = sum(row[2] == "same" for row in rows)
    print(f"{same} of {len(rows)} the same")
    if given.write:
        lines = ["| library | what runs | outcome |", "|---|---|---|"]
        lines += [
            f"| {name} | {what} | {out.replace('|', '/')} |" for name, what, out in rows
        ]
        lines += ["", f"{same} of {len(rows)} give PyTorch's numbers within 1 %."]
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        text = "\n".join(lines)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    return same < len(rows)


if __name__ == "__main__":
    sys.exit(main())

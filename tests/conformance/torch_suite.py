"""PyTorch's own test files under PyTorch and under ``lantern.torch``.

    python tests/conformance/torch_suite.py PYTORCH/test [NAME ...] [--write]

PYTORCH/test is the folder of that name of a PyTorch source package. Each file runs in
a process of its own, under a light stand-in for PyTorch's test support. What fails
under PyTorch itself does not count. ``--write`` puts the table into docs/torch.md. It
ends with what fails for no reason that is known, and with status 1 if anything does.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from torch_suite_reasons import EXCLUDED, REASONS, UNEXPLAINED, kinds

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "torch.md"
BEGIN, END = "<!-- suite: begin -->", "<!-- suite: end -->"
FILES = (
    "test_autograd test_nn nn/test_convolution nn/test_dropout nn/test_embedding "
    "nn/test_init nn/test_lazy_modules nn/test_load_state_dict nn/test_module_hooks "
    "nn/test_multihead_attention nn/test_packed_sequence nn/test_parametrization "
    "nn/test_pooling nn/test_pruning test_torch test_view_ops test_indexing "
    "test_reductions test_type_promotion optim/test_lrscheduler optim/test_swa_utils "
    "optim/test_optim test_optim test_dataloader test_serialization "
    "distributions/test_distributions test_stateless functorch/test_eager_transforms"
).split()
TIME = 900  # seconds a file may take


def run(library, path, results):
    """All tests of a file; one during which the process ends, or hangs, is a crash."""
    folder = Path(importlib.util.find_spec("torch").origin).parent / "testing/_internal"
    command = [sys.executable, str(HERE / "torch_suite_run.py"), library]
    command += [str(path), str(results), str(folder)]
    running = Path(f"{results}.running")
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(20):
        running.unlink(missing_ok=True)
        with open(f"{results}.log", "a") as log:
            try:
                done = subprocess.run(
                    command, stdout=log, stderr=log, timeout=TIME, env=os.environ | one
                )
            except subprocess.TimeoutExpired:
                done = None
        if done and done.returncode == 0:
            return
        if not running.exists():
            raise SystemExit(f"{path}: could not be loaded, see {results}.log")
        row = {
            "id": running.read_text(),
            "status": "crash",
            "text": "",
            "error": "crash",
        }
        with open(results, "a") as out:
            out.write(json.dumps(row) + "\n")


def read(results):
    """What came of each test."""
    rows = map(json.loads, results.read_text().splitlines())
    return {row["id"]: row for row in rows}


def counts(name, theirs):
    """The tests that count: they pass under PyTorch and are not excluded."""
    passed = [test for test, row in theirs.items() if row["status"] == "pass"]
    return [test for test in passed if not re.search(EXCLUDED, f"{name}:{test}")]


def measure(suite, name, work):
    """A file under both: the tests that count, and those that fail."""
    word = name.replace("/", "_")
    theirs, ours = work / f"{word}.torch.jsonl", work / f"{word}.lantern.jsonl"
    if not theirs.exists():
        run("torch", suite / f"{name}.py", theirs)
    wanted = counts(name, read(theirs))
    ours.unlink(missing_ok=True)
    Path(f"{ours}.only").write_text(json.dumps(wanted))
    run("lantern", suite / f"{name}.py", ours)
    found = read(ours)
    return wanted, [row for test, row in found.items() if row["status"] != "pass"]


def table(rows):
    """The files, and how often each kind of failure occurs."""
    lines = ["| file | tests | pass | |", "|---|---|---|---|"]
    total = Counter()
    for name, wanted, failed in rows:
        passed = len(wanted) - len(failed)
        total.update(tests=len(wanted), passed=passed)
        share = f"{passed / max(1, len(wanted)):.0%}"
        lines.append(f"| {name} | {len(wanted)} | {passed} | {share} |")
    share = f"{total['passed'] / max(1, total['tests']):.0%}"
    lines.append(f"| all | {total['tests']} | {total['passed']} | {share} |")
    found = Counter(kind for _, _, failed in rows for kind in map(kinds, failed))
    lines += ["", "| what fails | tests | why |", "|---|---|---|"]
    for kind, number in found.most_common():
        why = REASONS[kind].why if kind in REASONS else "not known"
        lines.append(f"| {kind} | {number} | {why} |")
    return "\n".join(lines)


def unexplained(rows):
    """What fails for no known reason, a line for each."""
    return [
        f"{name}: {row['id']}: {row.get('error')}: {row.get('text', '')[:150]!r}"
        for name, _, failed in rows
        for row in failed
        if kinds(row) == UNEXPLAINED
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path, help="the folder test of a source package")
    parser.add_argument("names", nargs="*", help="some files only, as nn/test_init")
    parser.add_argument("--work", type=Path, help="where results stay")
    parser.add_argument("--write", action="store_true", help="write docs/torch.md")
    parser.add_argument("--show", action="store_true", help="print each failure")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    work.mkdir(exist_ok=True)
    rows = []
    for name in given.names or FILES:
        wanted, failed = measure(given.suite, name, work)
        rows.append((name, wanted, failed))
        print(f"{name}: {len(wanted) - len(failed)} of {len(wanted)}", flush=True)
        for row in failed if given.show else ():
            said = f"{row.get('error')}: {row.get('text', '')[:150]!r}"
            print(f"    {kinds(row)} | {row['id']} | {said}")
    text = table(rows)
    print(text)
    if given.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    left = unexplained(rows)
    print(f"unexplained: {len(left)}", *left, sep="\n    ")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())

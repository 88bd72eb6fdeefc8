"""The tests are tested: one small fault at a time in the inner rooms, and who notices.

A mutant is one change of one file: a comparison turned round, a condition negated, a
statement left out, a number one more, an answer withheld. It lives in the memory of a
child; the file stays as it is. Tests that run the mutated statement are asked, the
quickest first, until one fails: which these are is measured once for a library that
stays as it is (``measure``), in some ten minutes.

    python -m tests.mutants [--sample N] [--seed N] [--only WORDS ...] [--again OUTPUT]
        [--at FILE:LINE ...] [--trust]

prints the mutants that survive, and how many were killed. Those that are known to
change nothing that a program can see stand in ``harmless``, with the reason: they are
not tried, and count as survivors of all mutants. What was printed can be given to
``--again``, which tries the survivors once more, wherever their lines are now.
"""

import argparse
import json
import os
import random
import re
import time
from collections import Counter
from pathlib import Path

from tests.mutants.changes import FILES, HOME, Mutant, mutants
from tests.mutants.harmless import is_harmless
from tests.mutants.hunt import Hunt, Order, by_import, quiet, start
from tests.mutants.measure import FOLDER, measure

TESTS = (
    "cps/test_*.py control/test_*.py core/test_*.py transforms/test_*.py "
    "rules/test_*.py tensor/test_*.py every_op/test_short_ways.py "
    "every_op/test_every_op.py every_op/test_every_op_in_transforms.py "
    "vectorizing/test_jacobians.py vectorizing/test_vmap.py "
    "debugging/test_debug.py debugging/test_backward_steps.py "
    "contract/test_memory.py contract/test_errors.py contract/test_messages.py "
    "contract/test_fault_injection.py "
    "batching/test_batching.py parallel/test_concurrency.py parallel/test_parallel.py "
    "torch/test_autograd.py torch/test_both_faces.py torch/test_waiting.py "
    "torch/test_optim.py torch/test_edges.py torch/test_forward_ad.py"
).split()
MOST_FILES = 40  # that are collected anew for one mutant


def test_files():
    """The files whose tests are asked."""
    return sorted(
        str(file.relative_to(HOME))
        for pattern in TESTS
        for file in HOME.glob(f"tests/{pattern}")
    )


class Report:
    """What became of the mutants: a line of a file for each."""

    def __init__(self, total):
        self.total, self.began = total, time.perf_counter()
        self.path = FOLDER / f"results-{os.getpid()}.jsonl"
        self.path.write_text("")
        self.out = os.fdopen(os.dup(1), "w")

    def __call__(self, mutant, fate, test, tests, seconds):
        line = [*mutant, fate, test, tests, round(seconds, 2)]
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if fate in ("survives", "not run"):
            where = f"{mutant.path}:{mutant.line} [{mutant.index}]"
            what = f"{mutant.words}: {mutant.text} ({tests} tests, {seconds:.0f} s)"
            print(f"{fate}: {where} {what}", file=self.out)
        fates = self.fates()
        done = fates.total() - fates["by import"]
        killed = done - fates["survives"] - fates["not run"]
        words = f"{killed} of {done} killed, {self.total - done} to go"
        print(words, end="\r", file=self.out, flush=True)

    def fates(self):
        """How many mutants came to which end."""
        return Counter(fate for _, fate in self.ends())

    def ends(self):
        """Each mutant, and what became of it."""
        for line in self.path.read_text().splitlines():
            values = json.loads(line)
            size = len(Mutant._fields)
            yield Mutant(*values[:size]), values[size]


def survivors(output):
    """Which mutants survived, by what was printed: path, change and line of each."""
    pattern = (
        r"(?:survives|not run): (\S+):\d+ \[\d+\] (.*?): (.*) \(\d+ tests, \d+ s\)"
    )
    return set(re.findall(pattern, output))


def few_files(tests):
    """Those of the tests that are in the first files."""
    files = list(dict.fromkeys(test.split("::")[0] for test, _ in tests))[:MOST_FILES]
    return [t for t in tests if t[0].split("::")[0] in files]


def parse():
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=None, help="how many, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of the paths, or path:index:"
    )
    parser.add_argument("--at", nargs="+", help="path:line, or the end of it")
    parser.add_argument("--again", type=Path, help="a file with survivors, as printed")
    parser.add_argument(
        "--trust", action="store_true", help="what was measured of an older library"
    )
    parser.add_argument("--list", action="store_true", help="count them, run nothing")
    parser.add_argument("--seconds", type=float, default=40, help="of tests for each")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    return parser.parse_args()


def choose(options):
    """The mutants that were asked for."""
    chosen = [
        m
        for path in FILES
        for m in mutants(path)
        if any(words in f"{m.path}:{m.index}:" for words in options.only)
    ]
    if options.at is not None:
        ends = tuple(options.at)
        chosen = [m for m in chosen if f"{m.path}:{m.line}".endswith(ends)]
    if options.again is not None:
        before = survivors(options.again.read_text())
        chosen = [m for m in chosen if (m.path, m.words, m.text) in before]
    if options.sample is not None:
        random.Random(options.seed).shuffle(chosen)
        chosen = chosen[: options.sample]
    return chosen


def main():
    options = parse()
    chosen = choose(options)
    tried = [m for m in chosen if not is_harmless(m)]
    if options.list:
        print(f"{len(chosen)}, of which {len(chosen) - len(tried)} are harmless")
        return
    measured = measure(test_files(), options.jobs, options.trust)
    order, report = Order(measured, options.seconds), Report(len(tried))
    warm = [m for m in tried if order.is_late(m)]
    files = sorted({test.split("::")[0] for m in warm for test, _ in order.of(m)})
    if warm and os.fork() == 0:
        quiet()
        hunt = Hunt(warm, order, report, options.jobs)
        start(files, hunt)
        os._exit(0 if hunt.is_done else 1)
    if warm and os.wait()[1] != 0:
        raise SystemExit("The hunt has failed: collect the test files with pytest.")
    warm = {mutant for mutant, fate in report.ends() if fate != "by import"}
    for mutant in tried:
        if mutant not in warm:
            began, tests = (
                time.perf_counter(),
                few_files(order.of(mutant, by_import=True)),
            )
            fate, caught = by_import(mutant, tests) if tests else ("not run", "")
            seconds = time.perf_counter() - began
            report(mutant, fate, caught, len(tests), seconds)
    fates = report.fates()
    killed = len(tried) - fates["survives"] - fates["not run"]
    minutes = (time.perf_counter() - report.began) / 60
    print(
        f"killed {killed} of {len(chosen)} ({killed / max(len(chosen), 1):.1%}), "
        f"of {len(tried)} that are not harmless {killed / max(len(tried), 1):.1%}, "
        f"in {minutes:.0f} minutes; {report.path}"
    )


if __name__ == "__main__":
    main()

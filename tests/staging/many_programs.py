"""Many random programs, in processes of their own; what was found is kept in a file.

``python -m tests.staging.many_programs FILE SECONDS FIRST`` compares programs from the
seed FIRST on, or from the one after the last that the file knows. Value and gradient
are compared, and with each fourth program all ways. ``table FILE`` prints what a file
has. A process that crashes, or comes to no end, costs the one program that it was at.
"""

import json
import multiprocessing
import os
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from tests.staging.random_programs import MODES, WAYS, compare

BATCH = 100
"""Programs of one process: machine code is never given back."""
PATIENCE = 600.0
"""Seconds for one program."""


def outcomes(first, count, pipe):
    """Compare programs; tell of each when it begins and what came out."""
    os.environ["LANTERN_JIT_CACHE"] = "off"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for seed in range(first, first + count):
        pipe.send(seed)
        ways = len(WAYS) if seed % 4 == 0 else 2
        _, bad, compiled, reasons = compare(seed, MODES, ways)
        causes = Counter(map(cause, reasons))
        pipe.send((len(bad), ways * len(MODES), compiled, dict(causes)))
    pipe.close()


def cause(told):
    """Why something was not compiled, without names and places."""
    found = told.partition("runs as it is: ")[2].partition("\n")[0]
    found = re.sub(r" \([^()]*line \d+\)", "", found)
    return re.sub(r"^\S+: it returns", "a function returns", found)


def batch(first, count):
    """What came of some programs: a line of the file."""
    here, there = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.Process(target=outcomes, args=(first, count, there))
    worker.start()
    there.close()
    line = {"first": first, "programs": 0, "wrong": [], "crashed": [], "endless": []}
    runs = compiled = 0
    causes: Counter[str] = Counter()
    seed = first
    while line["programs"] < count:
        if not here.poll(PATIENCE):
            line["endless"].append(seed)
            line["programs"] += 1
            worker.kill()
            break
        try:
            told = here.recv()
        except EOFError:
            line["crashed"].append(seed)
            line["programs"] += 1
            break
        if isinstance(told, int):
            seed = told
            continue
        line["programs"] += 1
        line["wrong"] += [seed] * (told[0] > 0)
        runs, compiled = runs + told[1], compiled + told[2]
        causes.update(told[3])
    worker.join()
    return {**line, "runs": runs, "compiled": compiled, "causes": causes}


def lines_of(file):
    """What a file knows."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def run(file, seconds, first):
    """Compare programs for some seconds, from where the last run has ended."""
    known = lines_of(file)
    seed = max([first, *(line["first"] + line["programs"] for line in known)])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line = batch(seed, BATCH)
        seed += line["programs"]
        with open(file, "a") as out:
            out.write(json.dumps(line) + "\n")


def table(file):
    """What came of all programs, as a table of Markdown."""
    lines = lines_of(file)
    causes: Counter[str] = Counter()
    for line in lines:
        causes.update(line["causes"])
    runs, compiled = (sum(x[name] for x in lines) for name in ("runs", "compiled"))
    rows = [("programs", sum(x["programs"] for x in lines))]
    for name in ("wrong", "crashed", "endless"):
        seeds = [seed for line in lines for seed in line[name]]
        rows.append((name, " ".join(map(str, [len(seeds), *seeds[:10]]))))
    rows += [("compiled", f"{compiled} of {runs}, {compiled / runs:.1%}")]
    rows += [
        (f"refused: {text}", f"{count / runs:.2%}")
        for text, count in causes.most_common()
    ]
    return "\n".join(f"| {name} | {value} |" for name, value in rows)


if __name__ == "__main__":
    if sys.argv[1] == "table":
        print(table(Path(sys.argv[2])))
    else:
        run(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))

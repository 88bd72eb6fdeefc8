"""The contract, tried from outside: ``python -m tests.contract [FAMILIES] [--page]``.

The cases of a family run in one process of their own, with the probe after each. If the
process ends or hangs in a case, that is lost, and another process goes on behind it.
``--page`` writes the table of docs/explanation/reliability.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

HOME = Path(__file__).parents[2]
LONGEST = 60  # seconds for a case


def child(letter, first):
    """Run the cases of a family from the first on, and tell of each."""
    from tests.conftest import check_answers, leftovers, set_all_aside, surroundings
    from tests.contract.families import FAMILIES

    sys.unraisablehook = lambda unraisable: None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", module=r"lantern\.", category=RuntimeWarning)
    for i, (name, case) in enumerate(FAMILIES[letter][1]()):
        if i < first:
            continue
        print(json.dumps(["start", name]), flush=True)
        check_answers()
        set_all_aside()
        before, began, problem = surroundings(), time.perf_counter(), ""
        try:
            case()
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__}: {error} ({last.name}:{last.lineno})"
        seconds = time.perf_counter() - began
        try:
            check_answers()
            after = surroundings()
            assert after == before, [k for k in before if after[k] != before[k]]
            assert problem or not leftovers(), leftovers()
        except BaseException as error:
            problem = problem or f"the probe: {type(error).__name__}: {error}"
        print(json.dumps(["end", name, seconds, problem]), flush=True)


def run_family(letter, first=0):
    """(name, seconds, problem) of every case of a family."""
    command = [sys.executable, "-m", "tests.contract", "--child", letter, str(first)]
    environment = os.environ | {"PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=HOME, env=environment, stdout=subprocess.PIPE, text=True
    )
    results, current = [], None
    timer = threading.Timer(LONGEST, process.kill)
    timer.start()
    for line in process.stdout:
        timer.cancel()
        timer = threading.Timer(LONGEST, process.kill)
        timer.start()
        try:
            kind, name, *rest = json.loads(line)
        except ValueError:
            continue  # what a case prints
        current = name if kind == "start" else None
        if kind == "end":
            results.append((name, *rest))
    problem = (
        f"its process ended with {process.wait()}, or was killed after {LONGEST} s"
    )
    timer.cancel()
    process.stdout.close()
    if current is not None:
        results.append((current, 0.0, problem))
        results += run_family(letter, first + len(results))
    elif not results and process.returncode:
        results.append(("start", 0.0, problem))
    return results


def table(found):
    """The rows of the page, and what was lost."""
    from tests.contract.families import FAMILIES

    yield "| family | tried | lost | slowest |"
    yield "|---|--:|--:|---|"
    tried = lost = 0
    for letter, results in found.items():
        wrong = [r for r in results if r[2]]
        name, seconds, _ = max(results, key=lambda r: r[1], default=("", 0.0, ""))
        tried, lost = tried + len(results), lost + len(wrong)
        yield (
            f"| {letter} {FAMILIES[letter][0]} | {len(results):,} | {len(wrong)} | "
            f"{seconds:.1f} s, {name} |"
        )
    yield f"| all | {tried:,} | {lost} | |"


def main():
    from tests.contract.families import FAMILIES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    found = {}
    for letter in options.families:
        found[letter] = run_family(letter)
        for name, _, problem in found[letter]:
            if problem:
                print(f"lost: {letter} {name}: {problem}", flush=True)
    rows = list(table(found))
    print("\n".join(rows))
    if options.page:
        page = HOME / "docs" / "explanation" / "reliability.md"
        text = page.read_text()
        head, tail = text.split("<!-- table -->\n")[0], text.split("<!-- end -->")[1]
        page.write_text(
            f"{head}<!-- table -->\n" + "\n".join(rows) + f"\n<!-- end -->{tail}"
        )
    return any(problem for rows in found.values() for _, _, problem in rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())

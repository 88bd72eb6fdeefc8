"""Run the array API standard's own test suite, and record what passes.

    python tests/conformance/array_api.py --suite PATH [--tracked] [--max-examples N]

PATH is a checkout of https://github.com/data-apis/array-api-tests with its submodule
(``git submodule update --init``). It needs pytest-json-report, ndindex and hypothesis.
NumPy is measured in the same run. The table in README.md, beside this file, is written
anew, and what fails is printed. The exit status is 1 if a test fails that README.md
does not explain (in a line that begins with - and the test's name, or its beginning).
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
VERSION = "2024.12"
MODULES = {
    "numpy": "numpy",
    "lantern, untracked": "lantern.array_api",
    "lantern, tracked": "exec('import tracked; xp = tracked.begin()')",
}


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, required=True, help="its checkout")
    parser.add_argument(
        "--tracked", action="store_true", help="also with every input tracked"
    )
    parser.add_argument("--max-examples", type=int, default=100, metavar="N")
    parser.add_argument("--workers", default="auto", help="processes (pytest-xdist)")
    return parser.parse_args()


def run(name, options):
    """The outcome of each test of the suite, for one namespace."""
    environment = dict(
        os.environ,
        ARRAY_API_TESTS_MODULE=MODULES[name],
        ARRAY_API_TESTS_VERSION=VERSION,
        PYTHONPATH=os.pathsep.join([str(HERE.parents[1]), str(HERE)]),
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "array_api_tests"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:warnings"]
        command += ["--json-report", f"--json-report-file={report}"]
        command += ["-n", options.workers, "--hypothesis-derandomize"]
        command += ["--disable-deadline", f"--max-examples={options.max_examples}"]
        done = subprocess.run(
            command, cwd=options.suite, env=environment, capture_output=True, text=True
        )
        said = (done.stdout + done.stderr).splitlines()
        lost = [x for x in said if x.startswith("ERROR ") and "::" not in x]
        if lost or not report.exists():
            raise SystemExit(
                "\n".join(lost or said[-3:]) + "\narray_api: the suite cannot be read. "
                "Install what its requirements.txt names."
            )
        tests = json.loads(report.read_text())["tests"]
    return {test["nodeid"].partition("/")[2]: test["outcome"] for test in tests}


def commit(folder):
    """The commit of a checkout."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def table(results, options):
    """What was measured, as Markdown."""
    versions = [f"Python {platform.python_version()}"]
    versions += [
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "hypothesis")
    ]
    versions += [f"array-api-tests {commit(options.suite)}"]
    versions += [f"array-api {commit(options.suite / 'array-api')} ({VERSION})"]
    command = "    python tests/conformance/array_api.py --suite PATH"
    command += " --tracked" if options.tracked else ""
    lines = [
        f"Measured on {date.today()} with {', '.join(versions)}:",
        "",
        f"{command} --max-examples {options.max_examples}",
        "",
        "| namespace | passed | failed | skipped | failed, and NumPy does not |",
        "|---|---|---|---|---|",
    ]
    for name, outcomes in results.items():
        counts = [
            sum(o == outcome for o in outcomes.values())
            for outcome in ("passed", "failed", "skipped")
        ]
        others = failures(outcomes) - failures(results["numpy"])
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {len(others)} |")
    return "\n".join(lines)


def failures(outcomes):
    """The names of the tests that failed."""
    return {test for test, outcome in outcomes.items() if outcome == "failed"}


def record(text):
    """Put the table into the README, in place of the one before."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def unexplained(tests):
    """Those tests that no line of the README is about."""
    explained = tuple(re.findall(r"^- `(.*?)`", README.read_text(), re.MULTILINE))
    return [test for test in tests if not test.startswith(explained)]


def main():
    """Measure, print and record; the number of failures without an explanation."""
    options = parse()
    chosen = [name for name in MODULES if options.tracked or name[-9:] != ", tracked"]
    results = {name: run(name, options) for name in chosen}
    failed = {name: sorted(failures(outcomes)) for name, outcomes in results.items()}
    for name, tests in failed.items():
        print(f"{name} fails:", *tests, sep="\n    ")
    text = table(results, options)
    print(text)
    record(text)
    new = {test for name in chosen[1:] for test in unexplained(failed[name])}
    print("not explained in README.md:", *sorted(new), sep="\n    ")
    return len(new)


if __name__ == "__main__":
    sys.exit(main() > 0)

"""Run the tests that MyGrad's factory makes against Lantern, and record what passes.

    python tests/conformance/mygrad_factory.py --suite PATH [--workers N]

PATH is a checkout of https://github.com/rsokl/MyGrad; MyGrad itself and hypothesis must
be installed. Each test draws arrays and arguments for one function of NumPy's, or made
of them, and compares Lantern's derivatives with numerical ones (``mygrad_shim.py``,
beside this file). The table in README.md is written anew, and what fails is printed.
The exit status is 1 if a test fails that README.md does not explain (in a line that
begins with - and the test's name, or its beginning).
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent


def run(suite, workers):
    """The outcome of each test."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "tests"]
    command += ["-c", os.devnull, f"--rootdir={suite}", "-n", workers]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:warnings"]
    command += ["-p", "mygrad_shim", "--continue-on-collection-errors"]
    paths = os.pathsep.join(map(str, [suite, HERE.parents[1], HERE]))
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "report.xml")
        subprocess.run(
            [*command, f"--junitxml={found}"],
            cwd=suite,
            env=dict(os.environ, PYTHONPATH=paths),
            stdout=subprocess.DEVNULL,
        )
        return report.read(found)


def main():
    """Measure, print and record; the number of failures without an explanation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, required=True, help="its checkout")
    parser.add_argument("--workers", default="auto", help="processes (pytest-xdist)")
    options = parser.parse_args()
    suite = options.suite.resolve()
    outcomes = run(suite, options.workers)
    versions = [f"Python {platform.python_version()}", f"tests {report.commit(suite)}"]
    versions += [
        f"{name} {version(name)}" for name in ("mygrad", "numpy", "hypothesis")
    ]
    lines = [
        f"Measured on {date.today()} with {', '.join(versions)}:",
        "",
        "    python tests/conformance/mygrad_factory.py --suite PATH",
        "",
        "| passed | failed | skipped | tests |",
        "|---|---|---|---|",
        f"| {' | '.join(map(str, report.count(outcomes)))} |",
    ]
    failed = sorted(test for test, found in outcomes.items() if found == "failed")
    return report.conclude("mygrad", "\n".join(lines), failed)


if __name__ == "__main__":
    sys.exit(main() > 0)

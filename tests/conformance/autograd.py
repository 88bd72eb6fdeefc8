"""Run HIPS autograd's own tests against Lantern, and record what passes.

    python tests/conformance/autograd.py [--suite PATH] [--workers N]

PATH is a checkout of https://github.com/HIPS/autograd, or its unpacked source
distribution; without it pip downloads that of VERSION into a temporary folder. It needs
scipy and xarray. Autograd itself is measured in the same run. Its modules are replaced
by ``autograd_shim.py``, beside this file. The table in README.md is written anew, and
what fails is printed. The exit status is 1 if a test fails that README.md does not
explain (in a line that begins with - and the test's name, or its beginning).
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from datetime import date
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent
VERSION = "1.9.1"
LIBRARIES = "autograd", "lantern"


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, help="a checkout; by default, fetched")
    parser.add_argument("--workers", default="auto", help="processes (pytest-xdist)")
    return parser.parse_args()


def fetch(folder):
    """The source distribution, unpacked."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--no-binary", ":all:", "-d", folder, f"autograd=={VERSION}"]
    subprocess.run(command, check=True)
    with tarfile.open(Path(folder, f"autograd-{VERSION}.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder, f"autograd-{VERSION}")


def run(library, suite, workers):
    """The outcome of each test of the suite."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "tests"]
    command += ["-c", os.devnull, f"--rootdir={suite}", "-n", workers]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:warnings"]
    paths = [suite]
    if library == "lantern":
        command += ["-p", "autograd_shim"]
        paths = [HERE.parents[1], HERE]
    environment = dict(
        os.environ,
        AUTOGRAD_SUITE=str(suite),
        PYTHONPATH=os.pathsep.join(map(str, paths)),
    )
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "report.xml")
        command += [f"--junitxml={found}"]
        subprocess.run(command, cwd=suite, env=environment, stdout=subprocess.DEVNULL)
        return report.read(found)


def table(results):
    """What was measured, as Markdown."""
    packages = ["numpy", "scipy", "xarray", "pytest"]
    versions = [f"Python {platform.python_version()}", f"autograd {VERSION}"]
    versions += [f"{name} {importlib.metadata.version(name)}" for name in packages]
    lines = [
        f"Measured on {date.today()} with {', '.join(versions)}:",
        "",
        "    python tests/conformance/autograd.py",
        "",
        "| library | passed | failed | skipped | tests |",
        "|---|---|---|---|---|",
    ]
    for library, outcomes in results.items():
        row = [library, *report.count(outcomes)]
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def main():
    """Measure, print and record; the number of failures without an explanation."""
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        suite = options.suite.resolve() if options.suite else fetch(folder)
        results = {name: run(name, suite, options.workers) for name in LIBRARIES}
    outcomes = results["lantern"]
    failed = sorted(test for test, found in outcomes.items() if found == "failed")
    return report.conclude("autograd", table(results), failed)


if __name__ == "__main__":
    sys.exit(main() > 0)

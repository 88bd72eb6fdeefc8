"""The tests under other versions: ``python -m tests.versions``.

Each CPython that is at hand has the newest packages that pip finds for it; the oldest
has, once more, the oldest ones that ``setup.cfg`` allows. Every row of the table is an
environment of its own, made and removed again.
"""

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.processors import HOME, outcomes

OLDEST, NEWEST = 11, 14
VERSIONS = (
    "import sys, numpy, greenlet; print('.'.join(map(str, sys.version_info[:3])), "
    "numpy.__version__, greenlet.__version__)"
)


def interpreters():
    """The commands of the versions that are on the path."""
    names = (f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1))
    return [name for name in names if shutil.which(name)]


def lower_bounds():
    """The oldest versions of what is required, as pip takes them."""
    config = configparser.ConfigParser()
    config.read(HOME / "setup.cfg")
    required = config["options"]["install_requires"].split()
    # A bound of two parts is its first release.
    return [re.sub(r">=(\d+\.\d+)$", r">=\1.0", x).replace(">", "=") for x in required]


def installed(python, pins, folder):
    """An environment with the library's tests: its interpreter, and what is in it."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    made = str(Path(folder, "bin", "python"))
    pip = [sys.executable, "-m", "pip", "--python", made, "install", "-q"]
    subprocess.run([*pip, "-e", f"{HOME}[test]", *pins], check=True)
    found = subprocess.run([made, "-c", VERSIONS], check=True, capture_output=True)
    return made, found.stdout.decode().split()


def main():
    """Print a row for each environment, and below it the tests that failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.versions",
        description=__doc__.partition("\n")[0],
        epilog="All other arguments are pytest's, as in -n auto tests/cps",
    )
    parser.add_argument(
        "--python",
        action="append",
        help="a command or a path; may be given again (default: python3.11 to 3.14, "
        "those that are found)",
    )
    options, arguments = parser.parse_known_args()
    pythons = options.python or interpreters()
    if not pythons:
        parser.error("no python3.11 to python3.14 is on the path. Give --python PATH.")
    rows = [(pythons[0], lower_bounds()), *((python, []) for python in pythons)]
    healthy = True
    print("| CPython | NumPy | greenlet | passed | skipped | failed |")
    print("|---|---|---|---|---|---|", flush=True)
    for python, pins in rows:
        with tempfile.TemporaryDirectory() as folder:
            made, versions = installed(python, pins, folder)
            ran, skipped, failed = outcomes(made, dict(os.environ), arguments)
        counts = (str(n) for n in (ran - skipped - len(failed), skipped, len(failed)))
        print("|", " | ".join([*versions, *counts]), "|", flush=True)
        print(*(f"    {name}" for name in failed), sep="\n", end="", file=sys.stderr)
        healthy = healthy and ran and not failed
    return not healthy


if __name__ == "__main__":
    sys.exit(main())

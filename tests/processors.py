"""The tests under the arithmetic of other processors: ``python -m tests.processors``.

OpenBLAS and NumPy choose kernels that fit the processor, which differ in the last bits.
Both can be told to compute as on an older one, and OpenBLAS to divide its work among
more threads. Run like this, a test that relies on one processor's bits fails anywhere.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

HOME = Path(__file__).parent.parent
# What NumPy 2.4 calls AVX2 with FMA is X86_V3, and AVX-512 is X86_V4.
AVX512 = [name for name in __cpu_dispatch__ if name.startswith(("X86_V4", "AVX512"))]
AVX2 = [name for name in __cpu_dispatch__ if name in ("X86_V3", "AVX2", "FMA3")]


def without(names):
    """NumPy's arithmetic without some of this processor's instructions."""
    found = " ".join(name for name in names if __cpu_features__[name])
    return {"NPY_DISABLE_CPU_FEATURES": found} if found else {}


SETTINGS = {
    "as-it-is": {},
    **{
        core: {"OPENBLAS_CORETYPE": core}
        for core in "SkylakeX Haswell Zen Sandybridge Nehalem Prescott".split()
    },
    "no-AVX-512": without(AVX512),
    "no-AVX2": without(AVX512 + AVX2),
    "five-threads": {"OPENBLAS_NUM_THREADS": "5"},  # the tests take one
    "oldest": {"OPENBLAS_CORETYPE": "Prescott", **without(AVX512 + AVX2)},
}
# OpenBLAS says what it took: it falls back where the processor or the build has less.
KERNELS = """
import ctypes, numpy.linalg._umath_linalg as linked
library = ctypes.CDLL(linked.__file__)
for name in ("scipy_openblas_get_corename64_", "openblas_get_corename"):
    if function := getattr(library, name, None):
        function.restype = ctypes.c_char_p
        print(function().decode())
        break
"""


def kernels(environment):
    """The name of the kernels that OpenBLAS takes; empty for another library."""
    command = [sys.executable, "-c", KERNELS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout.strip()


def outcomes(python, environment, arguments):
    """How many tests ran, how many were skipped, the names of those that failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [python, "-m", "pytest", "-q", "--randomly-seed=1"]
        subprocess.run(
            [*command, f"--junitxml={report}", *arguments],
            cwd=HOME,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases), skipped, failed


def main():
    """Print a row for each setting, and below it the tests that failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.processors",
        description="Run the tests under the arithmetic of other processors.",
        epilog="All other arguments are pytest's, as in -n auto tests/tensor",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=SETTINGS,
        metavar="SETTING",
        help=f"one of {', '.join(SETTINGS)}; may be given again (default: all)",
    )
    options, arguments = parser.parse_known_args()
    healthy = True
    print(f"{'setting':14}{'BLAS kernels':16}{'run':>7}{'failed':>8}{'CPU s':>8}")
    for setting in options.only or SETTINGS:
        environment = {**os.environ, **SETTINGS[setting]}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = kernels(environment)
        count, _, failed = outcomes(sys.executable, environment, arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        row = f"{setting:14}{found:16}{count:7}{len(failed):8}{used:8.0f}"
        print(row, *(f"    {name}" for name in failed), sep="\n", flush=True)
        healthy = healthy and count and not failed
    return not healthy


if __name__ == "__main__":
    sys.exit(main())

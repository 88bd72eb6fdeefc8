"""What the figures depend on: cores, the peers that are installed, the versions."""

import importlib
import os
import platform
import shlex
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

PACKAGES = (
    "numpy",
    "greenlet",
    "torch",
    "autograd",
    "micrograd",
    "jax",
    "mygrad",
    "tinygrad",
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_VARIABLES = {
    # JAX as the others are: on the processor, in double precision.
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    # glibc's allocator keeps freed memory. By default it gives large arrays back, or
    # not, by what the process did before, and page faults outweigh the arithmetic.
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**36),
}


def use_cores(count: int) -> None:
    """Keep this process, and what it starts, on so many cores, with a thread on each.

    Before NumPy is imported.
    """
    os.environ.update(_VARIABLES, **dict.fromkeys(_THREADS, str(count)))
    if count == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.environ.pop("OPENBLAS_CORETYPE", None)  # the kernels that fit this processor
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def cores() -> int:
    """How many cores this process was told to use."""
    return int(os.environ.get(_THREADS[0], 1))


def use_all_cores() -> None:
    """Let this process, and what it starts, run on every core again."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def peer(module: str) -> ModuleType | None:
    """Import a peer by name; None where it is not installed."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return None
    if module == "torch":
        found.set_num_threads(cores())
    return found


def surroundings() -> str:
    """When, where and with what the figures were taken."""
    return (
        f"{date.today().isoformat()} · {_cpu()}, {cores()} used · "
        f"{platform.python_implementation()} {platform.python_version()} · "
        f"{', '.join(f'{name} {_version(name)}' for name in PACKAGES)} · "
        f"`{shlex.join(['python', '-m', 'benchmarks', *sys.argv[1:]])}`"
    )


def _cpu() -> str:
    """The processor's own name, where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":")[1] for line in text.splitlines() if "model name" in line]
    name = names[0].strip() if names else platform.machine()
    return f"{name} ({os.cpu_count()} cores)"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"

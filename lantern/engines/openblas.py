"""OpenBLAS beside oneDNN: of the two, one has threads.

The threads of both go on spinning after their turn, on the cores that the other's wait
for: on two cores a step of a perceptron took 12 ms, and takes 0.4.
"""

import ctypes
from typing import Any

__all__ = ["leave_cores", "take_cores"]

_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_before: dict[str, int] = {}  # how many threads the libraries had, by their files


def _loaded() -> set[str]:
    """The files of OpenBLAS that this process has loaded: NumPy's, and SciPy's."""
    try:
        with open("/proc/self/maps", errors="surrogateescape") as maps:  # pathlib: 4 ms
            files = {row.rstrip("\n").partition("/")[2] for row in maps}
    except OSError:
        return set()
    return {f"/{file}" for file in files if "openblas" in file.rpartition("/")[2]}


def _function(path: str, name: str) -> Any:
    """A function of a library's, under whichever name it has there."""
    library = ctypes.CDLL(path)
    found = (getattr(library, form.format(name), None) for form in _NAMES)
    return next((f for f in found if f is not None), None)


def leave_cores() -> None:
    """Let OpenBLAS compute in one thread, as oneDNN is to use several."""
    for path in _loaded().difference(_before):
        ask, say = (_function(path, f"{word}_num_threads") for word in ("get", "set"))
        if ask is not None and say is not None:
            _before[path] = ask()
            say(1)


def take_cores() -> None:
    """Let OpenBLAS compute in as many threads as it had."""
    while _before:
        path, number = _before.popitem()
        _function(path, "set_num_threads")(number)

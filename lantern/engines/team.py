"""Work that oneDNN has no code for, shared out to the threads in which it computes.

Threads of Python's own would wait for the cores on which OpenMP's go on spinning after
their turn; these are the ones that spin. To call them takes 40 µs, so that NumPy's
functions, which let others run meanwhile, pay from 2 ** 20 elements on.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from lantern.engines.onednn import library, threads

__all__ = ["share"]

_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def share(work: Callable[[int], object], count: int) -> bool:
    """Call a function with 0, 1, ... below count, in several threads, in any order.

    Returns:
        Whether there are several; in one, nothing is done.

    Raises:
        Whatever a call of the function has raised.
    """
    team = _team() if (number := threads()) > 1 else None
    if team is None:
        return False
    turns, errors = iter(range(count)), []

    def take_turns(_: Any) -> None:
        try:
            for turn in turns:
                work(turn)
        except BaseException as error:  # nobody sees what a callback raises
            errors.append(error)

    team(_Work(take_turns), None, number, 0)
    if errors:
        raise errors[0]
    return True


@cache
def _team() -> Any:
    """GNU's OpenMP, as compilers call it; None where oneDNN was built with another."""
    function = getattr(library().functions, "GOMP_parallel", None)
    if function is not None:
        function.argtypes = [_Work, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        function.restype = None
    return function

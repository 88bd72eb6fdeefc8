"""A program in a process of its own, which runs and times it.

Every library has its own process, as it would have in a user's hands: its garbage is
collected at its own cost, and nobody else's objects are walked through.
"""

import math
import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.environment import cores

Program = Callable[[], Any]
Maker = Callable[[], Program | None]  # None: the library is missing


class Entrant:
    """A program in a process of its own, and the numbers that it computed.

    Attributes:
        result: None if its library is missing; an exception if it cannot run the
            program.
        peak: the highest resident size of its process when it has run the program once,
            library and all, in bytes; None if it runs it in yet another one.

    Args:
        name: of the library, for messages.
        make: gives the program, in the new process.
        budget: how many seconds one timing should take.
    """

    def __init__(self, name: str, make: Maker, budget: float = 0.2) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        serve = context.Process(
            target=_serve, args=(name, make, budget, theirs), daemon=True
        )
        serve.start()
        theirs.close()
        self.peak: int | None = None
        try:
            self.result = self._pipe.recv()
            if self.result is not None and not isinstance(self.result, Exception):
                self.peak = self._pipe.recv()
        except EOFError:
            self.result = RuntimeError(f"{name}: its process ended without an answer")

    def seconds(self) -> float:
        """Have the program timed once more: seconds per call."""
        self._pipe.send("again")
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return float(answer)


def _serve(name: str, make: Maker, budget: float, pipe: Connection) -> None:
    """The process of an entrant: answers with the result, then with timings."""
    try:
        program = make()
        if program is None:
            return pipe.send(None)
        pipe.send(_numbers(program()))
        pipe.send(None if hasattr(program, "clock") else peak_resident())
        calls = _calls(program, budget)
        while pipe.recv():
            pipe.send(_time(program, calls))
    except EOFError:  # the race is over
        pass
    except Exception as error:
        pipe.send(RuntimeError(f"{name}: {type(error).__name__}: {error}"))


def _numbers(result: Any) -> Any:
    """A result, of whichever library, as one array."""
    import numpy as np

    parts = result if isinstance(result, list) else [result]
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def _calls(program: Program, budget: float) -> int:
    """How many calls make one timing last about ``budget`` seconds."""
    return max(1, math.ceil(budget / max(_time(program, 1), 1e-6)))


def _time(program: Program, calls: int) -> float:
    # With one core the time of all threads; what else runs on the computer is not in
    # it. A program that runs in yet another process brings the clock of that.
    usual = time.process_time if cores() == 1 else time.perf_counter
    clock = getattr(program, "clock", usual)
    start = clock()
    for _ in range(calls):
        program()
    return float(clock() - start) / calls


def peak_resident() -> int:
    """The process's highest resident size so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss would start from the parent's size
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        if peak:
            return 1024 * int(peak[1])
    peak_size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_size if sys.platform == "darwin" else 1024 * peak_size

"""Threads that do a list of jobs, the one that needs the results among them.

Plain locks, and nobody waits for what an interrupt may have kept from beginning: the
standard library's futures, events and pools can be lost when one comes inside of them.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

__all__ = ["Crew", "Job"]


class Crew:
    """The jobs and the threads.

    Attributes:
        ahead: the jobs that nobody has begun, in the order in which they are needed.
        open: those that nobody has waited for.
        helpers: the other threads.
    """

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.ahead: deque[Job] = deque()
        self.open: set[Job] = set()
        self.helpers: list[threading.Thread] = []

    def call(self, count: int) -> None:
        """Let other threads begin."""
        for _ in range(count):
            threading.Thread(target=self._help, daemon=True).start()

    def _help(self) -> None:
        self.helpers.append(threading.current_thread())
        while job := self.next(helped=True):
            job.do()

    def next(self, helped: bool) -> "Job | None":
        """The next job, for another thread or for this one."""
        with self.guard:
            if not self.ahead:
                return None
            job = self.ahead.popleft()
            job.helped = helped
            return job


class Job:
    """A call in a copy of the context variables, in whatever thread.

    Args:
        crew: who may do it.
        thunk: what is called.

    Attributes:
        end: locked until it is done.
        result, error: what the thunk returned, or raised.
        helped: whether another thread has begun it.
    """

    def __init__(self, crew: Crew, thunk: Callable[[], Any]) -> None:
        self.crew, self.thunk, self.run = crew, thunk, copy_context().run
        self.result: Any = None
        self.error: BaseException | None = None
        self.helped = False
        self.end = threading.Lock()
        self.end.acquire()
        crew.open.add(self)
        crew.ahead.append(self)

    def do(self) -> None:
        """Do it, and keep an exception for whoever needs the result."""
        try:
            self.result = self.run(self.thunk)
        except BaseException as error:
            self.error = error
        finally:
            self.end.release()

    def wait(self) -> Any:
        """Its result; do others meanwhile."""
        while self.end.locked() and (job := self.crew.next(helped=False)):
            job.do()
            if isinstance(job.error, KeyboardInterrupt):
                job._raise()
        self._wait()
        self._raise()
        return self.result

    def drop(self) -> None:
        """Let nobody begin it; if another thread has, wait for the end."""
        self._wait()
        self.error = None  # its traceback leads here

    def _raise(self) -> None:
        if self.error is not None:
            errors, self.error = [self.error], None  # emptied: it leads to this frame
            raise errors.pop()

    def _wait(self) -> None:
        crew = self.crew
        with crew.guard:
            if self in crew.ahead:
                crew.ahead.remove(self)
        if self.helped:
            with self.end:
                pass
        crew.open.discard(self)
        if not crew.open:
            for thread in crew.helpers:
                thread.join()

"""Threads that do a list of jobs, the one that needs the results among them.

Plain locks, and nobody waits for what an interrupt may have kept from beginning: the
standard library's futures, events and pools can be lost when one comes inside of them.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from lantern.blocks import mutex
from lantern.errors import ThreadError

__all__ = ["Crew", "Job", "died"]

_LOOK = 1.0
"""Seconds after which one looks whether the thread that one waits for is alive."""


class Crew:
    """The jobs and the threads.

    Attributes:
        ahead: the jobs that nobody has begun, in the order in which they are needed.
        open: those that nobody has waited for.
        helpers: the other threads.
    """

    def __init__(self) -> None:
        self.guard = mutex()
        self.ahead: deque[Job] = deque()
        self.open: set[Job] = set()
        self.helpers: list[threading.Thread] = []

    def call(self, count: int) -> None:
        """Let other threads begin."""
        for _ in range(count):
            threading.Thread(
                target=self._help, name="lantern helper", daemon=True
            ).start()

    def _help(self) -> None:
        self.helpers.append(threading.current_thread())
        while job := self.next():
            job.do()

    def next(self) -> "Job | None":
        """The next job, which this thread is to do from now on."""
        with self.guard:
            if not self.ahead:
                return None
            job = self.ahead[0]
            job.thread = threading.current_thread()  # before it is taken off the list
            return self.ahead.popleft()


class Job:
    """A call in a copy of the context variables, in whatever thread.

    Args:
        crew: who may do it.
        thunk: what is called.

    Attributes:
        end: locked until it is done; then for whoever waits.
        done: whether it is done, or will never be.
        result, error: what the thunk returned, or raised.
        thread: who has begun it; None for nobody.
    """

    def __init__(self, crew: Crew, thunk: Callable[[], Any]) -> None:
        self.crew, self.thunk, self.run = crew, thunk, copy_context().run
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None
        self.done = False
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
            self.done = True
            self.end.release()

    def wait(self) -> Any:
        """Its result; do others meanwhile."""
        while not self.done and (job := self.crew.next()):
            job.do()
            if isinstance(job.error, KeyboardInterrupt):
                job._raise()
        self._wait()
        self._raise()
        return self.result

    def drop(self, at_once: bool = False) -> None:
        """Let nobody begin it; if another thread has, wait for the end.

        Args:
            at_once: do not wait: whoever needed it has been interrupted.
        """
        if at_once:
            self._withdraw()
        else:
            self._wait()
        self.error = None  # its traceback leads here

    def _raise(self) -> None:
        if self.error is not None:
            errors, self.error = [self.error], None  # emptied: it leads to this frame
            raise errors.pop()

    def _withdraw(self) -> None:
        """Let nobody begin it."""
        crew = self.crew
        with crew.guard:
            if self in crew.ahead:
                crew.ahead.remove(self)
        crew.open.discard(self)

    def _wait(self) -> None:
        self._withdraw()
        while self._is_with_another() and not self.end.acquire(timeout=_LOOK):
            self._check_thread()
        if not self.crew.open:
            for thread in self.crew.helpers:
                thread.join()

    def _is_with_another(self) -> bool:
        """Whether another thread has begun it; this one would not wait for itself."""
        own = self.thread in (None, threading.current_thread())
        return not (self.done or own)

    def _check_thread(self) -> None:
        """Go on without a thread that has died before it has done the job."""
        thread = self.thread
        if thread is not None and not thread.is_alive() and not self.done:
            self.error, self.done = died(), True


def died(where: str = "parallel_map") -> ThreadError:
    """The error of whoever needs what a thread was to do."""
    return ThreadError(
        f"{where}: a thread has died before it had done its part, as where memory "
        "has run out. Try again, perhaps with fewer workers."
    )

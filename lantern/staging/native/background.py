"""What is done in the background: the one thread that compiles again, and better.

It lives as long as there is something to do, so that a program ends when it ends: what
has not begun by then is left undone.
"""

import os
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread, main_thread
from time import sleep

__all__ = ["later", "wait"]

FIRST = 0.001
"""Seconds for a first result, before the thread takes the processor."""

_waiting: deque[Callable[[], None]] = deque()
_changed = Condition()
_working: list[Thread] = []


def later(job: Callable[[], None]) -> None:
    """Do something in the background."""
    with _changed:
        _waiting.append(job)
        _begin()


def wait() -> None:
    """Wait until everything is done.

    Example:
        >>> import lantern
        >>> f = lantern.jit(lambda x: x * x)
        >>> f(3.0)  # by code that was made in a hurry, or by none
        9.0
        >>> wait()
        >>> f(3.0)  # by the best that there is
        9.0
    """
    with _changed:
        _changed.wait_for(lambda: not _working)


def _begin() -> None:
    """Start the thread, if there is something to do; the lock is held."""
    if _waiting and not _working:
        thread = Thread(target=_work, name="lantern.jit")
        _working.append(thread)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            _working.clear()
            _waiting.clear()


def _work() -> None:
    sleep(FIRST)
    while True:
        with _changed:
            if not _waiting or not main_thread().is_alive():
                _waiting.clear()
                _working.clear()
                _changed.notify_all()
                return
            job = _waiting.popleft()
        job()


def _in_child() -> None:
    """A forked process has no such thread; what had not begun is begun anew here."""
    global _changed
    _changed = Condition()
    _working.clear()
    with _changed:
        _begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

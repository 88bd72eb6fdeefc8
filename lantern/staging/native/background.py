"""What is done in the background: the one thread that compiles again, and better.

It lives as long as there is something to do, and a little longer: to wake it takes half
the time to start it (69 µs for 127, switching included). A program that ends waits for
what has begun; what has not is left undone. It is a thread without an object, which
takes a fifth of the time to start (30 µs for 160): nobody waits until it runs.
"""

import atexit
import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from threading import Condition
from time import sleep

from lantern.blocks import between_turns

__all__ = ["later", "wait"]

FIRST = 0.001
"""Seconds for a first result, before the thread takes the processor."""

LONGER = 0.5
"""Seconds for which the thread waits for more."""

_waiting: deque[Callable[[], None]] = deque()
_changed = Condition()
_working: list[Callable[[], None]] = []
"""What the thread runs; empty if it runs nothing."""

_asleep: list[bool] = []
"""Whether the thread waits for more."""

_is_over: list[bool] = []


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
    """See to it that a thread works, if there is something to do; the lock is held."""
    if _is_over:
        _waiting.clear()
    if not _waiting or _working:
        return
    _working.append(_work)
    if _asleep:
        _asleep.clear()
        _changed.notify_all()
        return
    try:
        start_new_thread(_work, ())
    except RuntimeError:  # the system gives no thread
        _working.clear()
        _waiting.clear()


def _work() -> None:
    """What the thread does: all that waits; and again, if it is woken in time."""
    is_woken = True
    while is_woken:
        sleep(FIRST)
        _work_off()
        with _changed:
            if _asleep or _working or _is_over:
                return
            _asleep.append(True)
            is_woken = _changed.wait_for(lambda: not _asleep, LONGER)
            _asleep.clear()


@between_turns
def _work_off() -> None:
    try:
        while _waiting:
            _waiting.popleft()()
    finally:  # a job that raises is said to be; the others are done, and nobody waits
        with _changed:
            _working.clear()
            _begin()
            _changed.notify_all()


@atexit.register
def _end() -> None:
    """The process ends: nothing begins any more, and LLVM comes to its end."""
    with _changed:
        _is_over.append(True)
        _waiting.clear()
    wait()


def _in_child() -> None:
    """A forked process has no such thread; what had not begun is begun anew here."""
    global _changed
    _changed = Condition()
    _working.clear()
    _asleep.clear()
    with _changed:
        _begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

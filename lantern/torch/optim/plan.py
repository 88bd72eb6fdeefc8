"""The plan of a step: a list of calls, which are all made or none.

Signal handlers, as that of Ctrl-C, run between instructions of Python code and in the
main thread alone. So whatever a step writes is written by functions that are written in
C, called one after another by one of their kind; or else in another thread.
"""

import threading
from _thread import allocate_lock, start_new_thread
from collections import deque
from contextvars import copy_context
from itertools import starmap
from operator import call
from typing import Any

__all__ = ["Plan", "carry_out"]


class Plan(list[tuple[Any, ...]]):
    """A function and its arguments, for each call.

    Attributes:
        in_python: whether one of the functions is written in Python.
    """

    in_python = False


_make: Any = deque[None](maxlen=0).extend  # goes through an iterator, and keeps nothing


def carry_out(plan: Plan) -> None:
    """Make all calls of a plan; an interrupt comes before or after all of them."""
    if plan.in_python and _can_be_cut():
        _elsewhere(plan)
    else:
        _make(starmap(call, plan))


def _can_be_cut() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _elsewhere(plan: Plan) -> None:
    """Make the calls in another thread, and wait for it whatever comes."""
    run, over = copy_context().run, allocate_lock()
    errors: list[BaseException] = []
    over.acquire()
    pending = [plan]

    def work() -> None:
        try:
            run(_make, starmap(call, plan))
        except BaseException as error:
            errors.append(error)
        finally:
            pending.clear()
            over.release()

    interrupts: list[BaseException] = []
    try:
        start_new_thread(work, ())
    except RuntimeError:  # there can be no more threads
        pending.clear()
        _make(starmap(call, plan))
    except BaseException as interrupt:  # when it had begun
        interrupts.append(interrupt)
    while pending:
        try:
            over.acquire()
        except BaseException as interrupt:
            interrupts.append(interrupt)
    for error in (*errors, *interrupts):
        raise error

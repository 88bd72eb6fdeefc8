"""Garbage collections wait while a long program runs: the only file that names gc.

Every handler that waits is an object that the collector walks through, again and again,
for nothing: it is alive until its turn comes. So while a body with many of them runs,
the collector looks at young objects only when there are many more than those who wait,
and hardly ever at old ones. A short program never gets here.
"""

import gc
from contextvars import copy_context
from functools import partial
from typing import Any

from lantern.cps.prompt import innermost

__all__ = ["Thresholds", "resume_collecting"]

Thresholds = tuple[int, int, int]

_MANY = 200
"""Handlers that wait; with fewer, all is as usual."""
_YOUNG = 16
"""New objects between two collections, for each handler that waits."""
_RARELY = 1_000
"""Collections of the middle generation between two full ones; CPython's own is 10."""


def _wait_if_long(collections: Any, info: dict[str, int]) -> None:
    """Called by the collector, in the thread whose program has made many objects."""
    # Not innermost.get(): it would remember, for next time, a value that the change of
    # context in whose midst the collector may have started is about to drop.
    delimiter = copy_context().get(innermost)
    if delimiter is None or delimiter.movable:
        return
    delimiter = delimiter.origin or delimiter  # whose end puts the thresholds back
    if not delimiter.live:
        return
    waiting, now = len(delimiter.waiting), gc.get_threshold()
    if delimiter.thresholds is None:  # free: in use, and not raised by another
        usual, free = now, bool(now[0]) and now[2] < _RARELY
    else:
        usual, raised = delimiter.thresholds
        free = now == raised
    # Calls that a batch has put down wait as well, but elsewhere: in the middle
    # generation are many objects of one kind or the other.
    if not free or (waiting < _MANY and not info["generation"]):
        return
    young = max(usual[0], _YOUNG * waiting) if waiting >= _MANY else usual[0]
    gc.set_threshold(young, usual[1], _RARELY)
    delimiter.thresholds = usual, gc.get_threshold()


class Collections:
    """Told of each collection by setting an attribute: ``start`` or ``stop``.

    A signal that comes during a collection is handled by the first Python code behind
    it. If that were a callback of the collector, an exception, as that of Ctrl-C, would
    be lost there. So a function runs at the start alone; ``stop`` is a slot.
    """

    __slots__ = ("stop",)
    start = property(fset=_wait_if_long)


def resume_collecting(usual: Thresholds, raised: Thresholds) -> None:
    """Collect as usual again, unless the program itself has changed its mind since."""
    if gc.get_threshold() == raised:
        gc.set_threshold(*usual)


gc.callbacks.append(partial(setattr, Collections()))

"""Full garbage collections wait while a long program runs: the only file that names gc.

Every handler that waits is an object that the collector walks through, again and again,
for nothing: it is alive until its turn comes. So while a body with many of them runs,
full collections are made rarer; those of young objects, which find nearly all garbage,
are not touched. A short program never gets here.
"""

import gc
from contextvars import copy_context

from lantern.cps.prompt import innermost

__all__ = ["resume_collecting"]

_RARELY = 1_000
"""Collections of the middle generation between two full ones; CPython's own is 10."""


def _wait_if_long(phase: str, info: dict[str, int]) -> None:
    """Called by the collector, in the thread whose program has made many objects."""
    if phase != "start" or not info["generation"]:
        return
    # Not innermost.get(): it would remember, for next time, a value that the change of
    # context in whose midst the collector may have started is about to drop.
    delimiter = copy_context().get(innermost)
    young, middle, old = usual = gc.get_threshold()
    if delimiter is None or delimiter.movable or not delimiter.live or old >= _RARELY:
        return
    delimiter.thresholds = usual
    gc.set_threshold(young, middle, _RARELY)


def resume_collecting(usual: tuple[int, int, int]) -> None:
    """Collect as usual again, unless the program itself has changed its mind since."""
    if gc.get_threshold() == (*usual[:2], _RARELY):
        gc.set_threshold(*usual)


gc.callbacks.append(_wait_if_long)

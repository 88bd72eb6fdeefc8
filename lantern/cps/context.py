"""The place where a program runs: its thread, and what a new greenlet inherits of it."""

import sys
import threading
from collections.abc import Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any

__all__ = ["Changes", "Scope", "local", "thread_id"]

Changes = Sequence[tuple[ContextVar[Any], Any]]


def _original(name: str) -> Any:
    """A function of ``threading`` as the interpreter made it.

    Where gevent has patched it, it tells apart gevent's greenlets. We need threads.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None:
        return getattr(threading, name)
    return monkey.get_original("threading", name)


thread_id = _original("get_ident")
local: type[threading.local] = _original("local")
_MISSING = object()


class Scope:
    """The context variables of one body: a copy of its caller's.

    A ``with`` block that sets a variable (``np.errstate``, ``decimal.localcontext``) can
    then be paused inside a body without its caller noticing. A body that has come to
    its end hands what it left changed to whoever receives its answer, as a plain call
    would.

    Attributes:
        before: the variables when the body began.
        over: whether the body has come to its end.
    """

    __slots__ = ("before", "over")

    def __init__(self) -> None:
        self.before = copy_context()
        self.over = False

    def copy(self) -> Context:
        """A context for the greenlet of the body."""
        return self.before.copy()

    def changes(self, own: ContextVar[Any]) -> Changes:
        """What the body, if it is over, has left changed, but for a variable of ours.

        To be called in the body's context.
        """
        if not self.over:
            return ()
        before = self.before
        return [
            (variable, value)
            for variable, value in copy_context().items()
            if before.get(variable, _MISSING) is not value and variable is not own
        ]

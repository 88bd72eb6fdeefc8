"""The context of a program: its thread, and the context variables of its body."""

import sys
import threading
from collections.abc import Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any

__all__ = ["Changes", "Scope", "local", "thread_id"]

Changes = Sequence[tuple[ContextVar[Any], Any]]

_MISSING = object()


def _original(name: str) -> Any:
    """What ``threading`` has under a name, before gevent puts its own there.

    To gevent every one of its greenlets is a thread. Here a thread is a C stack.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None:
        return getattr(threading, name)
    return monkey.get_original("threading", name)


thread_id = _original("get_ident")
local: type[threading.local] = _original("local")


class Scope:
    """The context variables of a body: a copy of its caller's.

    So it inherits ``np.errstate`` or the precision of ``decimal``, and a ``with`` block
    that sets one can be paused inside it while its caller goes on. When a body has come
    to its end, what it has left changed is set for whoever receives its answer, as
    after a plain call.

    Attributes:
        before: the variables when the body began.
        over: whether the body has come to its end.
    """

    __slots__ = ("before", "over")

    def __init__(self) -> None:
        self.before = copy_context()
        self.over = False

    def copy(self) -> Context:
        """A context for the body to run in."""
        return self.before.copy()

    def changes(self, ours: ContextVar[Any]) -> Changes:
        """What the body has left changed, if it is over; ``ours`` does not count.

        To be called in its context.
        """
        if not self.over:
            return ()
        return [
            (variable, value)
            for variable, value in copy_context().items()
            if value is not self.before.get(variable, _MISSING) and variable is not ours
        ]

"""Bodies that run and can stop: an example, or a branch that it has forked."""

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from lantern.cps import Task

__all__ = ["Body", "Join"]


class Body(Task):
    """An example, or a branch that it has forked.

    Attributes:
        index: the number of the example.
        depth: how many calls lie behind the last result that it has looked at.
        forks: those that it is in, the innermost last.
        join: where the branch that it is comes together with the others.
        value, error: in the end, its outcome.
    """

    __slots__ = ("depth", "error", "forks", "index", "join", "value")

    def __init__(
        self, run: Callable[[], Any], index: int, depth: int, join: "Join | None"
    ) -> None:
        super().__init__(run)
        self.index, self.depth, self.join = index, depth, join
        self.forks: list[Join] = []
        self.value: Any = None
        self.error: BaseException | None = None


class Join:
    """Where the branches of a body come together.

    Attributes:
        left: the branches that nobody has begun.
        context: what these see of the context variables.
        branches: those that run in bodies of their own.
        open: how many of them have not come to their end.
        waiting: the body that waits for that; None while it does not wait.
    """

    __slots__ = ("branches", "context", "left", "open", "waiting")

    def __init__(self, thunks: Sequence[Callable[[], Any]]) -> None:
        self.left, self.context = deque(thunks), copy_context()
        self.branches: list[Body] = []
        self.open = 0
        self.waiting: Body | None = None

"""Bodies that wait for a batched function, and whose turn it is to run."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from lantern.batching.grouping import (
    Stores,
    check_same,
    describe,
    rows_of,
    shared_key,
    stack_columns,
)
from lantern.batching.policies import Group, Policy
from lantern.batching.report import Log
from lantern.cps import Task
from lantern.errors import ArgumentError

__all__ = ["DIRECT", "Scheduler", "ambient"]


class Body(Task):
    """An example, or a branch that it has forked.

    Attributes:
        index: the number of the example.
        depth: how many calls it has waited for, one after another.
        join: where the branch that it is comes together with the others.
        value, error: what it gets when it goes on; in the end, its outcome.
    """

    __slots__ = ("depth", "error", "index", "join", "value")

    def __init__(
        self, run: Callable[[], Any], index: int, depth: int, join: "Join | None"
    ) -> None:
        super().__init__(run)
        self.index, self.depth, self.join = index, depth, join
        self.value: Any = None
        self.error: BaseException | None = None


class Join:
    """Where the branches of a body come together.

    Attributes:
        branches: those that run in bodies of their own.
        open: how many of them have not come to their end.
        waiting: the body that waits for that; None while it does not wait.
    """

    __slots__ = ("branches", "open", "waiting")

    def __init__(self) -> None:
        self.branches: list[Body] = []
        self.open = 0
        self.waiting: Body | None = None


class Scheduler:
    """Runs bodies until all wait, then one group of their calls, until none is left.

    Args:
        policy: which group is next.
        check: whether to run each group row by row as well, and to compare.
    """

    def __init__(self, policy: Policy, check: bool, keep_going: bool) -> None:
        self.policy, self.check, self.keep_going = policy, check, keep_going
        self.ready: deque[Body] = deque()
        self.groups: dict[Any, Group] = {}
        self.stores = Stores()
        self.alive: dict[Body, None] = {}
        self.current: Any = None
        self.log = Log()
        self.closing = False

    def run(self, f: Callable[[Any], Any], examples: Iterable[Any]) -> list[Body]:
        """All examples, from beginning to end."""
        token = ambient.set(self)
        try:
            bodies = [
                self._start(partial(f, x), i, 0, None) for i, x in enumerate(examples)
            ]
            while True:
                while self.ready:
                    self._go_on(self.ready.popleft())
                if not self.groups:
                    return bodies
                self._run_group(self.policy(list(self.groups.values())))
        finally:
            self.closing = True
            ambient.reset(token)  # what is unwound has a context of its own
            self._unwind(list(self.alive))

    def _start(
        self, run: Callable[[], Any], index: int, depth: int, join: Join | None
    ) -> Body:
        body = Body(run, index, depth, join)
        self.alive[body] = None
        self.ready.append(body)
        return body

    def _go_on(self, body: Body) -> None:
        """Let a body run until it waits, or to its end."""
        self.current = body
        error, body.error = body.error, None
        try:
            body.value = body.go_on(body.value, error)
            if not body.over:
                return
        except Exception as raised:
            body.error = raised
        del self.alive[body]
        if body.join is not None:
            self._arrive(body, body.join)
        elif body.error is not None:
            body.error.add_note(f"batch: raised by example {body.index}")
            if not self.keep_going:
                raise body.error

    def _arrive(self, body: Body, join: Join) -> None:
        """A branch has come to its end."""
        join.open -= 1
        parent = join.waiting
        if parent is not None and (join.open == 0 or body.error is not None):
            join.waiting = None
            self.ready.append(parent)

    def call(self, function: Any, args: Sequence[Any], shared: dict[str, Any]) -> Any:
        """Let the body that runs wait for a batched function's result."""
        body = self.current
        leaves: list[Any] = []
        key = (function, *[describe(x, leaves, self.stores) for x in args])
        if shared:
            key = (*key, *[(name, shared_key(x)) for name, x in shared.items()])
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key, function, args, shared)
        group.bodies.append(body)
        group.leaves.append(leaves)
        group.depths += body.depth
        if self.closing:
            raise _closing()
        return body.pause()

    def _run_group(self, group: Group) -> None:
        del self.groups[group.key]
        token = ambient.set(DIRECT)
        try:
            rows = self._rows(group)
        except Exception as error:
            error.add_note(f"batch: raised by {group}")
            for body in group.bodies:
                body.value, body.error = None, error
        else:
            for body, row in zip(group.bodies, rows, strict=True):
                body.value = row
                body.depth += 1
        finally:
            ambient.reset(token)
        self.log.record(group)
        self.ready.extend(group.bodies)

    def _rows(self, group: Group) -> list[Any]:
        """Run a group of calls as one; cut the result."""
        leaves = stack_columns(group.leaves)
        result = group.call(leaves)
        rows = rows_of(group.name, result, group.size, self.stores)
        if self.check:
            for i in range(group.size):
                alone = group.call([x[i : i + 1] for x in leaves])
                check_same(group.name, i, alone, result)
        return rows

    def fork(self, thunks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run branches side by side: the first one here, the others in bodies."""
        body, join = self.current, Join()
        for thunk in thunks[1:]:
            join.branches.append(self._start(thunk, body.index, body.depth, join))
        join.open = len(join.branches)
        try:
            results = [thunk() for thunk in thunks[:1]]
            while join.open and not any(b.error for b in join.branches):
                join.waiting = body
                body.pause()
            for branch in join.branches:
                if branch.error is not None:
                    raise branch.error
                body.depth = max(body.depth, branch.depth)
                results.append(branch.value)
            return results
        finally:
            if join.open:
                self._unwind([b for b in join.branches if b in self.alive])

    def _unwind(self, bodies: Sequence[Body]) -> None:
        """End bodies that wait, the newest first, and forget what they wait for."""
        gone, errors = set(bodies), list[BaseException]()
        for body in reversed(bodies):
            self.alive.pop(body, None)
            try:
                body.unwind()
            except BaseException as error:  # the others come first
                errors.append(error)
        if gone and not self.closing:
            self.ready = deque(b for b in self.ready if b not in gone)
            for key, group in list(self.groups.items()):
                group.remove(gone)
                if not group.bodies:
                    del self.groups[key]
        if errors:
            raise errors[0]


def _closing() -> ArgumentError:
    return ArgumentError(
        "batched: called by a body that is being unwound. Let the exception pass."
    )


ambient: ContextVar[Any] = ContextVar("lantern.batching", default=None)
DIRECT = object()

"""Bodies that run and can stop: they wait for a batched function, and take turns."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

from lantern.batching.calls import Call, Form
from lantern.batching.grouping import (
    Stores,
    check_same,
    describe,
    is_own,
    row_alone,
    shared_key,
    stack_alone,
)
from lantern.batching.policies import Group, Policy
from lantern.batching.report import Log
from lantern.batching.row import Row
from lantern.blocks import Setting, between_turns
from lantern.control.no_grad import quiet_levels
from lantern.core.residuals import copied
from lantern.core.value import levels
from lantern.cps import Task
from lantern.cps.context import thread_id
from lantern.cps.prompt import innermost
from lantern.errors import ArgumentError

__all__ = ["DIRECT", "Body", "Join", "Scheduler", "alone", "ambient"]


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


class Scheduler:
    """Runs bodies until all wait, then one group of their calls, until none is left.

    A call is deferred, and its body goes on with rows that are not yet computed. It
    waits only when it looks at one.

    Args:
        policy: which group is next.
        check: whether to run each group row by row as well, and to compare.
    """

    def __init__(self, policy: Policy, check: bool, keep_going: bool) -> None:
        self.policy, self.check, self.keep_going = policy, check, keep_going
        self.ready: deque[Body] = deque()
        self.forms: dict[Any, Form] = {}
        self.latest: dict[Any, Form] = {}  # the form of each function's last call
        self.groups: dict[Any, Group] = {}
        self.failed: dict[tuple[Body, int], BaseException] = {}  # and nobody knows
        self.depth, self.delimiter = next(levels), innermost.get()
        self.thread = thread_id()
        self.stores = Stores()
        self.alive: dict[Body, None] = {}
        self.current: Any = None
        self.log = Log()
        self.quiet = quiet_levels()
        self.closing = self.over = False

    @between_turns
    def run(self, f: Callable[[Any], Any], examples: Iterable[Any]) -> list[Body]:
        """All examples, from beginning to end."""
        inside = Setting(ambient, self)
        try:
            inside.__enter__()
            bodies = [
                self._start(partial(f, x), i, 0, None) for i, x in enumerate(examples)
            ]
            while self.ready or self.groups:
                while self.ready:
                    self._go_on(self.ready.popleft())
                if self.groups:
                    self._run_next()
            for (body, _), error in self.failed.items():
                if bodies[body.index].error is None:
                    self._end(bodies[body.index], error)
            return bodies
        finally:
            if inside.tokens is not None:  # else an interrupt came first
                inside.__exit__()  # what is unwound has a context of its own
            self.closing = True
            self._unwind(list(self.alive))
            self.forms.clear()
            self.latest.clear()
            self.over = True

    def is_apart(self) -> bool:
        """Whether a call is to run by itself, and at once.

        So it is inside a derivative that a body takes, which will not wait; where a
        derivative keeps nothing (``no_grad``); in another thread; and in a checkpoint,
        which runs again when the batch is over.
        """
        return (
            innermost.get() is not self.delimiter
            or quiet_levels() is not self.quiet
            or self.over
            or thread_id() != self.thread
        )

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
        try:
            value = body.go_on()
            if not body.over:
                return
            body.value = value
        except Exception as raised:
            body.error = raised
        finally:
            self.current = None
        del self.alive[body]
        if body.join is not None:
            self._arrive(body, body.join)
        elif body.error is not None:
            self._end(body, body.error)

    def _end(self, body: Body, error: BaseException) -> None:
        """An example has failed."""
        body.error = error
        error.add_note(f"batch: raised by example {body.index}")
        if not self.keep_going:
            raise error

    def _arrive(self, body: Body, join: Join) -> None:
        """A branch has come to its end."""
        join.open -= 1
        parent = join.waiting
        if parent is not None and (join.open == 0 or body.error is not None):
            join.waiting = None
            self.ready.append(parent)

    def call(
        self,
        function: Any,
        args: Sequence[Any],
        shared: dict[str, Any],
    ) -> Any:
        """Defer a call of the body that runs; what it gives back.

        Args:
            function: the batched function.
            args, shared: the arguments by position and by name.
        """
        form = self.latest.get(function)
        if form is not None and form.fits(args, shared):
            return self.put_down(form, args)
        leaves: list[Any] = []
        key = self._key(function, args, shared, leaves)
        form = self.forms.get(key)
        if form is None:
            own = [is_own(x, self.stores.batch) for x in leaves]
            form = Form(self, function, args, shared, leaves, own)
            self.forms[key] = form
        if form.is_apart:
            return alone(function, args, shared)
        if form.is_plain:
            self.latest[function] = form
        return self.put_down(form, leaves)

    def put_down(self, form: Form, leaves: Any) -> Any:
        """Defer a call of a form; what it gives back."""
        if self.closing:
            raise _closing()
        body = self.current
        call = Call(form, leaves, body, body.depth)
        for i in form.own:
            before = leaves[i].call
            if before is None:
                continue
            if before.over:
                before.wait()  # it has failed
                continue
            before.add(call)
            call.missing += 1
            if before.depth >= call.depth:
                call.depth = before.depth + 1
        if not call.missing:
            self._file(call)
        if form.arrays:
            for i in form.arrays:
                leaves[i] = copied(leaves[i])
        if form.is_known:
            return form.promise(call)
        self.wait_for(call)
        return call.result

    def _key(
        self,
        function: Any,
        args: Sequence[Any],
        shared: dict[str, Any],
        leaves: list[Any],
    ) -> tuple[Any, ...]:
        """What a call has in common with others; `leaves` gets what it has not."""
        stores = self.stores
        parts = [function]
        for x in args:
            if type(x) is Row and is_own(x, stores.batch):  # the usual case
                leaves.append(x)
                parts.append(Row)
            else:
                parts.append(describe(x, leaves, stores))
        for name, x in shared.items():
            parts += name, shared_key(x)
        return tuple(parts)

    def _file(self, call: Call) -> None:
        """Put a call that has all it needs into its group."""
        form, leaves = call.form, call.leaves
        key: Any = form
        for i in form.sorting:
            key = key, leaves[i].store
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key, form)
        group.calls.append(call)
        group.depths += call.depth

    def wait_for(self, call: Call) -> None:
        """Wait until a call is over.

        Raises:
            Exception: what its function has raised.
        """
        body = self.current
        if not call.over and thread_id() != self.thread:
            raise ArgumentError(
                "batch: a row that is not yet computed is needed in another thread "
                "than that of its example. Let the parts run one after another (map)."
            )
        if body is not None and not call.over:
            call.add(body)
            self._pause(body)
            body.depth = max(body.depth, call.depth + 1)
        while not call.over:  # nobody to wait: the batched function itself
            self._run_next()
        if call.error is not None:
            self.failed.pop((call.body, id(call.error)), None)
            raise call.error

    def _pause(self, body: Body) -> None:
        """Let the others run; among them what the body itself has left to do."""
        if self.closing:
            raise _closing()
        for join in body.forks:
            while join.left:
                thunk = join.left.popleft()
                start = partial(self._start, thunk, body.index, body.depth, join)
                join.branches.append(join.context.run(start))
                join.open += 1
        body.pause()

    def _run_next(self) -> None:
        if self.closing or not self.groups:
            raise _closing()
        group = self.policy(list(self.groups.values()))
        del self.groups[group.key]
        with Setting(ambient, DIRECT):
            try:
                self._run_group(group)
            except Exception as error:
                error.add_note(f"batch: raised by {group}")
                self._fail(group.calls, error)
        self.log.record(group)

    def _run_group(self, group: Group) -> None:
        """Run a group of calls as one: all who have waited for it can go on."""
        form, calls = group.form, group.calls
        leaves = form.stack([call.leaves for call in calls])
        result = form.run(leaves)
        stacks = form.learn(result, len(calls))
        if self.check:
            for i in range(len(calls)):
                alone = form.run(form.part(leaves, i))
                check_same(form.name, i, alone, result)
        for call in calls:
            if call.rows is None:
                call.result = form.promise(call)
        places = [self.stores.add(stack) for stack in stacks]
        if form.is_row:
            store, start = places[0]
            for position, call in enumerate(calls, start):
                row = call.rows
                row.store, row.position, row.call = store, position, None
        else:
            for k, (store, start) in enumerate(places):
                for position, call in enumerate(calls, start):
                    row = call.rows[k]
                    row.store, row.position, row.call = store, position, None
        for call in calls:
            for follower in call.finish():
                if type(follower) is not Call:
                    self._wake(follower)
                    continue
                follower.missing -= 1
                if not follower.missing:
                    self._file(follower)

    def _wake(self, body: Body) -> None:
        if not body.over:  # it may have been unwound
            self.ready.append(body)

    def _fail(self, calls: Sequence[Call], error: BaseException) -> None:
        """A group has failed, and so have all calls that need one of its rows."""
        left = list(calls)
        for call in left:  # which grows
            if not call.over:
                call.error = error
                self.failed[call.body, id(error)] = error
                for follower in call.finish():
                    if type(follower) is Call:
                        left.append(follower)
                    else:
                        self._wake(follower)

    @between_turns
    def fork(self, thunks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run branches one after the other; where one waits, others go on beside it.

        References:
            Mohr, Kranz and Halstead (1991), Lazy task creation.
        """
        body, join = self.current, Join(thunks)
        body.forks.append(join)
        try:
            results = []
            while join.left:
                results.append(join.left.popleft()())
            while join.open and not any(b.error for b in join.branches):
                join.waiting = body
                self._pause(body)
            for branch in join.branches:
                if branch.error is not None:
                    raise branch.error
                body.depth = max(body.depth, branch.depth)
                results.append(branch.value)
            return results
        finally:
            body.forks.remove(join)
            if join.open:
                self._unwind([b for b in join.branches if b in self.alive])

    def _unwind(self, bodies: Sequence[Body]) -> None:
        """End bodies that wait, the newest first, and forget what they wait for."""
        gone = set(bodies)
        errors: list[BaseException] = []
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
                if not group.calls:
                    del self.groups[key]
        if errors:
            raise errors[0]


def alone(function: Any, args: Sequence[Any], shared: dict[str, Any]) -> Any:
    """A call outside of a batch: a group of one."""
    stacked = [stack_alone(x) for x in args]
    with Setting(ambient, DIRECT):
        result = function(*stacked, **shared)
    return row_alone(function.__name__, result)


def _closing() -> ArgumentError:
    return ArgumentError(
        "batched: a row is needed that will not be computed: the batch is over, or the "
        "body is being unwound. Let the exception pass."
    )


ambient: ContextVar[Any] = ContextVar("lantern.batching", default=None)
DIRECT = object()

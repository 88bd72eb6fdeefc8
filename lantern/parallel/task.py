"""Tasks of other threads: who waits in one waits where the task was submitted.

What is true only here: one derivative has several lists of those who wait. A task that
is submitted leaves an entry where the sequential program, which would run it there,
leaves the task's rules; these wait in a list of the entry's own. A backward pass that
comes to the entry goes on with that list. Entries side by side, which need nothing of
one another, go back in several threads; what they contribute to values from outside is
booked at their places (``ledgers``).
"""

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from types import BuiltinMethodType
from typing import Any, ClassVar

from lantern.control.no_grad import holder, keeps_nothing, replacing
from lantern.core.value import Level, Receiver, Replayable
from lantern.cps.delimiter import in_force
from lantern.errors import ArgumentError
from lantern.parallel.deferred import (
    Ledger,
    book_outside,
    goes_back_anywhere,
    hands_on_alone,
    targets,
)
from lantern.parallel.thread_team import Crew, Job
from lantern.rules.number import Number
from lantern.transforms.reverse import Reverse

__all__ = ["Submission", "can_be_elsewhere", "levels_in_force"]

Place = tuple[int, ...]  # in the derivative's list, in that of the task there, ...
Tasks = dict[Level, "Task"]

# Which task runs: in a thread, whatever its context; else in a context that was copied.
_nothing: Tasks = {}
_by_thread: dict[int, Tasks] = {}
_by_context: ContextVar[Tasks] = ContextVar("lantern.tasks", default=_nothing)


def levels_in_force() -> list[Reverse]:
    """The derivatives being taken around the caller that keep what it does."""
    prompts = dict.fromkeys(in_force())
    return [x for x in prompts if isinstance(x, Reverse) and not keeps_nothing(x)]


def can_be_elsewhere(level: Reverse) -> bool:
    """Whether the rules of a derivative simply wait in a list, for their way back."""
    plain = isinstance(holder(level).suspend, BuiltinMethodType | Redirect)
    return plain and level.goes_back and level.begin in (None, Replayable)


class Submission:
    """The places of one task in the derivatives in force.

    Args:
        levels: these derivatives.
        workers: in how many threads tasks may go back.

    Attributes:
        tasks: the entries.
    """

    def __init__(self, levels: list[Reverse], workers: int) -> None:
        self.over = threading.Lock()  # an event can be lost in an interrupt
        self.over.acquire()
        self.redirects = list(map(Redirect.of, levels))
        self.tasks: Tasks = {
            x.level: x.place(Task(x.level, workers, self.over)) for x in self.redirects
        }

    def run(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run the task, in a context of its own."""
        thread = threading.get_ident()
        before = _by_thread.get(thread)
        try:
            _by_thread[thread] = self.tasks
            _by_context.set(self.tasks)
            return f(*args, **kwargs)
        finally:
            if before is None:
                _by_thread.pop(thread, None)
            else:
                _by_thread[thread] = before
            self.end()

    def end(self, _: Any = None) -> None:
        """The task is over, or will never run."""
        redirects, self.redirects, self.tasks = self.redirects, [], _nothing
        for redirect in redirects:
            redirect.end()
        if redirects:
            self.over.release()


class Redirect:
    """In the place of a level's ``suspend`` while tasks run: each has its own list.

    Attributes:
        waiting: who waits in the derivative's own list.
        places: where receivers are, by their ids; not of those who were there before.
        placed: how many of the derivative's own list are known.
    """

    __slots__ = ("level", "placed", "places", "suspend", "users", "waiting")

    def __init__(self, level: Level, suspend: Any) -> None:
        self.level, self.suspend = level, suspend
        self.waiting: list[Receiver] = suspend.__self__  # it is the list's ``append``
        self.places: dict[int, Place] = {}
        self.placed, self.users = len(self.waiting), 0

    @classmethod
    def of(cls, level: Level) -> "Redirect":
        """The one of a level, which may be in use already."""
        with replacing:
            place = holder(level)
            if type(place.suspend) is not cls:
                place.suspend = cls(level, place.suspend)
            redirect: Redirect = place.suspend
            redirect.users += 1
            return redirect

    def end(self) -> None:
        """Leave it; the last user puts the level's own ``suspend`` back."""
        with replacing:
            self.users -= 1
            place = holder(self.level)
            if not self.users and place.suspend is self:
                place.suspend = self.suspend

    def task(self) -> "Task | None":
        """The task that is running here."""
        tasks = _by_thread.get(threading.get_ident())
        return (_by_context.get() if tasks is None else tasks).get(self.level)

    def place(self, task: "Task") -> "Task":
        """Leave the entry of a task here."""
        outer = self.task()
        entries = self.waiting if outer is None else outer.rules
        entries.append(task)
        i = len(entries) - 1
        while entries[i] is not task:  # other threads may have been faster
            i -= 1
        task.place = (i,) if outer is None else (*outer.place, i)
        for j in range(i - 1, -1, -1):
            z = entries[j]
            if type(z) is Task:
                task.before, task.between = z, entries[j + 1 : i]
                break
        return task

    def __call__(self, receiver: Receiver) -> None:
        task = self.task()
        if task is None:
            self.suspend(receiver)
            return
        for x in receiver.operands():
            if x is not None:
                self._check_order(x, task.place)
        self.places[id(receiver)] = (*task.place, len(task.rules))
        task.rules.append(receiver)

    def _check_order(self, x: Receiver, place: Place) -> None:
        """Refuse what the sequential program would compute only after a task."""
        if id(x) not in self.places:
            for i, z in enumerate(self.waiting[self.placed :], self.placed):
                self.places[id(z)] = (i,)
                self.placed = i + 1
        its = self.places.get(id(x))
        if its is not None and its > place and its[: len(place)] != place:
            raise ArgumentError(
                "ThreadPoolExecutor, parallel_map: a task uses a tracked value that "
                "was computed elsewhere after it was submitted. Submit it when the "
                "value is there. If it starts threads, give them its context variables "
                "(contextvars.copy_context). If tasks wait for one another, take "
                "concurrent.futures.ThreadPoolExecutor; gradients are then right to "
                "rounding."
            )


class Task(Receiver):
    """Who waits in a task, as one entry, where the sequential program has them.

    Args:
        level: the derivative.
        workers: in how many threads tasks may go back.
        over: locked until the task is over.

    Attributes:
        rules: who waits, newest last.
        place: where the entry is.
        before: the task before it in the same list.
        between: who waits between the two.
        beside: the tasks before it that go back at the same time, when that is known.
        job: its way back, where another thread may go it.
        ledgers: what stands between its rules and the receivers outside.
    """

    __slots__ = (
        *("before", "beside", "between", "job", "ledgers", "level"),
        *("over", "place", "rules", "workers"),
    )
    catches: ClassVar[bool] = True
    place: Place

    def __init__(self, level: Level, workers: int, over: threading.Lock) -> None:
        self.level, self.workers, self.over = level, workers, over
        self.rules: list[Receiver] = []
        self.suspended = self.left = self.right = self.cotangent = None
        self.before: Task | None = None
        self.between: list[Receiver] = []
        self.beside: list[Task] | None = None
        self.job: Job | None = None
        self.ledgers: list[Ledger] = []

    def operands(self) -> tuple[Receiver | None, ...]:
        """All that its rules contribute to, also through ledgers."""
        operands = (x for z in self.rules for x in z.operands())
        return tuple(x.target if type(x) is Ledger else x for x in operands)

    def resume(self, answer: Any) -> Any:
        """Let its rules be next, or book what they have done in another thread."""
        try:
            self._go(partial(_go_back, answer))
        except BaseException as error:
            self.throw(error)
        self._wait_in(self.level.waiting)
        self._book()
        return answer

    def replay(self) -> None:
        """As ``resume``, with fresh rules."""
        if not self._go(_replay):
            _replay(self.rules)
        self._book()

    def throw(self, error: BaseException) -> Any:
        """Let its rules be the next to see the exception."""
        self._drop(isinstance(error, KeyboardInterrupt | SystemExit))
        self._wait_in(self.level.waiting)
        raise error

    def close(self) -> None:
        """Not called: this entry sees exceptions."""

    def forget(self) -> None:
        """Forget what an interrupted pass has left."""
        self._drop()
        for z in (*self.rules, *self.ledgers):
            z.forget()

    def _wait_in(self, waiting: list[Any]) -> None:
        rules, self.rules = self.rules, []
        self.before, self.between = None, []
        waiting += rules

    def _book(self) -> None:
        for ledger in self.ledgers:
            ledger.book()

    def _go(self, back: Callable[[list[Receiver]], None]) -> bool:
        """Whether it goes back in another thread, where it has then come to its end.

        Not inside another derivative by reverse mode: that one would keep what the
        backward steps do, and find it in an order of chance.
        """
        with self.over:
            pass
        alone = all(level is self.level for level in levels_in_force())
        if self.job is None and self.workers > 1 and alone:
            self._begin(back)
        if self.job is None:
            return False
        self.job.wait()
        self.job = None
        return True

    def _begin(self, back: Callable[[list[Receiver]], None]) -> None:
        """Let tasks side by side go back in threads, this one first."""
        if self.beside is None:
            self.beside = self._side_by_side()
        if not self.beside:
            return
        tasks, crew = (self, *self.beside), Crew()
        for task in tasks:
            task.ledgers = task.ledgers or book_outside(task.rules)
            task.job = Job(crew, partial(back, task.rules))
        crew.call(min(self.workers, len(tasks)) - 1)

    def _drop(self, at_once: bool = False) -> None:
        if self.job is not None:
            self.job.drop(at_once)
            self.job = None

    def _side_by_side(self) -> list["Task"]:
        """The tasks before it that need nothing of it nor of one another.

        Nor of those who wait between them, and will go back between them.
        """
        found: list[Task] = []
        task = self
        received: set[int] = set()
        while task.before is not None or found:
            if not task._can_go_ahead() or not received.isdisjoint(map(id, task.rules)):
                break
            found.append(task)
            if task.before is None or not all(map(hands_on_alone, task.between)):
                break
            received.update(targets(task.rules), targets(task.between))
            task = task.before
        return found[1:]

    def _can_go_ahead(self) -> bool:
        """Whether it is over, and its rules are of known kinds.

        Tasks inside it are put into its own list, where they would be next anyway.
        """
        if self.over.locked():
            return False
        if any(type(z) is Task for z in self.rules):
            if not all(z._can_go_ahead() for z in self.rules if type(z) is Task):
                return False
            self.rules = list(_flat(self.rules))
        return all(map(goes_back_anywhere, self.rules))


def _flat(rules: list[Receiver]) -> Iterator[Receiver]:
    for z in rules:
        if type(z) is Task:
            yield from z.rules
        else:
            yield z


def _go_back(answer: Any, rules: list[Receiver]) -> None:
    while rules:
        z = rules.pop()
        if type(z) is Number:  # whose run would go on in the list of the derivative
            Receiver.resume(z, answer)
        else:
            z.resume(answer)


def _replay(rules: list[Receiver]) -> None:
    for z in reversed(rules):
        z.replay()

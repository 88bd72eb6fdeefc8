"""Bodies that pause and go on as often as they like, by one switch each way.

``shift(lambda k: k)`` captures the rest of a body and hands it to whoever waits for the
body. A task does just that, without a handler beside it and without a delimiter: to
pause is to hand over the rest of the task, to go on is to call that rest.
"""

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from lantern.cps.context import local
from lantern.cps.handler import Unwind
from lantern.cps.worker import GreenletExit, getcurrent, greenlet
from lantern.errors import NoDelimiterError, ResumptionError

__all__ = ["Task"]

IDLE_LIMIT = 2_500
"""Idle workers that a thread keeps for tasks, at 8 KB each."""

_SPURIOUS = (
    "task: the code that waits for it was switched to by someone else. Switch to the "
    "greenlet that runs, not to one that waits."
)


class Worker(greenlet):  # type: ignore[misc]
    """A greenlet that runs one task after another."""

    __slots__ = ("task",)
    task: Any


class Task:
    """A body that can be paused, in a greenlet of its own.

    It sees its maker's context variables; what it changes of them is its own. It is no
    delimiter: a ``shift`` in it captures as if the maker had called it.

    Args:
        body: a function of no arguments.

    Attributes:
        over: whether the body has come to its end.

    Example:
        >>> def body():
        ...     return 10 * task.pause("paused")
        >>> task = Task(body)
        >>> task.go_on(), task.go_on(4)
        ('paused', 40)
    """

    __slots__ = ("_body", "_context", "_driver", "_error", "_value", "_worker", "over")

    def __init__(self, body: Callable[[], Any]) -> None:
        self._body: Any = body
        self._context: Context | None = copy_context()
        self._driver: Any = None
        self._worker: Any = None
        self._value: Any = None
        self._error: BaseException | None = None
        self.over = False

    def go_on(self, value: Any = None, error: BaseException | None = None) -> Any:
        """Go on with the body, from its beginning or from where it pauses.

        Args:
            value: what ``pause`` returns there.
            error: what ``pause`` raises there instead.

        Returns:
            What the body gives to ``pause`` next; or, in the end, its answer.

        Raises:
            BaseException: what the body raises.
            ResumptionError: it is over, or runs already.
        """
        if self.over or self._driver is not None:
            raise ResumptionError("task: it is over, or runs already. Make another.")
        self._value, self._error, self._driver = value, error, getcurrent()
        if self._worker is None:
            self._hire()
        self._worker.switch()
        if self._driver is not None:
            raise ResumptionError(_SPURIOUS)
        value, self._value = self._value, None
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error
        return value

    def _hire(self) -> None:
        """Take an idle worker, or a new one."""
        idle = _thread.idle
        while idle and idle[-1].dead:  # an interrupt came when it had just become idle
            idle.pop()
        worker = idle.pop() if idle else Worker(_work)
        worker.parent = self._driver  # gets what an interrupt raises outside the body
        worker.gr_context, self._context = self._context, None
        worker.task = self
        self._worker = worker

    def pause(self, value: Any = None) -> Any:
        """Stop here, in the body; whoever made it go on receives the value.

        Returns:
            What ``go_on`` is given next.

        Raises:
            NoDelimiterError: the body does not run.
            BaseException: what ``go_on`` is given to raise.
        """
        driver, self._driver = self._driver, None
        if driver is None:
            raise NoDelimiterError("pause: the task does not run. Call it in its body.")
        self._value = value
        self._worker = getcurrent()
        driver.switch()
        if self._driver is None:
            raise ResumptionError(_SPURIOUS)
        value, self._value = self._value, None
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error
        return value

    def unwind(self) -> None:
        """End a body that pauses: its ``finally`` blocks run, its answer is dropped.

        Raises:
            BaseException: what the body raises on the way.
            ResumptionError: it pauses again.
        """
        if self._worker is None or self._worker.dead:
            self._body, self.over = None, True
        if self.over:
            return
        self._driver = None  # an interrupt may have come before the switch
        ending = Unwind(None)
        try:
            self.go_on(None, ending)
        except Unwind as error:
            if error is not ending:
                raise
        if not self.over:
            raise ResumptionError(
                "unwind: the body pauses while it is being unwound. Let the exception "
                "pass, and pause in no finally block."
            )


def _work() -> None:
    """A worker's life: run a task, be idle, and again while there is room."""
    here = getcurrent()
    while True:
        task, here.task = here.task, None
        body, task._body = task._body, None
        try:
            task._value = body()
        except GreenletExit:  # nobody can make it go on any more
            return
        except BaseException as error:
            task._value, task._error = None, error
        driver, task._driver, task._worker, task.over = task._driver, None, None, True
        del task, body
        idle = _thread.idle
        if driver is None:
            return
        if driver.parent is not None or len(idle) >= IDLE_LIMIT:
            # Idle, its C stack would hold the greenlet of the driver's body, which
            # could then not be unwound, were it dropped in another thread.
            here.parent = driver
            return
        here.gr_context = None
        idle.append(here)
        driver.switch()


class _Thread(local):  # type: ignore[valid-type, misc]  # not gevent's
    """The idle workers of this thread."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []


_thread = _Thread()

"""A continuation goes on once, in its own thread; one that is dropped cleans up."""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from sys import is_finalizing
from typing import Any, ClassVar

from lantern.cps.context import thread_id
from lantern.cps.delimiter import Delimiter
from lantern.cps.handler import Unwind, begin, unwind
from lantern.cps.prompt import innermost
from lantern.cps.worker import Errand, Inbox, Job, Waiter, wait, work_on
from lantern.errors import AlreadyResumedError, ArgumentError, ResumptionError

__all__ = ["Resumption", "begin_beside", "handle"]

_TWICE = (
    "k: called a second time, but continuations are one-shot. Capture another one with "
    "shift, or run the body again."
)
_ABORTED = (
    "k: its body was aborted when the handler returned: it has no greenlet of its own "
    "to wait in (under grad none has). Write reset around the part to be paused."
)
_ELSEWHERE = (
    "k: called in another thread than the one that captured it. Call it there: a "
    "continuation is a stack, which cannot leave its thread."
)


class Resumption:
    """The rest of a body as a function: the ``k`` of a direct-style handler.

    ``k(value)`` makes ``value`` the result of the ``shift`` that captured it, runs the
    rest of the body under a fresh delimiter, and returns its answer. It can be called
    once; also later, when its handler has returned, and from anywhere in its thread.

    Raises:
        AlreadyResumedError: it was called before.
        ResumptionError: it is called in another thread, or its body was aborted.
        BaseException: what the rest of the body raises.
    """

    __slots__ = ("__weakref__", "_paused")

    def __init__(self, paused: "Paused") -> None:
        self._paused = paused

    def __call__(self, value: Any = None) -> Any:
        """Go on with a value."""
        inbox = Inbox()
        self._paused.prepare(inbox, value)
        return wait(self._paused.take(), inbox)

    def throw(self, error: BaseException | type[BaseException]) -> Any:
        """Go on with an exception, raised where ``shift`` was called."""
        if isinstance(error, type) and issubclass(error, BaseException):
            error = error()
        if not isinstance(error, BaseException):
            raise ArgumentError(f"k.throw: {error!r} is no exception. Give one.")
        inbox = Inbox()
        self._paused.prepare(inbox, None, error)
        del error  # its traceback may hold a handler's frame, and so another k
        return wait(self._paused.take(), inbox)

    def __repr__(self) -> str:
        return f"<Resumption of {self._paused.prompt}: {self._paused.state}>"

    def __del__(self) -> None:
        try:
            paused = self._paused
        except AttributeError:  # an interrupt at the door of __init__
            return
        paused.drop()


class Paused:
    """A body that is suspended in ``shift``: what ``k`` and its handler's end share.

    Args:
        delimiter: where the captured part of the program ends.
        record: stands for that delimiter while the handler runs.
        waiter: the body, in ``shift``.
    """

    __slots__ = ("dropped", "handled", "parts", "prompt", "state")

    def __init__(self, delimiter: Delimiter, record: Delimiter, waiter: Waiter) -> None:
        self.parts: tuple[Delimiter, Delimiter, Waiter] | None
        self.parts = delimiter, record, waiter
        self.prompt = delimiter.prompt
        self.state = "waiting"
        self.handled = False  # whether the handler has returned
        self.dropped = False  # whether nobody has k any more

    def prepare(self, inbox: Inbox, value: Any, error: Any = None) -> None:
        """Send the body a value; let its answer come to an inbox of this greenlet."""
        delimiter, record, waiter = self._check()
        waiter.send(value, error)
        self._reinstate(delimiter, record, Waiter(inbox))

    def take(self, state: str = "resumed") -> Errand:
        """The errand to go on with the body, given once."""
        _, _, waiter = self._check()
        self.parts, self.state = None, state
        return [waiter.greenlet, None]

    def abort(self) -> None:
        """Unwind the body; what its ``finally`` blocks raise is raised here."""
        inbox = Inbox()
        delimiter, record, waiter = self._check()
        self._reinstate(delimiter, record, Waiter(inbox))
        waiter.send(None, unwind(delimiter, None))
        del delimiter, record, waiter
        wait(self.take("aborted"), inbox)

    def end_handler(self) -> None:
        """The handler has returned: an abort, unless ``k`` went on or was stored."""
        self.handled = True
        if self.parts and (self.dropped or not self.parts[0].movable):
            self.abort()

    def drop(self) -> None:
        """Nobody has ``k``: abort, if the handler has returned.

        In another thread nothing can be done, nor is there need: greenlet will kill the
        greenlet that nobody can switch to, when its own thread next switches.
        """
        self.dropped = True
        if self.parts and self.handled and not is_finalizing():
            delimiter, _, waiter = self.parts
            if delimiter.thread == thread_id() and not waiter.greenlet.dead:
                del delimiter, waiter
                copy_context().run(self._abort_anywhere)

    def _abort_anywhere(self) -> None:
        innermost.set(None)  # who happens to run now is not concerned
        self.abort()

    def _check(self) -> tuple[Delimiter, Delimiter, Waiter]:
        """The parts, if the body can go on, here and now."""
        if self.state == "resumed":
            raise AlreadyResumedError(_TWICE)
        if self.parts is None:
            raise ResumptionError(_ABORTED)
        delimiter, _, waiter = self.parts
        if delimiter.thread != thread_id() or waiter.greenlet.dead:
            raise ResumptionError(_ELSEWHERE)
        return self.parts

    def _reinstate(
        self, delimiter: Delimiter, record: Delimiter, caller: Waiter
    ) -> None:
        """Put the delimiter in force again, for a caller that waits."""
        if not delimiter.movable:
            record.waiting = []
            delimiter.waiting.append(WaitingHandler(caller, record))
            return
        outer = innermost.get()
        if outer is not None and outer.prompt is delimiter.prompt:
            outer = outer.outer  # hidden by this one: handlers make no long chain
        delimiter.enter(outer)
        delimiter.caller = caller


class WaitingHandler:
    """An entry for a direct-style handler that waits in ``k(...)`` for a body in place.

    Args:
        waiter: the handler.
        record: its own delimiter.
    """

    __slots__ = ("record", "waiter")
    catches: ClassVar[bool] = True

    def __init__(self, waiter: Waiter, record: Delimiter) -> None:
        self.waiter = waiter
        self.record = record

    def resume(self, answer: Any, error: BaseException | None = None) -> Any:
        """Make ``k(...)`` return; return what the handler returns."""
        waiter, record, inbox = self.waiter, self.record, Inbox()
        if record.live:
            waiter.send(answer, error)
            record.caller = Waiter(inbox)
            errand = [waiter.greenlet, None]
            del waiter, record, self.waiter, self.record, answer, error
            return wait(errand, inbox)
        if error is not None:  # an interrupt has ended the handler
            raise error
        return answer

    def throw(self, error: BaseException) -> Any:
        """Make ``k(...)`` raise; return what the handler returns."""
        return self.resume(None, error)


def handle(job: Job) -> Any:
    """Job: run a direct-style handler, in the place of the body that is suspended."""
    _, delimiter, handler, waiter = job
    job.clear()
    record = delimiter.stand_in()
    if record.caller is None:  # a body in place: until k is called, errors go to shift
        record.caller = waiter
    paused = Paused(delimiter, record, waiter)
    del delimiter, waiter
    return work_on([handle, record, partial(_call, handler, paused)])


def _call(handler: Callable[[Resumption], Any], paused: Paused) -> Any:
    """The value of a handler, after which its body is resumed, aborted or stored."""
    inbox = Inbox()
    try:
        value = handler(Resumption(paused))
    except Unwind as error:
        error.__traceback__ = None  # lets go of the handler's frame, and so of k
        paused.end_handler()
        raise
    except BaseException as error:
        if paused.parts is None:
            raise
        paused.prepare(inbox, None, error)  # as if shift were an ordinary call
    else:
        paused.end_handler()
        return value
    return wait(paused.take(), inbox)


def begin_beside(job: Job) -> Any:
    """Job: the first step of a generator handler, for a body that is suspended."""
    _, delimiter, handler, waiter = job
    job.clear()
    try:
        innermost.set(delimiter)
        waiter.send(begin(delimiter, handler))
    except BaseException as error:
        waiter.send(None, error)
    return waiter.greenlet

"""A continuation goes on once, in its own thread; one that is dropped cleans up."""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar

from lantern.cps.context import thread_id
from lantern.cps.handler import GeneratorFunction, Unwind, begin, unwind
from lantern.cps.prompt import Delimiter, innermost
from lantern.cps.worker import Greenlet, Worker, getcurrent, hire, send, wait, work_on
from lantern.errors import AlreadyResumedError, ArgumentError, ResumptionError

__all__ = ["Resumption", "begin_beside", "capture", "sweep"]


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
        greenlet = self._paused.prepare(value)
        del value  # not to be kept alive while this waits
        return wait(greenlet)

    def throw(self, error: BaseException | type[BaseException]) -> Any:
        """Go on with an exception, raised where ``shift`` was called."""
        if isinstance(error, type) and issubclass(error, BaseException):
            error = error()
        if not isinstance(error, BaseException):
            raise ArgumentError(f"k.throw: expected an exception, got {error!r}.")
        greenlet = self._paused.prepare(None, error)
        del error
        return wait(greenlet)

    def __repr__(self) -> str:
        paused = self._paused
        return f"<Resumption of {paused.delimiter.prompt}: {paused.state}>"

    def __del__(self) -> None:
        self._paused.drop()


class Paused:
    """A body that is suspended in ``shift``.

    Args:
        delimiter: where the captured part of the program ends.
        record: stands for that delimiter while the handler runs.
        greenlet: the one that called ``shift``; None as soon as it goes on.
    """

    __slots__ = ("delimiter", "dropped", "greenlet", "handled", "record", "state")

    def __init__(
        self, delimiter: Delimiter, record: Delimiter, greenlet: Greenlet
    ) -> None:
        self.delimiter = delimiter
        self.record = record
        self.greenlet: Greenlet | None = greenlet
        self.state = "waiting"
        self.handled = False  # whether the handler has returned
        self.dropped = False  # whether nobody has k any more

    def prepare(self, value: Any, error: BaseException | None = None) -> Greenlet:
        """Send a value to the body; return the greenlet to go on in, and wait for."""
        greenlet = self._reinstate("resumed")
        send(greenlet, value, error)
        return greenlet

    def abort(self) -> None:
        """Unwind the body; what its ``finally`` blocks raise is raised here."""
        greenlet = self._reinstate("aborted")
        send(greenlet, None, unwind(self.delimiter, None))
        wait(greenlet)

    def end_handler(self) -> None:
        """The handler has returned: an abort, unless ``k`` went on or was stored."""
        self.handled = True
        kept = self.delimiter.movable and not self.dropped
        if self.greenlet is not None and not kept:
            self.abort()

    def drop(self) -> None:
        """Nobody has ``k`` any more: if its handler knows nothing of it, clean up."""
        self.dropped = True
        greenlet = self.greenlet
        if greenlet is None or greenlet.dead or not self.handled:
            return
        if self.delimiter.thread != thread_id():
            _lost.append(Resumption(self))
        else:
            copy_context().run(self._abort_anywhere)

    def _abort_anywhere(self) -> None:
        innermost.set(None)  # who happens to run now is not concerned
        self.abort()

    def _reinstate(self, state: str) -> Greenlet:
        """Make the current greenlet wait for the answer; return who goes on."""
        greenlet, delimiter = self._spend(state), self.delimiter
        if delimiter.movable:
            outer = innermost.get()
            if outer is not None and outer.prompt is delimiter.prompt:
                outer = outer.outer  # hidden by this one: handlers make no long chain
            delimiter.enter(outer)
            delimiter.caller = getcurrent()
            delimiter.live = True
        else:
            entry = WaitingHandler(getcurrent(), delimiter, self.record)
            delimiter.waiting.append(entry)
            self.record.waiting = []
        return greenlet

    def _spend(self, state: str) -> Greenlet:
        """The suspended greenlet, for the only time."""
        greenlet = self.greenlet
        if greenlet is None:
            raise self._spent()
        if self.delimiter.thread != thread_id() or greenlet.dead:
            raise ResumptionError(
                "k: called in another thread than the one that captured it. A "
                "continuation is a stack, which cannot leave its thread."
            )
        self.greenlet, self.state = None, state
        return greenlet

    def _spent(self) -> Exception:
        if self.state == "resumed":
            return AlreadyResumedError(
                "k: called a second time, but continuations are one-shot. Capture "
                "another one with shift, or run the body again."
            )
        return ResumptionError(
            "k: its body was aborted when the handler returned, because it has no "
            "greenlet of its own to wait in (so it is under grad). Write reset around "
            "the part to be paused."
        )


_lost: list[Resumption] = []  # dropped in another thread than their own


def sweep() -> None:
    """Drop what was lost in other threads, for those of this thread, here."""
    mine = thread_id()
    for k in _lost.copy():
        if k._paused.delimiter.thread == mine:
            _lost.remove(k)


class WaitingHandler:
    """A direct-style handler that has called ``k`` for a body that is in place.

    It waits in the list, as any other entry: its greenlet is suspended in ``k(...)``.
    """

    __slots__ = ("delimiter", "greenlet", "record")
    catches: ClassVar[bool] = True

    def __init__(
        self, greenlet: Greenlet, delimiter: Delimiter, record: Delimiter
    ) -> None:
        self.greenlet = greenlet
        self.delimiter = delimiter
        self.record = record

    def resume(self, answer: Any) -> Any:
        """Make ``k(...)`` return; return what the handler returns."""
        return self._go_on(answer)

    def throw(self, error: BaseException) -> Any:
        """Make ``k(...)`` raise; return what the handler returns."""
        return self._go_on(None, error)

    def close(self) -> None:
        """Run what the handler has in ``finally``."""
        self._go_on(None, unwind(self.record, None))

    def _go_on(self, answer: Any, error: BaseException | None = None) -> Any:
        self.record.caller = getcurrent()
        send(self.greenlet, answer, error)
        del answer, error
        return wait(self.greenlet)


def capture(delimiter: Delimiter, handler: Callable[[Resumption], Any]) -> Worker:
    """A worker that runs a handler with the rest of the current body as ``k``."""
    greenlet = getcurrent()
    return hire(greenlet.gr_context, partial(_handle, delimiter, handler, greenlet))


def _handle(
    delimiter: Delimiter, handler: Callable[[Resumption], Any], greenlet: Greenlet
) -> Greenlet | None:
    """Job: run a handler, as a body of its own, in front of the delimiter's list."""
    record = delimiter.stand_in()
    paused = Paused(delimiter, record, greenlet)
    del greenlet
    return work_on(record, partial(_call, handler, paused))


def _call(handler: Callable[[Resumption], Any], paused: Paused) -> Any:
    """The value of a handler, with its body resumed, aborted or stored."""
    try:
        value = handler(Resumption(paused))
    except Unwind as error:
        error.__traceback__ = None  # lets go of the handler's frame, and so of k
        paused.end_handler()
        raise
    except BaseException as error:
        if paused.greenlet is None:
            raise
        greenlet = paused.prepare(None, error)  # as if shift were an ordinary call
    else:
        paused.end_handler()
        return value
    return wait(greenlet)


def begin_beside(delimiter: Delimiter, handler: GeneratorFunction) -> Worker:
    """A worker that runs the first step of a handler, then goes on with the body."""
    greenlet = getcurrent()
    return hire(greenlet.gr_context, partial(_begin, delimiter, handler, greenlet))


def _begin(
    delimiter: Delimiter, handler: GeneratorFunction, greenlet: Greenlet
) -> Greenlet:
    """Job: the first step of a generator handler, for a body that is suspended."""
    try:
        innermost.set(delimiter)
        send(greenlet, begin(delimiter, handler))
    except BaseException as error:
        send(greenlet, None, error)
    return greenlet

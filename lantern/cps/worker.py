"""The only file that imports greenlet: bodies and handlers run in pooled workers.

A greenlet is a stack of its own. ``a.switch()`` suspends the current one, right there,
and goes on in ``a``, where that one was suspended. To make one costs ten times as much
as to switch to one and back: so workers are used again.
"""

from contextvars import Context
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from lantern.blocks import from_the_start
from lantern.cps.context import Changes, local
from lantern.cps.delimiter import Delimiter, run
from lantern.cps.prompt import innermost
from lantern.errors import ResumptionError

__all__ = [
    "Errand",
    "GreenletExit",
    "Inbox",
    "Job",
    "Waiter",
    "getcurrent",
    "greenlet",
    "hire",
    "wait",
    "work_on",
]

IDLE_LIMIT = 64
"""Idle workers that a thread keeps, at 8 KB each."""

Greenlet = Any  # greenlet comes without types
Job = list[Any]  # [a function of this list, which it empties; what it needs ...]
Errand = list[Any]  # [the greenlet that goes on, a worker that is now idle or None]
Inbox = list[Any]  # empty; or [value, changes of context variables, error]

_SPURIOUS = (
    "k: the code that waits for it was switched to by someone else. Switch to the "
    "greenlet that runs, not to one that waits in reset or k."
)
_GONE = ["gone"]  # in the inbox of a greenlet that was made to leave `wait`


class Worker(greenlet):  # type: ignore[misc]
    """A greenlet that does one job after another; a job returns who goes on then.

    Attributes:
        job: the next one.
        killed: whether greenlet is ending it, as nobody can switch to it any more.
    """

    __slots__ = ("job",)
    job: Job | None
    killed = False


class Relay(greenlet):  # type: ignore[misc]
    """The greenlet through which every switch goes.

    Attributes:
        sent: the latest errand, which whoever has sent it holds while it waits.
    """

    __slots__ = ("sent",)
    sent: Errand


class Waiter:
    """The current greenlet, for those whom it will wait for.

    It must not hold this itself: see ``wait``.
    """

    __slots__ = ("greenlet", "inbox")

    def __init__(self, inbox: Inbox) -> None:
        self.greenlet = getcurrent()
        self.inbox = inbox

    def send(self, value: Any, error: Any = None, changes: Changes = ()) -> None:
        """Leave a value, or an exception, for when the greenlet goes on.

        As an argument of ``switch`` it would live as long as that call: until the
        sender, suspended by it, goes on.
        """
        if error is not None:
            _begin_traceback_with_user(error)
        self.inbox[:] = value, changes, error


def wait(errand: Errand, inbox: Inbox) -> Any:
    """Suspend this greenlet and go on in another; return what is sent here.

    Every body, handler and caller that is suspended is suspended here. Its frames must
    not lead to its own greenlet, nor to the one that it waits for: whoever is to go on
    next owns those that wait for it. So all of them are freed when it is dropped.
    """
    here = innermost.get()
    try:
        _take_relay(errand).switch(errand)
    except BaseException as thrown:  # not sent
        inbox[:] = _GONE
        errand.clear()  # the relay has it, too
        if isinstance(thrown, GreenletExit):
            getcurrent().killed = True
            here = innermost.get()
        raise
    finally:
        if innermost.get() is not here:  # handlers share the variables of their body
            innermost.set(here)
    if not inbox:
        inbox[:] = _GONE
        raise ResumptionError(_SPURIOUS)
    for variable, value in inbox[1]:
        variable.set(value)
    if inbox[2] is None:
        return inbox[0]
    raise inbox.pop()


def _begin_traceback_with_user(error: BaseException) -> None:
    """Drop the frames of this library with which a traceback begins."""
    traceback = error.__traceback__
    while traceback and traceback.tb_frame.f_globals.get("__package__") == __package__:
        traceback = traceback.tb_next
    error.__traceback__ = traceback or error.__traceback__


def work_on(job: Job) -> Greenlet:
    """Job: run a body up to its delimiter; then its caller goes on."""
    _, delimiter, body = job
    job.clear()
    try:
        innermost.set(delimiter)
        return _finish(delimiter, run(delimiter, body))
    except BaseException as error:
        if getcurrent().killed:
            raise
        return _finish(delimiter, None, error)
    finally:
        delimiter.live, delimiter.caller = False, None


def _finish(delimiter: Delimiter, value: Any, error: Any = None) -> Greenlet:
    """Send the caller what came of a body, unless one of the two was ended."""
    caller, scope = delimiter.caller, delimiter.scope
    if caller is None or caller.inbox == _GONE or getcurrent().killed:
        return None
    caller.send(value, error, () if scope is None else scope.changes(innermost))
    return caller.greenlet


def hire(context: Context | None, *job: Any) -> Errand:
    """The errand to have a job done by a worker, which takes place in a context."""
    idle = _thread.idle
    worker = idle.pop() if idle else Worker(_work, _root())
    worker.gr_context = context
    worker.job = list(job)
    return [worker, None]


@from_the_start
def _work() -> Errand | None:
    """A worker's life: do a job, be idle, and again while there is room in the pool.

    An interrupt at its door, or behind the switch, comes before it has taken the job.
    """
    try:
        errand: Errand = []
        try:
            while True:
                job, getcurrent().job = getcurrent().job, None
                target = job[0](job)
                if target is None:
                    return None
                if len(_thread.idle) >= IDLE_LIMIT:
                    errand = [target, None]
                    getcurrent().parent = _take_relay(errand)  # goes on after this
                    return errand
                getcurrent().gr_context = None
                errand = [target, getcurrent()]
                del target
                _take_relay(errand).switch(errand)
        except BaseException:
            errand.clear()  # the relay has it, too
            raise
    finally:
        getcurrent().gr_context = getcurrent().job = None


class _Thread(local):  # type: ignore[valid-type, misc]  # not gevent's
    """The idle workers of this thread, and its relay when nobody has it."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []
        self.relay: Relay | None = None


_thread = _Thread()


@from_the_start
def _relay(errand: Errand) -> None:
    """Run errands: put the worker that is idle into the pool; go on with the other.

    Every switch goes through here, for two reasons. A suspended greenlet is suspended
    in a call of ``switch``, which holds its arguments: here, only the relay and an
    errand, which is emptied. And a greenlet's part of the C stack begins where it was
    started: were that not here, nested bodies would go down the C stack to its end.
    """
    try:
        while True:
            target, worker = errand
            errand.clear()
            if worker is not None:
                _thread.idle.append(worker)
            del worker
            _thread.relay = getcurrent()
            errand = target.switch()
    except GreenletExit:
        raise  # a greenlet ends by it
    except BaseException:  # an interrupt, maybe before it had the errand
        getcurrent().sent.clear()
        raise


def _take_relay(errand: Errand) -> Greenlet:
    """The relay of this thread; for one errand, as a signal may interrupt it there.

    Where an interrupt has lost or ended it, the idle workers go, too. They hold the
    relay that they left by, and it whom it woke last: that one would never be freed.
    """
    relay, _thread.relay = _thread.relay, None
    if not relay:  # one that has ended is false
        _thread.idle.clear()
        relay = Relay(_relay, _root())
    relay.sent = errand
    return relay


def _root() -> Greenlet:
    """The thread's first greenlet, to which an interrupt of these lines goes."""
    root = getcurrent()
    while root.parent is not None:
        root = root.parent
    return root

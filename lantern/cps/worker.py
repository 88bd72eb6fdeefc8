"""The only file that imports greenlet: bodies and handlers run in pooled workers.

A greenlet is a stack of its own. ``a.switch()`` suspends the current one, right there,
and goes on in ``a``, where that one was suspended. To make one costs ten times as much
as to switch to one and back: so workers are used again.
"""

from collections.abc import Callable
from contextvars import Context
from typing import Any

from greenlet import getcurrent, greenlet

from lantern.cps.context import Changes, local
from lantern.cps.handler import run
from lantern.cps.prompt import Delimiter, innermost

__all__ = ["Greenlet", "getcurrent", "hire", "send", "wait", "work_on"]

IDLE_LIMIT = 64
"""Idle workers that a thread keeps, at about 15 KB each."""

Greenlet = greenlet
Job = Callable[[], Greenlet | None]


class Worker(Greenlet):
    """A greenlet that does one job after another; a job returns who goes on then."""

    __slots__ = ("job",)
    job: Job | None


def send(
    target: Any, value: Any, error: BaseException | None = None, changes: Changes = ()
) -> None:
    """Leave a value, or an exception, for a greenlet that is suspended in ``wait``.

    As an argument of ``switch`` it would live as long as that call: until its sender,
    suspended by it, goes on.
    """
    if error is not None:
        _begin_traceback_with_user(error)
    target.parcel = (value, error, changes)


def wait(target: Greenlet) -> Any:
    """Suspend this greenlet and go on in another; return what is sent here.

    Every body, handler and caller that is suspended is suspended here. No local
    variable, here or in a caller of this function, may lead to the current greenlet.
    """
    here = innermost.get()
    try:
        target.switch()
    finally:
        if innermost.get() is not here:  # handlers share the variables of their body
            innermost.set(here)
    value, error, changes = _receive(getcurrent())
    for variable, new in changes:
        variable.set(new)
    if error is None:
        return value
    try:
        raise error
    finally:
        del error  # or the traceback would hold this frame, and the frame it


def _receive(current: Any) -> Any:
    parcel = current.parcel
    del current.parcel
    return parcel


def _begin_traceback_with_user(error: BaseException) -> None:
    """Drop the frames of this library with which a traceback begins."""
    traceback = error.__traceback__
    while traceback and traceback.tb_frame.f_globals.get("__package__") == __package__:
        traceback = traceback.tb_next
    if traceback:
        error.__traceback__ = traceback


def work_on(delimiter: Delimiter, body: Callable[[], Any]) -> Greenlet | None:
    """Job: run a body up to its delimiter; then its caller goes on."""
    try:
        innermost.set(delimiter)
        answer = run(delimiter, body)
    except BaseException as error:
        return _finish(delimiter, None, error)
    return _finish(delimiter, answer)


def _finish(
    delimiter: Delimiter, answer: Any, error: BaseException | None = None
) -> Greenlet | None:
    delimiter.live = False
    caller, scope = delimiter.caller, delimiter.scope
    if caller is not None:
        send(caller, answer, error, () if scope is None else scope.changes(innermost))
    return caller


def hire(context: Context | None, job: Job) -> Worker:
    """A worker of this thread that will do the job when it is switched to."""
    idle = _idle()
    if not idle:
        _thread.target = getcurrent()
        _thread.relay.switch()
    worker = idle.pop()
    worker.gr_context = context
    worker.job = job
    return worker


_thread = local()  # idle: list[Worker]; relay, target: Greenlet


def _idle() -> list[Worker]:
    """The idle workers of this thread."""
    if not getattr(_thread, "relay", None):  # the first time, or an interrupt killed it
        root = getcurrent()
        while root.parent is not None:
            root = root.parent
        _thread.idle = []
        _thread.relay = greenlet(_relay, root)
        _thread.target = getcurrent()
        _thread.relay.switch()
    return _thread.idle  # type: ignore[no-any-return]


def _relay() -> None:
    """Between two jobs: go on with whom the last one has named.

    All workers are started here, too. A greenlet's part of the C stack begins where it
    was started: were that with whoever needs it, nested bodies would go down the C
    stack to its end. And an idle worker is suspended here, in a call of the relay's
    ``switch``, which keeps nothing of its last job alive.
    """
    while True:
        if not _thread.idle:
            Worker(_work, getcurrent().parent).switch()
        _thread.target.switch()


def _work() -> None:
    """A worker's life: wait in the pool, do a job, and again while there is room."""
    while True:
        job = _next_job()
        target = job()
        del job
        if target is None:  # it has not come to its end: greenlet kills this worker
            return
        _thread.target = target
        del target
        if len(_idle()) >= IDLE_LIMIT:
            getcurrent().parent = _thread.relay  # goes on when this one has died
            return


def _next_job() -> Job:
    worker = getcurrent()
    worker.gr_context = None
    _idle().append(worker)
    del worker
    _thread.relay.switch()
    worker = getcurrent()
    job, worker.job = worker.job, None
    return job

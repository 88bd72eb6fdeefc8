"""Independent parts of a program in several threads, there and back.

A derivative finds everything where the sequential program would have left it
(``submitted``), so not a bit depends on the threads.
"""

import concurrent.futures
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any

from lantern.errors import ArgumentError
from lantern.parallel.task import Submission, can_be_elsewhere, levels_in_force
from lantern.parallel.thread_team import Crew, Job, died
from lantern.transforms.reverse import Reverse

__all__ = ["ThreadPoolExecutor", "parallel_map"]


class ThreadPoolExecutor(concurrent.futures.ThreadPoolExecutor):
    """The standard library's, for tasks that a derivative goes back through in order.

    A differentiated function may use it in the place of
    ``concurrent.futures.ThreadPoolExecutor``. Values and gradients are then those of
    the sequential program to the last bit: of the program that runs each task where it
    is submitted, and makes ``list(map(f, xs))`` of ``pool.map(f, xs)``. Tasks that were
    submitted one after another, and need nothing of one another, also go back in
    several threads.

    A task may use what was computed before it was submitted, also by tasks that are
    still running, but nothing that comes later. It runs in a copy of the submitter's
    context variables, as with ``asyncio.to_thread``. The backward pass waits for tasks
    whose results nobody has asked for; under ``vjp``, whose pullback comes later, they
    are refused the values of f when f has returned. With ``driver="switching"``, under
    ``debug``, ``backward_steps`` or ``linearize``, a task runs where it is submitted,
    in no other thread.

    Args:
        max_workers: how many threads; the other arguments are the standard ones.

    Raises:
        ArgumentError: in a task, by an operation on a tracked value that was computed
            after the task was submitted.

    Example:
        >>> import numpy as np
        >>> import lantern
        >>> batches = np.arange(12.0).reshape(2, 2, 3)
        >>> def loss(w):
        ...     part = lambda x: ((x @ w) ** 2).sum()
        ...     with lantern.ThreadPoolExecutor(2) as pool:
        ...         futures = [pool.submit(part, x) for x in batches]
        ...     return sum(future.result() for future in futures)
        >>> lantern.grad(loss)(np.eye(3))[0]
        array([252., 288., 324.])
    """

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """As the standard one; note the place in the derivatives in force."""
        run, levels = copy_context().run, levels_in_force()
        if not levels or self._shutdown:  # which is refused
            return super().submit(run, fn, *args, **kwargs)
        if not all(map(can_be_elsewhere, levels)):
            return _at_once(partial(run, fn, *args, **kwargs))
        submission = Submission(levels, self._max_workers)
        errand = _Errand(partial(fn, *args, **kwargs))
        try:
            errand.future = super().submit(run, submission.run, errand)
        except BaseException:
            submission.end()
            raise
        errand.future.add_done_callback(submission.end)  # also if it never runs
        return errand.future


class _Errand:
    """A call in the hands of a worker; one that drops it undone has died."""

    __slots__ = ("call", "future")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.future: Future[Any] | None = None

    def __call__(self) -> Any:
        return self.call()

    def __del__(self) -> None:
        if self.future is not None and not self.future.done():
            self.future.set_exception(died("ThreadPoolExecutor"))


def _at_once(thunk: Callable[[], Any]) -> Future[Any]:
    """The future of a task that has run already."""
    box: list[Future[Any]] = [Future()]  # emptied: an exception leads to this frame
    try:
        box[0].set_result(thunk())
    except Exception as error:
        box[0].set_exception(error)
    return box.pop()


def parallel_map(
    f: Callable[..., Any], *sequences: Iterable[Any], workers: int | None = None
) -> list[Any]:
    """``list(map(f, *sequences))`` in several threads; its derivative as well.

    It pays where f spends its time in large array operations: NumPy lets other threads
    run meanwhile. Let BLAS use one thread (``OPENBLAS_NUM_THREADS=1``), or it takes all
    cores for itself already. Values and gradients are those of the sequential program
    to the last bit, whatever the number of threads.

    The calls are tasks as those of a ``ThreadPoolExecutor``, and may use what calls
    before them have computed; the caller's thread is one of those they run in. Of
    several exceptions the first one in order is raised.

    Args:
        f: a function; it may use tracked values of the surrounding program.
        sequences: its arguments, as for ``map``.
        workers: how many threads; by default one for each core. With 1 no thread is
            started.

    Returns:
        The list of results.

    Raises:
        ArgumentError: f is no function, workers is not a positive integer, or a call
            uses a tracked value that a later one has computed.

    Example:
        >>> import numpy as np
        >>> import lantern
        >>> weights, batches = np.eye(3), np.arange(12.0).reshape(2, 2, 3)
        >>> def loss(w):
        ...     part = lambda x: ((x @ w) ** 2).sum()
        ...     return sum(lantern.parallel_map(part, batches))
        >>> lantern.grad(loss)(weights)[0]
        array([252., 288., 324.])
    """
    if not callable(f):
        got = type(f).__name__
        raise ArgumentError(f"parallel_map: expected a function, got {got}. Give one.")
    workers = _cores() if workers is None else workers
    if type(workers) is not int or workers < 1:
        raise ArgumentError(
            f"parallel_map: workers is {workers!r}. Give a positive integer, or None."
        )
    levels = levels_in_force()
    if workers == 1 or not all(map(can_be_elsewhere, levels)):
        return list(map(f, *sequences))
    return _map(f, zip(*sequences, strict=False), levels, workers)


def _map(
    f: Callable[..., Any], rows: Iterable[Any], levels: list[Reverse], workers: int
) -> list[Any]:
    """The results of all calls, in this thread and others."""
    crew = Crew()
    jobs: list[Job] = []
    submissions: list[Submission] = []
    interrupted = False
    try:
        for row in rows:
            submissions.append(Submission(levels, workers))
            jobs.append(Job(crew, partial(submissions[-1].run, f, *row)))
        crew.call(min(workers, len(jobs)) - 1)
        return [job.wait() for job in jobs]
    except (KeyboardInterrupt, SystemExit):
        interrupted = True
        raise
    finally:
        for job in jobs:
            job.drop(interrupted)
        for submission in submissions:
            submission.end()  # also if it has never run


def _cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1

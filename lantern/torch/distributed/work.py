"""Asynchronous operations: a thread for each group, which does them one after another.

They use messages of their own (the group's twin), so that what the program does in the
meantime meets none of theirs.
"""

import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lantern.blocks import mutex
from lantern.errors import DistributedError, EagerError
from lantern.torch.autograd.profiler import note, running

__all__ = ["Future", "Line", "Work"]


class Future:
    """The result of an operation, once there is one.

    Example:
        >>> from lantern.torch.distributed.work import Future
        >>> future = Future()
        >>> future.set_result(3)
        >>> future.then(lambda f: f.value() + 1).wait()
        4
    """

    def __init__(self, *, devices: Any = None) -> None:
        self.event, self.result = threading.Event(), None
        self.error: BaseException | None = None
        self.callbacks: list[Callable[[Any], Any]] = []
        self.lock = mutex()

    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self.event.is_set()

    def set_result(self, result: Any) -> None:
        """Give the result."""
        self._settle(result, None)

    def set_exception(self, error: BaseException) -> None:
        """Give an error instead."""
        self._settle(None, error)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        with self.lock:
            if self.event.is_set():
                raise EagerError("Future can only be marked as completed once.")
            self.result, self.error = result, error
            self.event.set()
            callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self)

    def value(self) -> Any:
        """The result, which must be there."""
        if self.error is not None:
            raise self.error
        return self.result

    def wait(self) -> Any:
        """The result, as soon as it is there."""
        self.event.wait()
        return self.value()

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call a function with this, as soon as the result is there."""
        with self.lock:
            if not self.event.is_set():
                self.callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Any], Any]) -> "Future":
        """What a function makes of this, once the result is there."""
        after = Future()

        def call(future: Any) -> None:
            try:
                after.set_result(callback(future))
            except BaseException as error:
                after.set_exception(error)

        self.add_done_callback(call)
        return after


class Work:
    """An operation that may still be under way.

    Attributes:
        future: of its result.
        engine: whose messages it waits for.
        began, ended: when it was carried out, by ``time.perf_counter``.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0])
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait(), work.is_completed()
        (True, True)
        >>> dist.destroy_process_group()
    """

    def __init__(self, engine: Any, result: Any = None) -> None:
        self.future, self.engine, self.output = Future(), engine, result
        self.began = self.ended = 0.0

    def is_completed(self) -> bool:
        """Whether it is over."""
        return self.future.done()

    def is_success(self) -> bool:
        """Whether it is over, without an error."""
        return self.future.done() and self.future.error is None

    def exception(self) -> Any:
        """Its error; None for none."""
        return self.future.error

    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is over, or cannot end any more."""
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        end = time.monotonic() + (limit or self.engine.seconds)
        while not self.future.event.wait(0.05):
            self.engine.watch.check("wait", self.engine.members)
            if time.monotonic() > end:
                raise DistributedError(
                    "wait: Timed out waiting for an asynchronous operation. Call it on "
                    "every rank of its group, in the same order."
                )
        self.future.value()
        return True

    synchronize = wait

    def result(self) -> Any:
        """What the operation wrote to."""
        self.wait()
        return self.output

    def get_future(self) -> Future:
        """Of the tensors that the operation wrote to."""
        return self.future

    def source_rank(self) -> int:
        """Who has sent what was received."""
        return int(self.future.wait())


class Line:
    """A group's asynchronous operations, in their order."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        engine.naps, self.closed = True, False
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def add(self, operation: Callable[[Any], Any], result: Any) -> Work:
        """Let an operation of the group's twin come after the others."""
        if self.closed:
            raise EagerError(
                "The process group was destroyed, and an operation asks for it. Make "
                "the model anew after init_process_group."
            )
        work = Work(self.engine, result)
        self.waiting.put((operation, work))
        return work

    def close(self) -> None:
        """No more operations will come."""
        self.closed = True
        self.waiting.put(None)

    def _run(self) -> None:
        while (entry := self.waiting.get()) is not None:
            operation, work = entry
            work.began = time.perf_counter()
            try:
                operation(self.engine)
            except BaseException as error:
                work.future.set_exception(error)
            else:
                work.ended = time.perf_counter()
                work.future.set_result(work.output)
            del entry, operation, work


def run(
    group: Any,
    operation: Callable[[Any], Any],
    result: Any,
    later: bool,
    shown: Any = None,
) -> Any:
    """Do something with a group's data, now, or in its thread.

    Args:
        group: the ``ProcessGroup``.
        operation: a function of the group's engine.
        result: what the future of the operation is to give.
        later: whether a ``Work`` is asked for.
        shown: the tensors that a profile lists; the result by default.
    """
    if running:
        name = operation.__qualname__.partition(".")[0].removesuffix("_coalesced")
        note(f"{group.backend}:{name}", result if shown is None else shown)
    if not later:
        operation(group.engine)
        return None
    if group.line is None:
        group.line = Line(group.engine.twin())
    return group.line.add(operation, result)

"""Independent parts of a program in several threads, there and back.

What is true only here: the rules of a part wait in a list of their own. When all parts
are done, these lists become one entry of the derivative, in the order of the parts; so
the backward pass finds everything where the sequential program would have left it. The
parts go back in several threads, too. What they contribute to values from outside is
noted in a ``Ledger`` for each part, and booked when all are back, last part first: as
in the sequential program, to the last bit.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from types import BuiltinMethodType, GeneratorType
from typing import Any, ClassVar

from lantern.contribution import Contribution
from lantern.cps.prompt import in_force
from lantern.errors import ArgumentError
from lantern.number import ManyOperandNumber, Number
from lantern.rest import Answered, Moment
from lantern.reverse import Reverse
from lantern.several import SeveralReceiver
from lantern.tensor.accumulator import Accumulator
from lantern.value import Level, Receiver, Replayable

__all__ = ["parallel_map"]

Thunk = Callable[[], Any]
Part = dict[Level, list[Receiver]]  # who waits in it, newest last

_part: ContextVar[Part | None] = ContextVar("lantern.part", default=None)


def parallel_map(
    f: Callable[..., Any], *sequences: Iterable[Any], workers: int | None = None
) -> list[Any]:
    """``list(map(f, *sequences))`` in several threads; its derivative as well.

    It pays where f spends its time in large array operations: NumPy lets other threads
    run meanwhile. Let BLAS use one thread (``OPENBLAS_NUM_THREADS=1``), or it takes all
    cores for itself already. Values and gradients are those of the sequential program
    to the last bit, whatever the number of threads.

    The calls must be independent: a value that one of them computes, another must not
    use. Each runs in a copy of the caller's context variables. Of several exceptions
    the first one in order is raised.

    Args:
        f: a function; it may use tracked values of the surrounding program.
        sequences: its arguments, as for ``map``.
        workers: how many threads; by default one for each core. With 1, and inside a
            derivative that is taken with ``driver="switching"``, no thread is started.

    Returns:
        The list of results.

    Raises:
        ArgumentError: f is no function, workers is not a positive integer, or a call
            uses a tracked value that another one has computed.

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
    return run([partial(f, *xs) for xs in zip(*sequences, strict=False)], workers)


def _cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def run(thunks: Sequence[Thunk], workers: int) -> list[Any]:
    """Call thunks in several threads; keep apart what they leave waiting."""
    levels = list({prompt: 0 for prompt in in_force() if isinstance(prompt, Reverse)})
    plain = all(
        x.goes_back and isinstance(x.suspend, BuiltinMethodType | Redirect)
        for x in levels
    )
    if workers == 1 or len(thunks) < 2 or not plain:
        return [thunk() for thunk in thunks]
    parts: list[Part] = [{level: [] for level in levels} for _ in thunks]
    redirects = [Redirect.of(level) for level in levels]
    try:
        return in_threads(thunks, parts, workers)
    finally:
        strays = [redirect.end() for redirect in redirects]
        for level, others in zip(levels, strays, strict=True):
            join(level, [part[level] for part in parts], others, workers)


def join(
    level: Level, lists: list[list[Receiver]], strays: list[Receiver], workers: int
) -> None:
    """Let those who wait in several parts wait where the sequential program would.

    If all of them are of the kinds known here, they become one entry, which will go
    back in threads.

    Args:
        level: their derivative.
        lists: for each part, who waits in it, newest last.
        strays: who began to wait meanwhile in other threads.
        workers: how many threads to use.

    Raises:
        ArgumentError: a part uses what another one has computed.
    """
    owner = {id(z): i for i, part in enumerate(lists) for z in _with_nested(part)}
    if owner and all(map(_is_known, itertools.chain(*lists))):
        level.suspend(Parts(level, lists, owner, workers))
    else:
        for z in itertools.chain(*lists):
            level.suspend(z)
    for i, part in (*enumerate(lists), (-1, strays)):
        if not all(owner.get(id(x), i) == i for z in part for x in _targets(z)):
            raise ArgumentError(
                f"parallel_map: {f'call {i}' if i >= 0 else 'another thread'} uses a "
                f"tracked value that a call has computed. Return it, and use it when "
                f"all calls are done."
            )


def in_threads(thunks: Sequence[Thunk], parts: list[Part], workers: int) -> list[Any]:
    """The results of thunks; of several exceptions, the first one in order."""
    futures: list[Future[Any]] = []
    with ThreadPoolExecutor(min(workers, len(thunks))) as pool:
        try:
            for thunk, part in zip(thunks, parts, strict=True):
                futures.append(pool.submit(copy_context().run, _in_part, part, thunk))
            futures.reverse()
            return [futures.pop().result() for _ in thunks]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            futures.clear()  # they hold the exception, whose traceback holds them


def _in_part(part: "Part", thunk: Thunk) -> Any:
    _part.set(part)
    return thunk()


class Redirect:
    """In the place of a level's ``suspend`` while parts run: each has its own list.

    Attributes:
        strays: what has come meanwhile from other threads.
    """

    __slots__ = ("level", "strays", "suspend", "users")
    _lock = threading.Lock()

    def __init__(self, level: Level) -> None:
        self.level, self.suspend = level, level.suspend
        self.strays: list[Receiver] = []
        self.users = 0

    @classmethod
    def of(cls, level: Level) -> "Redirect":
        """The one of a level, which may be in use already."""
        with cls._lock:
            if type(level.suspend) is not cls:
                level.suspend = cls(level)
            level.suspend.users += 1
            return level.suspend

    def end(self) -> list[Receiver]:
        """Leave it; the last user puts the level's own ``suspend`` back."""
        with self._lock:
            self.users -= 1
            if not self.users and self.level.suspend is self:
                self.level.suspend = self.suspend
            return self.strays

    def __call__(self, receiver: Receiver) -> None:
        part = _part.get()
        if part is not None and self.level in part:
            part[self.level].append(receiver)
        else:
            self.strays.append(receiver)
            self.suspend(receiver)


class Parts(Receiver):
    """The rules of several parts, which wait as one entry and go back in threads."""

    __slots__ = ("ledgers", "level", "lists", "workers")
    catches: ClassVar[bool] = True

    def __init__(
        self,
        level: Level,
        lists: list[list[Receiver]],
        owner: dict[int, int],
        workers: int,
    ) -> None:
        self.level, self.lists, self.workers = level, lists, workers
        self.rule = self.left = self.right = self.cotangent = None
        self.ledgers = [_book_outside(part, owner) for part in lists]

    def operands(self) -> tuple[Receiver | None, ...]:
        """The receivers outside."""
        return tuple(ledger.target for part in self.ledgers for ledger in part)

    def resume(self, answer: Any) -> Any:
        """Run the backward steps of all parts, last part first."""
        self.level.waiting.append(_STOP)
        try:
            run([partial(_go_back, z, answer) for z in self.lists[::-1]], self.workers)
        except BaseException as error:
            self.throw(error)
        finally:
            self.level.waiting.pop()
        self._book()
        return answer

    def replay(self) -> None:
        """As ``resume``, with fresh rules."""
        run([partial(_replay, part) for part in self.lists[::-1]], self.workers)
        self._book()

    def _book(self) -> None:
        for part in reversed(self.ledgers):
            for ledger in part:
                ledger.book()

    def throw(self, error: BaseException) -> Any:
        """Unwind who waits here, newest first."""
        for part in reversed(self.lists):
            while part:
                z = part.pop()
                try:
                    if z.catches:
                        z.throw(error)  # type: ignore[attr-defined]  # as it catches
                    else:
                        z.close()
                except BaseException as raised:
                    error = raised
        raise error

    def close(self) -> None:
        """Not called: this entry sees exceptions."""

    def forget(self) -> None:
        """Forget what an interrupted pass has left."""
        for part, ledgers in zip(self.lists, self.ledgers, strict=True):
            for z in (*part, *ledgers):
                z.forget()


def _is_known(z: Receiver) -> bool:
    """Whether an entry only touches itself and its operands, and these only themselves.

    A receiver of another kind may hand on at once what a ledger would keep until later.
    """
    if type(z) not in _KNOWN or not (z.rule is None or type(z.rule) in _RULES):
        return False
    receivers = {type(x) for x in z.operands() if x is not None}
    return receivers <= _KNOWN | {Ledger}


_KNOWN = {
    *(Number, ManyOperandNumber, Accumulator, SeveralReceiver),
    *(Moment, Answered, Parts),
}
_RULES = {GeneratorType, Replayable}


def _targets(z: Receiver) -> Iterator[Receiver | None]:
    """The operands of an entry, also where they are behind a ledger already."""
    for x in z.operands():
        yield x.target if type(x) is Ledger else x


def _with_nested(part: list[Receiver]) -> Iterator[Receiver]:
    """Who waits in a part, also in parts of it."""
    for z in part:
        yield z
        if type(z) is Parts:
            yield from itertools.chain(*map(_with_nested, z.lists))


class _Stop(Receiver):
    """Where a run of numbers ends (``Number.resume``): they are in another list."""

    __slots__ = ()


_STOP = _Stop()


def _go_back(part: list[Receiver], answer: Any) -> None:
    while part:
        answer = part.pop().resume(answer)


def _replay(part: list[Receiver]) -> None:
    for z in reversed(part):
        z.replay()


class Ledger(Receiver):
    """What a part contributes to a receiver outside, until all parts are back.

    Args:
        target: the receiver.
    """

    __slots__ = ("entries", "mask", "owned", "target")

    def __init__(self, target: Receiver) -> None:
        self.target = target
        self.entries: list[Any] = []

    @property  # numbers read and set it without a call
    def cotangent(self) -> Any:
        """Nothing, so that each contribution comes as it is."""
        return None

    @cotangent.setter
    def cotangent(self, contribution: Any) -> None:
        """Note a contribution."""
        self.entries.append((self.target.accumulate, contribution))

    def accumulate(self, contribution: Any) -> None:
        """Note a contribution; one that is yet to be computed is, in this thread."""
        contribution = contribution() if callable(contribution) else contribution
        if isinstance(contribution, Contribution):
            target = self.target
            while type(target) is Ledger:
                target = target.target
            contribution = contribution.ready(target)
        self.entries.append((self.target.accumulate, contribution))

    add = accumulate

    def fail(self, error: Exception) -> bool:
        """Note that a backward step has failed."""
        self.entries.append((self.target.fail, error))
        return True

    def holds_complex(self) -> bool:
        """Whether the receiver's value is complex."""
        return self.target.holds_complex()

    def book(self) -> None:
        """Hand on what was noted, in order."""
        entries, self.entries = self.entries, []
        for take, noted in entries:
            if take(noted) is False:
                raise noted  # an exception that nobody outside can catch

    def forget(self) -> None:
        """Forget what was noted."""
        self.entries.clear()


def _book_outside(part: list[Receiver], owner: dict[int, int]) -> list[Ledger]:
    """Put a ledger between a part and each receiver outside it."""
    ledgers: dict[int, Ledger] = {}

    def replace(x: Any) -> Any:
        if x is None or id(x) in owner:
            return x
        if id(x) not in ledgers:
            ledgers[id(x)] = Ledger(x)
        return ledgers[id(x)]

    for z in part:
        if type(z) is Parts:
            for ledger in itertools.chain(*z.ledgers):
                ledger.target = replace(ledger.target)
        elif type(z.left) is tuple:
            z.left = tuple(map(replace, z.left))
        else:
            z.left, z.right = replace(z.left), replace(z.right)
    return list(ledgers.values())

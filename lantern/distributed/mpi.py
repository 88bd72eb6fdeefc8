"""Collectives by MPI: the only file that imports mpi4py, and waits for messages.

Every operation is posted without blocking, and asked in turns whether it is over, while
an eye is kept on the other ranks: so no wait is for ever. That takes no longer than a
blocking call does (``benchmarks/distributed.py``).
"""

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.core.namespace import namespace
from lantern.distributed.nccl import NcclGroup
from lantern.distributed.watch import Watch
from lantern.errors import ArgumentError, DistributedError, MissingExtraError

__all__ = ["MpiGroup", "load", "world"]

# How often an operation is asked before others may have the processor in between.
EAGER = 20
NAP = 3e-5  # seconds between two questions, in a thread beside one that computes
_REDUCTIONS = {
    "sum": "SUM",
    "mean": "SUM",
    "prod": "PROD",
    "min": "MIN",
    "max": "MAX",
    "and": "BAND",
    "or": "BOR",
    "xor": "BXOR",
}
# What MPI does not reduce, and as what it is reduced here.
_WIDER = {"e": np.float32, "?": np.uint8}


@functools.cache
def load() -> Any:
    """MPI, which connects this process with the others when it is first imported."""
    try:
        import mpi4py
    except ImportError:
        raise MissingExtraError(
            "lantern.distributed: more than one process needs MPI. Install mpi4py and "
            'an MPI: pip install "lantern-ad[mpi]".'
        ) from None
    # At the end it is left to us, who know whether the others will take part.
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    return MPI


class Arriving:
    """A message that is to arrive, and who has sent it."""

    def __init__(self, request: Any, status: Any) -> None:
        self.request, self.status = request, status

    def Test(self) -> bool:
        """Whether it has arrived; as MPI calls it."""
        return self.request is None or bool(self._test())

    def _test(self) -> bool:
        if not self.request.Test(self.status):
            return False
        self.request = None  # the next answer would be that of no request
        return True


def _by_place(method: Any) -> Any:
    """Let arrays on a GPU go by NCCL, which does the same under the same name."""

    @functools.wraps(method)
    def choose(self: "MpiGroup", x: Any, *others: Any, **named: Any) -> Any:
        if isinstance(x, np.ndarray):
            return method(self, x, *others, **named)
        return getattr(self.on_gpus(x), method.__name__)(x, *others, **named)

    return choose


class MpiGroup:
    """Some of the ranks, and what they do together on NumPy arrays, or on CuPy's.

    The arrays are in C order; the targets are written to. ``source`` may be the target.

    Attributes:
        ranks: the members' numbers in the whole job.
        rank: this process's place among them.
        size: how many they are.
        seconds: after which a wait ends with an error.
        naps: whether it waits in a thread beside one that computes, which needs the
            processor more.
        leaving: whether it is for the end, where nobody minds that others leave.
    """

    naps = leaving = False

    def __init__(self, comm: Any, ranks: Sequence[int], watch: Watch, seconds: float):
        self.comm, self.ranks, self.watch = comm, tuple(ranks), watch
        self.members = frozenset(ranks)
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.seconds = seconds
        self.posted: list[Any] = []  # what was sent, until it has arrived
        self.gpus: NcclGroup | None = None

    def __repr__(self) -> str:
        return f"<group of the ranks {', '.join(map(str, self.ranks))}>"

    def subgroup(self, ranks: Sequence[int], tag: int, seconds: float) -> "MpiGroup":
        """Some of these ranks, all of which call this, as a group of their own."""
        inside = self.comm.Get_group().Incl([self.ranks.index(r) for r in ranks])
        comm = self.comm.Create_group(inside, tag % 32000)
        return MpiGroup(comm, ranks, self.watch, seconds)

    def twin(self) -> "MpiGroup":
        """The same ranks, whose messages never meet those of this group."""
        return MpiGroup(self.comm.Dup(), self.ranks, self.watch, self.seconds)

    def on_gpus(self, x: Any) -> NcclGroup:
        """The same ranks, for arrays on GPUs: made when the first one comes."""
        if self.gpus is None:
            self.gpus = NcclGroup(self, namespace(x).module)
        return self.gpus

    @between_turns
    def wait(self, request: Any, describe: Callable[[], str]) -> None:
        """Wait until an operation is over, or cannot end any more."""
        test = request.Test
        try:
            # Before it asks: what is over at once would hide that somebody is gone.
            if self.watch.trouble is not None:
                self.watch.check(describe(), self.members)
            if self.naps:
                self._nap(test, describe)
                return
            for _ in range(EAGER):
                if test():
                    return
            self._wait_long(test, describe)
        except load().Exception as error:
            raise DistributedError(
                f"{describe()}: MPI says: {error}. Call the same collective, with the "
                f"same shapes and types, on every rank."
            ) from None
        finally:
            self.watch.state = None

    def _nap(self, test: Callable[[], bool], describe: Callable[[], str]) -> None:
        while True:
            for _ in range(EAGER):  # each question moves the next piece of a message
                if test():
                    return
            if self.watch.trouble is not None:
                self.watch.check(describe(), self.members)
            time.sleep(NAP)

    def _wait_long(self, test: Callable[[], bool], describe: Callable[[], str]) -> None:
        watch, began = self.watch, time.monotonic()
        watch.state = describe
        turn = 0
        while not test():
            turn += 1
            os.sched_yield()
            if turn % 64:
                continue
            waited = time.monotonic() - began
            if watch.trouble is not None or (watch.leaving and not self.leaving):
                watch.check(describe(), self.members)
            if waited > self.seconds:
                self._late(describe())
            if waited > 0.02:
                time.sleep(min(waited / 100, 0.001))

    def _late(self, where: str) -> None:
        """The end of patience: say what each rank waits for."""
        states = self.watch.states()
        where_is = {r: f"in {s}" if s else "elsewhere" for r, s in states.items()}
        others = [
            f"rank {rank} is {where_is[rank]}"
            for rank in self.ranks
            if rank in states and rank != self.ranks[self.rank]
        ]
        raise DistributedError(
            f"{where}: Timed out after {self.seconds:g} s; "
            f"{', '.join(others) or 'nothing is known of the others'}. Call the same "
            f"collectives in the same order on every rank, or give them more time."
        )

    def barrier(self, seconds: float | None = None) -> None:
        """Wait until every rank has come here."""
        before, self.seconds = self.seconds, seconds or self.seconds
        try:
            self.wait(self.comm.Ibarrier(), lambda: "barrier")
        finally:
            self.seconds = before

    @_by_place
    def all_reduce(self, source: Any, target: Any, op: str) -> None:
        """Combine the arrays of all ranks, for all ranks."""
        self._reduce("all_reduce", source, target, op, None)

    @_by_place
    def reduce(self, source: Any, target: Any, op: str, root: int) -> None:
        """Combine the arrays of all ranks, for one of them."""
        self._reduce("reduce", source, target, op, root)

    def _reduce(self, name: str, source: Any, target: Any, op: str, root: Any) -> None:
        wide = _WIDER.get(target.dtype.char)
        mine = target if wide is None else source.astype(wide)
        mpi = load()
        how = getattr(mpi, _REDUCTIONS[op])
        given = mpi.IN_PLACE if mine is not target or source is target else source
        if root is None:
            request = self.comm.Iallreduce(given, mine, how)
        elif root == self.rank:
            request = self.comm.Ireduce(given, mine, how, root)
        else:
            request = self.comm.Ireduce(
                source if wide is None else mine, None, how, root
            )
        self.wait(request, lambda: _described(name, source, op, root=root))
        if root is not None and root != self.rank:
            return
        if op == "mean":
            mine /= self.size
        if mine is not target:
            target[...] = mine

    @_by_place
    def broadcast(self, target: Any, root: int) -> None:
        """Give one rank's array to all."""
        request = self.comm.Ibcast(_bytes(target), root)
        self.wait(request, lambda: _described("broadcast", target, root=root))

    @_by_place
    def all_gather(self, source: Any, target: Any) -> None:
        """Give the arrays of all ranks to all; the target has an axis of ranks."""
        request = self.comm.Iallgather(_bytes(source), _bytes(target))
        self.wait(request, lambda: _described("all_gather", source))

    @_by_place
    def gather(self, source: Any, target: Any, root: int) -> None:
        """Give the arrays of all ranks to one of them."""
        there = _bytes(target) if root == self.rank else None
        request = self.comm.Igather(_bytes(source), there, root)
        self.wait(request, lambda: _described("gather", source, root=root))

    @_by_place
    def scatter(self, source: Any, target: Any, root: int) -> None:
        """Give each rank its part of one rank's array."""
        there = _bytes(source) if root == self.rank else None
        request = self.comm.Iscatter(there, _bytes(target), root)
        self.wait(request, lambda: _described("scatter", target, root=root))

    @_by_place
    def reduce_scatter(self, source: Any, target: Any, op: str) -> None:
        """Combine the arrays of all ranks; each rank gets its part of the result."""
        wide = _WIDER.get(target.dtype.char)
        given = source if wide is None else source.astype(wide)
        mine = target if wide is None else np.empty(target.shape, wide)
        how = getattr(load(), _REDUCTIONS[op])
        request = self.comm.Ireduce_scatter_block(given, mine, how)
        self.wait(request, lambda: _described("reduce_scatter", source, op))
        if op == "mean":
            mine /= self.size
        if mine is not target:
            target[...] = mine

    @_by_place
    def all_to_all(self, source: Any, target: Any) -> None:
        """Give each rank one row, and get one of each."""
        request = self.comm.Ialltoall(_bytes(source), _bytes(target))
        self.wait(request, lambda: _described("all_to_all", source))

    @_by_place
    def all_to_all_parts(self, source: Any, sent: Any, target: Any, got: Any) -> None:
        """As ``all_to_all``, of parts whose sizes, in elements, may differ."""
        width = source.itemsize
        mpi = load()
        pairs = [
            [_bytes(x), [n * width for n in counts], mpi.BYTE]
            for x, counts in ((source, sent), (target, got))
        ]
        request = self.comm.Ialltoallv(*pairs)
        self.wait(request, lambda: _described("all_to_all", source))

    def send(self, source: Any, to: int, tag: int = 0) -> None:
        """Send an array to one rank."""
        self.wait(*self.isend(source, to, tag))

    @_by_place
    def post(self, source: Any, to: int, tag: int) -> None:
        """Send a copy of an array, and wait for nothing."""
        self.posted = [entry for entry in self.posted if not entry[0].Test()]
        copy = source.copy()
        self.posted.append((self.comm.Isend(_bytes(copy), to, tag), copy))

    def isend(self, source: Any, to: int, tag: int = 0) -> Any:
        """As ``send``, without waiting: what ``wait`` takes."""
        request = self.comm.Isend(_bytes(source), to, tag)
        return request, lambda: _described("send", source, to=to)

    @_by_place
    def receive(self, target: Any, source: int | None, tag: int = 0) -> int:
        """Receive an array of one rank, or of any: of which."""
        request, describe, whose = self.ireceive(target, source, tag)
        self.wait(request, describe)
        return int(whose())

    def ireceive(self, target: Any, source: int | None, tag: int = 0) -> Any:
        """As ``receive``, without waiting: what ``wait`` takes, and who has sent it."""
        mpi = load()
        arriving = Arriving(
            self.comm.Irecv(
                _bytes(target), mpi.ANY_SOURCE if source is None else source, tag
            ),
            mpi.Status(),
        )
        return (
            arriving,
            lambda: _described("recv", target, source=source),
            arriving.status.Get_source,
        )

    def late(self, seconds: float) -> list[int]:
        """The ranks that have not come here within a time; everyone hears of them."""
        sign, answer = np.zeros(1, np.uint8), np.zeros(self.size, np.uint8)
        if self.rank:
            self.comm.Isend(sign, 0, 3)
            arriving = self.comm.Irecv(answer, 0, 4)
            if not _within(seconds + 1.0, arriving.Test):
                arriving.Cancel()
                return [0]
            return [int(i) for i in np.flatnonzero(answer)]
        posted = [self.comm.Irecv(sign, i, 3) for i in range(1, self.size)]
        _within(seconds, lambda: sum(not r.Test() for r in posted) == 0)
        for i, request in enumerate(posted, 1):
            answer[i] = not request.Test()
            if answer[i]:
                request.Cancel()
        for there in np.flatnonzero(answer == 0)[1:]:
            self.comm.Send(answer, int(there), 4)
        return [int(i) for i in np.flatnonzero(answer)]

    @_by_place
    def permute(self, source: Any, target: Any, to: Any, come_from: Any) -> None:
        """Send to one rank and receive of another; None for neither."""
        posted = []
        if come_from is not None:
            posted.append(self.comm.Irecv(_bytes(target), come_from, 1))
        if to is not None:
            posted.append(self.comm.Isend(_bytes(source), to, 1))
        for request in posted:
            self.wait(request, lambda: _described("permute", source, to=to))


def _within(seconds: float, test: Callable[[], bool]) -> bool:
    """Whether something comes true within a time."""
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


def _bytes(x: Any) -> Any:
    """An array's memory, whatever the type of its elements."""
    if not x.flags.c_contiguous:
        raise ArgumentError(
            f"lantern.distributed: an array of shape {x.shape} is not contiguous. Make "
            f"a copy in C order."
        )
    return x.reshape(-1).view(np.uint8)


def _described(name: str, x: Any, op: str = "", **options: Any) -> str:
    """An operation, for messages."""
    words = [op] if op else []
    words += [f"{key}={value}" for key, value in options.items() if value is not None]
    return f"{name}({', '.join([f'{x.dtype}{list(x.shape)}', *words])})"


def world(watch: Watch, seconds: float) -> MpiGroup:
    """All ranks, once MPI has connected them."""
    mpi = load()
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    comm = mpi.COMM_WORLD.Dup()
    comm.Set_errhandler(mpi.ERRORS_RETURN)
    return MpiGroup(comm, range(comm.Get_size()), watch, seconds)

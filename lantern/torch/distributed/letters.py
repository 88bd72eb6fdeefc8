"""Tensors from one process to another."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.eager.versions import written
from lantern.errors import ArgumentError, OptionError
from lantern.torch.autograd.profiler import note
from lantern.torch.distributed.collectives import _group, _place, array_of
from lantern.torch.distributed.work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _on_host(array: Any) -> Any:
    """An array as a letter: on the host, in C order."""
    on_host = array if isinstance(array, np.ndarray) else array.get()
    return np.ascontiguousarray(on_host)


def _paper(array: Any) -> Any:
    """Where a letter arrives: the array itself, if it is on the host in C order."""
    if isinstance(array, np.ndarray) and array.flags.c_contiguous:
        return array
    return np.empty(array.shape, array.dtype)


class Letter(Work):
    """A message that may still be under way; who waits for it brings it forward."""

    def __init__(
        self, engine: Any, posted: Any, tensor: Any, arrive: Callable[[], int]
    ) -> None:
        super().__init__(engine, [tensor])
        self.posted, self.arrive = posted, arrive

    def is_completed(self) -> bool:
        """Whether it is over."""
        if not self.future.done() and (self.posted[0] is None or self.posted[0].Test()):
            self.future.set_result(self.arrive())
        return self.future.done()

    def wait(self, timeout: Any = None) -> bool:
        """Wait until it is over, or cannot end any more."""
        if not self.future.done():
            self.engine.wait(*self.posted)
            self.future.set_result(self.arrive())
        return True

    synchronize = wait

    def source_rank(self) -> int:
        """Who has sent what was received."""
        self.wait()
        return int(self.future.value())

    _source_rank = source_rank


def send(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to one process.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.send(torch.tensor([1.0, 2.0]), dst=0)  # alone, to itself
        >>> dist.recv(x, src=0)
        0
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def isend(
    tensor: Any,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any:
    """As ``send``, without waiting.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> sent = dist.isend(torch.tensor([1.0, 2.0]), dst=0)  # alone, to itself
        >>> dist.recv(x, src=0), sent.wait()
        (0, True)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    array, mine = array_of(tensor), _group("isend", group)
    if mine is None:
        return None
    to = _place(group, dst, group_dst, "dst")
    if to == mine.rank() and mine.size() > 1:
        raise OptionError(
            "Invalid destination rank: destination rank should not be the same as the "
            "rank of the current process."
        )
    # Tags of users' messages are their own: MPI's others have 0, 1 and 2.
    note(f"{mine.backend}:send", [tensor])
    given = _on_host(array)
    posted = mine.engine.isend(given, to, tag + 8)
    return Letter(mine.engine, posted, tensor, lambda: mine.rank() if given.size else 0)


def recv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of one process, or of any: of which.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> sent = dist.isend(torch.tensor([1.0, 2.0]), dst=0)  # alone, to itself
        >>> dist.recv(x)  # whoever it is from
        0
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    array, mine = array_of(tensor), _group("recv", group)
    if mine is None:
        return -1
    whose = None
    if src is not None or group_src is not None:
        whose = _place(group, src, group_src, "src")
    note(f"{mine.backend}:{'recv' if whose is not None else 'recvAnySource'}", [tensor])
    target = _paper(array)
    whose = mine.engine.receive(target, whose, tag + 8)
    if target is not array:
        array[...] = namespace(array).asarray(target)
    written(array)
    return int(mine.engine.ranks[whose])


def irecv(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any:
    """As ``recv``, without waiting.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.send(torch.tensor([1.0, 2.0]), dst=0)  # alone, to itself
        >>> dist.irecv(x, src=0).wait()
        True
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    array, mine = array_of(tensor), _group("irecv", group)
    if mine is None:
        return None
    whose = None
    if src is not None or group_src is not None:
        whose = _place(group, src, group_src, "src")
    note(f"{mine.backend}:{'recv' if whose is not None else 'recvAnySource'}", [tensor])
    target = _paper(array)
    *posted, source = mine.engine.ireceive(target, whose, tag + 8)

    def arrive() -> int:
        if target is not array:
            array[...] = namespace(array).asarray(target)
        written(array)
        return int(mine.engine.ranks[source()])

    return Letter(mine.engine, posted, tensor, arrive)


class P2POp:
    """A message, for ``batch_isend_irecv``.

    Args:
        op: ``isend`` or ``irecv``.
        tensor: what is sent or written to.
        peer: the other process.
        group: of which.
        tag: the message's.
        group_peer: the other process's place in the group.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> op = dist.P2POp(dist.isend, torch.tensor([1.0, 2.0]), peer=0)
        >>> op.op is dist.isend, op.peer
        (True, 0)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        op: Any,
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise OptionError(
                "Invalid ``op``. Expected ``op`` to be of type "
                "``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        array_of(tensor)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer, self.group_peer = peer, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Begin to send and to receive several tensors at once.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
        >>> ops = [dist.P2POp(dist.isend, x, 0), dist.P2POp(dist.irecv, y, 0)]
        >>> [work.wait() for work in dist.batch_isend_irecv(ops)]
        [True, True]
        >>> y
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ArgumentError(
            "Invalid ``p2p_op_list``. Each op is expected to be of type "
            "``torch.distributed.P2POp``."
        )
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]

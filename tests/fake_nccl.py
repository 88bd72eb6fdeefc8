"""A stand-in for NCCL, as ``cupy.cuda.nccl`` has it, where there is no GPU.

It is given addresses and counts, and moves what lies there by MPI. Sends and receives
begin at ``groupEnd``; what was launched is over when it is first asked for the second
time.

References:
    cupy_backends/cuda/libs/nccl.pyx of CuPy 14.2.
"""

import ctypes
import types

import numpy as np

_TYPES = "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64".split()
_open = []  # what waits for ``groupEnd``


class Event:
    """A mark on a stream."""

    def __init__(self):
        self.asked = None

    def record(self, stream):
        assert stream.ptr == 7
        self.asked = 0

    @property
    def done(self):
        self.asked += 1
        return self.asked > 1


class NcclCommunicator:
    """A rank's end of the connections."""

    def __init__(self, ndev, commId, rank):
        from mpi4py import MPI

        assert len(commId) == 128
        world, first = MPI.COMM_WORLD, commId[0]
        if rank == 0:
            ranks = dict([(0, first), *(world.recv(tag=9) for _ in range(ndev - 1))])
            for other in list(ranks.values())[1:]:
                world.send(ranks, other, 9)
        else:
            world.send((rank, world.rank), first, 9)
            ranks = world.recv(source=first, tag=9)
        inside = world.Get_group().Incl([ranks[i] for i in range(ndev)])
        self.mpi, self.comm = MPI, world.Create_group(inside)
        assert (self.comm.size, self.comm.rank) == (ndev, rank)
        self.aborted = False

    def device_id(self):
        return 0

    def check_async_error(self):
        assert not self.aborted

    def abort(self):
        self.aborted = True

    def _ends(self, given, got, count, kind, factors=(1, 1)):
        sizes = (count * factor for factor in factors)
        return [_memory(at, n, kind) for at, n in zip((given, got), sizes, strict=True)]

    def _combine(self, call, given, got, op, *root):
        wide = [
            x.astype(np.float32) if x.dtype == np.float16 else x for x in (given, got)
        ]
        call(*wide, getattr(self.mpi, op), *root)
        if not root or root[0] == self.comm.rank:
            got[...] = wide[1]

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        given, got = self._ends(sendbuf, recvbuf, count, datatype)
        self._combine(self.comm.Allreduce, given.copy(), got, op)

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        given, got = self._ends(sendbuf, recvbuf, count, datatype)
        self._combine(self.comm.Reduce, given.copy(), got, op, root)

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        factors = self.comm.size, 1
        given, got = self._ends(sendbuf, recvbuf, recvcount, datatype, factors)
        self._combine(self.comm.Reduce_scatter_block, given.copy(), got, op)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        factors = 1, self.comm.size
        self.comm.Allgather(*self._ends(sendbuf, recvbuf, count, datatype, factors))

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        assert sendbuff == recvbuff
        self.comm.Bcast(_memory(recvbuff, count, datatype), root)

    def send(self, sendbuf, count, datatype, peer, stream):
        _open.append((self.comm.Isend, _memory(sendbuf, count, datatype), peer))

    def recv(self, recvbuf, count, datatype, peer, stream):
        _open.append((self.comm.Irecv, _memory(recvbuf, count, datatype), peer))


def _memory(address, count, kind):
    """The numbers that lie at an address."""
    dtype = np.dtype(kind)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, count)


def _group_end():
    requests = [call(memory, peer) for call, memory, peer in _open]
    _open.clear()
    for request in requests:
        request.Wait()


def get_unique_id():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank, *range(127)


nccl = types.SimpleNamespace(
    available=True,
    NcclCommunicator=NcclCommunicator,
    get_unique_id=get_unique_id,
    groupStart=lambda: None,
    groupEnd=_group_end,
    **{f"NCCL_{name.upper()}": name for name in _TYPES},
    **{f"NCCL_{name}": name for name in ("SUM", "PROD", "MIN", "MAX")},
)
CUDA = {
    "nccl": nccl,
    "Event": Event,
    "get_current_stream": lambda: types.SimpleNamespace(ptr=7),
}

"""Collectives of arrays on GPUs by NCCL, as CuPy calls it: one GPU for each rank.

What is launched runs on CuPy's current stream; its end is waited for as MPI's is, with
an eye on the other ranks, so that no wait is for ever. Letters with tags, which NCCL
does not know, go by the host.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.errors import ArgumentError, DistributedError
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__all__ = ["NcclGroup"]

np: Any = numpy_namespace.module
_REDUCTIONS = {"sum": "SUM", "mean": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX"}
# What NCCL does not reduce, and as what it is reduced here.
_WIDER = {"?": np.uint8, "h": np.int32, "H": np.uint32}


class Launched:
    """What was launched on a stream, asked as MPI's requests are.

    Args:
        comm: NCCL's communicator, which knows whether a connection has failed.
        event: recorded behind it.
    """

    def __init__(self, comm: Any, event: Any) -> None:
        self.comm, self.event = comm, event

    def Test(self) -> bool:
        """Whether it is over."""
        self.comm.check_async_error()
        return bool(self.event.done)


class NcclGroup:
    """As ``lantern.distributed.mpi.MpiGroup``, for arrays of CuPy.

    Args:
        host: the same ranks, for arrays of NumPy.
        module: ``cupy``.

    Raises:
        ArgumentError: if CuPy comes without NCCL.
    """

    def __init__(self, host: Any, module: Any) -> None:
        self.host, self.module = host, module
        self.cuda, self.nccl = module.cuda, module.cuda.nccl
        if not self.nccl.available:
            raise ArgumentError(
                "lantern.distributed: CuPy has found no NCCL. Install it (pip install "
                "nvidia-nccl-cu12 or -cu13), or move arrays to the host: "
                "lantern.to_device(x, 'cpu')."
            )
        # Everyone has come here before NCCL waits for everyone, with no eye on them.
        name = np.zeros(128, np.int8)
        if host.rank == 0:
            name[:] = self.nccl.get_unique_id()
        host.broadcast(name, 0)
        communicator = self.nccl.NcclCommunicator
        self.comm = communicator(host.size, tuple(name.tolist()), host.rank)

    def all_reduce(self, source: Any, target: Any, op: str) -> None:
        """Combine the arrays of all ranks, for all ranks."""
        self._combine("all_reduce", self.comm.allReduce, source, target, op)

    def reduce(self, source: Any, target: Any, op: str, root: int) -> None:
        """Combine the arrays of all ranks, for one of them."""
        # The others' targets stay as they are.
        mine = target if root == self.host.rank else self.module.empty_like(source)
        self._combine("reduce", self.comm.reduce, source, mine, op, root)

    def reduce_scatter(self, source: Any, target: Any, op: str) -> None:
        """Combine the arrays of all ranks; each rank gets its part of the result."""
        self._combine("reduce_scatter", self.comm.reduceScatter, source, target, op)

    def _combine(
        self, name: str, call: Any, source: Any, target: Any, op: str, *root: int
    ) -> None:
        """Reduce, in a type that NCCL knows."""
        if op not in _REDUCTIONS or (
            target.dtype.kind == "c" and op not in ("sum", "mean")
        ):
            raise ArgumentError(
                f"{name}: NCCL does not combine {target.dtype} by {op!r}. Move the "
                f"array to the host: lantern.to_device(x, 'cpu')."
            )
        wide = _WIDER.get(target.dtype.char)
        given = source if wide is None else source.astype(wide)
        got = target if wide is None else self.module.empty(target.shape, wide)
        kind = np.empty(0, got.dtype).real.dtype.name.upper()
        how = (
            getattr(self.nccl, f"NCCL_{kind}"),
            getattr(self.nccl, f"NCCL_{_REDUCTIONS[op]}"),
        )
        count = got.size * (2 if got.dtype.kind == "c" else 1)
        ends = _address(given), _address(got)
        self._run(
            f"{name}({op})",
            source,
            lambda stream: call(*ends, count, *how, *root, stream),
        )
        if op == "mean":
            got /= self.host.size
        if got is not target:
            target[...] = got

    def broadcast(self, target: Any, root: int) -> None:
        """Give one rank's array to all."""
        at, kind = _address(target), self.nccl.NCCL_UINT8
        self._run(
            f"broadcast(root={root})",
            target,
            lambda stream: self.comm.broadcast(
                at, at, target.nbytes, kind, root, stream
            ),
        )

    def all_gather(self, source: Any, target: Any) -> None:
        """Give the arrays of all ranks to all; the target has an axis of ranks."""
        ends, kind = (_address(source), _address(target)), self.nccl.NCCL_UINT8
        self._run(
            "all_gather",
            source,
            lambda stream: self.comm.allGather(*ends, source.nbytes, kind, stream),
        )

    def gather(self, source: Any, target: Any, root: int) -> None:
        """Give the arrays of all ranks to one of them."""
        rows = target if root == self.host.rank else ()
        got = [(i, row) for i, row in enumerate(rows)]
        self._exchange(f"gather(root={root})", [(root, source)], got)

    def scatter(self, source: Any, target: Any, root: int) -> None:
        """Give each rank its part of one rank's array."""
        rows = source if root == self.host.rank else ()
        sent = [(i, row) for i, row in enumerate(rows)]
        self._exchange(f"scatter(root={root})", sent, [(root, target)])

    def all_to_all(self, source: Any, target: Any) -> None:
        """Give each rank one row, and get one of each."""
        self._exchange("all_to_all", [*enumerate(source)], [*enumerate(target)])

    def all_to_all_parts(self, source: Any, sent: Any, target: Any, got: Any) -> None:
        """As ``all_to_all``, of parts whose sizes, in elements, may differ."""

        def parts(x: Any, counts: Any) -> list[Any]:
            ends = np.cumsum(counts)[:-1].tolist()
            return list(enumerate(self.module.split(x.reshape(-1), ends)))

        self._exchange("all_to_all", parts(source, sent), parts(target, got))

    def permute(self, source: Any, target: Any, to: Any, come_from: Any) -> None:
        """Send to one rank and receive of another; None for neither."""
        sent = [] if to is None else [(to, source)]
        got = [] if come_from is None else [(come_from, target)]
        self._exchange("permute", sent, got)

    def post(self, source: Any, to: int, tag: int) -> None:
        """Send a copy of an array by the host, and wait for nothing."""
        self.host.post(source.get(), to, tag)

    def receive(self, target: Any, source: int | None, tag: int = 0) -> int:
        """Receive an array of one rank, or of any: of which."""
        array = np.empty(target.shape, target.dtype)
        whose = int(self.host.receive(array, source, tag))
        target[...] = self.module.asarray(array)
        return whose

    def _exchange(self, name: str, sent: Sequence[Any], got: Sequence[Any]) -> None:
        """Send arrays to ranks and receive of others, all of them at once."""
        sent, got = ([(i, x) for i, x in pairs if x.size] for pairs in (sent, got))
        kind = self.nccl.NCCL_UINT8

        def launch(stream: Any) -> None:
            self.nccl.groupStart()
            try:
                for i, x in sent:
                    self.comm.send(_address(x), x.nbytes, kind, i, stream)
                for i, x in got:
                    self.comm.recv(_address(x), x.nbytes, kind, i, stream)
            finally:
                self.nccl.groupEnd()

        if sent or got:
            self._run(name, (sent or got)[0][1], launch)

    def _run(self, name: str, x: Any, launch: Callable[[Any], None]) -> None:
        """Launch an operation, and wait for its end; without one, nothing waits."""
        if x.device.id != self.comm.device_id():
            raise ArgumentError(
                f"{name}: the array lies on {x.device}, and this rank's first one was "
                f"on GPU {self.comm.device_id()}. Give each rank one GPU."
            )
        stream, event = self.cuda.get_current_stream(), self.cuda.Event()
        launch(stream.ptr)
        event.record(stream)
        try:
            self.host.wait(
                Launched(self.comm, event),
                lambda: f"{name} of {x.dtype}{list(x.shape)} by NCCL",
            )
        except DistributedError:
            self.comm.abort()  # or what was launched would keep the GPU for ever
            raise


def _address(x: Any) -> int:
    """Where an array's memory begins."""
    if not x.flags.c_contiguous:
        raise ArgumentError(
            f"lantern.distributed: an array of shape {x.shape} is not contiguous. Make "
            f"a copy in C order."
        )
    return int(x.data.ptr)

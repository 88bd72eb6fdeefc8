"""How this process joins the others and leaves them, and what becomes of its errors."""

import atexit
import contextlib
import io
import itertools
import multiprocessing.util
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from lantern.distributed.alone import AloneGroup
from lantern.distributed.place import Place, find_place
from lantern.distributed.watch import Watch, connect
from lantern.errors import DistributedError, OptionError

__all__ = [
    "barrier",
    "group",
    "group_of",
    "init",
    "is_initialized",
    "local_rank",
    "rank",
    "world_size",
]

# Seconds that a wait may take, where nobody says anything else: as in PyTorch.
PATIENCE = 1800.0
# Seconds that the others have to come to their ends as well.
FAREWELL = 60.0


class World:
    """The job, as one of its processes knows it.

    Attributes:
        place: this process among the others.
        everyone: the group of all.
        farewell: the same, for the end.
        failed: whether an exception of this process's has gone through.
    """

    def __init__(self, place: Place, everyone: Any) -> None:
        self.place, self.everyone = place, everyone
        # Its barrier meets no collective that another rank is still in.
        self.farewell = everyone.twin()
        self.farewell.leaving = True
        self.failed = self.gone = False
        self.process = os.getpid()
        self.groups = itertools.count(1)


_world: World | None = None


def init(
    timeout: float = PATIENCE,
    rank: int | None = None,
    size: int | None = None,
    address: tuple[str, int] | None = None,
) -> World:
    """Join the other processes of the job; called again, it changes nothing.

    Which processes these are, their launcher has said: ``python -m
    lantern.torch.distributed.run``, ``mpiexec``, ``srun`` or ``torchrun``. Without any
    of them this process is the only one, and needs no MPI.

    Args:
        timeout: seconds after which a collective that has come to no end raises.
        rank: this process's number, instead of the launcher's.
        size: the number of processes, instead of the launcher's.
        address: host and port where rank 0 is found, instead of ``MASTER_ADDR`` and
            ``MASTER_PORT``.

    Raises:
        MissingExtraError: if there are others, and mpi4py is not installed.
        DistributedError: if they cannot be reached.

    Example:
        >>> import lantern.distributed as dist
        >>> _ = dist.init()
        >>> dist.rank(), dist.world_size()
        (0, 1)
    """
    global _world
    if _world is None:
        place = find_place()
        if rank is not None or size is not None:
            at = place.rank if rank is None else rank
            place = Place(at, place.size if size is None else size)
        _world = _alone(place) if place.size == 1 else _joined(place, timeout, address)
    _world.everyone.seconds = timeout
    return _world


def is_initialized() -> bool:
    """Whether this process has joined the others.

    Example:
        >>> import lantern.distributed as dist
        >>> _ = dist.init()
        >>> dist.is_initialized()
        True
    """
    return _world is not None


def _alone(place: Place) -> World:
    return World(place, AloneGroup())


def _joined(place: Place, timeout: float, address: Any) -> World:
    """The world of several processes, connected by MPI."""
    from lantern.distributed import mpi

    watch = Watch() if place.mpi else _meet(place, address)
    everyone = mpi.world(watch, timeout)
    if everyone.size != place.size:
        raise DistributedError(
            f"init: the launcher has started {place.size} processes, and MPI connects "
            f"{everyone.size}. Use the mpiexec of the MPI that mpi4py was built for, "
            f"or python -m lantern.torch.distributed.run."
        )
    world = World(place, everyone)
    sys.excepthook = _excepthook(world, sys.excepthook)
    atexit.register(_leave, world)
    if multiprocessing.parent_process() is not None:  # these end without ``atexit``
        multiprocessing.util.Finalize(None, _leave, (world,), exitpriority=0)
    return world


def _meet(place: Place, address: Any) -> Watch:
    """Find the hub, where no MPI launcher connects the processes, or start it."""
    token = os.environ.get("TORCHELASTIC_RUN_ID", "")
    if address is None:
        try:
            address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        except (KeyError, ValueError):
            raise OptionError(
                "init: nothing says where rank 0 is found. Start the script by python "
                "-m lantern.torch.distributed.run, mpiexec or srun, or set the "
                "variables MASTER_ADDR and MASTER_PORT."
            ) from None
    if "LANTERN_JOB" not in os.environ and place.rank == 0:
        _start_hub(address, token)
    job = os.environ.get("LANTERN_JOB", "job")
    hello = {"job": job, "rank": place.rank, "size": place.size, "token": token}
    connection = connect(address, {"kind": "pmi", **hello})
    watch = Watch(connect(address, {"kind": "watch", **hello}))
    os.environ["PMI_FD"] = str(connection.detach())
    os.environ["PMI_RANK"] = str(place.rank)
    os.environ["PMI_SIZE"] = str(place.size)
    return watch


def _start_hub(address: tuple[str, int], token: str) -> None:
    """Start the hub as a process of its own: MPI keeps this one while it connects."""
    module = "lantern.distributed.hub"
    command = [sys.executable, "-m", module, address[0], str(address[1]), token]
    hub = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert hub.stdout is not None
    assert hub.stderr is not None
    if not hub.stdout.readline():
        said = hub.stderr.read().decode().strip().rpartition("\n")[2]
        raise DistributedError(
            f"init: rank 0 cannot listen at {address[0]}:{address[1]}: {said}. Choose "
            f"another MASTER_PORT, or a MASTER_ADDR of this host."
        )


def _excepthook(world: World, outer: Any) -> Any:
    """An exception that nobody has caught ends the whole job."""

    def hook(kind: Any, error: Any, frames: Any) -> None:
        world.failed = True
        outer(kind, error, frames)
        text = io.StringIO()
        traceback.print_exception(kind, error, frames, limit=-1, file=text, chain=False)
        last = text.getvalue().strip().rpartition("\n")[2]
        world.everyone.watch.send(failed=f"it raised {last}")

    return hook


def failed(error: BaseException) -> None:
    """Let the others know of an exception that nobody of this process will catch."""
    if _world is not None and _world.place.size > 1 and not _world.failed:
        _excepthook(_world, lambda *_: None)(type(error), error, error.__traceback__)


def leave() -> None:
    """Leave the others before the process ends: nothing is sent any more."""
    global _world
    if _world is not None and _world.place.size > 1:
        atexit.unregister(_leave)
        _leave(_world)
    _world = None


def _leave(world: World) -> None:
    """The end of the program: leave together, or at once, if something has failed."""
    if world.gone or os.getpid() != world.process:
        return
    world.gone = True
    from lantern.distributed import mpi

    watch = world.everyone.watch
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if world.failed:
        watch.ended = True
        if world.place.mpi:
            mpi.load().COMM_WORLD.Abort(1)
        return  # what MPI does at the end would wait for all
    watch.send(leaving=True)
    try:
        world.farewell.barrier(FAREWELL)
    except DistributedError as error:
        if not watch.lost:
            print(error, file=sys.stderr, flush=True)
        os._exit(1)
    watch.ended = True
    watch.send(left=True)
    mpi.load().Finalize()


def _get() -> World:
    return _world if _world is not None else init()


def group_of(group: Any = None) -> Any:
    """A group, or all processes for None; joins them first, if nobody has."""
    return _get().everyone if group is None else group


def rank(group: Any = None) -> int:
    """This process's number in a group, or among all.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.rank()
        0
    """
    return int(group_of(group).rank)


def local_rank() -> int:
    """This process's number among those of its host.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.local_rank()
        0
    """
    return _get().place.local_rank


def world_size(group: Any = None) -> int:
    """How many processes a group has, or all together.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.world_size()
        1
    """
    return int(group_of(group).size)


def group(ranks: Sequence[int], timeout: float | None = None) -> Any:
    """Some of the processes as a group; None for those that are not in it.

    Every process of the job makes the same groups in the same order.

    Args:
        ranks: their numbers.
        timeout: seconds for its collectives; by default as for all.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.world_size(dist.group([0]))
        1
    """
    world = _get()
    everyone, tag = world.everyone, next(world.groups)
    ranks = [int(r) for r in ranks]
    wrong = [r for r in ranks if not 0 <= r < everyone.size]
    if wrong or len(set(ranks)) < len(ranks) or not ranks:
        raise OptionError(
            f"group: ranks are {ranks}, and there are {everyone.size} processes. Name "
            f"each of some of the ranks 0 to {everyone.size - 1} once."
        )
    if everyone.rank not in ranks:
        return None
    return everyone.subgroup(ranks, tag, timeout or everyone.seconds)


def barrier(group: Any = None) -> None:
    """Wait until every process of the group has come here.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.barrier()
    """
    group_of(group).barrier()

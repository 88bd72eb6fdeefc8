"""Groups of processes under PyTorch's names: who belongs to them."""

import os
import socket
import time
import warnings
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from lantern.distributed import world
from lantern.errors import ArgumentError, DeviceError, EagerError, OptionError
from lantern.files import write_file
from lantern.tensor.backend.numpy_namespace import devices

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
]

default_pg_timeout = timedelta(minutes=30)
_UNINITIALIZED = (
    "Default process group has not been initialized, please make sure to call "
    "init_process_group."
)


class Backend(str):
    """The name of what carries data; every name stands for MPI here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined gloo nccl ucc mpi xccl".split()
    backend_list = ("undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake")

    def __new__(cls, name: str) -> "Backend":
        """The name in lower case."""
        if not isinstance(name, str):
            raise OptionError(
                f"Backend constructor parameter must be string-ish: {name}"
            )
        names = [part.rpartition(":")[2].lower() for part in name.split(",")]
        for part in names:
            if part not in cls.backend_list:
                raise OptionError(
                    f"Invalid backend: '{name}'. Name one of gloo, mpi and nccl; each "
                    f"of them is MPI here, and NCCL on GPUs."
                )
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Some of the processes.

    Attributes:
        engine: the group of ``lantern.distributed`` that moves its data.
        backend: the name that was asked for.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.group.WORLD
        <ProcessGroup 0 of [0]>
        >>> dist.group.WORLD.rank(), dist.group.WORLD.size(), dist.group.WORLD.name()
        (0, 1, 'gloo')
        >>> dist.destroy_process_group()
    """

    monitored_barrier: Any  # given by collectives.py

    def __init__(self, engine: Any, backend: str, name: str, description: str) -> None:
        self.engine, self.backend = engine, backend
        self.group_name, self.group_desc = name, description
        self.bound_device_id: Any = None
        self.line: Any = None  # of asynchronous operations: see work.py

    def rank(self) -> int:
        """This process's place in the group."""
        return int(self.engine.rank)

    def size(self) -> int:
        """How many processes there are."""
        return int(self.engine.size)

    def name(self) -> str:
        """The name of what carries its data."""
        return self.backend

    def get_group_store(self) -> Any:
        """The store of keys."""
        from lantern.torch.distributed.stores import default_store

        return default_store()

    def __reduce__(self) -> Any:
        return _found, (self.group_name,)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name} of {list(self.engine.ranks)}>"


class GroupMember:
    """The group of all processes, and what stands for a group that one is not in.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.GroupMember.WORLD
        <ProcessGroup 0 of [0]>
        >>> dist.new_group([]) is dist.GroupMember.NON_GROUP_MEMBER
        True
        >>> dist.destroy_process_group()
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = -100


class _Group:
    """``dist.group.WORLD``: the group of all processes, once there is one."""

    @property
    def WORLD(self) -> Any:
        """The group of all processes; None before there is one."""
        return GroupMember.WORLD


group = _Group()
_groups: dict[str, ProcessGroup] = {}
_names = count(1)


def _found(name: str) -> Any:
    """The group of a name, for one that was pickled."""
    return _groups.get(name, GroupMember.WORLD)


def default() -> ProcessGroup:
    """The group of all processes."""
    if GroupMember.WORLD is None:
        raise OptionError(_UNINITIALIZED)
    return GroupMember.WORLD


def chosen(group: Any) -> Any:
    """A group, or all processes for None; None for whom it is not theirs."""
    if group is None:
        return default()
    if group is GroupMember.NON_GROUP_MEMBER:
        default()
        return None
    if not isinstance(group, ProcessGroup):
        raise ArgumentError(f"Invalid function argument: group is {group!r}.")
    return group


def seconds_of(timeout: Any) -> float:
    """A time limit in seconds."""
    if timeout is None:
        return default_pg_timeout.total_seconds()
    if not isinstance(timeout, timedelta):
        raise ArgumentError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    return timeout.total_seconds()


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the other processes.

    Args:
        backend: "gloo", "mpi" or "nccl": with each of them, tensors on the host go by
            MPI and those on GPUs by NCCL.
        init_method: "env://", "tcp://HOST:PORT" or "file://PATH": where rank 0 is
            found. Under ``mpiexec`` and ``srun`` nothing needs to be said.
        timeout: a ``timedelta``, after which an operation without end is an error.
        world_size: how many processes there are, unless a launcher has said so.
        rank: which of them this is.
        store: of keys, through which they find one another instead.
        group_name: has no effect.
        pg_options: has no effect.
        device_id: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.init_process_group("gloo")
        >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
        (0, 1)
        >>> torch.distributed.destroy_process_group()
    """
    if GroupMember.WORLD is not None:
        raise OptionError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise OptionError("Cannot specify both init_method and store.")
    name = Backend(backend or "undefined")
    limit = seconds_of(timeout)
    given = (None if rank < 0 else rank), (None if world_size < 0 else world_size)
    address = None
    if store is not None:
        address = _by_store(store, rank)
    elif init_method is not None and init_method != "env://":
        address, given = _by_url(init_method, *given)
    joined = world.init(limit, *given, address)
    if given[1] is not None and joined.everyone.size != given[1]:
        raise OptionError(
            f"init_process_group: world_size is {given[1]}, and there are "
            f"{joined.everyone.size} processes. Say nothing where a launcher has."
        )
    made = ProcessGroup(joined.everyone, name, "0", "default_pg")
    made.bound_device_id = device_id
    GroupMember.WORLD = _groups["0"] = made


def _by_store(store: Any, rank: int) -> tuple[str, int]:
    """The address of rank 0, by a store of keys."""
    if rank == 0:
        host = os.environ.get("MASTER_ADDR", "127.0.0.1")
        store.set("lantern/address", f"{host}:{_free_port()}")
    host, _, port = store.get("lantern/address").decode().rpartition(":")
    return host, int(port)


def _by_url(url: str, rank: Any, size: Any) -> Any:
    """The address of rank 0, by a URL, and rank and size."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    options = dict(part.split("=", 1) for part in query.split("&") if "=" in part)
    rank = int(options.get("rank", -1)) if rank is None else rank
    size = int(options.get("world_size", -1)) if size is None else size
    if scheme not in ("tcp", "file", "env"):
        raise EagerError(
            f"No rendezvous handler for {scheme}://. Say env://, tcp://HOST:PORT or "
            f"file://PATH."
        )
    if scheme == "env":
        return None, (rank if rank >= 0 else None, size if size >= 0 else None)
    for what, value in (("rank", rank), ("world size", size)):
        if value is None or value < 0:
            raise OptionError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: "
                f"{what} parameter missing"
            )
    if scheme == "tcp":
        host, _, port = rest.rpartition(":")
        return (host, int(port)), (rank, size)
    return _by_file(Path(rest), rank), (rank, size)


def _by_file(path: Path, rank: int) -> tuple[str, int]:
    if rank == 0:
        write_file("init_process_group", path, f"127.0.0.1:{_free_port()}".encode())
    end = time.monotonic() + 60
    while not (text := path.read_text() if path.exists() else ""):
        if time.monotonic() > end:
            raise EagerError(f"init_process_group: rank 0 has not written to {path}.")
        time.sleep(0.02)
    host, _, port = text.rpartition(":")
    return host, int(port)


def _free_port() -> int:
    """A port of this host's that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def destroy_process_group(group: Any = None) -> None:
    """Forget a group, or all of them.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.is_initialized()
        True
        >>> dist.destroy_process_group()
        >>> dist.is_initialized()
        False
    """
    mine = chosen(group)
    if mine is None:
        return
    if mine.line is not None:
        mine.line.close()
    if mine is GroupMember.WORLD:
        GroupMember.WORLD = None
        for other in _groups.values():
            if other.line is not None:
                other.line.close()
        _groups.clear()
    elif _groups.pop(mine.group_name, None) is None:
        raise OptionError("Invalid process group specified")


def is_available() -> bool:
    """Whether processes can train together: yes; several of them need MPI.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether this process has joined others.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.is_initialized()
        False
    """
    return GroupMember.WORLD is not None


def get_default_backend_for_device(device: Any) -> str:
    """The name of what carries data of a device: of each of them MPI does.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.get_default_backend_for_device("cpu")
        'gloo'
    """
    return "gloo"


def is_gloo_available() -> bool:
    """Whether "gloo" can be asked for: yes, it is MPI here.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.is_gloo_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Whether there is MPI.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("mpi" if dist.is_mpi_available() else "gloo")
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether tensors on GPUs go by NCCL: if CuPy is there, and has found it.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.is_nccl_available() in (True, False)
        True
    """
    try:
        return bool(devices["cuda"]().module.cuda.nccl.available)
    except DeviceError:
        return False


def is_ucc_available() -> bool:
    """Whether there is an engine of this name: no.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.is_ucc_available()
        False
    """
    return False


is_xccl_available = is_ucc_available


def is_backend_available(backend: str) -> bool:
    """Whether a name can be asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.is_backend_available("gloo")
        True
    """
    return backend.lower() in ("gloo", "mpi")


def is_torchelastic_launched() -> bool:
    """Whether a launcher of PyTorch's kind has started this process.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.is_torchelastic_launched()
        False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_rank(group: Any = None) -> int:
    """This process's place in a group; -1 if it is in none.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    mine = chosen(group)
    return -1 if mine is None else mine.rank()


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 for one that this process is not in.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    mine = chosen(group)
    return -1 if mine is None else mine.size()


def get_backend(group: Any = None) -> Any:
    """The name of what carries a group's data, as it was asked for.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_backend()
        'gloo'
        >>> dist.destroy_process_group()
    """
    mine = chosen(group)
    if mine is None:
        raise OptionError("Invalid process group specified")
    return Backend(mine.backend)


def get_backend_config(group: Any = None) -> str:
    """The names of what carries a group's data, by devices.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_backend_config()
        'cpu:gloo,cuda:gloo'
        >>> dist.destroy_process_group()
    """
    name = get_backend(group)
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number among those of its host.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.get_node_local_rank(fallback_rank=0)
        0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise EagerError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device "
        "context and want the code to run locally instead."
    )


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers, among all processes, of those in a group.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_process_group_ranks(dist.group.WORLD)
        [0]
        >>> dist.destroy_process_group()
    """
    mine = chosen(group)
    return [] if mine is None else list(mine.engine.ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """The place in a group of a process, by its number among all.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_group_rank(dist.new_group([0]), global_rank=0)
        0
        >>> dist.destroy_process_group()
    """
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise OptionError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number among all processes of one in a group.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.get_global_rank(dist.new_group([0]), group_rank=0)
        0
        >>> dist.destroy_process_group()
    """
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise OptionError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Some of the processes as a group; every process makes the same ones in turn.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.init_process_group("gloo")
        >>> torch.distributed.get_world_size(torch.distributed.new_group([0]))
        1
        >>> torch.distributed.destroy_process_group()
    """
    everyone = default()
    members = list(range(everyone.size())) if ranks is None else sorted(ranks)
    if len(members) > everyone.size():
        raise OptionError(
            "the new group's world size should be less or equal to the world size set "
            "by init_process_group"
        )
    if any(not 0 <= r < everyone.size() for r in members):
        raise OptionError(
            "The new group's rank should be within the world_size set by "
            "init_process_group"
        )
    if len(set(members)) < len(members):
        raise OptionError(f"new_group: {members} names a rank twice.")
    limit = None if timeout is None else seconds_of(timeout)
    name = str(next(_names))
    engine = world.group(members, limit) if members else None
    made = ProcessGroup(
        engine, Backend(backend or everyone.backend), name, group_desc or "undefined"
    )
    _groups[name] = made
    return GroupMember.NON_GROUP_MEMBER if engine is None else made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: Any = None, **more: Any
) -> Any:
    """This process's group of its neighbours, and all such groups.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> mine, groups = dist.new_subgroups(group_size=1)
        >>> mine.size(), len(groups)
        (1, 1)
        >>> dist.destroy_process_group()
    """
    ranks = get_process_group_ranks(group)
    size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", len(ranks)))
    if size <= 0:
        raise OptionError(f"The arg 'group_size' ({group_size}) must be positive")
    if size > len(ranks):
        raise OptionError(
            f"The arg 'group_size' ({size}) must not exceed the world size "
            f"({len(ranks)})"
        )
    if len(ranks) % size:
        raise OptionError(
            f"The world size ({len(ranks)}) must be divisible by 'group_size={size}'"
        )
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: Any = None, **more: Any
) -> Any:
    """This process's group of those listed, and all of them.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> mine, groups = dist.new_subgroups_by_enumeration([[0]])
        >>> dist.get_process_group_ranks(mine), len(groups)
        ([0], 1)
        >>> dist.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise OptionError("The arg 'ranks_per_subgroup_list' cannot be empty")
    mine, made, seen = None, [], dict[int, Any]()
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise OptionError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and "
                    f"{ranks}"
                )
            seen[rank] = ranks
        made.append(new_group(ranks, timeout))
        if get_rank() in ranks:
            mine = made[-1]
    return mine, made


def warn_not_in_group(what: str) -> None:
    """Say that an operation of a group that this process is not in does nothing."""
    warnings.warn(
        f"Running {what} on global rank {get_rank()} which does not belong to the "
        f"given group.",
        stacklevel=3,
    )

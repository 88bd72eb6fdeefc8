"""PyTorch's collectives: in place, now or later; no derivative passes them."""

import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.eager.versions import written
from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.distributed.groups import (
    GroupMember,
    ProcessGroup,
    chosen,
    get_group_rank,
    seconds_of,
    warn_not_in_group,
)
from lantern.torch.distributed.work import run
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


class _Op:
    """A way to combine numbers."""

    def __init__(self, name: str, word: str) -> None:
        self.name, self.word = name, word

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}>"

    def __reduce__(self) -> Any:
        return getattr, (ReduceOp, self.name)


class ReduceOp:
    """The ways to combine the numbers of several processes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.ReduceOp.SUM
        <RedOpType.SUM>
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = (
        _Op(name, word)
        for name, word in zip(
            "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split(),
            "sum mean prod min max and or xor".split(),
            strict=True,
        )
    )
    RedOpType: Any = None


ReduceOp.RedOpType = ReduceOp
reduce_op = ReduceOp


def array_of(tensor: Any, name: str = "tensor") -> Any:
    """The memory of a tensor."""
    if not isinstance(tensor, Tensor):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"torch.Tensor but got {type(tensor)} instead."
        )
    array = in_memory(tensor)
    return array if isinstance(array, np.ndarray) else base(array)


def in_rows(array: Any) -> Any:
    """An array as it is sent: in C order, where it lies."""
    return namespace(array).ascontiguousarray(array)


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """Memory to receive in, where another array lies, of its type."""
    return namespace(like).empty(shape, dtype=like.dtype)


def arrays_of(tensors: Any, name: str) -> list[Any]:
    """The memory of each of a list of tensors."""
    if not isinstance(tensors, list | tuple):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"List[torch.Tensor] but got {type(tensors)} instead."
        )
    return [array_of(tensor, name) for tensor in tensors]


def _word(op: Any, array: Any, backend: str) -> str:
    """How the engine calls a reduction of an array."""
    if not isinstance(op, _Op):
        raise ArgumentError(f"Invalid function argument: op is {op!r}.")
    if op.word == "mean" and "nccl" not in backend and "mpi" not in backend:
        raise EagerError("Cannot use ReduceOp.AVG with Gloo")
    if array.dtype.kind == "c" and op.word not in ("sum", "mean"):
        raise OptionError(f"all_reduce does not support {op!r} on complex tensors")
    return op.word


def _in_place(engine: Any, array: Any, step: Callable[[Any], None]) -> None:
    """Let a step read and write an array, whatever its order in memory."""
    if array.flags.c_contiguous:
        step(array)
    else:
        copy = in_rows(array).reshape(array.shape)
        step(copy)
        array[...] = copy
    written(array)


def _group(what: str, group: Any) -> Any:
    mine = chosen(group)
    if mine is None:
        warn_not_in_group(what)
    return mine


def _place(group: Any, rank: Any, group_rank: Any, name: str) -> int:
    """The place in a group that is meant by a number among all, or in the group."""
    if rank is None and group_rank is None:
        raise OptionError(f"Must specify {name} or group_{name}")
    if rank is not None and group_rank is not None:
        raise OptionError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        return int(group_rank)
    return get_group_rank(group, rank) if group is not None else int(rank)


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Combine a tensor over the processes, in place.

    Args:
        tensor: of the same shape and type everywhere.
        op: how to combine.
        group: which processes; all of them for None.
        async_op: whether to go on meanwhile; then the result is a ``Work``.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.all_reduce(x)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    array = array_of(tensor)
    mine = _group("all_reduce", group)
    if mine is None:
        return None
    word = _word(op, array, mine.backend)

    def step(engine: Any) -> None:
        _in_place(engine, array, lambda x: engine.all_reduce(x, x, word))

    return run(mine, step, [tensor], async_op)


def _all_reduce(engine: Any, word: str, x: Any) -> None:
    engine.all_reduce(x, x, word)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """As ``all_reduce``, of each of several tensors.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
        >>> dist.all_reduce_coalesced([x, y])
        >>> x, y
        (tensor([1., 2.]), tensor([3.]))
        >>> dist.destroy_process_group()
    """
    arrays = arrays_of(tensors, "tensors")
    mine = _group("all_reduce_coalesced", group)
    if mine is None:
        return None
    words = [_word(op, array, mine.backend) for array in arrays]

    def step(engine: Any) -> None:
        for array, word in zip(arrays, words, strict=True):
            _in_place(engine, array, partial(_all_reduce, engine, word))

    return run(mine, step, tensors, async_op)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Combine a tensor over the processes, in place at one of them.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.tensor([1.0, 2.0])
        >>> dist.reduce(x, dst=0)
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    array = array_of(tensor)
    mine = _group("reduce", group)
    if mine is None:
        return None
    root, word = _place(group, dst, group_dst, "dst"), _word(op, array, mine.backend)

    def step(engine: Any) -> None:
        _in_place(engine, array, lambda x: engine.reduce(x, x, word, root))

    return run(mine, step, [tensor], async_op)


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Give one process's tensor to all, in place.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.arange(3) if dist.get_rank() == 0 else torch.empty(3, dtype=int)
        >>> dist.broadcast(x, src=0)
        >>> x
        tensor([0, 1, 2])
        >>> dist.destroy_process_group()
    """
    array = array_of(tensor)
    mine = _group("broadcast", group)
    if mine is None:
        return None
    root = _place(group, src, group_src, "src")

    def step(engine: Any) -> None:
        _in_place(engine, array, lambda x: engine.broadcast(x, root))

    return run(mine, step, [tensor], async_op)


def _same_type(arrays: Sequence[Any]) -> None:
    kinds = {array.dtype for array in arrays}
    if len(kinds) > 1:
        raise OptionError(
            f"Invalid usage of tensors with different dtypes: "
            f"Found {', '.join(sorted(map(str, kinds)))}"
        )


def _joined(arrays: Sequence[Any], like: Any) -> Any:
    """Several arrays in one piece of memory, row by row."""
    if any(array.size != like.size for array in arrays):
        raise OptionError(
            f"Tensors of sizes {[array.shape for array in arrays]} meet one of the "
            f"shape {like.shape}. Give tensors of one size."
        )
    rows = empty(like, (len(arrays), *like.shape))
    for row, array in zip(rows, arrays, strict=True):
        row[...] = array.reshape(like.shape)
    return rows


def _spread(rows: Any, arrays: Sequence[Any]) -> None:
    for row, array in zip(rows, arrays, strict=True):
        array[...] = row.reshape(array.shape)
        written(array)


def _count(tensors: Sequence[Any], mine: Any, name: str) -> None:
    if len(tensors) != mine.size():
        raise OptionError(
            f"{name} has {len(tensors)} tensors, and the group {mine.size()} "
            f"processes. Give one for each."
        )


def all_gather(
    tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Give the tensors of all processes to all, into a list of tensors.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> everyones = [torch.zeros(2) for _ in range(dist.get_world_size())]
        >>> dist.all_gather(everyones, torch.tensor([1.0, 2.0]))
        >>> everyones
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    targets, source = arrays_of(tensor_list, "tensor_list"), array_of(tensor)
    _same_type([*targets, source])
    mine = _group("all_gather", group)
    if mine is None:
        return None
    _count(targets, mine, "tensor_list")

    def step(engine: Any) -> None:
        if len({array.shape for array in targets}) > 1:
            for i, array in enumerate(targets):  # of several sizes
                if i == engine.rank:
                    array[...] = source
                _in_place(engine, array, partial(engine.broadcast, root=i))
            return
        rows = empty(source, (len(targets), *source.shape))
        engine.all_gather(in_rows(source), rows)
        _spread(rows, targets)

    return run(mine, step, tensor_list, async_op, [tensor])


def all_gather_coalesced(
    output_tensor_lists: Any,
    input_tensor_list: Any,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As ``all_gather``, of each of several tensors.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> everyones = [[torch.zeros(2), torch.zeros(1)]]  # a list for each process
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
        >>> dist.all_gather_coalesced(everyones, [x, y])
        >>> everyones
        [[tensor([1., 2.]), tensor([3.])]]
        >>> dist.destroy_process_group()
    """
    sources = arrays_of(input_tensor_list, "tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise EagerError("Invalid function argument: output_tensor_lists is no list")
    lists = [arrays_of(part, "output_tensor_lists") for part in output_tensor_lists]
    mine = _group("all_gather_coalesced", group)
    if mine is None:
        return None

    def step(engine: Any) -> None:
        for i, source in enumerate(sources):
            rows = empty(source, (engine.size, *source.shape))
            engine.all_gather(in_rows(source), rows)
            _spread(rows, [part[i] for part in lists])

    return run(mine, step, output_tensor_lists, async_op, input_tensor_list)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Give the tensors of all processes to all, into one tensor.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> everyones = torch.zeros(2 * dist.get_world_size())
        >>> dist.all_gather_into_tensor(everyones, torch.tensor([1.0, 2.0]))
        >>> everyones
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    target, source = array_of(output_tensor), array_of(input_tensor)
    _same_type([target, source])
    mine = _group("all_gather_into_tensor", group)
    if mine is None:
        return None
    if target.size != source.size * mine.size():
        raise OptionError(
            "output tensor size must be equal to world_size times input tensor size"
        )

    def step(engine: Any) -> None:
        given = in_rows(source)
        _in_place(engine, target, lambda x: engine.all_gather(given, x))

    return run(mine, step, [output_tensor], async_op)


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Give the tensors of all processes to one, into a list of tensors.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> everyones = [torch.zeros(2)]  # at rank 0; None at the others
        >>> dist.gather(torch.tensor([1.0, 2.0]), everyones, dst=0)
        >>> everyones
        [tensor([1., 2.])]
        >>> dist.destroy_process_group()
    """
    source = array_of(tensor)
    mine = _group("gather", group)
    if mine is None:
        return None
    if dst is None and group_dst is None:
        dst = 0
    root = _place(group, dst, group_dst, "dst")
    here = mine.rank() == root
    if here and not gather_list:
        raise OptionError(
            "Argument ``gather_list`` must be specified on destination rank."
        )
    if not here and gather_list:
        raise OptionError(
            "Argument ``gather_list`` must NOT be specified on non-destination ranks."
        )
    targets = arrays_of(gather_list, "gather_list") if here else []
    _same_type([*targets, source])

    def step(engine: Any) -> None:
        rows = empty(source, (engine.size if here else 0, *source.shape))
        engine.gather(in_rows(source), rows, root)
        if here:
            _spread(rows, targets)

    return run(mine, step, gather_list, async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Give each process one of a list of tensors of one process.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.scatter(x, [torch.tensor([1.0, 2.0])], src=0)  # at the others: None
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    target = array_of(tensor)
    mine = _group("scatter", group)
    if mine is None:
        return None
    if src is None and group_src is None:
        src = 0
    root = _place(group, src, group_src, "src")
    here = mine.rank() == root
    if here and not scatter_list:
        raise OptionError("Argument ``scatter_list`` must be specified on source rank.")
    if not here and scatter_list:
        raise OptionError(
            "Argument ``scatter_list`` must NOT be specified on non-source ranks."
        )
    sources = arrays_of(scatter_list, "scatter_list") if here else []
    _same_type([*sources, target])
    rows = _joined(sources, target) if here else empty(target, (0,))

    def step(engine: Any) -> None:
        _in_place(engine, target, lambda x: engine.scatter(rows, x, root))

    return run(mine, step, [tensor], async_op)


def reduce_scatter(
    output: Any,
    input_list: Any,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Combine lists of tensors over the processes; each gets one of the results.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.reduce_scatter(x, [torch.tensor([1.0, 2.0])])
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    target, sources = array_of(output, "output"), arrays_of(input_list, "input_list")
    _same_type([*sources, target])
    mine = _group("reduce_scatter", group)
    if mine is None:
        return None
    _count(sources, mine, "input_list")
    rows, word = _joined(sources, target), _word(op, target, mine.backend)

    def step(engine: Any) -> None:
        _in_place(engine, target, lambda x: engine.reduce_scatter(rows, x, word))

    return run(mine, step, [output], async_op)


def reduce_scatter_tensor(
    output: Any,
    input: Any,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As ``reduce_scatter``, of the parts of one tensor.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.reduce_scatter_tensor(x, torch.tensor([1.0, 2.0]))
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    target, source = array_of(output, "output"), array_of(input, "input")
    _same_type([source, target])
    mine = _group("reduce_scatter_tensor", group)
    if mine is None:
        return None
    if source.size != target.size * mine.size():
        raise OptionError(
            "input tensor must be the same size as output size times world size"
        )
    word = _word(op, target, mine.backend)

    def step(engine: Any) -> None:
        given = in_rows(source)
        _in_place(engine, target, lambda x: engine.reduce_scatter(given, x, word))

    return run(mine, step, [output], async_op)


def all_to_all(
    output_tensor_list: Any,
    input_tensor_list: Any,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Give each process one of a list of tensors, and get one of each.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.all_to_all([x], [torch.tensor([1.0, 2.0])])
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    targets = arrays_of(output_tensor_list, "output_tensor_list")
    sources = arrays_of(input_tensor_list, "input_tensor_list")
    _same_type([*targets, *sources])
    mine = _group("all_to_all", group)
    if mine is None:
        return None
    given = np.concatenate([array.reshape(-1) for array in sources])

    def step(engine: Any) -> None:
        sizes = [[array.size for array in part] for part in (sources, targets)]
        got = empty(given, (sum(sizes[1]),))
        engine.all_to_all_parts(given, sizes[0], got, sizes[1])
        places = np.cumsum(sizes[1])[:-1].tolist()
        _spread(np.split(got, places), targets)

    return run(mine, step, output_tensor_list, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As ``all_to_all``, of the parts of one tensor along its first axis.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> x = torch.zeros(2)
        >>> dist.all_to_all_single(x, torch.tensor([1.0, 2.0]))
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    target, source = array_of(output, "output"), array_of(input, "input")
    _same_type([source, target])
    mine = _group("all_to_all_single", group)
    if mine is None:
        return None
    sent = _sizes(source, input_split_sizes, mine.size(), "input")
    got = _sizes(target, output_split_sizes, mine.size(), "output")

    def step(engine: Any) -> None:
        given = in_rows(source)
        _in_place(
            engine, target, lambda x: engine.all_to_all_parts(given, sent, x, got)
        )

    return run(mine, step, [output], async_op)


def _sizes(array: Any, splits: Any, n: int, name: str) -> list[int]:
    """How many elements each part along the first axis has."""
    rows = array.shape[0] if array.ndim else 1
    if not splits:
        if rows % n:
            raise EagerError("Tensor's dim 0 does not divide equally across group size")
        splits = [rows // n] * n
    if len(splits) != n:
        raise EagerError("Number of tensor splits not equal to group size")
    if sum(splits) != rows:
        raise EagerError("Split sizes doesn't match total dim 0 size")
    width = array.size // rows if rows else 0
    return [split * width for split in splits]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait until every process has come here.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.barrier()
        >>> dist.barrier(async_op=True).wait()
        True
        >>> dist.destroy_process_group()
    """
    mine = _group("barrier", group)
    if mine is None:
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise ArgumentError(
            "Invalid function argument: device_ids type should be List[int]"
        )
    return run(mine, lambda engine: engine.barrier(), None, async_op)


def monitored_barrier(
    group: Any = GroupMember.WORLD, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """As ``barrier``; the error names the ranks that have not come in time.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> from datetime import timedelta
        >>> dist.init_process_group("gloo")
        >>> dist.monitored_barrier(timeout=timedelta(seconds=10))
        >>> dist.destroy_process_group()
    """
    mine = _group("monitored_barrier", group)
    if mine is None:
        return
    engine = mine.engine
    if isinstance(timeout, float):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of "
            f"{timeout} assuming it represents seconds",
            FutureWarning,
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    seconds = engine.seconds if timeout is None else seconds_of(timeout)
    if seconds <= 0 and engine.rank == 0:
        raise EagerError("[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms.")
    late = engine.late(seconds) if engine.size > 1 else []
    if not late:
        return
    here = engine.ranks[engine.rank]
    if engine.rank:
        raise EagerError(
            f"[Rank {here}]: Rank {here} successfully reached monitoredBarrier, but "
            f"received errors while waiting for send/recv from rank 0. Please check "
            f"rank 0 logs for faulty rank."
        )
    ranks = [str(engine.ranks[i]) for i in (late if wait_all_ranks else late[:1])]
    raise EagerError(
        f"[Rank {here}]: {'Ranks' if len(ranks) > 1 else 'Rank'} {', '.join(ranks)} "
        f"failed to pass monitoredBarrier in {int(1000 * seconds)} ms"
    )


ProcessGroup.monitored_barrier = monitored_barrier

"""Python's objects between processes that trust one another: by pickle."""

import pickle
from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.torch.distributed.collectives import _group, _place

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pickled(obj: Any) -> Any:
    return np.frombuffer(bytearray(pickle.dumps(obj)), np.uint8)


def _object(data: Any) -> Any:
    return pickle.loads(data.tobytes())


def _gathered(engine: Any, obj: Any) -> list[Any]:
    """Everyone's object, at everyone."""
    mine = _pickled(obj)
    sizes = np.empty(engine.size, np.int64)
    engine.all_gather(np.array(mine.size, np.int64), sizes)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: mine.size] = mine
    rows = np.empty((engine.size, padded.size), np.uint8)
    engine.all_gather(padded, rows)
    return [_object(row[:n]) for row, n in zip(rows, sizes, strict=True)]


def broadcast(engine: Any, obj: Any, root: int) -> Any:
    """One process's object, at everyone."""
    data = _pickled(obj) if engine.rank == root else None
    size = np.array(0 if data is None else data.size, np.int64)
    engine.broadcast(size, root)
    if data is None:
        data = np.empty(int(size), np.uint8)
    engine.broadcast(data, root)
    return _object(data)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give the objects of all processes to all, into a list.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> objects = [None]
        >>> dist.all_gather_object(objects, {"a": 1})
        >>> objects
        [{'a': 1}]
        >>> dist.destroy_process_group()
    """
    mine = _group("all_gather_object", group)
    if mine is not None:
        object_list[:] = _gathered(mine.engine, obj)


def gather_object(
    obj: Any,
    object_gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give the objects of all processes to one, into a list.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> everyones = [None]  # at rank 0; None at the others
        >>> dist.gather_object({"a": 1}, everyones, dst=0)
        >>> everyones
        [{'a': 1}]
        >>> dist.destroy_process_group()
    """
    mine = _group("gather_object", group)
    if mine is None:
        return
    if dst is None and group_dst is None:
        dst = 0
    here = mine.rank() == _place(group, dst, group_dst, "dst")
    if here and not object_gather_list:
        raise OptionError(
            "Argument ``object_gather_list`` must be specified on destination rank."
        )
    if not here and object_gather_list:
        raise OptionError(
            "Argument ``object_gather_list`` must NOT be specified on non-destination "
            "ranks."
        )
    everything = _gathered(mine.engine, obj)
    if here:
        object_gather_list[:] = everything


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give one process's list of objects to all, in place.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> objects = ["a", {"b": 1}] if dist.get_rank() == 0 else [None, None]
        >>> dist.broadcast_object_list(objects, src=0)
        >>> objects
        ['a', {'b': 1}]
        >>> dist.destroy_process_group()
    """
    mine = _group("broadcast_object_list", group)
    if mine is None:
        return
    if src is None and group_src is None:
        src = 0
    root = _place(group, src, group_src, "src")
    object_list[:] = broadcast(mine.engine, object_list, root)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each process one of a list of objects of one process.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> mine = [None]
        >>> dist.scatter_object_list(mine, [{"a": 1}], src=0)
        >>> mine
        [{'a': 1}]
        >>> dist.destroy_process_group()
    """
    mine = _group("scatter_object_list", group)
    if mine is None:
        return
    if not isinstance(scatter_object_output_list, list) or not (
        scatter_object_output_list
    ):
        raise OptionError(
            "Expected argument scatter_object_output_list to be a list of size at "
            "least 1."
        )
    if src is None and group_src is None:
        src = 0
    root = _place(group, src, group_src, "src")
    objects = broadcast(mine.engine, scatter_object_input_list, root)
    scatter_object_output_list[0] = objects[mine.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to one process.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.send_object_list(["a", {"b": 1}], dst=0)  # alone, to itself
        >>> objects = [None, None]
        >>> dist.recv_object_list(objects, src=0)
        0
        >>> objects
        ['a', {'b': 1}]
        >>> dist.destroy_process_group()
    """
    mine = _group("send_object_list", group)
    if mine is None:
        return
    to, data = _place(group, dst, group_dst, "dst"), _pickled(object_list)
    mine.engine.send(np.array(data.size, np.int64), to, 2)
    mine.engine.send(data, to, 2)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of objects of one process, or of any: of which.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.init_process_group("gloo")
        >>> dist.send_object_list(["a"], dst=0)  # alone, to itself
        >>> objects = [None]
        >>> dist.recv_object_list(objects), objects  # whoever it is from
        (0, ['a'])
        >>> dist.destroy_process_group()
    """
    mine = _group("recv_object_list", group)
    if mine is None:
        return -1
    whose = None
    if src is not None or group_src is not None:
        whose = _place(group, src, group_src, "src")
    size = np.empty((), np.int64)
    whose = mine.engine.receive(size, whose, 2)
    data = np.empty(int(size), np.uint8)
    mine.engine.receive(data, whose, 2)
    object_list[:] = _object(data)
    return int(mine.engine.ranks[whose])

"""Collectives on plain arrays and numbers: what shape the result has, who has what."""

from collections.abc import Sequence
from typing import Any

from lantern.core.namespace import namespace
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "permute",
    "receive",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]

np: Any = numpy_namespace.module


def all_reduce(x: Any, group: Any, loss: str = "sum", op: str = "sum") -> Any:
    """The combination of all ranks' values."""
    source = _array(x)
    target = _empty(source, source.shape)
    group.all_reduce(source, target, op)
    return _like(x, target)


def reduce(x: Any, group: Any, root: int) -> Any:
    """The sum of all ranks' values on one of them, zeros elsewhere."""
    source = _array(x)
    target = _zeros(source, source.shape)
    group.reduce(source, target, "sum", root)
    return _like(x, target)


def broadcast(x: Any, group: Any, root: int, loss: str = "sum") -> Any:
    """The value of one rank."""
    target = _array(x).copy()
    group.broadcast(target, root)
    return _like(x, target)


def all_gather(x: Any, group: Any, loss: str = "sum") -> Any:
    """A row for each rank."""
    source = _array(x)
    target = _empty(source, (group.size, *source.shape))
    group.all_gather(source, target)
    return target


def gather(x: Any, group: Any, root: int) -> Any:
    """A row for each rank on one of them, zeros elsewhere."""
    source = _array(x)
    target = _zeros(source, (group.size, *source.shape))
    group.gather(source, target, root)
    return target


def scatter(x: Any, group: Any, root: int) -> Any:
    """A row of one rank's array."""
    source = _array(x)
    target = _empty(source, source.shape[1:])
    group.scatter(source, target, root)
    return target


def reduce_scatter(x: Any, group: Any) -> Any:
    """A row of the sum of all ranks' arrays."""
    source = _array(x)
    target = _empty(source, source.shape[1:])
    group.reduce_scatter(source, target, "sum")
    return target


def all_to_all(x: Any, group: Any) -> Any:
    """A row of each rank."""
    source = _array(x)
    target = _empty(source, source.shape)
    group.all_to_all(source, target)
    return target


def permute(x: Any, group: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """The value of the rank that sends to this one, zeros for none."""
    source = _array(x)
    target = _zeros(source, source.shape)
    come_from = {b: a for a, b in pairs}.get(group.rank)
    group.permute(source, target, dict(pairs).get(group.rank), come_from)
    return _like(x, target)


def send(x: Any, to: int, group: Any, tag: int) -> Any:
    """Nothing, once the value is on its way."""
    source = _array(x)
    group.post(source, to, tag)
    return _like(x, _zeros(source, ()))


def receive(like: Any, source: int, group: Any, tag: int) -> Any:
    """What a rank has sent."""
    array = _array(like)
    target = _empty(array, array.shape)
    group.receive(target, source, tag)
    return _like(like, target)


def _array(x: Any) -> Any:
    """An operand as an array that can be sent: in C order."""
    if not hasattr(x, "dtype"):
        return np.asarray(x)
    return namespace(x).ascontiguousarray(x).reshape(x.shape)


def _empty(like: Any, shape: Any) -> Any:
    return namespace(like).empty(shape, dtype=like.dtype)


def _zeros(like: Any, shape: Any) -> Any:
    return namespace(like).zeros(shape, dtype=like.dtype)


def _like(x: Any, result: Any) -> Any:
    """A result as the kind of number that the operand is."""
    return result if hasattr(x, "dtype") else result.item()

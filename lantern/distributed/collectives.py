"""What processes compute together: operations with derivative rules.

Between the ranks of a group a collective is a linear map, of all inputs to all
outputs. Its adjoint depends on what the loss is. ``loss="sum"``: each rank has a loss
of its own, and their sum is differentiated; the adjoint is that of the map.
``loss="replicated"``: all ranks compute the same loss, which counts once; what a shared
result receives has come to every rank whole.
"""

from collections.abc import Sequence
from typing import Any

from lantern.core.value import Rule, Value, base
from lantern.distributed import moves
from lantern.distributed.world import group_of
from lantern.errors import DistributedError, OptionError, ShapeError
from lantern.op import linear
from lantern.tensor.ops.reduction import max as _max
from lantern.tensor.ops.reduction import min as _min
from lantern.tensor.ops.reduction import prod as _prod
from lantern.transforms.custom_rule import custom_rule

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "gather",
    "permute",
    "recv",
    "reduce",
    "reduce_scatter",
    "replicated",
    "scatter",
    "send",
]

_OTHERS: dict[str, Any] = {"max": _max, "min": _min, "prod": _prod}


def all_reduce(x: Any, op: str = "sum", group: Any = None, loss: str = "sum") -> Any:
    """Combine the values of all ranks, for all ranks.

    Args:
        x: this rank's value; on every rank of the same shape and type.
        op: "sum", "mean", "max", "min" or "prod".
        group: of ``lantern.distributed.group``; all ranks for None.
        loss: what is differentiated: the "sum" of the ranks' losses, or one that is
            "replicated" on all of them.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> import lantern.distributed as dist
        >>> dist.all_reduce(np.array([1.0, 2.0]))
        array([1., 2.])
    """
    group, loss = group_of(group), _loss("all_reduce", loss)
    if op in _OTHERS and isinstance(x, Value):
        return _OTHERS[op](_all_gather(x, group, loss), axis=0)
    if op in _OTHERS:
        return moves.all_reduce(x, group, op=op)
    if op not in ("sum", "mean"):
        raise OptionError(
            f"all_reduce: op is {op!r}. Say one of sum, mean, max, min, prod."
        )
    z = _all_reduce(x, group, loss)
    return z / group.size if op == "mean" else z


def reduce(x: Any, root: int = 0, group: Any = None) -> Any:
    """The sum of all ranks' values, for one rank; zeros for the others.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.reduce(2.0)
        2.0
    """
    return _reduce(x, _rooted("reduce", group, root), root)


def broadcast(x: Any, root: int = 0, group: Any = None, loss: str = "sum") -> Any:
    """One rank's value, for all ranks.

    Args:
        x: the value; on the other ranks anything of the same shape and type.
        root: whose value it is.
        group: as in ``all_reduce``.
        loss: as in ``all_reduce``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.broadcast(2.0)
        2.0
    """
    group = _rooted("broadcast", group, root)
    return _broadcast(x, group, root, _loss("broadcast", loss))


def all_gather(x: Any, group: Any = None, loss: str = "sum") -> Any:
    """The values of all ranks, one row for each, for all ranks.

    Args:
        x: this rank's value; on every rank of the same shape and type.
        group: as in ``all_reduce``.
        loss: as in ``all_reduce``.

    Shapes:
        x: (...); result: (ranks, ...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.all_gather(2.0)
        array([2.])
    """
    return _all_gather(x, group_of(group), _loss("all_gather", loss))


def gather(x: Any, root: int = 0, group: Any = None) -> Any:
    """The values of all ranks, one row for each, for one rank; zeros for the others.

    Shapes:
        x: (...); result: (ranks, ...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.gather(2.0)
        array([2.])
    """
    return _gather_rows(x, _rooted("gather", group, root), root)


def scatter(x: Any, root: int = 0, group: Any = None) -> Any:
    """This rank's row of one rank's array.

    Args:
        x: a row for each rank; on the other ranks anything of the same shape.
        root: whose array it is.
        group: as in ``all_reduce``.

    Shapes:
        x: (ranks, ...); result: (...)

    Example:
        >>> import numpy as np
        >>> import lantern.distributed as dist
        >>> dist.scatter(np.array([[1.0, 2.0]]))
        array([1., 2.])
    """
    return _scatter_rows(
        x, _by_rows("scatter", x, _rooted("scatter", group, root)), root
    )


def reduce_scatter(x: Any, group: Any = None) -> Any:
    """This rank's row of the sum of all ranks' arrays.

    Shapes:
        x: (ranks, ...); result: (...)

    Example:
        >>> import numpy as np
        >>> import lantern.distributed as dist
        >>> dist.reduce_scatter(np.array([[1.0, 2.0]]))
        array([1., 2.])
    """
    return _reduce_scatter(x, _by_rows("reduce_scatter", x, group_of(group)))


def all_to_all(x: Any, group: Any = None) -> Any:
    """One row of each rank: row i of the result is this rank's row of rank i.

    Shapes:
        x: (ranks, ...); result: (ranks, ...)

    Example:
        >>> import numpy as np
        >>> import lantern.distributed as dist
        >>> dist.all_to_all(np.array([[1.0, 2.0]]))
        array([[1., 2.]])
    """
    return _all_to_all(x, _by_rows("all_to_all", x, group_of(group)))


def permute(x: Any, pairs: Sequence[tuple[int, int]], group: Any = None) -> Any:
    """What another rank has sent to this one; zeros where nobody has.

    Args:
        x: this rank's value; on every rank of the same shape and type.
        pairs: who sends to whom: each rank at most once in either place.
        group: as in ``all_reduce``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern.distributed as dist
        >>> n = dist.world_size()
        >>> dist.permute(2.0, [(i, (i + 1) % n) for i in range(n)])
        2.0
    """
    pairs = tuple((int(a), int(b)) for a, b in pairs)
    for side in zip(*pairs, strict=True):
        if len(set(side)) < len(side):
            raise OptionError(
                f"permute: {pairs} names a rank twice. Let each one send once, and "
                f"receive once."
            )
    return _permute(x, group_of(group), pairs)


def replicated(x: Any, group: Any = None) -> Any:
    """The value itself, which all ranks share, where each of them goes on by itself.

    It is for losses that are replicated: what the ranks have found out about a shared
    value, each from its own part of the computation, is added up here on the way back.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.replicated(2.0)
        2.0
    """
    return _replicated(x, group_of(group))


@linear
def _all_reduce(x: Any, /, group: Any, loss: str) -> Rule:
    """The sum over ranks.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = the sum of z_bar over the ranks; of a replicated loss, z_bar
    """
    z_bar = yield (_either(moves.all_reduce, _all_reduce, x, group, loss), x := None)[0]
    yield (
        _all_reduce(z_bar, group, loss) if loss == "sum" else _replicated(z_bar, group)
    )


@linear
def _reduce(x: Any, /, group: Any, root: int) -> Rule:
    """The sum over ranks, on one of them.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar of the root
    """
    z_bar = yield (_either(moves.reduce, _reduce, x, group, root), x := None)[0]
    yield _broadcast(z_bar, group, root, "sum")


@linear
def _broadcast(x: Any, /, group: Any, root: int, loss: str) -> Rule:
    """The value of one rank.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = at the root the sum of z_bar over the ranks; of a replicated loss, z_bar
    """
    z_bar = yield (
        _either(moves.broadcast, _broadcast, x, group, root, loss),
        x := None,
    )[0]
    if loss == "sum":
        yield _reduce(z_bar, group, root)
    else:
        yield _replicated(z_bar, group) * float(group.rank == root)


@linear
def _all_gather(x: Any, /, group: Any, loss: str) -> Rule:
    """The values of all ranks.

    Shapes:
        x: (...); result: (ranks, ...)

    Rule:
        x_bar = this rank's row of the sum of z_bar; of a replicated loss, of z_bar
    """
    z_bar = yield (_either(moves.all_gather, _all_gather, x, group, loss), x := None)[0]
    if loss == "sum":
        yield _reduce_scatter(z_bar, group)
    else:
        yield _replicated(z_bar, group)[group.rank]


@linear
def _gather_rows(x: Any, /, group: Any, root: int) -> Rule:
    """The values of all ranks, on one of them.

    Shapes:
        x: (...); result: (ranks, ...)

    Rule:
        x_bar = this rank's row of the root's z_bar
    """
    z_bar = yield (_either(moves.gather, _gather_rows, x, group, root), x := None)[0]
    yield _scatter_rows(z_bar, group, root)


@linear
def _scatter_rows(x: Any, /, group: Any, root: int) -> Rule:
    """A row of one rank's array.

    Shapes:
        x: (ranks, ...); result: (...)

    Rule:
        x_bar = at the root the rows z_bar
    """
    z_bar = yield (_either(moves.scatter, _scatter_rows, x, group, root), x := None)[0]
    yield _gather_rows(z_bar, group, root)


@linear
def _reduce_scatter(x: Any, /, group: Any) -> Rule:
    """A row of the sum over ranks.

    Shapes:
        x: (ranks, ...); result: (...)

    Rule:
        x_bar = the rows z_bar of all ranks
    """
    z_bar = yield (
        _either(moves.reduce_scatter, _reduce_scatter, x, group),
        x := None,
    )[0]
    yield _all_gather(z_bar, group, "sum")


@linear
def _all_to_all(x: Any, /, group: Any) -> Rule:
    """A row of each rank.

    Shapes:
        x: (ranks, ...); result: (ranks, ...)

    Rule:
        x_bar = what all_to_all gives for z_bar
    """
    z_bar = yield (_either(moves.all_to_all, _all_to_all, x, group), x := None)[0]
    yield _all_to_all(z_bar, group)


@linear
def _permute(x: Any, /, group: Any, pairs: Any) -> Rule:
    """The value of another rank.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar of the rank that x was sent to
    """
    z_bar = yield (_either(moves.permute, _permute, x, group, pairs), x := None)[0]
    yield _permute(z_bar, group, tuple((b, a) for a, b in pairs))


@linear
def _replicated(x: Any, /, group: Any) -> Rule:
    """A value that all ranks share.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = the sum of z_bar over the ranks
    """
    z_bar = yield (x, x := None)[0]
    yield _all_reduce(z_bar, group, "replicated")


@custom_rule(kind="linear")
def send(x: Any, /, to: int, group: Any = None, tag: int = 0) -> Rule:
    """Send a value to one rank; the result is 0, to be added to what is differentiated.

    On the way back the cotangent is received from there.

    Args:
        x: the value.
        to: who receives it, by ``recv``.
        group: as in ``all_reduce``.
        tag: sent with it; ``recv`` has the same.

    Shapes:
        x: (...); result: ()

    Example:
        >>> import lantern.distributed as dist
        >>> dist.send(2.0, to=0)
        0.0
        >>> dist.recv(0.0, source=0)
        2.0
    """
    zeros = 0.0 * x
    z_bar = yield (_either(moves.send, send, x, to, group_of(group), tag), x := None)[0]
    yield recv(z_bar + zeros, to, group, tag)


@custom_rule(kind="linear")
def recv(like: Any, /, source: int, group: Any = None, tag: int = 0) -> Rule:
    """What one rank has sent; on the way back the cotangent is sent there.

    Args:
        like: anything of the same shape and type. That the way back comes by here, it
            has to be tracked: ``0.0 * x`` of something that is.
        source: who sends it, by ``send``.
        group: as in ``all_reduce``.
        tag: as the sender's.

    Shapes:
        like: (...); result: (...)

    Example:
        >>> import lantern.distributed as dist
        >>> dist.send(2.0, to=0)
        0.0
        >>> dist.recv(0.0, source=0)
        2.0
    """
    z_bar = yield (
        _either(moves.receive, recv, like, source, group_of(group), tag),
        like := None,
    )[0]
    yield send(z_bar, source, group, tag) + 0.0 * z_bar


def _either(plain: Any, operation: Any, x: Any, *statics: Any) -> Any:
    """What moves plain arrays; of tracked ones the operation, for outer derivatives."""
    return (operation if isinstance(x, Value) else plain)(x, *statics)


def _rooted(where: str, group: Any, root: int) -> Any:
    group = group_of(group)
    if not 0 <= root < group.size:
        raise DistributedError(
            f"{where}: root is {root}, and the group has {group.size} ranks. Name one "
            f"of 0 to {group.size - 1}."
        )
    return group


def _loss(where: str, loss: str) -> str:
    if loss not in ("sum", "replicated"):
        raise OptionError(
            f"{where}: loss is {loss!r}. Say 'sum', if each rank has a loss of its "
            f"own, or 'replicated', if all have the same."
        )
    return loss


def _by_rows(where: str, x: Any, group: Any) -> Any:
    shape = getattr(base(x), "shape", ())
    if shape[:1] != (group.size,):
        raise ShapeError(
            f"{where}: the operand has shape {tuple(shape)}, and the group "
            f"{group.size} ranks. Give one row for each rank."
        )
    return group

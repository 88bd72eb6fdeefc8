"""``scatter_reduce``, ``index_reduce``: sums, products, means, extremes by index."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.residuals import copied
from lantern.core.value import Value
from lantern.errors import EagerError
from lantern.torch.functions import elementwise, indexing
from lantern.torch.functions.reduction import axis_of
from lantern.torch.functions.scatter import _part_of, check_scattered
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.operators import as_kind, cast
from lantern.torch.tensor.tensor import Tensor, fresh

_EMPTY = {"sum": 0.0, "prod": 1.0, "mean": 0.0, "amax": -np.inf, "amin": np.inf}


def _gathered(flat: Tensor, values: Tensor, where: Any, reduce: str, own: bool) -> Any:
    """A row of elements, combined with values at positions in it.

    Args:
        flat: the row.
        values: what comes to it.
        where: the positions, one for each value.
        reduce: how several values for one position are combined.
        own: whether the row's own element takes part where something comes.
    """
    n = base(flat).size
    kind = base(flat).dtype
    met = np.bincount(where, minlength=n)
    hit = fresh(met > 0)
    start = flat if own else elementwise.where(hit, fresh(_start(reduce, kind)), flat)
    if reduce in ("sum", "mean"):
        total = indexing.add_at(start, where, values)
        if reduce == "sum":
            return total
        count = fresh(np.maximum(met + own, 1).astype(kind))
        if kind.kind in "iu":
            return elementwise.floor_divide(total, count)
        return total / count
    # Round by round: the first value at each position, then the second, and so on.
    order = np.argsort(where, kind="stable")
    sorted_ = where[order]
    first = np.searchsorted(sorted_, sorted_)
    turn = namespace(where).arange(len(where)) - first
    if reduce == "prod":
        for i in range(int(turn.max()) + 1 if turn.size else 0):
            now = order[turn == i]
            product = start[fresh(where[now])] * values[fresh(now)]
            start = indexing.put(start, where[now], product)
        return start
    return _extreme(start, values, where, order, reduce)


def _start(reduce: str, kind: Any) -> Any:
    value = _EMPTY[reduce]
    if np.isinf(value) and kind.kind == "b":
        value = value > 0
    if np.isinf(value) and kind.kind in "iu":
        limits = np.iinfo(kind)
        value = limits.max if value > 0 else limits.min
    return kind.type(value)


# For types that a GPU compares no elements of at once, those that hold them.
_WIDER = {"b": np.int32, "i": np.int32, "u": np.int32, "f": np.float32}


def _met(function: Any, x: Any, where: Any, values: Tensor) -> Any:
    """An array, combined in place with the values that come to positions."""
    narrow = type(x) is not np.ndarray and x.itemsize < 4
    wide = x.astype(_WIDER[x.dtype.kind]) if narrow else x
    function.at(wide, where, base(values).astype(wide.dtype))
    return wide.astype(x.dtype) if narrow else x


def _extreme(start: Tensor, values: Tensor, where: Any, order: Any, reduce: str) -> Any:
    """The largest or smallest at each position; ties share the gradient."""
    best = base(start).copy()
    best = _met(np.maximum if reduce == "amax" else np.minimum, best, where, values)
    kind = best.dtype
    own = (base(start) == best).astype(kind)
    new = (base(values) == best[where]).astype(kind)
    ties = own.copy()
    ties = _met(np.add, ties, where, fresh(new))
    ties = np.maximum(ties, 1)
    if not (start.requires_grad or values.requires_grad):
        return fresh(best)
    finite = np.where(np.isinf(best) & (own > 0), 0, own / ties).astype(kind)
    kept = elementwise.where(fresh(finite > 0), start, fresh(kind.type(0)))
    mixed = indexing.add_at(
        kept * fresh(finite), where, values * fresh((new / ties[where]).astype(kind))
    )
    return mixed + fresh(np.where(np.isinf(best), best, best - base(mixed)))


def _mode(reduce: str, names: Any) -> str:
    if reduce not in names:
        raise EagerError(f"reduce argument must be one of {', '.join(names)}")
    return reduce


@each_example
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """The tensor, combined with a source's elements at positions along an axis.

    Args:
        input: what is copied.
        dim: the axis.
        index: the positions, of their own for each line.
        src: the source.
        reduce: "sum", "prod", "mean", "amax" or "amin" of what meets; of extremes,
            ties share the gradient.
        include_self: whether what is there takes part.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([5])
        >>> index, src = torch.tensor([0, 0]), torch.tensor([7, 3])
        >>> torch.scatter_reduce(x, 0, index, src, "amax")
        tensor([7])
    """
    _mode(reduce, tuple(_EMPTY))
    array = base(input)
    if not array.shape:
        row = scatter_reduce(
            input.reshape(1),
            dim,
            index.reshape(-1),
            src.reshape(-1),
            reduce,
            include_self=include_self,
        )
        return row.reshape(())
    positions = indexing._positions("scatter", index, input)
    check_scattered(input, dim, positions, src)
    numbers = namespace(array).arange(array.size).reshape(array.shape)
    where = numbers[indexing.lines(array, dim, positions)].reshape(-1)
    part = _part_of(src, positions).reshape(-1)
    z = _gathered(input.reshape(-1), part, where, reduce, include_self)
    return z.reshape(array.shape)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
) -> Any:
    """The tensor with a source's elements at positions along an axis.

    Args:
        input: what is copied.
        dim: the axis.
        index: the positions, of their own for each line.
        src: the source, or a number.
        value: the number, by name.
        reduce: "add" or "multiply" combines it with what is there.

    Rule:
        z[index[i, j], j] = src[i, j] for dim 0, z[i, index[i, j]] = src[i, j] for dim 1

    Raises:
        RuntimeError: for an index that does not fit, and for a source of another type.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 2)
        >>> torch.scatter(x, 1, torch.tensor([[0], [1]]), torch.tensor([[5.0], [6.0]]))
        tensor([[5., 0.],
                [0., 6.]])
    """
    positions = indexing._positions("scatter", index, input)
    if not base(input).shape:
        src = src.reshape(-1) if isinstance(src, Tensor) else src
        return scatter(
            input.reshape(1), dim, index.reshape(-1), src, value=value, reduce=reduce
        ).reshape(())
    check_scattered(input, dim, positions, src)
    if not positions.size:
        if not isinstance(src, Tensor):
            return input.clone()
        row, none = input.reshape(-1), (copied(positions).reshape(-1),)
        z = indexing.put(row, none, src.reshape(-1)[:0])  # tracked as the source is
        return z.reshape(base(input).shape)
    positions = copied(positions)
    src = value if src is None else _part_of(src, positions)
    if isinstance(src, Value) and not getattr(
        src, "shape", ()
    ):  # a number, of either face
        src = as_kind(src, base(input).dtype).expand(positions.shape)
    elif not isinstance(src, Tensor) and base(input).dtype.kind in "iu":
        src = int(src)  # what is added is of the tensor's type
    if reduce == "add":
        return indexing.changed_at_lines(indexing.add_at, input, dim, positions, src)
    if reduce == "multiply":
        if not isinstance(src, Tensor):
            src = fresh(np.full(positions.shape, src, base(input).dtype))
        return scatter_reduce(input, dim, index, src, "prod")
    return indexing.changed_at_lines(indexing.put, input, dim, positions, src)


@each_example
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """The tensor, combined with a source's parts at positions along an axis.

    Args:
        input: what is copied.
        dim: the axis.
        index: a position for each part.
        source: the parts.
        reduce: "prod", "mean", "amax" or "amin" of what meets.
        include_self: whether what is there takes part.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> index, source = torch.tensor([0, 0]), torch.tensor([5.0, 7.0])
        >>> torch.index_reduce(x, 0, index, source, "amax")
        tensor([7., 2.])
    """
    _mode(reduce, ("prod", "mean", "amax", "amin"))
    array = base(input)
    if not array.shape:
        row = index_reduce(
            input.reshape(1),
            dim,
            index.reshape(-1),
            source.reshape(-1),
            reduce,
            include_self=include_self,
        )
        return row.reshape(())
    axis = axis_of(dim, array.ndim)
    numbers = namespace(array).arange(array.size).reshape(array.shape)
    where = np.take(numbers, base(index), axis).reshape(-1)
    source = cast(source, array.dtype).reshape(-1)
    z = _gathered(input.reshape(-1), source, where, reduce, include_self)
    return z.reshape(array.shape)


functions = {
    "scatter": scatter,
    "scatter_reduce": scatter_reduce,
    "index_reduce": index_reduce,
}

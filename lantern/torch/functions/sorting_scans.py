"""Scans along an axis: sums so far, sorting, quantiles, counts."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.core.value import base as value_of
from lantern.errors import EagerError
from lantern.op import op
from lantern.tensor.ops import cumulative, sorting
from lantern.tensor.ops.indexing import take_along_axis
from lantern.tensor.ops.reduction import spread
from lantern.torch.functions.join_repeat import stack
from lantern.torch.functions.reduction import (
    _chosen,
    _wide,
    axes,
    axis_of,
    nowhere,
    refuse_empty,
)
from lantern.torch.tables import documented
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_recorded, plain_number
from lantern.torch.tensor.devices import as_array, beside, grid
from lantern.torch.tensor.dtypes import F32, F64, FLOATING
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.operators import call, cast, unary
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face


def _along(function: Any, input: Tensor, dim: int, dtype: Any) -> Any:
    x = _wide(input, dtype)
    if not base(x).shape:
        return x.clone()
    return cast(call(function, x, dim), base(x).dtype)  # NumPy widens integers


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """The sums so far along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.cumsum(x, dim=0)
        tensor([[1, 2],
                [4, 6]])
    """
    return _along(cumulative.cumsum, input, dim, dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """The products so far along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2, 3])
        >>> torch.cumprod(x, dim=0)
        tensor([1, 2, 6])
    """
    return _along(cumulative.cumprod, input, dim, dtype)


def _so_far(name: str) -> Any:
    pair = named(name)

    def so_far(input: Tensor, dim: int) -> Any:
        array = base(input)
        if not array.shape:
            return pair(input.clone(), nowhere(array))
        xp = namespace(array)
        values = getattr(xp, name)(array, dim)
        places = grid(array.shape, array)[dim]
        hit = (array == values) | (np.isnan(array) & np.isnan(values))
        where = xp.cummax(np.where(hit, places, 0), dim)
        return pair(call(take_along_axis, input, where, dim), fresh(where))

    so_far.__name__ = name
    return so_far


cummax = documented(
    _so_far("cummax"),
    """The greatest elements so far along an axis, and where they are.

    >>> torch.cummax(torch.tensor([1, 3, 2]), dim=0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """,
)
cummin = documented(
    _so_far("cummin"),
    """The least elements so far along an axis, and where they are.

    >>> torch.cummin(torch.tensor([2, 3, 1]), dim=0)
    torch.return_types.cummin(
    values=tensor([2, 2, 1]),
    indices=tensor([0, 0, 2]))
    """,
)


@each_example
def logcumsumexp(input: Tensor, dim: int) -> Any:
    """The logarithm of the sums of exponentials so far.

    Example:
        >>> import lantern.torch as torch
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0, 0.0]), dim=0)
        tensor([0.0000, 0.6931, 1.0986])
    """
    xp, array = namespace(base(input)), base(input)
    if not array.size:
        return input.cumsum(dim)
    if array.dtype.kind == "c" and not xp.isfinite(array).all():
        return _one_by_one(input, dim)
    finite = xp.where(xp.isfinite(array), array.real, -math.inf)
    top = as_array(np.max(finite, axis=axes(dim, input), keepdims=True))
    top = fresh(xp.where(xp.isfinite(top), top, 0).astype(array.real.dtype))
    return (input - top).exp().cumsum(dim).log() + top


def _one_by_one(input: Tensor, dim: int) -> Any:
    """As ``logcumsumexp``; before the first infinity sums are as without it."""
    xp, dtype = namespace(base(input)), base(input).dtype
    sums, total = [], fresh(xp.asarray(-math.inf, dtype=dtype))
    for x in input.unbind(dim):
        total = _log_add(total, x)
        sums.append(total)
    return stack(sums, dim)


def _log_add(x: Tensor, y: Tensor) -> Any:
    """The logarithm of the sum of two exponentials of complex numbers."""
    later = x.real < y.real
    high, low = x.where(~later, y), y.where(~later, x)
    z = high + ((low - high).exp() + 1).log()
    z = high.where(low.real == -math.inf, z)
    z = (x.exp() + y.exp()).log().where(low.real == math.inf, z)
    return z.masked_fill(x.isnan() | y.isnan(), complex(math.nan, math.nan))


def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """The elements in order along an axis, and where they come from.

    Shapes:
        input: (..., n, ...); values, indices: (..., n, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.sort(torch.tensor([30, 10, 20]))
        torch.return_types.sort(
        values=tensor([10, 20, 30]),
        indices=tensor([1, 2, 0]))
    """
    where = base(argsort(input, dim, descending))
    if not base(input).shape:
        return _SORT(input.clone(), fresh(where))
    return _SORT(call(take_along_axis, input, where, dim), fresh(where))


_SORT = named("sort")
_TOPK, _KTH, _MEDIAN, _MODE = map(named, ("topk", "kthvalue", "median", "mode"))


def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """The positions that put the elements in order along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.argsort(torch.tensor([30, 10, 20]))
        tensor([1, 2, 0])
    """
    array = base(input)
    if not array.shape:
        return nowhere(array)
    return fresh(as_array(sorting.argsort(array, dim, descending=descending)))


def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    """The k largest elements along an axis, or smallest, and where they come from.

    Shapes:
        input: (..., n, ...); values, indices: (..., k, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.topk(torch.tensor([30, 10, 20]), 2)
        torch.return_types.topk(
        values=tensor([30, 20]),
        indices=tensor([0, 2]))
    """
    array = base(input)
    if not array.shape:
        return _TOPK(input.clone(), nowhere(array))
    if not 0 <= k <= array.shape[dim]:
        raise EagerError("selected index k out of range")
    values, where = sorting.topk(numpy_face(input), k, dim, largest=largest)
    return _TOPK(torch_face(values), torch_face(where))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along an axis, and where it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.kthvalue(torch.tensor([30, 10, 20]), 2)
        torch.return_types.kthvalue(
        values=tensor(20),
        indices=tensor(2))
    """
    array = base(input)
    refuse_empty("kthvalue", array, dim)
    if not 1 <= k <= (array.shape[dim] if array.shape else 1):
        raise EagerError("kthvalue(): selected number k out of range for dimension")

    def position(array: Any, axis: int) -> Any:
        return np.take(np.argsort(array, axis=axis, kind="stable"), k - 1, axis=axis)

    return _KTH(*_chosen("kthvalue", input, position, dim, keepdim))


@op
def _one_of(x: Any, /, value: Any) -> Rule:
    """A value that elements of x have, all of which share its derivative equally.

    Shapes:
        x: (...); value: (); result: ()

    Rule:
        x_bar = z_bar / count where x == z, nothing elsewhere
    """
    z_bar = yield value
    array = value_of(x)
    chosen = (array == value) | ((array != array) & (value != value))
    xp = namespace(array)
    count = xp.asarray(xp.sum(chosen), dtype=array.dtype)
    yield xp.select(chosen, spread(z_bar / count, x.shape, None))


_one_of_many = unary(_one_of)


def median(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The middle element, the lower one of two; along an axis with positions.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([4, 1, 3, 2])
        >>> torch.median(x)
        tensor(2)
        >>> torch.median(x, dim=0)
        torch.return_types.median(
        values=tensor(2),
        indices=tensor(3))
    """
    if dim is None:
        flat = input.reshape(-1)
        if not len(flat):
            kind = base(flat).dtype
            if kind.kind in "iu":
                return fresh(np.array(np.iinfo(kind).min, kind))
            return flat.mean()
        return _one_of_many(flat, value=base(median(flat.detach(), 0)[0]))

    def position(array: Any, axis: int) -> Any:
        order = np.argsort(array, axis=axis, kind="stable")
        middle = np.take(order, (array.shape[axis] - 1) // 2, axis=axis)
        if array.dtype.kind not in FLOATING:
            return middle
        strange = np.isnan(array)  # the first of these, if there are any
        return np.where(strange.any(axis), strange.argmax(axis), middle)

    return _MEDIAN(*_chosen("median", input, position, dim, keepdim))


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along an axis, and where it is last.

    Example:
        >>> import lantern.torch as torch
        >>> torch.mode(torch.tensor([1, 2, 2, 3]))
        torch.return_types.mode(
        values=tensor(2),
        indices=tensor(2))
    """

    def position(array: Any, axis: int) -> Any:
        same = np.expand_dims(array, axis % array.ndim) == np.expand_dims(
            array, axis % array.ndim + 1
        )
        counts = same.sum(axis % array.ndim)
        best = np.where(counts == counts.max(axis, keepdims=True), array, _top(array))
        hit = array == best.min(axis, keepdims=True)
        n = array.shape[axis]
        return n - 1 - np.argmax(np.flip(hit, axis), axis=axis)

    return _MODE(*_chosen("mode", input, position, dim, keepdim))


def _top(array: Any) -> Any:
    return np.iinfo(array.dtype).max if array.dtype.kind in "iu" else math.inf


def quantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """Where a share q of the elements lies below, of all or along an axis.

    Shapes:
        input: (..., n, ...); q: a number or (k,); result: (..., ...) or (k, ..., ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.quantile(
        ...     torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.25, 0.5])
        ... )
        tensor([1.7500, 2.5000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


def nanquantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """Where a share of what is a number lies below.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nanquantile(torch.tensor([1.0, torch.nan, 3.0]), 0.5)
        tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


_BETWEEN = {
    "linear": None,
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
    "midpoint": None,
}


def _share(name: str, input: Tensor, q: Any, interpolation: str) -> Any:
    """The shares as a tensor, checked."""
    if base(input).dtype.kind not in FLOATING:
        raise EagerError(f"{name}() input tensor must be either float or double dtype")
    if not base(input).size:
        raise EagerError(f"{name}() input tensor must be non-empty")
    if interpolation not in _BETWEEN:
        raise EagerError(
            f"{name}() interpolation must be one of {', '.join(_BETWEEN)}, but got "
            f"{interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise EagerError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        q = fresh(beside(np.asarray(q, base(input).dtype), base(input)))
    if base(q).ndim > 1:
        raise EagerError(f"{name}() q must be a scalar or 1D tensor")
    if base(q).dtype != base(input).dtype:
        raise EagerError(f"{name}() q tensor must be same dtype as the input tensor")
    every = of_all_examples(base(q))
    if not ((every >= 0) & (every <= 1)).all():
        raise EagerError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(
    name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str
) -> Any:
    q = _share(name, input, q, interpolation)
    ndim = base(input).ndim
    axis = 0 if dim is None else axis_of(dim, ndim)
    x = input.reshape(-1) if dim is None else input.unsqueeze(0) if not ndim else input
    x = x.movedim(axis, -1)
    array = base(x)
    missing = np.isnan(array)
    count: Any = array.shape[-1] - 1
    if name == "nanquantile":
        count = np.maximum(array.shape[-1] - missing.sum(-1, keepdims=True) - 1, 0)
    count = count if isinstance(count, int) else fresh(count.astype(array.dtype))
    rank = q.reshape(-1) * count
    rank = rank.expand((*array.shape[:-1], base(rank).shape[-1]))
    if name == "quantile":
        spoiled = missing.any(-1, keepdims=True)
        rank = rank.masked_fill(fresh(spoiled), array.shape[-1] - 1)
    z = _between(sort(x)[0], rank, interpolation).movedim(-1, 0)
    z = z if base(q).ndim else z[0]
    if keepdim and ndim:
        at = axis + base(q).ndim
        z = z.unsqueeze(at) if dim is not None else z.reshape(*q.shape, *[1] * ndim)
    return z if ndim else z.reshape(q.shape)


def _between(x: Tensor, rank: Tensor, interpolation: str) -> Any:
    """The elements at ranks of ordered lines, or what lies between two of them."""
    plain = base(rank)
    rounded = _BETWEEN[interpolation]
    low = (rounded or np.floor)(plain).astype(np.int64)
    z = call(take_along_axis, x, low, -1)
    if rounded is not None:
        return z
    above = call(take_along_axis, x, np.ceil(plain).astype(np.int64), -1)
    weight = 0.5 if interpolation == "midpoint" else rank - fresh(np.floor(plain))
    return z + (above - z) * weight


@each_example
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The different elements, in order.

    Their derivative is that of the first of those that are alike.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unique(torch.tensor([3, 1, 3]))
        tensor([1, 3])
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    plain_number("unique", input)
    recorded = is_recorded(input)
    found: Any = np.unique(  # type: ignore[call-overload]
        base(input),
        return_index=recorded,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=dim,
    )
    if not isinstance(found, tuple):
        return fresh(found)
    z, *more = map(fresh, found)
    if recorded:
        z = _taken(input, more.pop(0), dim)
    return (z, *more) if more else z


def _taken(x: Tensor, index: Tensor, dim: Any) -> Tensor:
    """Elements of a tensor, or its parts along an axis, with their derivative."""
    return x.reshape(-1)[index] if dim is None else x.index_select(dim, index)


@each_example
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    """The elements without repetitions of their neighbours.

    Their derivative is that of the first of those that are alike.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    plain_number("unique_consecutive", input)
    array = base(input)
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, dim, 0)
    flat = rows.reshape(len(rows), rows.size // max(len(rows), 1))
    change = np.append(_first(flat), (flat[1:] != flat[:-1]).any(1))
    first = np.flatnonzero(change)
    results: Any = [_taken(input, fresh(first), dim)]
    if return_inverse:
        inverse = np.cumsum(change) - 1
        results.append(fresh(inverse.reshape(array.shape) if dim is None else inverse))
    if return_counts:
        results.append(fresh(np.diff(np.append(first, len(rows)))))
    return tuple(results) if len(results) > 1 else results[0]


def _first(rows: Any) -> Any:
    """That the first of rows is unlike its neighbour before, which it has not."""
    return namespace(rows).ones(min(1, len(rows)), bool)


@each_example
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Any:
    """How often each of the numbers 0, 1, 2, … occurs; ``weights`` are summed.

    Example:
        >>> import lantern.torch as torch
        >>> torch.bincount(torch.tensor([0, 1, 1, 3]))
        tensor([1, 2, 0, 1])
    """
    w = None if weights is None else base(plain_number("bincount: weights", weights))
    array = base(input)
    if array.dtype.kind not in "iu":
        raise refuse_type("bincount", input)
    if array.ndim != 1 or (array < 0).any():
        raise EagerError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise EagerError("minlength should be >= 0")
    if w is not None and w.shape != array.shape:
        raise EagerError("weights should be 1-d and have the same length as input")
    z = np.bincount(base(input), w, minlength)
    return fresh(z if w is None else z.astype(F32 if w.dtype == F32 else F64))


@each_example
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements lie in each of equal intervals.

    Example:
        >>> import lantern.torch as torch
        >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    array = base(input)
    low, high = min, max
    if not array.size:
        return fresh(namespace(array).zeros(bins, array.dtype))
    if min == max:
        low, high = array.min().item(), array.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise EagerError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise EagerError("torch.histc: max must be larger than min")
    counts, _ = np.histogram(array, bins, (low, high))
    return fresh(counts.astype(array.dtype))


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
}

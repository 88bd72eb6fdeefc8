"""Operators along axes."""

from typing import Any

import numpy as np

import lantern
from lantern.core.value import base, is_tracked
from lantern.onnx.operators.table import operator

__all__: list[str] = []


def _axes(x: Any, axes: Any, noop: int) -> tuple[int, ...] | None:
    """The axes as NumPy takes them; an empty tuple where nothing is to be done."""
    if axes is None or len(axes) == 0:
        return () if noop else tuple(range(x.ndim))
    return tuple(int(axis) for axis in axes)


def _reduction(function: Any, before: Any = None, after: Any = None) -> Any:
    """An operator that reduces axes, between two functions of each element."""

    def reduced(
        x: Any, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Any:
        kind = x.dtype
        along = _axes(x, axes, noop_with_empty_axes)
        x = x if before is None else before(x)
        z = function(x, along, bool(keepdims)) if along != () or not x.ndim else x
        z = z if after is None else after(z)
        return z if z.dtype == kind else z.astype(kind)

    return reduced


def _by(function: Any) -> Any:
    return lambda x, axes, keep: function(x, axis=axes, keepdims=keep)


def _largest(x: Any, axes: Any, keep: bool) -> Any:
    if x.size:
        return np.max(x, axis=axes, keepdims=keep)
    return np.full(_reduced_shape(x, axes, keep), _least(x.dtype), x.dtype)


def _smallest(x: Any, axes: Any, keep: bool) -> Any:
    if x.size:
        return np.min(x, axis=axes, keepdims=keep)
    return np.full(_reduced_shape(x, axes, keep), _most(x.dtype), x.dtype)


def _least(kind: Any) -> Any:
    if kind.kind in "iu":
        return np.iinfo(kind).min
    return False if kind.kind == "b" else -np.inf


def _most(kind: Any) -> Any:
    if kind.kind in "iu":
        return np.iinfo(kind).max
    return True if kind.kind == "b" else np.inf


def _reduced_shape(x: Any, axes: Any, keep: bool) -> tuple[int, ...]:
    return np.sum(np.zeros(x.shape, np.int8), axis=axes, keepdims=keep).shape


def _log_sum_exp(x: Any, axes: Any, keep: bool) -> Any:
    if x.dtype.kind in "iu":
        x = x.astype(np.float64)
    if not x.size:
        return np.log(np.sum(x, axis=axes, keepdims=keep))
    top = np.max(base(x), axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    z = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return z if keep else np.squeeze(z, axis=axes)


def _norm(x: Any, axes: Any, keep: bool) -> Any:
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=keep))


def _product(x: Any, axes: Any, keep: bool) -> Any:
    for axis in sorted((a % x.ndim for a in axes), reverse=True):
        x = np.prod(x, axis=axis, keepdims=keep)
    return x


for _name, _function in {
    "ReduceSum": _reduction(_by(np.sum)),
    "ReduceMean": _reduction(_by(np.mean)),
    "ReduceMax": _reduction(_largest),
    "ReduceMin": _reduction(_smallest),
    "ReduceProd": _reduction(_product),
    "ReduceL1": _reduction(_by(np.sum), before=np.abs),
    "ReduceL2": _reduction(_by(np.sum), before=np.square, after=np.sqrt),
    "ReduceSumSquare": _reduction(_by(np.sum), before=np.square),
    "ReduceLogSum": _reduction(_by(np.sum), after=np.log),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
}.items():
    operator(_name)(_function)


@operator("CumSum", since=11)
def cumsum(x: Any, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
    """Sums of all elements up to each one along an axis."""
    return _running(np.cumsum, 0, x, axis, exclusive, reverse)


@operator("CumProd", since=26)
def cumprod(x: Any, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
    """Products of all elements up to each one along an axis."""
    return _running(np.cumprod, 1, x, axis, exclusive, reverse)


def _running(
    function: Any, neutral: int, x: Any, axis: Any, exclusive: int, reverse: int
) -> Any:
    axis = int(np.asarray(axis).reshape(()))
    kind = x.dtype
    if reverse:
        x = np.flip(x, axis)
    if exclusive:
        first = np.full_like(np.take(base(x), [0], axis), neutral)
        kept = np.take(x, np.arange(x.shape[axis] - 1), axis)
        x = np.concatenate([first, kept], axis)
    z = function(x, axis=axis)
    z = np.flip(z, axis) if reverse else z
    return z if z.dtype == kind else z.astype(kind)


@operator("Softmax", since=13, reals_only=True)
def softmax(x: Any, axis: int = -1) -> Any:
    """Shares of 1, by ``exp``; nan where nothing is above minus infinity."""
    if not (is_tracked(x) and x.size):
        return lantern.softmax(x, axis=axis)
    nothing = np.max(base(x), axis=axis, keepdims=True) == -np.inf
    if not nothing.any():
        return lantern.softmax(x, axis=axis)
    # So that no nan comes back from rows that are left out later.
    z = lantern.softmax(np.where(nothing, x.dtype.type(0), x), axis=axis)
    return np.where(nothing, x.dtype.type(np.nan), z)


@operator("LogSoftmax", since=13, reals_only=True)
def log_softmax(x: Any, axis: int = -1) -> Any:
    """Logarithms of shares of 1."""
    return lantern.log_softmax(x, axis=axis)


def _flat(function: Any) -> Any:
    """As the first versions had it: over all axes from one on."""

    def flattened(x: Any, axis: int = 1) -> Any:
        axis = axis % max(x.ndim, 1)
        rows = int(np.prod(x.shape[:axis], dtype=np.int64))
        return function(x.reshape(rows, -1), 1).reshape(x.shape)

    return flattened


operator("Softmax", reals_only=True)(_flat(softmax))
operator("LogSoftmax", reals_only=True)(_flat(log_softmax))


@operator("Hardmax", since=13)
def hardmax(x: Any, axis: int = -1) -> Any:
    """1 at the largest element along an axis, 0 elsewhere: derivative zero."""
    plain = base(x)
    places = np.expand_dims(np.argmax(plain, axis), axis)
    z = np.zeros_like(plain)
    np.put_along_axis(z, places, 1, axis)
    return z


@operator("TopK", since=10)
def topk(
    x: Any, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Any, Any]:
    """The k largest, or smallest, along an axis; and where they are."""
    plain = base(x)
    count = int(np.asarray(k).reshape(()))
    order = np.argsort(-plain if largest and plain.dtype.kind in "if" else plain,
                       axis=axis, kind="stable")  # fmt: skip
    if largest and plain.dtype.kind not in "if":
        order = np.flip(order, axis)
    places = np.take(order, np.arange(count), axis).astype(np.int64)
    return np.take_along_axis(x, places, axis), places

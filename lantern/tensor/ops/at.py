"""Arrays with some parts changed: ``x.at[index].set(v)`` and the like."""

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base, zeros_like
from lantern.errors import ArgumentError, MutationError, ShapeError, counted
from lantern.op import linear
from lantern.rules import arithmetic, selection
from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.indexing import (
    Scatter,
    along_axis,
    getitem,
    joined,
    may_repeat,
    reads_once,
    settled,
)
from lantern.tensor.ops.shape import (
    as_array,
    axis_of,
    broadcast_to,
    moveaxis,
    reshape,
)

__all__ = ["At", "apply_along_axis", "at", "piecewise", "put_along_axis"]


@linear
def _put(x: Any, v: Any, /, index: Any) -> Rule:
    """x with v in place of what is at an index; of repeated ones the last is kept.

    Shapes:
        x: (...); v: broadcasts to ``x[index]``; result: (...)

    Rule:
        x_bar = z_bar with zeros at the index
        v_bar = z_bar[index], nothing for what was overwritten by a later part of v
    """
    if isinstance(x, Value) or isinstance(v, Value):
        z = _put(x, v, index=index)
    else:
        z = _written(x, v, index)
    shape, xp = x.shape, namespace(base(x))
    z_bar = yield (z, x := None, v := None, z := None)[0]
    z_bar = joined(z_bar, index)
    yield _put(z_bar, 0, index=index)
    v_bar = z_bar[index]
    if may_repeat(index):
        latest, writes = _latest(xp, index, shape)
        v_bar = xp.select(latest[index] == writes, v_bar)
    yield v_bar


plain_put = _put  # by an index that is settled


def _written(x: Any, v: Any, index: Any) -> Any:
    """A copy of a plain array, written to."""
    xp = namespace(x)
    z = xp.array(x)
    if xp is numpy_namespace or not may_repeat(index):
        z[index] = v
        return z
    latest, writes = _latest(xp, index, x.shape)
    if hasattr(v, "shape"):
        v = xp.broadcast_to(v.astype(x.dtype), writes.shape).reshape(-1)
        v = v[latest] if v.size else z
    return xp.where(latest < 0, z, v)


def _latest(xp: Any, index: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Which write each element keeps, -1 for none; the writes' own numbers.

    NumPy keeps the last one of several. On a GPU any may come last, so that the
    greatest number has to be asked for.
    """
    latest = joined(xp.full(shape, -1, dtype=xp.int32), index)
    writes = latest[index]
    writes = xp.arange(writes.size, dtype=xp.int32).reshape(writes.shape)
    if isinstance(latest, Value):
        latest = _put(latest, writes, index=index)
    elif namespace(latest) is numpy_namespace:
        latest[index] = writes
    else:
        xp.maximum.at(latest, index, writes)
    return latest, writes


@linear
def _add_at(x: Any, v: Any, /, index: Any) -> Rule:
    """x with v added at an index, once for each time that it is named.

    Shapes:
        x: (...); v: broadcasts to ``x[index]``; result: (...)

    Rule:
        x_bar = z_bar, v_bar = z_bar[index]
    """
    if isinstance(x, Value) or isinstance(v, Value):
        z = _add_at(x, v, index=index)
    else:
        z = namespace(x).array(x)
        Scatter(index, v).add_to(z)
    z_bar = yield (z, x := None, v := None, z := None)[0]
    yield z_bar
    yield joined(z_bar, index)[index]


plain_add_at = _add_at  # by an index that is settled


def fitting(v: Any, x: Any) -> Any:
    """A value that can be written into an array x."""
    if not isinstance(v, Value):
        v = as_array(v, x)
    dtype, kind = numpy_namespace.result_type(base(v)), x.dtype
    if not numpy_namespace.can_cast(dtype, kind, "same_kind"):
        raise ArgumentError(
            f"x[i] = v: a value of type {dtype} does not fit into an array of {kind}. "
            f"Convert the array first, with astype."
        )
    return v


def check_buffer(where: str, b: Any) -> None:
    """Check that an array can be written to.

    Raises:
        MutationError: if it is no buffer.
    """
    if not isinstance(b, Value) or not b.changes:
        kind = f"{type(b).__module__}.{type(b).__qualname__}"
        raise MutationError(
            f"{where}: {kind} cannot be written to, or would lose a derivative. Make "
            f"it a lantern.Buffer, or use x.at[index].set(v) for a new array."
        )


class At:
    """Where an array is to be read or changed: ``x.at[index].set(v)`` and the like.

    The array itself never changes: each method returns a new one. An index may name an
    element several times; all that is done to it is then done in the index's order.

    Example:
        >>> import numpy as np
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> at(x)[1:].set(0.0), at(x)[[0, 0]].add(0.5)
        (array([1., 0., 0.]), array([2., 2., 3.]))
    """

    __slots__ = ("index", "x")

    def __init__(self, x: Any, index: Any = ...) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> "At":
        index = settled(index, self.x)
        return At(joined(self.x, index), index)

    def get(self) -> Any:
        """The part itself, ``x[index]``."""
        return getitem(self.x, self.index)

    def set(self, v: Any) -> Any:
        """x with v there."""
        return _put(self.x, fitting(v, self.x), index=self.index)

    def add(self, v: Any) -> Any:
        """x with v added there."""
        return _add_at(self.x, fitting(v, self.x), index=self.index)

    def subtract(self, v: Any) -> Any:
        """x with v subtracted there."""
        return self._update(arithmetic.subtract, v)

    def multiply(self, v: Any) -> Any:
        """x multiplied by v there."""
        return self._update(arithmetic.multiply, v)

    def divide(self, v: Any) -> Any:
        """x divided by v there."""
        return self._update(arithmetic.divide, v)

    def power(self, v: Any) -> Any:
        """x to the power v there."""
        return self._update(arithmetic.pow, v)

    def min(self, v: Any) -> Any:
        """The smaller one of x and v there."""
        return self._update(selection.minimum, v)

    def max(self, v: Any) -> Any:
        """The larger one of x and v there."""
        return self._update(selection.maximum, v)

    def _update(self, function: Callable[..., Any], v: Any) -> Any:
        x, index = self.x, self.index
        v = v if isinstance(v, Value) else as_array(v, x)
        if reads_once(index, x.shape):
            return self.set(function(getitem(x, index), v))
        cells = namespace(base(x)).arange(x.size).reshape(x.shape)[index]
        v = reshape(broadcast_to(v, cells.shape), -1)
        cells, flat = cells.reshape(-1), reshape(x, -1)
        for turn in _turns(cells):
            place = At(flat, cells[turn])
            flat = place.set(function(place.get(), getitem(v, turn)))
        return reshape(flat, x.shape)


def _turns(cells: Any) -> Iterator[Any]:
    """Positions in an array of numbers: the first of each number, the second, ..."""
    xp = namespace(cells)
    order = xp.argsort(cells, kind="stable")
    first = xp.searchsorted(cells[order], cells[order])
    turn = xp.arange(cells.size) - first
    for i in range(int(turn.max()) + 1):
        yield order[turn == i]


def at(x: Any) -> At:
    """``x.at`` for plain arrays as well: where x is to be read or changed.

    Example:
        >>> import numpy as np
        >>> at(np.zeros(3))[1].set(5.0)
        array([0., 5., 0.])
    """
    return At(as_array(x))


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True
) -> Any:
    """A new array with values at positions of their own along each line of an axis.

    Shapes:
        arr: (..., n, ...); indices, values: (..., m, ...); result: (..., n, ...)

    Raises:
        MutationError: unless arr is a buffer, which is written to as NumPy writes into
            arrays, or ``inplace=False``.

    Example:
        >>> import numpy as np
        >>> put_along_axis(
        ...     np.zeros((2, 2)), np.array([[0], [1]]), 5.0, 1, inplace=False
        ... )
        array([[5., 0.],
               [0., 5.]])
    """
    if inplace:
        check_buffer("put_along_axis", arr)
        now = arr.freeze()
        arr[...] = put_along_axis(now, indices, values, axis, inplace=False)
        return None
    arr = as_array(arr)
    flat, axis = (reshape(arr, -1), 0) if axis is None else (arr, axis)
    index = along_axis(flat, base(indices), axis)
    return reshape(at(flat)[index].set(values), arr.shape)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """A function given piece by piece: of the last condition that holds; else zero.

    Args:
        condlist: the conditions.
        funclist: a function or a value for each, and perhaps one for all other places.
        args: further arguments of the functions.
        kw: further keyword arguments of the functions.

    Shapes:
        x, condlist: (...) each; result: (...)

    Example:
        >>> import numpy as np
        >>> x = np.array([-1.0, 2.0])
        >>> piecewise(x, [x < 0], [lambda x: -x, 5.0])
        array([1., 5.])
    """
    x, condlist = as_array(x), base(condlist)
    several = isinstance(condlist, list | tuple)
    if not several or (x.shape and not _is_list(condlist[0])):
        condlist = [condlist]
    masks = [as_array(base(c), x).astype(bool) for c in condlist]
    if len(funclist) == len(masks) + 1:
        masks.append(~functools.reduce(operator.or_, masks))
    if len(funclist) != len(masks):
        raise ShapeError(
            f"piecewise: {counted(len(masks), 'condition')} for "
            f"{counted(len(funclist), 'function')}. Give as many of each, or one "
            "function more for all other places."
        )
    y = zeros_like(x)
    for mask, function in zip(masks, funclist, strict=True):
        if mask.any():
            place = at(y)[mask]
            v = function(x[mask], *args, **kw) if callable(function) else function
            y = place.set(v)
    return y


def _is_list(part: Any) -> bool:
    return isinstance(part, list | tuple) or bool(getattr(part, "shape", ()))


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function of arrays with one axis, of each line along an axis.

    Shapes:
        arr: (..., n, ...); result: (..., *m, ...), m the shape of a line's result

    Example:
        >>> import numpy as np
        >>> apply_along_axis(lambda x: x[::-1], 1, np.array([[1.0, 2.0]]))
        array([[2., 1.]])
    """
    arr = as_array(arr)
    axis = axis_of(axis, len(arr.shape))
    lines = moveaxis(arr, axis, -1)
    outer = lines.shape[:-1]
    places = itertools.product(*map(range, outer))
    results = [as_array(func1d(lines[i], *args, **kwargs), arr) for i in places]
    if not results:
        raise ShapeError(
            f"apply_along_axis: there are no lines in shape {arr.shape}. Give an array "
            f"with elements."
        )
    shape = results[0].shape
    z = reshape(stack(results), (*outer, *shape))
    inner = range(len(shape))
    return moveaxis(z, [len(outer) + i for i in inner], [axis + i for i in inner])

"""Arrays with some parts changed: ``x.at[index].set(v)`` and the like."""

from collections.abc import Callable, Iterator
from typing import Any

from lantern import arithmetic, choice
from lantern.errors import ArgumentError, MutationError
from lantern.namespace import namespace
from lantern.op import linear
from lantern.tensor.indexing import (
    Scatter,
    along_axis,
    getitem,
    reads_once,
    settled,
)
from lantern.tensor.manipulation import as_array, broadcast_to, reshape
from lantern.tensor.namespace import numpy_namespace
from lantern.value import Rule, Value, base

__all__ = ["At", "at", "put_along_axis"]


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
        z = namespace(x).array(x)
        z[index] = v
    shape = x.shape
    z_bar = yield (z, x := None, v := None, z := None)[0]
    yield _put(z_bar, 0, index=index)
    v_bar = z_bar[index]
    if not reads_once(index, shape):
        kept = _kept(index, shape)
        v_bar = namespace(kept).select(kept, v_bar)
    yield v_bar


def _kept(index: Any, shape: tuple[int, ...]) -> Any:
    """Which of the elements written at an index are not overwritten by later ones."""
    latest = numpy_namespace.zeros(shape, dtype=int)
    writes = latest[index]
    writes = numpy_namespace.arange(writes.size).reshape(writes.shape)
    latest[index] = writes
    return latest[index] == writes


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
    yield z_bar[index]


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
        return At(self.x, settled(index))

    def get(self) -> Any:
        """The part itself, ``x[index]``."""
        return getitem(self.x, self.index)

    def set(self, v: Any) -> Any:
        """x with v there."""
        return _put(self.x, self._fitting(v), index=self.index)

    def add(self, v: Any) -> Any:
        """x with v added there."""
        return _add_at(self.x, self._fitting(v), index=self.index)

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
        return self._update(choice.minimum, v)

    def max(self, v: Any) -> Any:
        """The larger one of x and v there."""
        return self._update(choice.maximum, v)

    def _fitting(self, v: Any) -> Any:
        """A value as an array that can be written into x."""
        v, kind = as_array(v), self.x.dtype
        if not numpy_namespace.can_cast(v.dtype, kind, "same_kind"):
            raise ArgumentError(
                f"at: a value of type {v.dtype} does not fit into an array of {kind}. "
                f"Convert the array first, with astype."
            )
        return v

    def _update(self, function: Callable[..., Any], v: Any) -> Any:
        x, index, v = self.x, self.index, as_array(v)
        if reads_once(index, x.shape):
            return self.set(function(getitem(x, index), v))
        cells = numpy_namespace.arange(x.size).reshape(x.shape)[index]
        v = reshape(broadcast_to(v, cells.shape), -1)
        cells, flat = cells.reshape(-1), reshape(x, -1)
        for turn in _turns(cells):
            place = At(flat, cells[turn])
            flat = place.set(function(place.get(), getitem(v, turn)))
        return reshape(flat, x.shape)


def _turns(cells: Any) -> Iterator[Any]:
    """Positions in an array of numbers: the first of each number, the second, ..."""
    xp = namespace(cells)
    order = xp.argsort(cells, stable=True)
    first = xp.searchsorted(cells[order], cells[order])
    turn = xp.arange(cells.size) - first
    for i in range(turn.max() + 1):
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
        MutationError: unless ``inplace=False``; NumPy's own function writes into arr.

    Example:
        >>> import numpy as np
        >>> put_along_axis(
        ...     np.zeros((2, 2)), np.array([[0], [1]]), 5.0, 1, inplace=False
        ... )
        array([[5., 0.],
               [0., 5.]])
    """
    if inplace:
        raise MutationError(
            "put_along_axis: an array cannot be written to. Use the result of "
            "lantern.put_along_axis(..., inplace=False)."
        )
    arr = as_array(arr)
    flat, axis = (reshape(arr, -1), 0) if axis is None else (arr, axis)
    index = along_axis(flat.shape, base(indices), axis)
    return reshape(at(flat)[index].set(values), arr.shape)

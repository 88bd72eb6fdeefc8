"""Reading parts of an array; the derivative of a read is a scatter, collected."""

import math
import operator
from collections import deque
from itertools import takewhile
from typing import Any

from lantern.core.contribution import Call, Contribution
from lantern.core.namespace import namespace
from lantern.core.tree import tree_map
from lantern.core.unwrap import every_example
from lantern.core.value import Rule, Value, base
from lantern.errors import ShapeError, counted
from lantern.op import linear
from lantern.rules.selection import where
from lantern.tensor.backend.numpy_namespace import (
    array_namespace,
    buffers,
    numpy_namespace,
)
from lantern.tensor.ops.shape import alike, as_array, axis_of, reshape

__all__ = [
    "choose",
    "compress",
    "extract",
    "getitem",
    "scatter",
    "select",
    "take",
    "take_along_axis",
]

_VIEWS = (int, slice, type(None), type(...))
_BASIC = (*_VIEWS, bool)
_ALL = slice(None)
LONG = 256  # elements of a row


class Scatter(Contribution):
    """The cotangent of a read: added where it was read from, nothing elsewhere."""

    __slots__ = ("index",)

    def __init__(self, index: Any, z_bar: Any) -> None:
        self.index, self.z_bar = index, z_bar

    def dense(self, shape: tuple[int, ...]) -> Any:
        """An array of zeros with the cotangent added where it was read from."""
        return scatter(self.z_bar, self.index, shape)

    def has_one_place(self) -> bool:
        """Whether it belongs at the same place for all examples of a ``vmap``."""
        return not any(isinstance(part, Value) for part in _parts(self.index))

    def adds_to_buffer(self) -> bool:
        """Whether the index is a position or a slice along each axis."""
        return all(type(part) in (int, slice) for part in _parts(self.index))

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """As ``Contribution.additions``, for each time that an element was read.

        To look for repeats on a device would copy to the host.
        """
        index, z_bar = self.index, self.z_bar
        if factor != 1:
            z_bar = z_bar * factor
        if not may_repeat(index):
            return [adding_once(buffer, index, z_bar)]
        xp = namespace(buffer)
        if xp is not numpy_namespace:
            parts = (xp.real, xp.imag) if buffer.dtype.kind == "c" else (lambda x: x,)
            # CuPy's adds no complex numbers
            return [(xp.add.at, part(buffer), index, part(z_bar)) for part in parts]
        return [adding_often(buffer, index, z_bar)]


def adding_once(buffer: Any, index: Any, z_bar: Any) -> Call:
    """``buffer[index] += z_bar`` as one call: where it can be, through a view."""
    parts = _parts(index)
    if type(buffer) in buffers and all(type(part) in _VIEWS for part in parts):
        whole = parts if ... in parts else (*parts, ...)  # else a number is no view
        return operator.iadd, buffer[whole], z_bar
    found = map(operator.getitem, [buffer], [index])  # when the call is made
    sums = map(operator.add, found, [z_bar])
    return list, map(operator.setitem, [buffer], [index], sums)


def adding_often(buffer: Any, index: Any, z_bar: Any) -> Call:
    """``buffer[index] += z_bar``, each time that an element is named, as one call.

    Long rows are added one after another. What is shorter is added by fancy indexing if
    nothing is named twice, else by NumPy's ``add.at``, which is ten times faster on
    flat arrays than on any others. What falls into one half is added up in float32.
    """
    if buffer.itemsize == 2 and buffer.dtype.kind not in "biu":
        found = map(_in_single, [buffer], [index], [z_bar])  # when the call is made
        return list, map(operator.setitem, [buffer], [...], found)
    parts, shape, xp = _parts(index), buffer.shape, numpy_namespace
    first = sum(1 for _ in takewhile(_is_whole, parts))
    last = sum(map(_axes, parts))
    cells = _cells(index, shape)
    named = all(type(p) is int or hasattr(p, "dtype") for p in parts[first:])
    if not (named and buffer.flags.c_contiguous):
        if _distinct(cells):
            return adding_once(buffer, index, z_bar)
        return xp.add.at, buffer, index, z_bar
    axes = shape[:first], shape[first:last], shape[last:]
    lines, places, width = map(math.prod, axes)
    z_bar = xp.broadcast_to(z_bar, (*axes[0], *cells.shape, *axes[2]))
    if not z_bar.size:
        return adding_once(buffer, index, z_bar)
    cells = cells.reshape(-1)
    if lines == 1 and width > LONG:
        rows = list(map(buffer.reshape(-1, width).__getitem__, cells.tolist()))
        return deque, map(xp.add, rows, z_bar.reshape(-1, width), rows), 0
    if lines * width > 1 and cells.size <= places and _distinct(cells):
        return adding_once(buffer, index, z_bar)
    if lines > 1:
        cells = (xp.arange(lines)[:, None] * places + cells).reshape(-1)
    if width > 1:
        cells = (cells[:, None] * width + xp.arange(width)).reshape(-1)
    return xp.add.at, buffer.reshape(-1), cells, z_bar.reshape(-1)


def _in_single(buffer: Any, index: Any, z_bar: Any) -> Any:
    """``buffer`` with ``z_bar`` added at an index, of halves: added up in float32."""
    total, single = buffer.astype("f"), numpy_namespace.asarray(z_bar).astype("f")
    function, *arguments = adding_often(total, index, single)
    function(*arguments)
    return total.astype(buffer.dtype)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if type(index) is tuple else (index,)


def _is_whole(part: Any) -> bool:
    return type(part) is slice and part == _ALL


def _is_mask(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", None) == "b"


def may_repeat(index: Any) -> bool:
    """Whether an index has a form that can name an element twice."""
    advanced = [part for part in _parts(index) if type(part) not in _BASIC]
    return len(advanced) > 1 or not all(map(_is_mask, advanced))


def _axes(part: Any) -> int:
    """How many axes a part of an index reads."""
    if part is None or part is ... or type(part) is bool:
        return 0
    return len(part.shape) if _is_mask(part) else 1


def _cells(index: Any, shape: tuple[int, ...]) -> Any:
    """What the integer arrays of an index name, counted along the axes they read."""
    parts, axis, cells = _parts(index), 0, None
    for part in parts:
        if part is ...:
            axis += len(shape) - sum(map(_axes, parts))
        elif type(part) is slice or not _axes(part):
            axis += _axes(part)
        else:
            for i in part.nonzero() if _is_mask(part) else (part,):
                i = _from_start(i, shape[axis])
                cells = i if cells is None else cells * shape[axis] + i
                axis += 1
    return cells


def _from_start(i: Any, n: int) -> Any:
    """Positions along an axis, counted from its start."""
    if type(i) is int:
        return i % n
    i = i.astype(int, copy=False)
    some = isinstance(i, Value) or (i < 0).any()  # of many examples nobody can say
    return namespace(i).where(i < 0, i + n, i) if some else i


def _distinct(cells: Any) -> bool:
    """Whether no number occurs twice."""
    if cells.size < 2:
        return True
    ordered = namespace(cells).sort(cells.reshape(-1))
    return not bool((ordered[1:] == ordered[:-1]).any())


def reads_once(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether an index names no element twice."""
    return not may_repeat(index) or _distinct(_cells(index, shape))


def settled(index: Any, x: Any) -> Any:
    """An index of plain values: with arrays beside x that nobody else can change."""
    if isinstance(index, tuple):
        return tuple(_settled_part(part, x) for part in index)
    return _settled_part(index, x)


def _settled_part(part: Any, x: Any) -> Any:
    part = tree_map(base, part)
    if isinstance(part, Value):
        return part
    if isinstance(part, list | tuple | range):
        part = namespace(base(x)).array(part)
        return part if part.size else part.astype(int)
    if isinstance(part, numpy_namespace.generic | numpy_namespace.ndarray):
        return namespace(base(x)).array(part) if part.shape else part.item()
    return namespace(base(x)).array(part) if hasattr(part, "dtype") else part


def joined(x: Any, index: Any) -> Any:
    """An array beside its index, where that differs between the examples of a vmap."""
    for part in _parts(index):
        if isinstance(part, Value):
            x = part.join(x)
    return x


def getitem(x: Any, index: Any) -> Any:
    """The part ``x[index]`` of an array; tracked numbers in an index are read off.

    Shapes:
        x: (...); result: as NumPy's

    Example:
        >>> import numpy as np
        >>> getitem(np.array([1.0, 2.0, 3.0]), slice(1, None))
        array([2., 3.])
    """
    if type(index) in _BASIC:
        return _getitem(x, index)
    index = settled(index, x)
    return _getitem(joined(x, index), index)


def _read(x: Any, index: Any) -> Any:
    """``x[index]``; positions along one axis in the way in which NumPy is faster."""
    last: Any = index[-1] if type(index) is tuple and index else None
    if (
        type(last) is numpy_namespace.ndarray is type(x)
        and last.dtype.kind in "iu"
        and last.ndim == 1
        and all(map(_is_whole, index[:-1]))
    ):
        return x.take(last, len(index) - 1)
    return x[index]


@linear
def _getitem(x: Any, /, index: Any) -> Rule:
    """The part ``x[index]`` of an array.

    Shapes:
        x: (...); result: as NumPy's

    Rule:
        x_bar[index] += z_bar, once for each time that an element is read
    """
    z_bar = yield (_read(x, index), x := None)[0]
    yield Scatter(index, z_bar)


plain_getitem = _getitem  # by an index that is settled


def read_at(x: Any, index: Any) -> Any:
    """As ``getitem``, by an index that is settled."""
    return _getitem(joined(x, index), index)


def scatter(x: Any, /, index: Any, shape: tuple[int, ...]) -> Any:
    """An array of zeros with x added at an index, once for each time it is named.

    Shapes:
        x: broadcasts to ``zeros(shape)[index]``; result: shape

    Example:
        >>> import numpy as np
        >>> scatter(np.array([1.0, 2.0]), np.array([0, 0]), (3,))
        array([3., 0., 0.])
    """
    x = as_array(x)
    index = settled(index, x)
    return _scatter(joined(x, index), index, shape)


@linear
def _scatter(x: Any, /, index: Any, shape: tuple[int, ...]) -> Rule:
    """An array of zeros with x added at an index, once for each time it is named.

    Shapes:
        x: broadcasts to ``zeros(shape)[index]``; result: shape

    Rule:
        x_bar = z_bar[index]
    """
    if isinstance(x, Value):
        z = _scatter(x, index=index, shape=shape)
    else:
        z = namespace(x).zeros(shape, dtype=x.dtype)
        Scatter(index, x).add_to(z)
    z_bar = yield (z, x := None, z := None)[0]
    yield joined(z_bar, index)[index]


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Any:
    """The elements at some positions along an axis; of the flat array for None.

    Shapes:
        a: (..., n, ...); result: (..., *indices.shape, ...)

    Example:
        >>> import numpy as np
        >>> take(np.array([1.0, 2.0, 3.0]), [0, 0, -1])
        array([1., 1., 3.])
    """
    a = as_array(a)
    if axis is None:
        a, axis = reshape(a, -1), 0
    axis = axis_of(axis, len(a.shape))
    xp = array_namespace(base(a), base(indices))
    exact = hasattr(base(indices), "shape")
    indices = xp.asarray(base(indices))
    if indices.dtype.kind == "b" or not exact:
        indices = indices.astype(int)
    if mode == "wrap":
        indices = indices % a.shape[axis]
    elif mode == "clip":
        indices = xp.clip(indices, 0, a.shape[axis] - 1)
    elif mode != "raise":
        xp.take(xp.zeros(1), 0, mode=mode)  # raises
    return getitem(a, (slice(None),) * axis + (indices,))


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Elements along an axis, at positions of their own for each line.

    Shapes:
        arr: (..., n, ...); indices: (..., m, ...); result: (..., m, ...)

    Example:
        >>> import numpy as np
        >>> take_along_axis(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0], [1]]))
        array([[1.],
               [4.]])
    """
    arr = as_array(arr)
    if axis is None:
        arr, axis = reshape(arr, -1), 0
    return getitem(arr, along_axis(arr, base(as_array(indices)), axis))


def along_axis(x: Any, indices: Any, axis: int) -> Any:
    """An index of arrays that names positions along each line of an axis of x."""
    axis, ndim = axis_of(axis, len(x.shape)), len(x.shape)
    if len(indices.shape) != ndim:
        raise ShapeError(
            f"take_along_axis: the indices have "
            f"{counted(len(indices.shape), 'axis', 'axes')}, the array has {ndim}. "
            "Give one position for each element of the result."
        )
    xp = namespace(base(x))
    lines = [
        xp.arange(n).reshape((-1,) + (1,) * (ndim - 1 - i))
        for i, n in enumerate(x.shape)
    ]
    return (*lines[:axis], indices, *lines[axis + 1 :])


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The parts along an axis for which a condition holds; of the flat array for None.

    Shapes:
        condition: (m,), m <= n; a: (..., n, ...); result: (..., count, ...)

    Example:
        >>> import numpy as np
        >>> compress([True, False, True], np.array([1.0, 2.0, 3.0]))
        array([1., 3.])
    """
    condition = base(as_array(condition))
    if condition.ndim != 1:
        raise ShapeError(
            f"compress: the condition must have one axis, got {condition.ndim}. For a "
            f"mask of the array's shape use a[mask]."
        )
    return take(a, condition.nonzero()[0], axis)


def extract(condition: Any, arr: Any) -> Any:
    """The elements of an array for which a condition of its size holds.

    Shapes:
        condition, arr: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> extract([True, False, True], np.array([1.0, 2.0, 3.0]))
        array([1., 3.])
    """
    condition, arr = alike((condition, arr))
    return take(arr, base(condition).reshape(-1).nonzero()[0])


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the first choice whose condition holds, else the default.

    What is not chosen receives exactly zero.

    Shapes:
        condlist, choicelist: (...) each, broadcast; result: (...)

    Example:
        >>> import numpy as np
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> select([x < 2, x > 2], [x, 10 * x])
        array([ 1.,  0., 30.])
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ShapeError(
            f"select: {counted(len(condlist), 'condition')} for "
            f"{counted(len(choicelist), 'choice')}. Give as many of each, and at "
            "least one."
        )
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(as_array(condition), choice, result)
    return result


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element the entry of the choice that an array of integers names.

    Shapes:
        a, choices: (...) each, broadcast; result: (...)

    Example:
        >>> import numpy as np
        >>> choose(np.array([0, 1, 0]), [np.zeros(3), np.ones(3)])
        array([0., 1., 0.])
    """
    choices, n = [as_array(x) for x in choices], len(choices)
    xp = namespace(base(choices[0]), base(a))
    a = xp.asarray(base(a))
    if mode == "wrap":
        a = a % n
    elif mode == "clip":
        a = xp.clip(a, 0, n - 1)
    elif mode != "raise" or bool(every_example((a < 0) | (a >= n)).any()):
        raise ShapeError(
            f"choose: {n} choices for numbers from {a.min()} to {a.max()}, with mode "
            f"{mode!r}. Count from 0, or use mode 'wrap' or 'clip'."
        )
    return select([a == k for k in range(n)], choices)

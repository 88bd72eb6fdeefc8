"""Arrays put together and taken apart, by ``concat`` and by reading parts."""

import math
from typing import Any

from lantern.core.tree import tree_leaves
from lantern.core.value import Value, base
from lantern.errors import ArgumentError, ShapeError
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.creation import arange, asarray, linspace
from lantern.tensor.ops.indexing import getitem, take
from lantern.tensor.ops.shape import (
    alike,
    as_array,
    axis_of,
    broadcast_to,
    moveaxis,
    ravel,
    reshape,
)

__all__ = [
    "append",
    "array_split",
    "block",
    "broadcast_arrays",
    "c_",
    "delete",
    "dsplit",
    "hsplit",
    "insert",
    "meshgrid",
    "r_",
    "split",
    "unstack",
    "vsplit",
]


class Brackets:
    """Arrays, numbers and ranges joined inside brackets.

    Args:
        name: of NumPy's object that does it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> Any:
        join = getattr(numpy_namespace, self.name)
        items = [
            _range(item) if isinstance(item, slice) else item
            for item in (key if type(key) is tuple else (key,))
        ]
        if not any(isinstance(x, Value) for x in tree_leaves(items)):
            return join[key]
        parts, places, count = [], [], 0  # joins where the elements are, not them
        for item in items:
            if isinstance(item, str):
                places.append(item)
                continue
            part = asarray(item)
            size = math.prod(part.shape)
            parts.append(ravel(part))
            place = numpy_namespace.arange(count, count + size)
            places.append(place.reshape(part.shape))
            count += size
        return getitem(concat(parts), numpy_namespace.asarray(join[tuple(places)]))


def _range(bounds: slice) -> Any:
    """The numbers that a slice inside brackets stands for."""
    start = 0 if bounds.start is None else bounds.start
    step = 1 if bounds.step is None else bounds.step
    if isinstance(step, complex):
        return linspace(start, bounds.stop, int(abs(step)))
    return arange(start, bounds.stop, step)


r_, c_ = Brackets("r_"), Brackets("c_")


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Arrays in the shape that they have together.

    Shapes:
        args: (...), broadcast; each result: (...)

    Example:
        >>> import numpy as np
        >>> [x.shape for x in broadcast_arrays(np.ones((2, 1)), np.ones(3))]
        [(2, 3), (2, 3)]
    """
    arrays = alike(args)
    shape = numpy_namespace.broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def block(arrays: Any) -> Any:
    """An array from nested lists of blocks, the innermost ones along the last axis.

    Shapes:
        arrays: blocks that fit together; result: the whole

    Example:
        >>> import numpy as np
        >>> block([[np.ones((1, 1)), np.zeros((1, 2))], [np.full((1, 3), 5.0)]])
        array([[1., 0., 0.],
               [5., 5., 5.]])
    """
    blocks, depth = [], _depth(arrays)

    def collect(part: Any) -> Any:
        if isinstance(part, list):
            return [collect(p) for p in part]
        blocks.append(as_array(part))
        return blocks[-1]

    arrays = collect(arrays)
    ndim = max([depth, *(len(x.shape) for x in blocks)])

    def join(part: Any, level: int) -> Any:
        if level == 0:
            return reshape(part, (1,) * (ndim - len(part.shape)) + part.shape)
        return concat([join(p, level - 1) for p in part], -level)

    return join(arrays, depth)


def _depth(part: Any) -> int:
    """How deep lists are nested, everywhere alike."""
    if isinstance(part, tuple):
        raise ArgumentError("block: got a tuple. Nest blocks in lists only.")
    if not isinstance(part, list):
        return 0
    depths = {_depth(p) for p in part}
    if len(depths) != 1:
        raise ShapeError(
            "block: lists are empty or not nested equally deep. Give every block the "
            "same number of lists around it."
        )
    return 1 + depths.pop()


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values behind it along an axis; flat ones for None.

    Shapes:
        arr: (..., n, ...); values: (..., m, ...); result: (..., n + m, ...)

    Example:
        >>> import numpy as np
        >>> append(np.array([1.0, 2.0]), 3.0)
        array([1., 2., 3.])
    """
    return concat([arr, values], axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values put in before some positions along an axis.

    Args:
        obj: positions in ``arr``: an integer, a slice, a sequence or a mask.

    Shapes:
        arr: (..., n, ...); values: broadcasts to (..., m, ...); result:
        (..., n + m, ...); of the flat array for axis None

    Example:
        >>> import numpy as np
        >>> insert(np.array([1.0, 2.0]), 1, 5.0)
        array([1., 5., 2.])
    """
    arr, values = alike((arr, values))
    if axis is None:
        arr, axis = reshape(arr, -1), 0
    axis, ndim = axis_of(axis, len(arr.shape)), len(arr.shape)
    n, obj = arr.shape[axis], obj if isinstance(obj, slice) else base(obj)
    values = reshape(values, (1,) * (ndim - len(values.shape)) + values.shape)
    if not isinstance(obj, slice) and numpy_namespace.ndim(obj) == 0:
        values = moveaxis(values, 0, axis)
    count = numpy_namespace.insert(numpy_namespace.zeros(n), obj, 0.0).size - n
    count = values.shape[axis] if count == 1 else count
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    parts = [arr, broadcast_to(values, shape)]
    order = numpy_namespace.arange(n + count)
    order = numpy_namespace.insert(order[:n], obj, order[n:])
    return _taken(concat(parts, axis, dtype=arr.dtype), order, axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """An array without what is at some positions along an axis.

    Args:
        obj: the positions: an integer, a slice, a sequence or a mask.

    Shapes:
        arr: (..., n, ...); result: (..., n - m, ...); of the flat array for axis None

    Example:
        >>> import numpy as np
        >>> delete(np.array([1.0, 2.0, 3.0]), 1)
        array([1., 3.])
    """
    arr = as_array(arr)
    if axis is None:
        arr, axis = reshape(arr, -1), 0
    axis = axis_of(axis, len(arr.shape))
    positions = numpy_namespace.arange(arr.shape[axis])
    return _taken(arr, numpy_namespace.delete(positions, base(obj)), axis)


def _taken(x: Any, positions: Any, axis: int) -> Any:
    """The elements at positions that were computed on the host."""
    return take(x, array_namespace(base(x)).asarray(positions), axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The parts of an array along an axis: equal ones, or cut before some positions.

    Shapes:
        ary: (..., n, ...); each result: (..., n_i, ...)

    Example:
        >>> import numpy as np
        >>> split(np.array([1.0, 2.0, 3.0]), [1])
        [array([1.]), array([2., 3.])]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As ``split``, into parts that need not be equal.

    Shapes:
        ary: (..., n, ...); each result: (..., n_i, ...)

    Example:
        >>> import numpy as np
        >>> array_split(np.array([1.0, 2.0, 3.0]), 2)
        [array([1., 2.]), array([3.])]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def _split(name: str, ary: Any, spec: Any, axis: int) -> list[Any]:
    ary = as_array(ary)
    axis = axis_of(axis, len(ary.shape))
    positions = numpy_namespace.arange(ary.shape[axis])
    parts = getattr(numpy_namespace, name)(positions, base(spec))
    before = (slice(None),) * axis
    ends = [(int(p[0]), int(p[-1]) + 1) if p.size else (0, 0) for p in parts]
    return [getitem(ary, (*before, slice(*end))) for end in ends]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second axis; along the first, if there is but one.

    Shapes:
        ary: (n, m, ...); each result: (n, m_i, ...)

    Example:
        >>> import numpy as np
        >>> hsplit(np.array([[1.0, 2.0], [3.0, 4.0]]), 2)[0]
        array([[1.],
               [3.]])
    """
    ary = _with_axes("hsplit", ary, 1)
    return split(ary, indices_or_sections, min(len(ary.shape) - 1, 1))


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first axis.

    Shapes:
        ary: (n, m, ...); each result: (n_i, m, ...)

    Example:
        >>> import numpy as np
        >>> vsplit(np.array([[1.0, 2.0], [3.0, 4.0]]), 2)[0]
        array([[1., 2.]])
    """
    return split(_with_axes("vsplit", ary, 2), indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third axis.

    Shapes:
        ary: (n, m, k, ...); each result: (n, m, k_i, ...)

    Example:
        >>> import numpy as np
        >>> [part.shape for part in dsplit(np.ones((2, 3, 4)), 2)]
        [(2, 3, 2), (2, 3, 2)]
    """
    return split(_with_axes("dsplit", ary, 3), indices_or_sections, 2)


def _with_axes(where: str, ary: Any, least: int) -> Any:
    """An array, checked to have some number of axes."""
    ary = as_array(ary)
    if len(ary.shape) < least:
        raise ShapeError(
            f"{where}: needs at least {least} axes, got shape {ary.shape}. Use split "
            f"with an axis that there is."
        )
    return ary


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts of an array along an axis, without that axis.

    Shapes:
        x: (..., n, ...); each of n results: (...)

    Example:
        >>> import numpy as np
        >>> unstack(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
        (array([1., 3.]), array([2., 4.]))
    """
    x = as_array(x)
    axis = axis_of(axis, len(x.shape))
    before = (slice(None),) * axis
    return tuple(getitem(x, (*before, i)) for i in range(x.shape[axis]))


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    """Coordinates along each axis as arrays over the whole grid.

    Args:
        copy: without effect: values never change.
        sparse: leave axes of length 1, to be broadcast later.
        indexing: "xy" swaps the first two axes, "ij" does not.

    Shapes:
        xi: (n_i,) each; each result: (n1, n0, n2, ...) or (n0, n1, n2, ...)

    Example:
        >>> [x.shape for x in meshgrid([1.0, 2.0], [3.0, 4.0, 5.0])]
        [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing={indexing!r}. Choose 'xy' or 'ij'.")
    grids = []
    for i, x in enumerate(alike(xi)):
        shape = [1] * len(xi)
        shape[1 - i if i < 2 <= len(xi) and indexing == "xy" else i] = -1
        grids.append(reshape(x, shape))
    return tuple(grids) if sparse else broadcast_arrays(*grids)

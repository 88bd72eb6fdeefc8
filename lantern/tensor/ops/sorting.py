"""Order: sorting and searching; positions are constants."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.errors import MissingRuleError, ShapeError
from lantern.op import linear
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.indexing import take_along_axis
from lantern.tensor.ops.shape import as_array, astype, axis_of, reshape

__all__ = [
    "argpartition",
    "argsort",
    "argwhere",
    "flatnonzero",
    "lexsort",
    "nonzero",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
    "topk",
]


def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """An array in ascending order along an axis; the flat array for None.

    Equal elements keep their order, whatever ``kind`` and ``stable`` say.

    Shapes:
        a: (...); result: (...)

    Raises:
        MissingRuleError: for ``order``, the fields of structured arrays.

    Example:
        >>> import numpy as np
        >>> sort(np.array([3.0, 1.0, 2.0]))
        array([1., 2., 3.])
    """
    a = as_array(a)
    if axis is None:
        a, axis = reshape(a, -1), 0
    positions = argsort(a, axis, kind, order, descending=descending)
    return _reorder(a, positions, axis)


def sort_complex(a: Any) -> Any:
    """A sorted array as a complex one.

    Shapes:
        a: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> sort_complex(np.array([2.0, 1.0]))
        array([1.+0.j, 2.+0.j])
    """
    a = sort(a)
    return a if a.dtype.kind == "c" else astype(a, complex)


@linear
def _reorder(x: Any, /, order: Any, axis: int) -> Rule:
    """An array with each line along an axis in an order of its own.

    Shapes:
        x, order: (...); result: (...)

    Rule:
        x_bar = z_bar, put back in the old order
    """
    z_bar = yield (namespace(x).take_along_axis(x, order, axis), x := None)[0]
    back = namespace(order).argsort(order, axis=axis)
    yield namespace(z_bar).take_along_axis(z_bar, back, axis)


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Any:
    """Where the elements of the sorted array come from: constants.

    Equal elements keep their order, whatever ``kind`` and ``stable`` say.

    Shapes:
        a: (...); result: (...)

    Raises:
        MissingRuleError: for ``order``, the fields of structured arrays.

    Example:
        >>> import numpy as np
        >>> argsort(np.array([3.0, 1.0, 2.0]))
        array([1, 2, 0])
    """
    if order is not None:
        raise MissingRuleError(
            f"sort: no rule for order={order!r}. Sort the array of one field."
        )
    a = base(as_array(a))
    if axis is None:
        a, axis = a.reshape(-1), 0
    xp = namespace(a)
    if not descending:
        return xp.argsort(a, axis=axis, kind="stable")
    back = xp.argsort(xp.flip(a, axis=axis), axis=axis, kind="stable")
    return a.shape[axis] - 1 - xp.flip(back, axis=axis)


def partition(
    a: Any,
    kth: Any,
    axis: int | None = -1,
    kind: str = "introselect",
    order: Any = None,
) -> Any:
    """An array with its k-th element in its sorted place, none larger before it.

    Shapes:
        a: (...); result: (...); of the flat array for axis None

    Example:
        >>> import numpy as np
        >>> partition(np.array([3.0, 1.0, 2.0]), 0)[0]
        np.float64(1.0)
    """
    a = as_array(a)
    if axis is None:
        a, axis = reshape(a, -1), 0
    return _reorder(a, argpartition(a, kth, axis, kind, order), axis)


def argpartition(
    a: Any,
    kth: Any,
    axis: int | None = -1,
    kind: str = "introselect",
    order: Any = None,
) -> Any:
    """Where the elements of the partitioned array come from: constants.

    Shapes:
        a: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> argpartition(np.array([3.0, 1.0, 2.0]), 0)[0]
        np.int64(1)
    """
    if order is not None:
        raise MissingRuleError(
            f"partition: no rule for order={order!r}. Use the array of one field."
        )
    a = base(as_array(a))
    return namespace(a).argpartition(a, base(kth), axis)


def topk(x: Any, k: int, /, axis: int = -1, *, largest: bool = True) -> tuple[Any, Any]:
    """The k largest elements along an axis, the largest first, and their positions.

    Args:
        largest: False for the smallest ones, the smallest first.

    Shapes:
        x: (..., n, ...); each of two results: (..., k, ...)

    Example:
        >>> import numpy as np
        >>> topk(np.array([3.0, 1.0, 2.0]), 2)
        (array([3., 2.]), array([0, 2]))
    """
    x = as_array(x)
    axis = axis_of(axis, len(x.shape))
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            f"topk: k={k}, but the axis has length {x.shape[axis]}. Choose k from 0 to "
            f"that length."
        )
    positions = _few_of_many(base(x), k, axis, largest)
    if positions is None:
        first = (slice(None),) * axis + (slice(k),)
        positions = argsort(x, axis, descending=largest)[first]
    return take_along_axis(x, positions, axis), positions


def _few_of_many(a: Any, k: int, axis: int, largest: bool) -> Any:
    """The positions of ``topk`` without sorting all: constants.

    None where that is no gain, and where equal elements, or nan, stand at the border of
    the chosen and the others: of these the first ones are chosen.
    """
    n, xp = a.shape[axis], namespace(a)
    if xp is not numpy_namespace or not 0 < 8 * k <= n or a.dtype.kind not in "fiu":
        return None
    found = xp.argpartition(a, n - k if largest else k - 1, axis)
    found = xp.take(found, xp.arange(n - k, n) if largest else xp.arange(k), axis)
    found = xp.sort(found, axis)
    values = xp.take_along_axis(a, found, axis)
    if largest:
        chosen = a >= values.min(axis, keepdims=True)
    else:
        chosen = a <= values.max(axis, keepdims=True)
    if (chosen.sum(axis) != k).any():
        return None
    order = argsort(values, axis, descending=largest)
    return xp.take_along_axis(found, order, axis)


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Where the elements come from when sorted by the last key first: constants.

    Shapes:
        keys: (...) each; result: (...)

    Example:
        >>> lexsort([[1, 2, 3], [2, 1, 1]])
        array([1, 2, 0])
    """
    keys = [base(as_array(key)) for key in keys]
    return namespace(keys[0]).lexsort(keys, axis)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where values would stand in a sorted array: constants.

    Shapes:
        a: (n,); v: (...); result: (...)

    Example:
        >>> int(searchsorted([1.0, 2.0, 3.0], 2.5))
        2
    """
    a, v = base(a), base(v)
    return array_namespace(a, v).searchsorted(a, v, side, base(sorter))


def nonzero(a: Any) -> Any:
    """The positions of elements that are not 0, axis by axis: constants.

    Shapes:
        a: (...); each result: (count,)

    Example:
        >>> nonzero([0.0, 5.0])
        (array([1]),)
    """
    return base(as_array(a)).nonzero()


def flatnonzero(a: Any) -> Any:
    """The positions in the flat array of elements that are not 0: constants.

    Shapes:
        a: (...); result: (count,)

    Example:
        >>> flatnonzero([[0.0, 5.0]])
        array([1])
    """
    return base(as_array(a)).reshape(-1).nonzero()[0]


def argwhere(a: Any) -> Any:
    """The index of each element that is not 0: constants.

    Shapes:
        a: (...), n axes; result: (count, n)

    Example:
        >>> argwhere([[0.0, 5.0]])
        array([[0, 1]])
    """
    a = base(as_array(a))
    return namespace(a).argwhere(a)

"""The different elements of arrays; where they stand is constant."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.indexing import getitem, take
from lantern.tensor.ops.shape import alike, as_array, astype, ravel
from lantern.tensor.ops.sorting import sort

__all__ = [
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    **options: Any,
) -> Any:
    """The different elements in ascending order; parts along an axis, if one is given.

    The derivative goes to the first one of equal elements. Positions and counts are
    constants.

    Shapes:
        ar: (...); result: (count,), or (..., count, ...) along an axis

    Example:
        >>> import numpy as np
        >>> unique(np.array([3.0, 1.0, 3.0]))
        array([1., 3.])
    """
    ar = as_array(ar)
    xp, plain = namespace(base(ar)), base(ar)
    _, index, *rest = xp.unique(
        plain, True, return_inverse, return_counts, axis, **options
    )
    results = [take(ar, index, axis), *([index] if return_index else []), *rest]
    return tuple(results) if len(results) > 1 else results[0]


def unique_values(x: Any, /) -> Any:
    """``unique`` by its name in the array API standard.

    Shapes:
        x: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> unique_values(np.array([3.0, 1.0, 3.0]))
        array([1., 3.])
    """
    return unique(x, equal_nan=False)


def _unique_plain(name: str, x: Any) -> Any:
    x = base(as_array(x))
    return getattr(namespace(x), name)(x)


def unique_all(x: Any, /) -> Any:
    """The different elements, where they first stand, each one's number, and counts.

    Shapes:
        x: (...); results: (count,), (count,), (...), (count,)

    Example:
        >>> import numpy as np
        >>> unique_all(np.array([3.0, 1.0, 3.0])).counts
        array([1, 2])
    """
    return _unique_plain("unique_all", x)._replace(values=unique_values(x))


def unique_counts(x: Any, /) -> Any:
    """The different elements, and how often each occurs.

    Shapes:
        x: (...); each of two results: (count,)

    Example:
        >>> import numpy as np
        >>> values, counts = unique_counts(np.array([3.0, 1.0, 3.0]))
        >>> values, counts
        (array([1., 3.]), array([1, 2]))
    """
    return _unique_plain("unique_counts", x)._replace(values=unique_values(x))


def unique_inverse(x: Any, /) -> Any:
    """The different elements, and the number of each element of x among them.

    Shapes:
        x: (...); results: (count,), (...)

    Example:
        >>> import numpy as np
        >>> values, numbers = unique_inverse(np.array([3.0, 1.0, 3.0]))
        >>> values[numbers]
        array([3., 1., 3.])
    """
    return _unique_plain("unique_inverse", x)._replace(values=unique_values(x))


def union1d(ar1: Any, ar2: Any) -> Any:
    """The different elements of two arrays.

    Shapes:
        ar1, ar2: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> union1d(np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0]))
        array([1., 2., 3.])
    """
    return unique(concat([ar1, ar2], None))


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The different elements that two arrays have both, as they stand in the first.

    Shapes:
        ar1, ar2: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> intersect1d(np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0]))
        array([2.])
    """
    ar1, ar2 = alike((ar1, ar2))
    ar2 = base(ar2)
    both, *indices = namespace(ar2).intersect1d(
        base(ar1), ar2, assume_unique, return_indices=True
    )
    z = astype(take(ar1, indices[0]), both.dtype)
    return (z, *indices) if return_indices else z


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The different elements of the first array that the second one lacks.

    Shapes:
        ar1, ar2: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> setdiff1d(np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0]))
        array([1.])
    """
    ar1, ar2 = alike((ar1, ar2))
    ar1 = ravel(ar1) if assume_unique else unique(ar1)
    plain = base(ar1)
    return getitem(ar1, ~namespace(plain).isin(plain, base(ar2)))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The different elements that only one of two arrays has.

    Shapes:
        ar1, ar2: (...); result: (count,)

    Example:
        >>> import numpy as np
        >>> setxor1d(np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0]))
        array([1., 3.])
    """
    ar1, ar2 = alike((ar1, ar2))
    parts = setdiff1d(ar1, ar2, assume_unique), setdiff1d(ar2, ar1, assume_unique)
    return sort(concat(parts))

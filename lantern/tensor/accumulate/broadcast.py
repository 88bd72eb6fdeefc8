"""The only adjoints of broadcasting: a sum over what was repeated."""

import math
from typing import Any

from lantern.core.namespace import namespace

__all__ = ["unbroadcast"]


def unbroadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """An array that was, or could be, broadcast with ``shape``, in that shape.

    Axes that ``shape`` lacks or has with length 1 are summed over; axes that x lacks or
    has with length 1 are repeated.

    Shapes:
        x: (...); result: shape

    Example:
        >>> import numpy as np
        >>> unbroadcast(np.ones((3, 2)), (1, 2))
        array([[3., 3.]])
        >>> unbroadcast(np.ones((3, 2)), ()), unbroadcast(np.ones(1), (2,))
        (np.float64(6.0), array([1., 1.]))
    """
    found = x.shape
    if found and not shape:
        return _summed(x, None, False)
    extra = len(found) - len(shape)
    if x.size == 1:  # nothing to sum
        x = x if extra <= 0 else x.reshape(found[extra:])
        return x if x.shape == shape else namespace(x).broadcast_to(x, shape)
    if extra > 0 and math.prod(found[:extra]) == 1:  # a batch of one
        x, extra, found = x.reshape(found[extra:]), 0, found[extra:]
        if found == shape:
            return x
    summed = [i for i, n in enumerate(found) if i < extra or shape[i - extra] == 1 != n]
    if summed:
        x = _summed(x, tuple(summed), len(summed) > extra)
        if len(summed) > extra > 0:
            x = namespace(x).reshape(x, x.shape[extra:])
    return x if x.shape == shape else namespace(x).broadcast_to(x, shape)


def _summed(x: Any, axes: Any, keepdims: bool) -> Any:
    """The sum over axes; of float16 in float32, as many terms would be lost."""
    xp = namespace(x)
    if x.dtype.itemsize != 2:
        return xp.sum(x, axis=axes, keepdims=keepdims)
    total = xp.sum(xp.astype(x, "float32"), axis=axes, keepdims=keepdims)
    return xp.astype(total, x.dtype)

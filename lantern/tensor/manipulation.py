"""Operations that move elements: their derivative moves the cotangent back."""

from itertools import accumulate, pairwise
from typing import Any

from lantern.namespace import namespace
from lantern.op import linear
from lantern.tensor.namespace import array_namespace
from lantern.value import Rule

__all__ = [
    "astype",
    "broadcast_to",
    "concat",
    "expand_dims",
    "matrix_transpose",
    "permute_dims",
    "reshape",
    "squeeze",
    "stack",
]


@linear
def reshape(x: Any, /, shape: Any) -> Rule:
    """The elements of x, in order, in another shape; one -1 is filled in.

    Shapes:
        x: (...); result: shape

    Rule:
        x_bar = reshape(z_bar, x.shape)

    Example:
        >>> import numpy as np
        >>> reshape(np.arange(4.0), (2, 2))
        array([[0., 1.],
               [2., 3.]])
    """
    old = x.shape
    z_bar = yield (namespace(x).reshape(x, shape), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


@linear
def permute_dims(x: Any, /, axes: Any = None) -> Rule:
    """x with its axes in another order; reversed, if no order is given.

    Shapes:
        x: (n0, n1, ...); result: (n[axes[0]], n[axes[1]], ...)

    Rule:
        x_bar = z_bar with its axes put back

    Example:
        >>> import numpy as np
        >>> permute_dims(np.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    z_bar = yield (namespace(x).permute_dims(x, axes), x := None)[0]
    if axes is None:
        back = None
    else:
        back = sorted(range(len(axes)), key=[a % len(axes) for a in axes].__getitem__)
    yield namespace(z_bar).permute_dims(z_bar, back)


@linear
def matrix_transpose(x: Any, /) -> Rule:
    """x with its last two axes swapped.

    Shapes:
        x: (..., n, m); result: (..., m, n)

    Rule:
        x_bar = matrix_transpose(z_bar)

    Example:
        >>> import numpy as np
        >>> matrix_transpose(np.ones((2, 3, 4))).shape
        (2, 4, 3)
    """
    z_bar = yield (namespace(x).matrix_transpose(x), x := None)[0]
    yield namespace(z_bar).matrix_transpose(z_bar)


@linear
def squeeze(x: Any, /, axis: Any = None) -> Rule:
    """x without the given axes of length 1; without all of them by default.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = reshape(z_bar, x.shape)

    Example:
        >>> import numpy as np
        >>> squeeze(np.ones((1, 3, 1))).shape
        (3,)
    """
    old = x.shape
    z_bar = yield (namespace(x).squeeze(x, axis=axis), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


@linear
def expand_dims(x: Any, /, axis: Any) -> Rule:
    """x with new axes of length 1 at the given positions of the result.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = reshape(z_bar, x.shape)

    Example:
        >>> import numpy as np
        >>> expand_dims(np.ones(3), 0).shape
        (1, 3)
    """
    old = x.shape
    z_bar = yield (namespace(x).expand_dims(x, axis=axis), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


@linear
def broadcast_to(x: Any, /, shape: Any) -> Rule:
    """x repeated along axes of length 1 and along new ones in front.

    Shapes:
        x: (...); result: shape

    Rule:
        x_bar = z_bar, summed over what was repeated

    Example:
        >>> import numpy as np
        >>> broadcast_to(np.ones(3), (2, 3))
        array([[1., 1., 1.],
               [1., 1., 1.]])
    """
    z_bar = yield (namespace(x).broadcast_to(x, shape), x := None)[0]
    yield z_bar


@linear
def astype(x: Any, /, dtype: Any) -> Rule:
    """x with elements of another floating-point type.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar, in x's type

    Example:
        >>> import numpy as np
        >>> astype(np.ones(2), np.float32)
        array([1., 1.], dtype=float32)
    """
    z_bar = yield (namespace(x).astype(x, dtype), x := None)[0]
    yield z_bar


def concat(arrays: Any, /, axis: int | None = 0) -> Any:
    """Arrays joined along an axis that they have; flattened ones, if axis is None.

    Shapes:
        arrays: (..., n_i, ...) each; result: (..., sum of n_i, ...)

    Example:
        >>> import numpy as np
        >>> concat([np.ones(1), np.zeros(2)])
        array([1., 0., 0.])
    """
    if axis is None:
        arrays, axis = [reshape(x, (-1,)) for x in arrays], 0
    return _concat(*arrays, axis=axis)


@linear
def _concat(*operands: Any, axis: int) -> Rule:
    """Arrays joined along an axis that they have.

    Shapes:
        arrays: (..., n_i, ...) each; result: (..., sum of n_i, ...)

    Rule:
        each x_bar = its part of z_bar
    """
    ends = accumulate([x.shape[axis] for x in operands], initial=0)
    xp = namespace(*operands)
    z_bar = yield (xp.concat(operands, axis=axis), operands := ())[0]
    before = (slice(None),) * (axis % len(z_bar.shape))
    for start, stop in pairwise(ends):
        yield z_bar[(*before, slice(start, stop))]


def stack(arrays: Any, /, axis: int = 0) -> Any:
    """Arrays or numbers of one shape, joined along a new axis.

    Shapes:
        arrays: (...) each, n of them; result: (..., n, ...)

    Example:
        >>> stack([1.0, 2.0])
        array([1., 2.])
    """
    return _stack(*arrays, axis=axis)


@linear
def _stack(*operands: Any, axis: int) -> Rule:
    """Arrays or numbers of one shape, joined along a new axis.

    Shapes:
        arrays: (...) each, n of them; result: (..., n, ...)

    Rule:
        each x_bar = its slice of z_bar
    """
    n, xp = len(operands), array_namespace(*operands)
    z_bar = yield (xp.stack(operands, axis=axis), operands := ())[0]
    before = (slice(None),) * (axis % len(z_bar.shape))
    for i in range(n):
        yield z_bar[(*before, i)]

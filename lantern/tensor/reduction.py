"""Operations that combine elements along axes."""

import math
from typing import Any

from lantern.elementary import sqrt
from lantern.namespace import namespace
from lantern.op import elementwise, linear, op
from lantern.value import Rule

__all__ = [
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "std",
    "sum",
    "var",
]


def _reduced(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """The axes that a reduction removes, counted from 0."""
    if axis is None:
        return tuple(range(len(shape)))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(a % len(shape) for a in axes)


def _spread(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """A reduction's result with the axes that it removed back, of length 1."""
    if axis is None:
        return z  # it broadcasts as it is
    axes = _reduced(shape, axis)
    return namespace(z).reshape(z, [1 if i in axes else n for i, n in enumerate(shape)])


def _count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements become one."""
    return math.prod(shape[a] for a in _reduced(shape, axis))


@linear
def sum(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """The sum over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar, repeated

    Example:
        >>> import numpy as np
        >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([4., 6.])
    """
    shape = x.shape
    z_bar = yield (namespace(x).sum(x, axis=axis, keepdims=keepdims), x := None)[0]
    yield _spread(z_bar, shape, axis)


@linear
def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """The mean over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / n, repeated, where n elements become one

    Example:
        >>> import numpy as np
        >>> mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([2., 3.])
    """
    shape = x.shape
    z_bar = yield (namespace(x).mean(x, axis=axis, keepdims=keepdims), x := None)[0]
    yield _spread(z_bar / _count(shape, axis), shape, axis)


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Rule:
    """The rule of max and min: the elements that attain it share the cotangent."""
    z = getattr(namespace(x), name)(x, axis=axis, keepdims=keepdims)
    z_bar = yield z
    chosen = x == _spread(z, x.shape, axis)
    xp = namespace(chosen)
    count = xp.sum(chosen, axis=axis, keepdims=keepdims)
    yield xp.select(chosen, _spread(z_bar / count, x.shape, axis))


@op
def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """The largest elements over axes; ties share the derivative equally.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / count where x == z, nothing elsewhere

    Example:
        >>> import numpy as np
        >>> max(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([3., 4.])
    """
    yield from _extreme("max", x, axis, keepdims)


@op
def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """The smallest elements over axes; ties share the derivative equally.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar / count where x == z, nothing elsewhere

    Example:
        >>> import numpy as np
        >>> min(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([1., 2.])
    """
    yield from _extreme("min", x, axis, keepdims)


@op
def var(
    x: Any, /, axis: Any = None, *, correction: float = 0, keepdims: bool = False
) -> Rule:
    """The variance over axes: squared deviations' sum, divided by n - correction.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * 2 * (x - mean(x)) / (n - correction)

    Example:
        >>> import numpy as np
        >>> var(np.array([1.0, 3.0]))
        np.float64(1.0)
    """
    xp = namespace(x)
    deviation = x - xp.mean(x, axis=axis, keepdims=True)
    n = _count(x.shape, axis) - correction
    z_bar = yield xp.sum(deviation * deviation, axis=axis, keepdims=keepdims) / n
    yield _spread(z_bar, x.shape, axis) * (deviation * (2 / n))


def std(
    x: Any, /, axis: Any = None, *, correction: float = 0, keepdims: bool = False
) -> Any:
    """The standard deviation over axes; of a constant, its derivative is 0.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Example:
        >>> import numpy as np
        >>> std(np.array([1.0, 3.0]))
        np.float64(1.0)
    """
    return _root(var(x, axis, correction=correction, keepdims=keepdims))


@elementwise
def _root(x: Any, /) -> Rule:
    """The square root, with derivative 0 at 0.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (2 * z), 0 where z is 0
    """
    z = sqrt(x)
    del x
    z_bar = yield z
    xp = namespace(z)
    yield xp.where(z == 0, 0, z_bar / xp.where(z == 0, 1, 2 * z))


@op
def prod(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """The product over axes; its derivative is exact where factors are 0.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * the product of the other elements

    Example:
        >>> import numpy as np
        >>> prod(np.array([2.0, 3.0, 4.0]))
        np.float64(24.0)
    """
    z_bar = yield namespace(x).prod(x, axis=axis, keepdims=keepdims)
    yield _spread(z_bar, x.shape, axis) * _others(x, _reduced(x.shape, axis))


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element, the product of the others along the axes.

    The products before and after each element, doubling their reach in each step, so
    that no division is needed and n elements take log2(n) steps.
    """
    xp = namespace(x)
    kept = [a for a in range(len(x.shape)) if a not in axes]
    order = [*kept, *axes]
    moved = xp.permute_dims(x, order)
    flat = xp.reshape(moved, (*(x.shape[a] for a in kept), -1))
    ones = xp.ones_like(flat[..., :1])
    before = xp.concat([ones, flat[..., :-1]], axis=-1)
    after = xp.concat([flat[..., 1:], ones], axis=-1)
    reach = 1
    while reach < flat.shape[-1]:
        edge = xp.ones_like(flat[..., :reach])
        before = before * xp.concat([edge, before[..., :-reach]], axis=-1)
        after = after * xp.concat([after[..., reach:], edge], axis=-1)
        reach *= 2
    others = xp.reshape(before * after, moved.shape)
    return xp.permute_dims(others, sorted(range(len(order)), key=order.__getitem__))


@op
def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Rule:
    """``log(sum(exp(x)))`` over axes, without overflow; -inf where all x are.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * exp(x - z), 0 where z is -inf

    Example:
        >>> import numpy as np
        >>> float(logsumexp(np.array([1000.0, 1000.0])))
        1000.6931471805599
    """
    z = namespace(x).logsumexp(x, axis=axis, keepdims=keepdims)
    z_bar = yield z
    z = _spread(z, x.shape, axis)
    xp = namespace(z)
    z = xp.where(z == -math.inf, 0, z)
    yield _spread(z_bar, x.shape, axis) * xp.exp(x - z)


@op
def log_softmax(x: Any, /, axis: int = -1) -> Rule:
    """The logarithm of ``softmax``, ``x - logsumexp(x)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar - exp(z) * sum(z_bar)

    Example:
        >>> import numpy as np
        >>> log_softmax(np.array([0.0, 0.0]))
        array([-0.69314718, -0.69314718])
    """
    xp = namespace(x)
    z = x - xp.logsumexp(x, axis=axis, keepdims=True)
    del x
    z_bar = yield z
    total = namespace(z_bar).sum(z_bar, axis=axis, keepdims=True)
    yield z_bar - xp.exp(z) * total


@op
def softmax(x: Any, /, axis: int = -1) -> Rule:
    """``exp(x)`` divided by its sum along an axis.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z * (z_bar - sum(z_bar * z))

    Example:
        >>> import numpy as np
        >>> softmax(np.array([0.0, 0.0]))
        array([0.5, 0.5])
    """
    xp = namespace(x)
    z = xp.exp(x - xp.logsumexp(x, axis=axis, keepdims=True))
    del x
    z_bar = yield z
    inner = z_bar * z
    yield inner - z * namespace(inner).sum(inner, axis=axis, keepdims=True)

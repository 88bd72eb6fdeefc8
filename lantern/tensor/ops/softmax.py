"""Reductions of exponentials: their logarithm, and each one's share."""

import math
from typing import Any

from lantern import engines
from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.op import op
from lantern.rules import selection
from lantern.rules.exponential import exp, log
from lantern.tensor.backend.numpy_namespace import array_namespace, ignore_fp_warnings
from lantern.tensor.backend.rows import highest, total
from lantern.tensor.ops import reduction
from lantern.tensor.ops.axes import prepared
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.reduction import spread
from lantern.tensor.ops.shape import squeeze

__all__ = ["log_softmax", "logsumexp", "softmax"]


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """``log(sum(exp(a)))`` over axes, without overflow; -inf where all a are, or none.

    Args:
        a: the exponents.
        axis: the axes: one, several, or None for all.
        b: factors of the exponentials.
        keepdims: whether the axes stay, with length 1.
        return_sign: whether to return the logarithm of the sum's absolute value, and
            its sign; without, a negative sum has the logarithm nan.

    Shapes:
        a, b: (...), broadcast; result: without the axes, or with length 1 (keepdims)

    Example:
        >>> import numpy as np
        >>> float(logsumexp(np.array([1000.0, 1000.0])))
        1000.6931471805599
    """
    a = prepared("logsumexp", a, None, None)
    if b is None and not return_sign:
        return _logsumexp(a, axis, keepdims)
    b = 1.0 if b is None else asarray(b)
    xp = array_namespace(base(a))
    top = xp.where(base(b) == 0, -math.inf, base(a))
    top = (xp.max if top.size else xp.sum)(top, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    found = reduction.sum(b * exp(a - top), axis, keepdims=True)
    sign = selection.sign(found)
    with ignore_fp_warnings():
        z = log(selection.abs(found) if return_sign else found) + top
    if not keepdims:
        z, sign = (squeeze(part, axis) for part in (z, sign))
    return (z, sign) if return_sign else z


@op
def _logsumexp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Rule:
    """``log(sum(exp(x)))`` over axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * exp(x - z), 0 where z is -inf
    """
    z = namespace(x).logsumexp(x, axis=axis, keepdims=keepdims)
    z_bar = yield z
    z = spread(z, x.shape, axis)
    xp = namespace(z)
    z = xp.where(z == -math.inf, 0, z)
    yield spread(z_bar, x.shape, axis) * xp.exp(x - z)


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
    z = x
    if getattr(x, "size", 1):
        z = z - highest(z, axis)
        z = z - xp.log(total(xp.exp(z), axis))
    del x
    z_bar = yield z
    yield z_bar - xp.exp(z) * total(z_bar, axis)


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
    if (z := engines.softmax.softmax(x, axis)) is None:
        some = getattr(x, "size", 1)
        z = xp.exp(x - highest(x, axis) if some else x)
        z /= total(z, axis)
    del x
    z_bar = yield z
    if (x_bar := engines.softmax.softmax_back(z, z_bar, axis)) is None:
        inner = z_bar * z
        x_bar = inner - z * total(inner, axis)
    yield x_bar

"""Logarithms of probabilities, their inverses, and entropies."""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.op import elementwise
from lantern.rules import selection
from lantern.rules.exponential import exp
from lantern.scipy.evaluate import evaluate
from lantern.tensor.ops.special import xlogy

__all__ = [
    "entr",
    "erfcinv",
    "expi",
    "kl_div",
    "log_ndtr",
    "ndtri",
    "rel_entr",
    "xlog1py",
]


@elementwise
def erfcinv(x: Any, /) -> Rule:
    """The inverse of the complementary error function, for x from 0 to 2.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = -z_bar * sqrt(pi) / 2 * exp(z * z)

    Example:
        >>> round(erfcinv(0.5), 6)
        0.476936
    """
    z = evaluate(erfcinv, x)
    del x
    z_bar = yield z
    yield z_bar * (-math.sqrt(math.pi) / 2) * exp(z * z)


@elementwise
def log_ndtr(x: Any, /) -> Rule:
    """The logarithm of the probability that a standard normal number is below x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * the density divided by the probability

    Example:
        >>> round(log_ndtr(-40.0), 6)
        -804.608442
    """
    z = evaluate(log_ndtr, x)
    z_bar = yield z
    yield z_bar * exp(x * x / -2 - z - math.log(2 * math.pi) / 2)


@elementwise
def ndtri(x: Any, /) -> Rule:
    """The quantile of the standard normal distribution; the inverse of ``ndtr``.

    Shapes:
        x: (...), from 0 to 1; result: (...)

    Rule:
        x_bar = z_bar * sqrt(2 * pi) * exp(z * z / 2)

    Example:
        >>> ndtri(0.5)
        0.0
    """
    z = evaluate(ndtri, x)
    del x
    z_bar = yield z
    yield z_bar * math.sqrt(2 * math.pi) * exp(z * z / 2)


@elementwise
def expi(x: Any, /) -> Rule:
    """The exponential integral, the integral of ``exp(t) / t`` from -inf to x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * exp(x) / x

    Example:
        >>> round(expi(1.0), 6)
        1.895118

    References:
        Abramowitz and Stegun (1964), 5.1.2.
    """
    z_bar = yield evaluate(expi, x)
    yield namespace(x).ieee_divide(z_bar * exp(x), x)


@elementwise
def xlog1py(x: Any, y: Any, /) -> Rule:
    """``x * log(1 + y)``, 0 where x is 0.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * log1p(y), y_bar = z_bar * x / (1 + y), 0 where both are 0

    Example:
        >>> xlog1py(0.0, -1.0)
        0.0
    """
    xp = namespace(x, y)
    z_bar = yield evaluate(xlog1py, x, y)
    end = y == -1
    yield z_bar * xp.where(end, -math.inf, xp.log1p(xp.where(end, 0, y)))
    yield xp.ieee_divide(z_bar * x, xp.where((x == 0) & end, 1, 1 + y))


def entr(x: Any, /) -> Any:
    """``-x * log(x)``, 0 at 0 and -inf below it.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> entr(1.0), entr(-1.0)
        (-0.0, -inf)
    """
    x = from_lists(x)
    return selection.where(x < 0, -math.inf, xlogy(-x, selection.where(x < 0, 1.0, x)))


def rel_entr(x: Any, y: Any, /) -> Any:
    """``x * log(x / y)`` of positive x and y, 0 where x is 0.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> rel_entr(1.0, 1.0), rel_entr(1.0, 0.0)
        (0.0, inf)
    """
    x, y = from_lists(x), from_lists(y)
    inside = (x >= 0) & (y >= 0) & ((x == 0) | (y > 0))
    positive = inside & (y > 0)
    u, v = selection.where(positive, x, 0.0), selection.where(positive, y, 1.0)
    return selection.where(inside, xlogy(u, u) - xlogy(u, v), math.inf)


def kl_div(x: Any, y: Any, /) -> Any:
    """``x * log(x / y) - x + y`` of positive x and y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> kl_div(1.0, 1.0)
        0.0
    """
    x, y = from_lists(x), from_lists(y)
    return rel_entr(x, y) - x + y

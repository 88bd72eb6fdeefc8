"""Functions of statistics and of machine learning: gamma, error and logistic.

One generator each, shared by numbers and arrays. Arrays need SciPy for the gamma and
error functions (the extra ``scipy``).
"""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value
from lantern.op import elementwise

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "gamma",
    "lgamma",
    "polygamma",
    "relu",
    "sigmoid",
    "softplus",
]


@elementwise
def erf(x: Any, /) -> Rule:
    """The error function.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * 2 / sqrt(pi) * exp(-x * x)

    Example:
        >>> erf(0.0)
        0.0

    References:
        Abramowitz and Stegun (1964), 7.1.1.
    """
    xp = namespace(x)
    z_bar = yield xp.erf(x)
    yield z_bar * (2 / math.sqrt(math.pi)) * xp.exp(-x * x)


@elementwise
def erfc(x: Any, /) -> Rule:
    """The complementary error function, ``1 - erf(x)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * -2 / sqrt(pi) * exp(-x * x)

    Example:
        >>> erfc(0.0)
        1.0

    References:
        Abramowitz and Stegun (1964), 7.1.2.
    """
    xp = namespace(x)
    z_bar = yield xp.erfc(x)
    yield z_bar * (-2 / math.sqrt(math.pi)) * xp.exp(-x * x)


@elementwise
def gamma(x: Any, /) -> Rule:
    """The gamma function; ``gamma(n + 1) == n!``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * z * digamma(x)

    Example:
        >>> gamma(5.0)
        24.0

    References:
        Abramowitz and Stegun (1964), 6.3.1.
    """
    xp = namespace(x)
    z = xp.gamma(x)
    z_bar = yield z
    yield z_bar * z * xp.polygamma(0, x)


@elementwise
def lgamma(x: Any, /) -> Rule:
    """The logarithm of the absolute value of the gamma function.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * digamma(x)

    Example:
        >>> lgamma(1.0)
        0.0

    References:
        Abramowitz and Stegun (1964), 6.3.1.
    """
    xp = namespace(x)
    z_bar = yield xp.lgamma(x)
    yield z_bar * xp.polygamma(0, x)


def digamma(x: Any, /) -> Any:
    """The logarithmic derivative of the gamma function, ``polygamma(0, x)``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> round(digamma(1.0), 12)
        -0.577215664902
    """
    return polygamma(0, x)


def polygamma(n: int, x: Any, /) -> Any:
    """The n-th derivative of the digamma function.

    Shapes:
        n: an integer; x: (...); result: (...)

    Example:
        >>> round(polygamma(1, 1.0), 12)
        1.644934066848

    References:
        Abramowitz and Stegun (1964), 6.4.1.
    """
    return _polygamma(x, from_lists(n))


@elementwise
def _polygamma(x: Any, /, n: int) -> Rule:
    """The n-th derivative of the digamma function, its operand first.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * polygamma(n + 1, x)
    """
    xp = namespace(x)
    z_bar = yield xp.polygamma(n, x)
    yield z_bar * xp.polygamma(n + 1, x)


@elementwise
def sigmoid(x: Any, /) -> Rule:
    """The logistic function ``1 / (1 + exp(-x))``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sigmoid(x) * sigmoid(-x)

    Example:
        >>> sigmoid(0.0)
        0.5
    """
    xp = namespace(x)
    z = xp.sigmoid(x)
    z_bar = yield z
    yield z_bar * (z * xp.sigmoid(-x))


@elementwise
def softplus(x: Any, /) -> Rule:
    """``log(1 + exp(x))``, without overflow.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sigmoid(x)

    Example:
        >>> softplus(0.0)
        0.6931471805599453
    """
    xp = namespace(x)
    z_bar = yield xp.softplus(x)
    yield z_bar * xp.sigmoid(x)


@elementwise
def relu(x: Any, /) -> Rule:
    """The positive part of x, ``max(x, 0)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar where x > 0 or NaN, else 0

    Example:
        >>> relu(-3.0)
        0.0
    """
    z = namespace(x).relu(x)
    del x
    z_bar = yield z
    yield passed(z_bar, z)


def passed(z_bar: Any, z: Any) -> Any:
    """``z_bar`` where z, a positive part, is not 0; else 0."""
    if (
        type(z) is type(z_bar)
        and getattr(z, "size", 0) > 1
        and not isinstance(z, Value)
        and z.shape == z_bar.shape
    ):
        return namespace(z).passed(z_bar, z)
    return z_bar * (z != 0)

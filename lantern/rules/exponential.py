"""Exponentials, logarithms and roots, shared by numbers and arrays."""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.op import elementwise

__all__ = [
    "cbrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
]


@elementwise
def exp(x: Any, /) -> Rule:
    """The exponential of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * exp(x)

    Example:
        >>> exp(0.0)
        1.0
    """
    xp = namespace(x)
    z = xp.exp(x)
    del x
    z_bar = yield z
    yield z_bar * z


@elementwise
def expm1(x: Any, /) -> Rule:
    """``exp(x) - 1``, exact near 0.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * exp(x)

    Example:
        >>> expm1(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.expm1(x)
    yield z_bar * xp.exp(x)


@elementwise
def log(x: Any, /) -> Rule:
    """The natural logarithm of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / x

    Example:
        >>> log(1.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.log(x)
    yield z_bar / x


@elementwise
def log1p(x: Any, /) -> Rule:
    """``log(1 + x)``, exact near 0.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (1 + x)

    Example:
        >>> log1p(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.log1p(x)
    yield z_bar / (1 + x)


@elementwise
def log2(x: Any, /) -> Rule:
    """The logarithm of x to base 2.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (x * log(2))

    Example:
        >>> log2(8.0)
        3.0
    """
    xp = namespace(x)
    z_bar = yield xp.log2(x)
    yield z_bar / (x * math.log(2))


@elementwise
def log10(x: Any, /) -> Rule:
    """The logarithm of x to base 10.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (x * log(10))

    Example:
        >>> log10(1000.0)
        3.0
    """
    xp = namespace(x)
    z_bar = yield xp.log10(x)
    yield z_bar / (x * math.log(10))


@elementwise
def sqrt(x: Any, /) -> Rule:
    """The square root of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (2 * z), infinite at 0

    Example:
        >>> sqrt(9.0)
        3.0
    """
    xp = namespace(x)
    z = xp.sqrt(x)
    del x
    z_bar = yield z
    yield xp.ieee_divide(z_bar, 2 * z)


@elementwise
def cbrt(x: Any, /) -> Rule:
    """The cube root of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (3 * z**2), infinite at 0

    Example:
        >>> cbrt(8.0)
        2.0
    """
    xp = namespace(x)
    z = xp.cbrt(x)
    del x
    z_bar = yield z
    yield xp.ieee_divide(z_bar, 3 * z * z)

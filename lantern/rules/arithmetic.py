"""The rules behind the arithmetic operators, shared by numbers and arrays.

The backward part of a rule is a plain transpose, written with operators and with the
functions of its primal's namespace; complex conjugates are added by ``Value.settle``.
"""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, is_complex, zeros_like
from lantern.op import additive, constant, elementwise, linear

__all__ = [
    "add",
    "conj",
    "divide",
    "floor_divide",
    "ieee_divide",
    "ieee_pow",
    "imag",
    "multiply",
    "negative",
    "positive",
    "pow",
    "real",
    "remainder",
    "square",
    "subtract",
]


@additive
def add(x: Any, y: Any, /) -> Rule:
    """The sum of x and y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar, y_bar = z_bar

    Example:
        >>> add(1.0, 2.0)
        3.0
    """
    z_bar = yield (x + y, x := None, y := None)[0]
    yield z_bar
    yield z_bar


@additive
def subtract(x: Any, y: Any, /) -> Rule:
    """The difference of x and y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar, y_bar = -z_bar

    Example:
        >>> subtract(1.0, 2.0)
        -1.0
    """
    z_bar = yield (x - y, x := None, y := None)[0]
    yield z_bar
    yield -z_bar


@elementwise
def multiply(x: Any, y: Any, /) -> Rule:
    """The product of x and y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * y, y_bar = z_bar * x

    Example:
        >>> multiply(3.0, 2.0)
        6.0
    """
    z_bar = yield x * y
    yield z_bar * y
    yield z_bar * x


@elementwise
def divide(x: Any, y: Any, /) -> Rule:
    """The quotient of x and y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar / y, y_bar = -z_bar * z / y

    Example:
        >>> divide(3.0, 2.0)
        1.5
    """
    z = x / y
    del x
    z_bar = yield z
    x_bar = z_bar / y
    yield x_bar
    yield -x_bar * z


@elementwise
def ieee_divide(x: Any, y: Any, /) -> Rule:
    """As ``divide``, but infinite where Python raises: for use in derivatives.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar / y, y_bar = -z_bar * z / y

    Example:
        >>> ieee_divide(1.0, 0.0)
        inf
    """
    xp = namespace(x, y)
    z = xp.ieee_divide(x, y)
    del x
    z_bar = yield z
    x_bar = namespace(z_bar, y).ieee_divide(z_bar, y)
    yield x_bar
    yield -x_bar * z


@elementwise
def negative(x: Any, /) -> Rule:
    """The negative of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = -z_bar

    Example:
        >>> negative(3.0)
        -3.0
    """
    z_bar = yield (-x, x := None)[0]
    yield -z_bar


@elementwise
def positive(x: Any, /) -> Rule:
    """The value of x, as a new value.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar

    Example:
        >>> positive(3.0)
        3.0
    """
    z_bar = yield (+x, x := None)[0]
    yield z_bar


@elementwise
def pow(x: Any, y: Any, /) -> Rule:
    """The power of x to the exponent y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * y * x**(y - 1), 0 where y is 0
        y_bar = z_bar * z * log(x), 0 where x is 0 and y >= 0, nan where x < 0

    Example:
        >>> pow(3.0, 2)
        9.0
    """
    yield from _power_rule(raised(x, y), x, y)


@elementwise
def ieee_pow(x: Any, y: Any, /) -> Rule:
    """As ``pow``, but infinite where Python raises: for use in derivatives.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        as that of pow

    Example:
        >>> ieee_pow(0.0, -1)
        inf
    """
    yield from _power_rule(namespace(x, y).ieee_pow(x, y), x, y)


def raised(x: Any, y: Any) -> Any:
    """``x**y``; small whole powers of arrays are products."""
    small = type(y) in (int, float) and 2 < y < 9 and y % 1 == 0
    if small and hasattr(x, "dtype") and not isinstance(x, Value):
        return namespace(x).pow(x, y)
    return x**y  # of a tracked x, whose rule asks once more what it is


def _power_rule(z: Any, x: Any, y: Any) -> Rule:
    z_bar = yield z
    xp = namespace(x, y)
    if isinstance(y, int | float):
        yield z_bar * (y * xp.ieee_pow(x, y - 1)) if y else 0 * z_bar
    else:  # where y is 0, x**-1 may be no number, and 0 times it would be none
        lower = (y != 0) | ((x != 0) & (x == x))
        yield z_bar * (y * xp.ieee_pow(x, y - lower))
    if isinstance(x, int | float) and hasattr(z, "dtype"):
        x = zeros_like(z) + x  # a number's own logarithm is of double precision
    x = x if is_complex(x) else xp.where(x < 0, math.nan, x)
    zero = x == 0
    logs = xp.log(xp.where(zero, 1, x))
    if not is_complex(y):  # 0**-1 is infinite, and any negative logarithm says how
        logs = logs - (zero & (y < 0))
    yield z_bar * z * logs


@constant
def floor_divide(x: Any, y: Any, /) -> Rule:
    """The largest integer not above x / y; its derivative is zero.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> floor_divide(7.0, 2.0)
        3.0
    """
    yield x // y


@elementwise
def remainder(x: Any, y: Any, /) -> Rule:
    """The remainder ``x - y * floor(x / y)``, with the sign of y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar, y_bar = -z_bar * floor(x / y)

    Example:
        >>> remainder(7.0, 4.0)
        3.0
    """
    z = x % y
    z_bar = yield z
    yield z_bar
    yield -z_bar * ((x - z) / y)


@elementwise
def square(x: Any, /) -> Rule:
    """The square of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * 2 * x

    Example:
        >>> square(3.0)
        9.0
    """
    z_bar = yield x * x
    yield z_bar * (2 * x)


@linear
def conj(x: Any, /) -> Rule:
    """The complex conjugate of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = conj(z_bar)

    Example:
        >>> conj(1 + 2j)
        (1-2j)
    """
    z_bar = yield (namespace(x).conj(x), x := None)[0]
    yield namespace(z_bar).conj(z_bar)


@linear
def real(x: Any, /) -> Rule:
    """The real part of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar

    Example:
        >>> real(1 + 2j)
        1.0
    """
    z_bar = yield (namespace(x).real(x), x := None)[0]
    yield z_bar


def imag(x: Any, /) -> Any:
    """The imaginary part of x; of real x, zero.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> imag(1 + 2j)
        2.0
    """
    return _imag(x) if is_complex(x) else 0 * x


@linear
def _imag(x: Any, /) -> Rule:
    """The imaginary part of complex x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = 1j * z_bar
    """
    z_bar = yield (namespace(x).imag(x), x := None)[0]
    yield 1j * z_bar

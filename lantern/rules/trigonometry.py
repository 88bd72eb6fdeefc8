"""The functions of angles and of hyperbolas; angles are in radians."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, is_complex
from lantern.op import elementwise

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "hypot",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


@elementwise
def sin(x: Any, /) -> Rule:
    """The sine of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * cos(x)

    Example:
        >>> sin(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.sin(x)
    yield z_bar * xp.cos(x)


@elementwise
def cos(x: Any, /) -> Rule:
    """The cosine of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * -sin(x)

    Example:
        >>> cos(0.0)
        1.0
    """
    xp = namespace(x)
    z_bar = yield xp.cos(x)
    yield z_bar * -xp.sin(x)


@elementwise
def tan(x: Any, /) -> Rule:
    """The tangent of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (1 + z * z)

    Example:
        >>> tan(0.0)
        0.0
    """
    xp = namespace(x)
    z = xp.tan(x)
    del x
    z_bar = yield z
    yield z_bar * (1 + z * z)


def _to_one(x: Any) -> Any:
    """``1 - x``, on the side of the branch cut on which a complex x is."""
    return -(x - 1) if is_complex(x) else 1 - x


@elementwise
def asin(x: Any, /) -> Rule:
    """The inverse sine of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (sqrt(1 - x) * sqrt(1 + x))

    Example:
        >>> asin(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.asin(x)
    yield xp.ieee_divide(z_bar, xp.sqrt(_to_one(x)) * xp.sqrt(_to_one(-x)))


@elementwise
def acos(x: Any, /) -> Rule:
    """The inverse cosine of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = -z_bar / (sqrt(1 - x) * sqrt(1 + x))

    Example:
        >>> acos(1.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.acos(x)
    yield xp.ieee_divide(-z_bar, xp.sqrt(_to_one(x)) * xp.sqrt(_to_one(-x)))


@elementwise
def acosh(x: Any, /) -> Rule:
    """The inverse hyperbolic cosine of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (sqrt(x - 1) * sqrt(x + 1))

    Example:
        >>> acosh(1.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.acosh(x)
    yield xp.ieee_divide(z_bar, xp.sqrt(x - 1) * xp.sqrt(_to_one(-x)))


@elementwise
def atanh(x: Any, /) -> Rule:
    """The inverse hyperbolic tangent of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / ((1 - x) * (1 + x))

    Example:
        >>> atanh(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.atanh(x)
    yield xp.ieee_divide(z_bar, (1 - x) * (1 + x))


@elementwise
def atan(x: Any, /) -> Rule:
    """The inverse tangent of x, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (1 + x * x)

    Example:
        >>> atan(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.atan(x)
    yield z_bar / (1 + x * x)


@elementwise
def sinh(x: Any, /) -> Rule:
    """The hyperbolic sine of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * cosh(x)

    Example:
        >>> sinh(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.sinh(x)
    yield z_bar * xp.cosh(x)


@elementwise
def cosh(x: Any, /) -> Rule:
    """The hyperbolic cosine of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sinh(x)

    Example:
        >>> cosh(0.0)
        1.0
    """
    xp = namespace(x)
    z_bar = yield xp.cosh(x)
    yield z_bar * xp.sinh(x)


@elementwise
def tanh(x: Any, /) -> Rule:
    """The hyperbolic tangent of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (1 - z * z), whose relative error grows with cosh(x)**2: it is
        below 1e-12 up to abs(x) = 5, and the absolute error below 1e-15 everywhere

    Example:
        >>> tanh(0.0)
        0.0
    """
    xp = namespace(x)
    z = xp.tanh(x)
    del x
    z_bar = yield z
    yield z_bar * (1.0 - z * z)  # NumPy takes longer to convert an int


@elementwise
def asinh(x: Any, /) -> Rule:
    """The inverse hyperbolic sine of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / sqrt(1 + x * x)

    Example:
        >>> asinh(0.0)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.asinh(x)
    yield z_bar / xp.sqrt(1 + x * x)


@elementwise
def hypot(x: Any, y: Any, /) -> Rule:
    """``sqrt(x * x + y * y)`` without overflow.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * x / z, y_bar = z_bar * y / z, 0 where z is 0

    Example:
        >>> hypot(3.0, 4.0)
        5.0
    """
    xp = namespace(x, y)
    z = xp.hypot(x, y)
    z_bar = yield z
    z_bar = z_bar / xp.where(z == 0, 1, z)
    yield z_bar * x
    yield z_bar * y


@elementwise
def atan2(x: Any, y: Any, /) -> Rule:
    """The angle at the origin of the point with ordinate x and abscissa y, in radians.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * y / (x * x + y * y)
        y_bar = -z_bar * x / (x * x + y * y)

    Example:
        >>> atan2(1.0, 1.0)
        0.7853981633974483
    """
    xp = namespace(x, y)
    z_bar = yield xp.atan2(x, y)
    z_bar = xp.ieee_divide(z_bar, x * x + y * y)
    yield z_bar * y
    yield -z_bar * x

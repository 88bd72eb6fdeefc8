"""Remainders, fractions and powers, as C and NumPy compute them."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.op import elementwise, linear
from lantern.rules import arithmetic
from lantern.rules.arithmetic import floor_divide, remainder
from lantern.tensor.ops import zero_derivative
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.shape import astype

__all__ = ["divmod", "float_power", "fmod", "ldexp", "modf", "nextafter"]


@elementwise
def fmod(x: Any, y: Any, /) -> Rule:
    """The remainder ``x - y * trunc(x / y)``, with the sign of x.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar, y_bar = -z_bar * trunc(x / y)

    Example:
        >>> fmod(-7.0, 4.0)
        -3.0
    """
    xp = namespace(x, y)
    z = xp.fmod(x, y)
    z_bar = yield z
    yield z_bar
    yield -z_bar * xp.rint(base((x - z) / y))


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """The floored quotient of x and y, a constant, and their remainder.

    Shapes:
        x, y: (...), broadcast; result: a pair of (...)

    Example:
        >>> divmod(7.0, 4.0)
        (1.0, 3.0)
    """
    return floor_divide(x, y), remainder(x, y)


def modf(x: Any, /) -> tuple[Any, Any]:
    """The fraction of x and its whole part, a constant, both with the sign of x.

    Shapes:
        x: (...); result: a pair of (...)

    Example:
        >>> modf(-2.5)
        (-0.5, -2.0)
    """
    return _fraction(x), zero_derivative.trunc(x)


@elementwise
def _fraction(x: Any, /) -> Rule:
    """What is behind the point of x, with the sign of x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar
    """
    z_bar = yield (namespace(x).modf(x)[0], x := None)[0]
    yield z_bar


@linear
def ldexp(x: Any, /, n: Any) -> Rule:
    """``x * 2**n`` for integers n.

    Shapes:
        x, n: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * 2**n

    Example:
        >>> ldexp(3.0, 2)
        12.0
    """
    n = base(n)  # which is no integer, if it is tracked
    z_bar = yield (namespace(x).ldexp(x, n), x := None)[0]
    yield namespace(z_bar).ldexp(z_bar, n)


@elementwise
def nextafter(x: Any, y: Any, /) -> Rule:
    """The number next to x in the direction of y; it moves with x.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar, y_bar = 0

    Example:
        >>> nextafter(0.0, 1.0)
        5e-324
    """
    z_bar = yield (namespace(x, y).nextafter(x, y), x := None, y := None)[0]
    yield z_bar
    yield None


def float_power(x: Any, y: Any, /) -> Any:
    """The power of x to the exponent y, computed in double precision at least.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> float_power(2, 3)
        8.0
    """
    return arithmetic.pow(_double(x), _double(y))


def _double(x: Any) -> Any:
    """A value in double precision, if it has less."""
    x = asarray(x) if isinstance(x, list | tuple) else x
    plain = base(x)
    if not hasattr(plain, "dtype"):
        return x * 1.0
    xp = namespace(plain)
    dtype = xp.result_type(plain.dtype, xp.float64)
    return x if plain.dtype == dtype else astype(x, dtype)

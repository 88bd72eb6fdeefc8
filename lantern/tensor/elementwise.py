"""Functions of each element, for numbers too, that change, cut or compose others."""

import math
from typing import Any

from lantern import arithmetic, choice
from lantern.arithmetic import floor_divide, imag, real, remainder
from lantern.choice import maximum, minimum, where
from lantern.namespace import namespace
from lantern.op import elementwise, linear
from lantern.tensor import constant, gamma, special
from lantern.tensor.constant import *  # noqa: F403  # one chapter, several files
from lantern.tensor.gamma import *  # noqa: F403  # one chapter, several files
from lantern.tensor.manipulation import astype
from lantern.tensor.namespace import array_namespace
from lantern.tensor.axes import refuse
from lantern.tensor.special import *  # noqa: F403  # one chapter, several files
from lantern.trigonometry import atan2
from lantern.value import Rule, base, is_complex

__all__ = [
    "angle",
    "clip",
    "copysign",
    "deg2rad",
    "degrees",
    "divmod",
    "exp2",
    "fabs",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "ldexp",
    "modf",
    "nan_to_num",
    "nextafter",
    "rad2deg",
    "radians",
    "real_if_close",
    "reciprocal",
]
__all__ += constant.__all__ + gamma.__all__ + special.__all__


@elementwise
def exp2(x: Any, /) -> Rule:
    """2 to the power x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * z * log(2)

    Example:
        >>> exp2(3.0)
        8.0
    """
    xp = namespace(x)
    z = xp.exp2(x)
    del x
    z_bar = yield z
    yield z_bar * (z * math.log(2))


@elementwise
def reciprocal(x: Any, /) -> Rule:
    """One divided by x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = -z_bar * z * z

    Example:
        >>> reciprocal(4.0)
        0.25
    """
    z = namespace(x).reciprocal(x)
    del x
    z_bar = yield z
    yield -z_bar * (z * z)


@elementwise
def deg2rad(x: Any, /) -> Rule:
    """An angle of x degrees, in radians.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * pi / 180

    Example:
        >>> deg2rad(180.0)
        3.141592653589793
    """
    z_bar = yield (namespace(x).deg2rad(x), x := None)[0]
    yield z_bar * (math.pi / 180)


@elementwise
def rad2deg(x: Any, /) -> Rule:
    """An angle of x radians, in degrees.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * 180 / pi

    Example:
        >>> rad2deg(math.pi)
        180.0
    """
    z_bar = yield (namespace(x).rad2deg(x), x := None)[0]
    yield z_bar * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


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
    return _fraction(x), constant.trunc(x)


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
    z_bar = yield (namespace(x).ldexp(x, n), x := None)[0]
    yield namespace(z_bar).ldexp(z_bar, n)


def heaviside(x: Any, y: Any, /) -> Any:
    """The step function: 0 for negative x, 1 for positive x, y where x is 0.

    Its derivative with respect to x is 0.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> heaviside(-2.0, 0.5), heaviside(0.0, 0.5), heaviside(2.0, 0.5)
        (0.0, 0.5, 1.0)
    """
    x = base(x)
    return where(x == 0, y, namespace(x, base(y)).heaviside(x, base(y)))


def copysign(x: Any, y: Any, /) -> Any:
    """The absolute value of x with the sign of y; the sign is a constant.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> copysign(3.0, -0.0)
        -3.0
    """
    y = base(y)
    return choice.abs(x) * namespace(y).copysign(1.0, y)


def fmax(x: Any, y: Any, /) -> Any:
    """The larger of x and y; where one of them is nan, the other.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> fmax(2.0, math.nan)
        2.0
    """
    return maximum(*_without_nan(x, y))


def fmin(x: Any, y: Any, /) -> Any:
    """The smaller of x and y; where one of them is nan, the other.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> fmin(2.0, math.nan)
        2.0
    """
    return minimum(*_without_nan(x, y))


def _without_nan(x: Any, y: Any) -> tuple[Any, Any]:
    """The pair, where a nan stands beside a number with that number twice."""
    return where(base(x) != base(x), y, x), where(base(y) != base(y), x, y)


def fabs(x: Any, /) -> Any:
    """The absolute value of real x.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> fabs(-3.0)
        3.0
    """
    return choice.abs(x)


def float_power(x: Any, y: Any, /) -> Any:
    """The power of x to the exponent y, computed in double precision at least.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> float_power(2, 3)
        8.0
    """
    return arithmetic.pow(_double(x), _double(y))


def nextafter(x: Any, y: Any, /) -> Any:
    """The number next to x on the way to y, which moves as x does.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> nextafter(1.0, 2.0)
        1.0000000000000002
    """
    return _nextafter(x, base(y))


@elementwise
def _nextafter(x: Any, /, y: Any) -> Rule:
    """The number next to x on the way to y.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar
    """
    z_bar = yield (namespace(x, y).nextafter(x, y), x := None)[0]
    yield z_bar


def _double(x: Any) -> Any:
    """A value in double precision, if it has less."""
    plain = base(x)
    if not hasattr(plain, "dtype"):
        return x * 1.0
    xp = namespace(plain)
    dtype = xp.result_type(plain.dtype, xp.float64)
    return x if plain.dtype == dtype else astype(x, dtype)


def nan_to_num(
    x: Any,
    /,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Any = None,
    neginf: Any = None,
) -> Any:
    """x with numbers in place of nan and of infinities; constants, if not given.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> nan_to_num(math.nan), nan_to_num(2.0)
        (0.0, 2.0)
    """
    if is_complex(x):
        parts = [nan_to_num(p, copy, nan, posinf, neginf) for p in (real(x), imag(x))]
        return parts[0] + 1j * parts[1]
    plain = base(x)
    xp = array_namespace(plain)
    numbers = [None if n is None else base(n) for n in (nan, posinf, neginf)]
    z, finite = xp.nan_to_num(plain, True, *numbers), xp.isfinite(plain)
    if not hasattr(plain, "dtype"):
        return x if finite else float(z)
    return where(finite, x, z)


def clip(
    x: Any,
    /,
    min: Any = None,
    max: Any = None,
    out: Any = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
) -> Any:
    """x limited to the interval from min to max; None is no limit.

    Inside and on a bound the derivative is 1; beyond it belongs to the bound.

    Args:
        x: what is limited.
        min: the lower bound; NumPy's older name for it is ``a_min``.
        max: the upper bound; NumPy's older name for it is ``a_max``.
        out: not supported.

    Shapes:
        x, min, max: (...), broadcast; result: (...)

    Example:
        >>> clip(5.0, 0.0, 3.0)
        3.0
    """
    refuse("clip", out=out)
    return choice.clip(x, a_min if min is None else min, a_max if max is None else max)


def angle(z: Any, /, deg: bool = False) -> Any:
    """The angle of complex z with the positive real axis; of real z, a constant.

    Shapes:
        z: (...); result: (...)

    Example:
        >>> angle(1j)
        1.5707963267948966
    """
    if not is_complex(z):
        return array_namespace(base(z)).angle(base(z), deg)
    radians_ = atan2(imag(z), real(z))
    return rad2deg(radians_) if deg else radians_


def real_if_close(x: Any, /, tol: float = 100) -> Any:
    """The real part of x if all imaginary parts are within tol epsilons, else x.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> real_if_close(2 + 0j)
        2.0
    """
    close = array_namespace(base(x)).real_if_close(base(x), tol)
    return x if is_complex(close) or not is_complex(x) else real(x)

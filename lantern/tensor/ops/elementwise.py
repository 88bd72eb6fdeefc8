"""Functions of each element, for numbers too, that change, cut or compose others."""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_complex, is_tracked
from lantern.op import elementwise
from lantern.rules import selection
from lantern.rules.arithmetic import imag, real
from lantern.rules.selection import maximum, minimum, where
from lantern.rules.trigonometry import atan2
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.axes import refuse

__all__ = [
    "angle",
    "clip",
    "copysign",
    "deg2rad",
    "degrees",
    "exp2",
    "fabs",
    "fmax",
    "fmin",
    "heaviside",
    "nan_to_num",
    "rad2deg",
    "radians",
    "real_if_close",
    "reciprocal",
]


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


def heaviside(x: Any, y: Any, /) -> Any:
    """The step function: 0 for negative x, 1 for positive x, y where x is 0.

    Its derivative with respect to x is 0.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> heaviside(-2.0, 0.5), heaviside(0.0, 0.5), heaviside(2.0, 0.5)
        (0.0, 0.5, 1.0)
    """
    x, y = base(from_lists(x)), from_lists(y)
    return where(x == 0, y, namespace(x, base(y)).heaviside(x, base(y)))


def copysign(x: Any, y: Any, /) -> Any:
    """The absolute value of x with the sign of y; the sign is a constant.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Example:
        >>> copysign(3.0, -0.0)
        -3.0
    """
    y = base(from_lists(y))
    return selection.abs(x) * namespace(y).copysign(1.0, y)


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
    x, y = from_lists(x), from_lists(y)
    return where(base(x) != base(x), y, x), where(base(y) != base(y), x, y)


def fabs(x: Any, /) -> Any:
    """The absolute value of real x.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> fabs(-3.0)
        3.0
    """
    return selection.abs(x)


def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Any = None,
    neginf: Any = None,
) -> Any:
    """x with numbers in place of nan and of infinities, which may be tracked.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> nan_to_num(math.nan), nan_to_num(2.0)
        (0.0, 2.0)
    """
    if is_complex(x):
        parts = [nan_to_num(p, copy, nan, posinf, neginf) for p in (real(x), imag(x))]
        return parts[0] + 1j * parts[1]
    x = from_lists(x)
    plain = base(x)
    xp = array_namespace(plain)
    numbers = [from_lists(n) for n in (nan, posinf, neginf)]
    constants = [0.0 if is_tracked(n) else base(n) for n in numbers]
    z = xp.nan_to_num(plain, True, *constants)
    tests = xp.isfinite, xp.isnan, xp.isposinf, xp.isneginf
    finite, *places = [test(plain) for test in tests]
    if not hasattr(plain, "dtype"):
        z, finite, places = float(z), bool(finite), list(map(bool, places))
    for n, place in zip(numbers, places, strict=True):
        z = where(place, n, z) if is_tracked(n) else z
    return where(finite, x, z)


def clip(
    a: Any,
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
        a: what is limited.
        min: the lower bound; NumPy's older name for it is ``a_min``.
        max: the upper bound; NumPy's older name for it is ``a_max``.
        out: not supported.

    Shapes:
        a, min, max: (...), broadcast; result: (...)

    Example:
        >>> clip(5.0, 0.0, 3.0)
        3.0
    """
    refuse("clip", out=out)
    return selection.clip(
        a, a_min if min is None else min, a_max if max is None else max
    )


def angle(z: Any, deg: bool = False) -> Any:
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


def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real part of a if all imaginary parts are within tol epsilons, else a.

    Shapes:
        a: (...); result: (...)

    Example:
        >>> real_if_close(2 + 0j)
        2.0
    """
    a = from_lists(a)
    close = array_namespace(base(a)).real_if_close(base(a), tol)
    return a if is_complex(close) or not is_complex(a) else real(a)

"""Functions of plain Python scalars, under the names of the array API standard.

This module is the namespace of ``int``, ``complex`` and ``Fraction``, and but for what
``math`` does as well that of ``float``, ``floats``; where ``math`` raises at an edge of
its domain, so do they. Only ``ieee_divide`` and ``ieee_pow``, for derivatives, go on
with infinity as IEEE arithmetic does.
"""

import cmath
import math
import reprlib
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from numbers import Number
from types import ModuleType
from typing import Any

from lantern.errors import ArgumentError, MissingExtraError, NotArrayError

pi, inf, nan = math.pi, math.inf, math.nan


def _function(name: str) -> Callable[[Any], Any]:
    real, complex_ = getattr(math, name), getattr(cmath, name, None)

    def function(x: Any) -> Any:
        if type(x) is not complex:
            try:
                return real(x)
            except TypeError as error:
                raise _no_number(name, x, error) from None
        return complex_(x) if complex_ is not None else _by_scipy(name, x)

    function.__name__ = name
    return function


def _no_number(name: str, x: Any, error: TypeError) -> TypeError:
    """What to raise for what ``math`` does not take: its own error, or words."""
    if hasattr(x, "__float__") or hasattr(x, "__index__"):
        return error  # its own conversion has failed
    return ArgumentError(
        f"{name}: expected a number or an array, got {reprlib.repr(x)} of type "
        f"{type(x).__name__}. Give a number, or an array of numbers."
    )


def _by_scipy(name: str, x: complex) -> complex:
    try:
        return complex(getattr(import_module("scipy.special"), name)(x))
    except ImportError:
        raise MissingExtraError(
            f"{name}: of a complex number SciPy computes it. Install it with "
            f"pip install scipy."
        ) from None


exp, sqrt = _function("exp"), _function("sqrt")
log, log10 = _function("log"), _function("log10")
sin, cos, tan = _function("sin"), _function("cos"), _function("tan")
asin, acos, atan = _function("asin"), _function("acos"), _function("atan")
sinh, cosh, tanh = _function("sinh"), _function("cosh"), _function("tanh")
asinh, acosh, atanh = _function("asinh"), _function("acosh"), _function("atanh")
erf, erfc = _function("erf"), _function("erfc")
gamma, lgamma = math.gamma, math.lgamma
cbrt, atan2 = math.cbrt, math.atan2
abs = abs


def expm1(x: Any) -> Any:
    """``exp(x) - 1``, exact near 0 for real x."""
    return cmath.exp(x) - 1 if type(x) is complex else math.expm1(x)


def log1p(x: Any) -> Any:
    """``log(1 + x)``, exact near 0 for real x."""
    return cmath.log(1 + x) if type(x) is complex else math.log1p(x)


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    return cmath.log(x) / math.log(2) if type(x) is complex else math.log2(x)


def ones_like(x: Any) -> Any:
    """One in x's type."""
    return type(x)(1)


def ieee_divide(x: Any, y: Any) -> Any:
    """``x / y``, infinite or nan where y is 0."""
    try:
        return x / y
    except ZeroDivisionError:
        if x == 0 or x != x:
            return nan
        return math.copysign(inf, x) * math.copysign(1, y)


def ieee_pow(x: Any, y: Any) -> Any:
    """``x ** y``, infinite where x is 0 and y negative, and where it is too large."""
    try:
        return x**y
    except (ZeroDivisionError, OverflowError):
        odd = not isinstance(x, complex) and y % 2 == 1
        return math.copysign(inf, x) if odd else inf


def conj(x: Any) -> Any:
    """The conjugate; a number of a class that has none is its own."""
    return x.conjugate() if hasattr(x, "conjugate") else x


def real(x: Any) -> Any:
    """The real part."""
    return x.real


def imag(x: Any) -> Any:
    """The imaginary part."""
    return x.imag


def sign(x: Any) -> Any:
    """-1, 0 or 1 in x's type; for complex x, ``x / abs(x)``; nan stays nan."""
    if type(x) is complex:
        return x / abs(x) if x else x
    return type(x)((x > 0) - (x < 0)) if x == x else x


def floor(x: Any) -> Any:
    """The largest integer not above x, in x's type."""
    return type(x)(math.floor(x)) if math.isfinite(x) else x


def ceil(x: Any) -> Any:
    """The smallest integer not below x, in x's type."""
    return type(x)(math.ceil(x)) if math.isfinite(x) else x


def maximum(x: Any, y: Any) -> Any:
    """The larger of two; nan if either is nan."""
    return x if x >= y or x != x else y


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two; nan if either is nan."""
    return x if x <= y or x != x else y


def where(condition: Any, x: Any, y: Any) -> Any:
    """x if condition holds, else y."""
    return x if condition else y


ignore_fp_warnings = nullcontext  # nothing has to be silenced


def zeros_like(x: Any) -> Any:
    """Zero in x's type; what a class of the user's own makes of 0, nobody knows."""
    known = isinstance(x, Number)
    try:
        return type(x)(0) if known else 0 * x
    except (TypeError, NotImplementedError):
        return 0 * x if known else type(x)(0)


def logical_not(x: Any) -> bool:
    """Whether it does not hold."""
    return not x


def select(condition: Any, z_bar: Any) -> Any:
    """A cotangent where the condition holds; None, which is nothing, elsewhere."""
    return z_bar if condition else None


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, accurate in both tails."""
    if type(x) is complex:
        return 1 / (1 + cmath.exp(-x))
    e = math.exp(-abs(x))
    return (1 if x >= 0 else e) / (1 + e)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))`` without overflow."""
    if type(x) is complex:
        return cmath.log(1 + cmath.exp(x))
    return maximum(x, 0) + math.log1p(math.exp(-abs(x)))


def relu(x: Any) -> Any:
    """``max(x, 0)`` in x's type; nan stays nan."""
    return x if x > 0 or x != x else type(x)(0)


# B(2k) / (2k)!, the weights of polygamma's asymptotic series below.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: int, x: float) -> float:
    """The n-th derivative of the digamma function (n = 0: digamma itself).

    Reflection for negative x, recurrence up to x >= 15, then the asymptotic series.

    References:
        Abramowitz and Stegun (1964), 6.3.18, 6.4.6, 6.4.7 and 6.4.11.
    """
    if x <= 0:
        if x == math.floor(x):
            return nan
        return (-1) ** n * polygamma(n, 1 - x) - _cotangent_derivative(n, x)
    shift, sign_ = 0.0, -((-1.0) ** n)
    while x < 15 + n:
        shift += x ** -(n + 1)
        x += 1
    head = -math.log(x) if n == 0 else math.factorial(n - 1) * x**-n
    total = head + math.factorial(n) / (2 * x ** (n + 1))
    for k, b in enumerate(_BERNOULLI, start=1):
        weight = math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        total += b * weight * x ** -(2 * k + n)
    return sign_ * (math.factorial(n) * shift + total)


def _cotangent_derivative(n: int, x: float) -> float:
    """The n-th derivative of ``pi * cot(pi * x)``, a polynomial in c = cot(pi * x).

    Each derivative of p(c) is ``-pi * (1 + c * c) * p'(c)``.
    """
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slope = [i * a for i, a in enumerate(coefficients)][1:]
        coefficients = [
            -(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)
        ]
    c = 1 / math.tan(pi * math.remainder(x, 1.0))  # exact beside whole numbers
    return float(pi ** (n + 1) * sum(a * c**i for i, a in enumerate(coefficients)))


def reciprocal(x: Any) -> Any:
    """``1 / x``."""
    return 1 / x


def exp2(x: Any) -> Any:
    """``2 ** x``."""
    return 2**x if type(x) is complex else math.exp2(x)


def logaddexp(x: float, y: float) -> float:
    """``log(exp(x) + exp(y))`` without overflow."""
    return maximum(x, y) + math.log1p(math.exp(-_apart(x, y)))


def logaddexp2(x: float, y: float) -> float:
    """``log2(2**x + 2**y)`` without overflow."""
    return maximum(x, y) + math.log1p(math.exp2(-_apart(x, y))) / math.log(2)


def _apart(x: float, y: float) -> float:
    """How far apart two numbers are; equal infinities are not."""
    return 0.0 if x == y else abs(x - y)


def xlogy(x: Any, y: Any) -> Any:
    """``x * log(y)``, 0 where x is 0."""
    return x * log(1 if x == 0 and y == y else y)


def logit(x: float) -> float:
    """``log(x / (1 - x))``, infinite at 0 and 1."""
    if x in (0, 1):
        return inf if x else -inf
    return 2 * math.atanh(2 * x - 1) if 0.25 < x < 0.75 else log(x) - math.log1p(-x)


def sinc(x: Any) -> Any:
    """``sin(pi * x) / (pi * x)``, 1 at 0."""
    return sin(pi * x) / (pi * x) if x else x + 1


deg2rad, rad2deg = math.radians, math.degrees
fmod, fabs, ldexp = math.fmod, math.fabs, math.ldexp
copysign, hypot, nextafter = math.copysign, math.hypot, math.nextafter
modf, round = math.modf, round


def heaviside(x: float, y: float) -> float:
    """0 for negative x, 1 for positive x, y for 0."""
    return float(y if x == 0 else x if x != x else x > 0)


def trunc(x: float) -> float:
    """x without its fraction, in x's type."""
    return type(x)(math.trunc(x)) if math.isfinite(x) else x


def rint(x: float) -> float:
    """The integer nearest to x, the even one of two, in x's type."""
    return type(x)(round(x)) if math.isfinite(x) else x


def erfinv(x: float) -> float:
    """The inverse of the error function.

    Winitzki's approximation, and Halley's steps until it is exact.

    References:
        Winitzki (2008), "A handy approximation for the error function and its inverse".
    """
    if not -1 < x < 1:
        return x * inf if abs(x) == 1 else nan
    rest = math.log1p(-x * x)
    t = 2 / (pi * 0.147) + rest / 2
    z = math.sqrt(max(math.sqrt(t * t - rest / 0.147) - t, 0.0))
    for _ in range(4):
        over = math.erf(z) - abs(x) if z < 0.5 else (1 - abs(x)) - math.erfc(z)
        step = over * math.sqrt(pi) / 2 * math.exp(z * z)
        z -= step / (1 + z * step)
    return math.copysign(z, x)


def iv(n: float, x: float) -> float:
    """The modified Bessel function of the first kind, of order n.

    References:
        Abramowitz and Stegun (1964), 9.6.6 and 9.6.10.
    """
    n = abs(n) if n % 1 == 0 else n
    term = total = math.pow(x / 2, n) / math.gamma(n + 1)
    k = 0
    while abs(term) > 1e-17 * abs(total):
        k += 1
        term *= (x / 2) ** 2 / (k * (k + n))
        total += term
    return total


def betaln(x: float, y: float) -> float:
    """The logarithm of the beta function of positive x and y, exact for large ones.

    References:
        Abramowitz and Stegun (1964), 6.1.41; Didonato and Morris (1992).
    """
    x, y = min(x, y), max(x, y)
    if y < 10:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
    correction = _stirling(y) - _stirling(x + y)
    if x < 10:
        fall = x * (1 - math.log(x + y)) - (y - 0.5) * math.log1p(x / y)
        return math.lgamma(x) + correction + fall
    fall = (x - 0.5) * math.log(x / (x + y)) - y * math.log1p(x / y)
    return _stirling(x) + correction + (math.log(2 * pi / y)) / 2 + fall


def _stirling(x: float) -> float:
    """What Stirling's formula leaves out of ``lgamma(x)``, for x >= 10."""
    terms = enumerate(_BERNOULLI, start=1)
    return sum(b / (2 * k * (2 * k - 1) * x ** (2 * k - 1)) for k, b in terms)


def gammainc(x: float, y: float) -> float:
    """The lower incomplete gamma function of shape x at y, from 0 to 1."""
    return _lower(x, y) if _is_low(x, y) else 1 - _upper(x, y)


def gammaincc(x: float, y: float) -> float:
    """The upper incomplete gamma function of shape x at y, from 1 to 0."""
    return 1 - _lower(x, y) if _is_low(x, y) else _upper(x, y)


def _is_low(x: float, y: float) -> bool:
    """Whether the series takes fewer terms than the continued fraction."""
    return y <= x + 1


def _lower(x: float, y: float) -> float:
    """``gammainc`` by its series, for small y.

    References:
        Abramowitz and Stegun (1964), 6.5.29.
    """
    if y <= 0:
        return 0.0 if y == 0 else nan
    term = total = 1 / x
    k = x
    while term > 1e-17 * total:
        k += 1
        term *= y / k
        total += term
    return total * math.exp(x * math.log(y) - y - math.lgamma(x))


def _upper(x: float, y: float) -> float:
    """``gammaincc`` by its continued fraction, for large y.

    References:
        Abramowitz and Stegun (1964), 6.5.31; Lentz (1976).
    """
    if y == inf:
        return 0.0
    b = y + 1 - x
    c, d = inf, 1 / b
    total = d
    for k in range(1, 10_000):
        a = -k * (k - x)
        b += 2
        d, c = 1 / (b + a * d), b + a / c
        factor = c * d
        total *= factor
        if factor == 1:
            break
    return total * math.exp(x * math.log(y) - y - math.lgamma(x))


def __getattr__(name: str) -> Any:
    """Refuse, in words, what only arrays have."""
    raise NotArrayError(
        f"{name}: it is a function of arrays, and was given none. Give an array, or "
        f"make one of numbers: lantern.array([x, y])."
    )


# Of a float nothing is asked, and a sine there and back takes a tenth less. The three
# that are left out make an int of it.
_MATHS = {
    name: function
    for name, function in vars(math).items()
    if name in globals() and name[0] != "_" and name not in {"ceil", "floor", "trunc"}
}
floats: Any = ModuleType(f"{__name__}.floats")
vars(floats).update(globals() | _MATHS)

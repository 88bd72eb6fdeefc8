"""Functions of plain Python scalars, under the names of the array API standard.

This module is the namespace of ``float``, ``int``, ``complex`` and ``Fraction``; where
``math`` raises at an edge of its domain, so do they. Only ``ieee_divide`` and
``ieee_pow``, for derivatives, go on with infinity as IEEE arithmetic does.
"""

import cmath
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

pi, inf, nan = math.pi, math.inf, math.nan


def _function(name: str) -> Callable[[Any], Any]:
    real, complex_ = getattr(math, name), getattr(cmath, name, None)

    def function(x: Any) -> Any:
        if type(x) is complex and complex_ is not None:
            return complex_(x)
        return real(x)

    function.__name__ = name
    return function


exp, sqrt = _function("exp"), _function("sqrt")
log, log10 = _function("log"), _function("log10")
sin, cos, tan = _function("sin"), _function("cos"), _function("tan")
asin, acos, atan = _function("asin"), _function("acos"), _function("atan")
sinh, cosh, tanh = _function("sinh"), _function("cosh"), _function("tanh")
asinh, acosh, atanh = _function("asinh"), _function("acosh"), _function("atanh")
erf, erfc, gamma, lgamma = math.erf, math.erfc, math.gamma, math.lgamma
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
    """``x ** y``, infinite where x is 0 and y negative."""
    try:
        return x**y
    except ZeroDivisionError:
        return inf


def conj(x: Any) -> Any:
    """The complex conjugate; a real number is its own."""
    return x.conjugate() if type(x) is complex else x


def real(x: Any) -> Any:
    """The real part."""
    return x.real


def imag(x: Any) -> Any:
    """The imaginary part."""
    return x.imag


def hypot(x: Any, y: Any) -> float:
    """``sqrt(x * x + y * y)`` without overflow."""
    return math.hypot(x, y)


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


def quiet() -> Any:
    """A block in which nothing has to be silenced."""
    return nullcontext()


def zeros_like(x: Any) -> Any:
    """Zero in x's type."""
    return type(x)(0)


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
    shift, sign_ = 0.0, (-1.0) ** (n + 1)
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
    c = 1 / math.tan(pi * (x - math.floor(x)))
    return float(pi ** (n + 1) * sum(a * c**i for i, a in enumerate(coefficients)))

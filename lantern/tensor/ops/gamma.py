"""The gamma distribution: its probabilities, and how its quantiles move.

Arrays need SciPy (the extra ``scipy``); numbers need nothing.
"""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base
from lantern.op import elementwise
from lantern.tensor.backend.numpy_namespace import array_namespace

__all__ = ["betaln", "gamma_slope", "gammainc", "gammaincc", "gammaincinv"]


@elementwise
def betaln(x: Any, y: Any, /) -> Rule:
    """The logarithm of the beta function, ``gamma(x) * gamma(y) / gamma(x + y)``.

    Shapes:
        x, y: (...), broadcast, positive; result: (...)

    Rule:
        x_bar = z_bar * (digamma(x) - digamma(x + y)), y_bar likewise

    Example:
        >>> betaln(1.0, 1.0)
        0.0
    """
    xp = namespace(x, y)
    z_bar = yield xp.betaln(x, y)
    both = xp.polygamma(0, x + y)
    yield z_bar * (xp.polygamma(0, x) - both)
    yield z_bar * (xp.polygamma(0, y) - both)


@elementwise
def gammainc(a: Any, x: Any, /) -> Rule:
    """The probability that a gamma number of shape a is below x, for positive a.

    Shapes:
        a, x: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * p, with the density ``p = x**(a - 1) * exp(-x) / gamma(a)``
        a_bar = -z_bar * p * gamma_slope(a, x)

    Example:
        >>> gammainc(1.0, 0.0)
        0.0
    """
    z_bar = yield namespace(a, x).gammainc(a, x)
    by_a, by_x = _gamma_partials(a, x)
    yield z_bar * by_a
    yield z_bar * by_x


@elementwise
def gammaincc(a: Any, x: Any, /) -> Rule:
    """The probability that a gamma number of shape a is above x, for positive a.

    Shapes:
        a, x: (...), broadcast; result: (...)

    Rule:
        the negative of that of ``gammainc``

    Example:
        >>> gammaincc(1.0, 0.0)
        1.0
    """
    z_bar = yield namespace(a, x).gammaincc(a, x)
    by_a, by_x = _gamma_partials(a, x)
    yield -z_bar * by_a
    yield -z_bar * by_x


def gammaincinv(a: Any, p: Any, /) -> Any:
    """The quantile of a gamma distribution: below it lies a part p, for positive a.

    Shapes:
        a, p: (...), broadcast; result: (...)

    Example:
        >>> round(gammaincinv(1.0, 0.5), 6)
        0.693147
    """
    return _gammaincinv(a, p)


@elementwise
def _gammaincinv(a: Any, p: Any, /, z: Any = None) -> Rule:
    """The quantile of a gamma distribution; if it is known already, it is z.

    Shapes:
        a, p: (...), broadcast; result: (...)

    Rule:
        a_bar = z_bar * gamma_slope(a, z), p_bar = z_bar / density
    """
    z = _quantile(a, p, z)
    z_bar = yield (z, p := None)[0]
    xp = namespace(a, z)
    safe = xp.where(base(z) == 0, _SMALLEST, z)
    yield z_bar * gamma_slope(a, safe)
    yield z_bar * xp.exp(xp.lgamma(a) + safe - xp.xlogy(a - 1, safe))


def _quantile(a: Any, p: Any, z: Any) -> Any:
    """The forward step of ``gammaincinv``."""
    if isinstance(a, Value) or isinstance(p, Value):
        return _gammaincinv(a, p, z)
    if z is not None:
        return z
    z = array_namespace(a, p).gammaincinv(a, p)
    return z if hasattr(a, "dtype") or hasattr(p, "dtype") else float(z)


def _gamma_partials(a: Any, x: Any) -> tuple[Any, Any]:
    """The partial derivatives of ``gammainc``; at 0 the first is 0."""
    xp = namespace(a, x)
    density = xp.exp(xp.xlogy(a - 1, x) - x - xp.lgamma(a))
    slope = gamma_slope(a, xp.where(base(x) == 0, 1, x))
    return xp.where(base(x) == 0, 0, -density * slope), density


# Points and weights on (0, inf) for functions that decay like exp(-s), whatever their
# scale within some powers of ten: the trapezoidal rule after s = exp(pi/2 * sinh(t)).
_TIMES = [k / 16 for k in range(-64, 39)]
_POINTS = [math.exp(math.pi / 2 * math.sinh(t)) for t in _TIMES]
_WEIGHTS = [
    s * math.pi / 32 * math.cosh(t) for t, s in zip(_TIMES, _POINTS, strict=True)
]
_SMALLEST = 1e-37  # in place of a quantile that has underflowed to 0
_BLOCK = 4_000_000  # how many numbers a block of points may make of its operands


def gamma_slope(a: Any, x: Any, /) -> Any:
    """How fast a quantile x of the gamma distribution moves with its shape a.

    ``gammainc(a, x(a))`` stays as it is for ``x'(a) = -(d gammainc / d a) / density``.
    That is an integral from 0 to x, and another from x on. Each is taken where its
    integrand keeps its sign, so that nothing cancels; it is smooth to every order.

    Shapes:
        a, x: (...), broadcast, positive; result: (...)

    Example:
        >>> float(round(gamma_slope(1.0, 1.0), 9))
        1.173563027

    References:
        Figurnov, Mohamed and Mnih (2018), equation 5; Takahasi and Mori (1974).
    """
    a, x = from_lists(a), from_lists(x)
    plain = array_namespace(base(a), base(x))
    digamma = namespace(a).polygamma(0, a)
    small = (plain.log(base(x)) < base(digamma)) | (base(x) < 0.05)
    small = plain.asarray(small)
    xp = namespace(a, x)
    low, high = xp.where(small, x, base(a) / 2), xp.where(small, base(a) + 1, x)
    step, total = max(1, _BLOCK // (small.size + 1)), 0
    for i in range(0, len(_POINTS), step):
        points, weights = (
            plain.reshape(
                plain.asarray(numbers[i : i + step]), (-1, *(1,) * small.ndim)
            )
            for numbers in (_POINTS, _WEIGHTS)
        )
        part = plain.where(small, weights, 0) * _from_below(a, low, digamma, points)
        rest = plain.where(small, 0, weights) * _from_above(a, high, digamma, points)
        total = total + namespace(part).sum(part + rest, axis=0)
    return total


def _from_below(a: Any, x: Any, digamma: Any, points: Any) -> Any:
    """The integrand from 0 to x, at ``x * exp(-v)``, by v and in density's units."""
    a_, x_ = base(a), base(x)
    plain, xp = array_namespace(a_, x_), array_namespace(a, x)
    steepness = plain.maximum(a_ - x_, 0) + plain.minimum(plain.sqrt(a_), a_)
    v = points / steepness
    ratio = xp.exp(-a * v - x * plain.expm1(-v))
    return ratio * (digamma - xp.log(x) + v) * (x / steepness)


def _from_above(a: Any, x: Any, digamma: Any, points: Any) -> Any:
    """The integrand from x on, at ``x + v``, by v and in density's units."""
    a_, x_ = base(a), base(x)
    plain, xp = array_namespace(a_, x_), array_namespace(a, x)
    steepness = plain.maximum(1 - (a_ - 1) / x_, 0) + 1 / plain.sqrt(x_)
    v = points / steepness
    ratio = xp.exp((a - 1) * xp.log1p(v / x) - v)
    return ratio * (xp.log(x + v) - digamma) / steepness

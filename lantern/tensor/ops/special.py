"""Special functions: of exponentials, of probability and of signals.

Arrays need SciPy for most of them (the extra ``scipy``); numbers need nothing.
"""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import elementwise
from lantern.rules.special import erfc, lgamma, sigmoid, softplus

__all__ = [
    "erfinv",
    "expit",
    "gammaln",
    "i0",
    "i1",
    "iv",
    "log_expit",
    "log_sigmoid",
    "logaddexp",
    "logaddexp2",
    "logit",
    "ndtr",
    "sinc",
    "xlogy",
]

expit, gammaln = sigmoid, lgamma


@elementwise
def logaddexp(x: Any, y: Any, /) -> Rule:
    """``log(exp(x) + exp(y))`` without overflow.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * sigmoid(x - y), y_bar = z_bar * sigmoid(y - x)
        at equal infinities half each, at -inf nothing

    Example:
        >>> round(logaddexp(0.0, 0.0), 6)
        0.693147
    """
    z_bar = yield namespace(x, y).logaddexp(x, y)
    yield from _shares(z_bar, x, y, 1.0)


@elementwise
def logaddexp2(x: Any, y: Any, /) -> Rule:
    """``log2(2**x + 2**y)`` without overflow.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * sigmoid((x - y) * log(2)), y_bar = z_bar - x_bar
        at equal infinities half each, at -inf nothing

    Example:
        >>> logaddexp2(3.0, 3.0)
        4.0
    """
    z_bar = yield namespace(x, y).logaddexp2(x, y)
    yield from _shares(z_bar, x, y, math.log(2))


def _shares(z_bar: Any, x: Any, y: Any, scale: float) -> Any:
    """What each term of a sum of exponentials gets: its share of the sum."""
    xp = namespace(x, y)
    infinite = (x == y) & ((x == math.inf) | (x == -math.inf))
    apart = (xp.where(infinite, 0, x) - xp.where(infinite, 0, y)) * scale
    z_bar = xp.where((x == -math.inf) & infinite, 0, z_bar)
    yield z_bar * xp.sigmoid(apart)
    yield z_bar * xp.sigmoid(-apart)


@elementwise
def xlogy(x: Any, y: Any, /) -> Rule:
    """``x * log(y)``, 0 where x is 0.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * log(y), y_bar = z_bar * x / y, 0 where both are 0

    Example:
        >>> xlogy(0.0, 0.0)
        0.0
    """
    xp = namespace(x, y)
    z_bar = yield xp.xlogy(x, y)
    log_y = xp.log(xp.where(y == 0, 1, y))
    yield z_bar * xp.where(y == 0, -math.inf, log_y)
    yield xp.ieee_divide(z_bar * x, xp.where((x == 0) & (y == 0), 1, y))


@elementwise
def logit(x: Any, /) -> Rule:
    """The inverse of ``sigmoid``, ``log(x / (1 - x))``, for x from 0 to 1.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / (x * (1 - x)), infinite at 0 and 1

    Example:
        >>> logit(0.5)
        0.0
    """
    xp = namespace(x)
    z_bar = yield xp.logit(x)
    yield xp.ieee_divide(z_bar, x * (1 - x))


def log_sigmoid(x: Any, /) -> Any:
    """``log(sigmoid(x))`` without overflow.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> log_sigmoid(-1000.0)
        -1000.0
    """
    return -softplus(-x)


log_expit = log_sigmoid


@elementwise
def erfinv(x: Any, /) -> Rule:
    """The inverse of the error function, for x from -1 to 1.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sqrt(pi) / 2 * exp(z * z)

    Example:
        >>> erfinv(0.0)
        0.0

    References:
        Abramowitz and Stegun (1964), 7.1.1.
    """
    xp = namespace(x)
    z = xp.erfinv(x)
    del x
    z_bar = yield z
    yield z_bar * (math.sqrt(math.pi) / 2) * xp.exp(z * z)


def ndtr(x: Any, /) -> Any:
    """The probability that a standard normal number is below x.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> ndtr(0.0)
        0.5
    """
    return erfc(from_lists(x) * -math.sqrt(0.5)) / 2


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind of order 0.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> i0(0.0)
        1.0
    """
    return iv(0, x)


def i1(x: Any, /) -> Any:
    """The modified Bessel function of the first kind of order 1.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> i1(0.0)
        0.0
    """
    return iv(1, x)


def iv(n: float, x: Any, /) -> Any:
    """The modified Bessel function of the first kind of order n.

    Shapes:
        n: a number; x: (...), positive if n is no integer; result: (...)

    Example:
        >>> iv(0, 0.0)
        1.0
    """
    if is_tracked(n):
        raise MissingRuleError(
            "iv: no rule for a tracked order. Hold it constant (lantern.stop_gradient)."
        )
    return _iv(x, base(from_lists(n)))


@elementwise
def _iv(x: Any, /, n: int) -> Rule:
    """The modified Bessel function of the first kind, its operand first.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (iv(n - 1, x) + iv(n + 1, x)) / 2

    References:
        Abramowitz and Stegun (1964), 9.6.26.
    """
    xp = namespace(x)
    z_bar = yield xp.iv(n, x)
    yield z_bar * ((xp.iv(n - 1, x) + xp.iv(n + 1, x)) / 2)


def sinc(x: Any) -> Any:
    """``sin(pi * x) / (pi * x)``, and 1 at 0.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> sinc(0.0), sinc(0.5)
        (1.0, 0.6366197723675814)
    """
    return _sinc(x, 0)


@elementwise
def _sinc(x: Any, /, n: int) -> Rule:
    """The n-th derivative of ``sinc``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * the derivative of order n + 1
    """
    z_bar = yield _sinc_derivative(x, n)
    yield z_bar * _sinc_derivative(x, n + 1)


def _sinc_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of ``sinc``: by its series near 0, by recurrence elsewhere.

    With ``u = pi * x`` and s the n-th derivative of ``sin(u) / u``, the product rule
    for ``u * (sin(u) / u)`` gives ``u * s = sin(u + n * pi / 2) - n * (s before)``.
    """
    xp = namespace(x)
    if isinstance(x, Value):
        return _sinc(x, n)
    if n == 0:
        return xp.sinc(x)
    u = math.pi * x
    near = xp.abs(u) < n + 2
    v = xp.where(near, n + 2, u)
    waves = (xp.sin(v), xp.cos(v), -xp.sin(v), -xp.cos(v))
    far = waves[0] / v
    for k in range(1, n + 1):
        far = (waves[k % 4] - k * far) / v
    v = xp.where(near, u, 0)
    term, series = v ** (n % 2), 0
    for k in range(n + n % 2, 7 * n + 26, 2):
        series = series + term * ((-1) ** (k // 2) / (k + 1))
        term = term * (v * v / ((k - n + 1) * (k - n + 2)))  # v**i / i!, never large
    return math.pi**n * xp.where(near, series, far)

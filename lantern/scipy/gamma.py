"""The gamma and beta functions, and the probabilities made of them."""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.value import Rule, is_tracked
from lantern.errors import ArgumentError, MissingRuleError
from lantern.op import constant, elementwise
from lantern.rules.exponential import exp, log
from lantern.rules.special import digamma
from lantern.scipy.entropy import xlog1py
from lantern.scipy.evaluate import evaluate
from lantern.tensor.ops.gamma import betaln
from lantern.tensor.ops.special import gammaln, xlogy

__all__ = [
    "beta",
    "betainc",
    "gammasgn",
    "multigammaln",
    "rgamma",
    "stdtr",
]


@elementwise
def beta(x: Any, y: Any, /) -> Rule:
    """The beta function, ``gamma(x) * gamma(y) / gamma(x + y)``.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar * z * (digamma(x) - digamma(x + y)), y_bar likewise

    Example:
        >>> beta(1.0, 2.0)
        0.5

    References:
        Abramowitz and Stegun (1964), 6.2.2.
    """
    z = evaluate(beta, x, y)
    z_bar = yield z
    both = digamma(x + y)
    yield z_bar * z * (digamma(x) - both)
    yield z_bar * z * (digamma(y) - both)


def betainc(a: Any, b: Any, x: Any, /) -> Any:
    """The probability that a beta number is below x.

    Shapes:
        a, b: (...), constants; x: (...), from 0 to 1; result: (...)

    Raises:
        MissingRuleError: for a tracked a or b.

    Example:
        >>> round(betainc(1.0, 2.0, 0.5), 12)
        0.75
    """
    _refuse_tracked("betainc", a, b)
    return _betainc(x, from_lists(a), from_lists(b))


@elementwise
def _betainc(x: Any, /, a: Any, b: Any) -> Rule:
    """The probability that a beta number is below x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)

    References:
        Abramowitz and Stegun (1964), 6.6.1.
    """
    z_bar = yield evaluate(betainc, a, b, x)
    yield z_bar * exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))


def _refuse_tracked(where: str, *parameters: Any) -> None:
    if any(map(is_tracked, parameters)):
        raise MissingRuleError(
            f"{where}: no rule for tracked parameters, only for x. Hold them constant "
            f"(lantern.stop_gradient), or integrate the density numerically."
        )


@elementwise
def rgamma(x: Any, /) -> Rule:
    """``1 / gamma(x)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = -z_bar * z * digamma(x), nan where gamma has a pole

    Example:
        >>> rgamma(3.0)
        0.5
    """
    z = evaluate(rgamma, x)
    z_bar = yield z
    yield -z_bar * z * digamma(x)


@constant
def gammasgn(x: Any, /) -> Rule:
    """The sign of the gamma function.

    Shapes:
        x: (...); result: (...), plain

    Rule:
        zero

    Example:
        >>> gammasgn(-0.5)
        -1.0
    """
    yield evaluate(gammasgn, x)


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the gamma function of dimension d.

    Shapes:
        a: (...), above (d - 1) / 2; d: an integer; result: (...)

    Example:
        >>> multigammaln(3.0, 1) == gammaln(3.0)
        True

    References:
        Muirhead (1982), theorem 2.1.12.
    """
    if d < 1 or d != int(d):
        raise ArgumentError(
            f"multigammaln: d must be a positive integer, got {d!r}. Give a dimension."
        )
    total: Any = d * (d - 1) / 4 * math.log(math.pi)
    for j in range(int(d)):
        total = total + gammaln(a - j / 2)
    return total


def stdtr(df: Any, x: Any, /) -> Any:
    """The probability that a number of Student's distribution is below x.

    Shapes:
        df: (...), constant; x: (...); result: (...)

    Raises:
        MissingRuleError: for a tracked df.

    Example:
        >>> round(stdtr(3.0, 0.0), 12)
        0.5
    """
    _refuse_tracked("stdtr", df)
    return _stdtr(x, from_lists(df))


@elementwise
def _stdtr(x: Any, /, df: Any) -> Rule:
    """The probability that a number of Student's distribution is below x.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * the density, (1 + x * x / df)**(-(df + 1) / 2) / (sqrt(df) *
        beta(1 / 2, df / 2))

    References:
        Abramowitz and Stegun (1964), 26.7.1.
    """
    z_bar = yield evaluate(stdtr, df, x)
    scale = betaln(0.5, df / 2) + log(df) / 2
    yield z_bar * exp(-xlog1py((df + 1) / 2, x * x / df) - scale)

"""What families expect of a few functions of their draws; divergences follow from it.

``D(p | q) = -H(p) - E_p[log q]``, and the logarithm of q's density is a sum of a few
functions of x: x itself, its square, ``log x``, ``log(1 - x)``, ``exp(-tx)``, |x - c|.
"""

import math
from collections.abc import Callable
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.distributions.located import Gumbel, Laplace, Normal
from lantern.torch.distributions.positive import Exponential, Gamma, Uniform
from lantern.torch.distributions.rarer import ContinuousBernoulli
from lantern.torch.distributions.several import Beta
from lantern.torch.distributions.transformed import Pareto
from lantern.torch.functions.creation import full
from lantern.torch.methods.table import FUNCTIONS

__all__ = ["CROSS", "LIMITS", "between_families"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_xlogy = FUNCTIONS["xlogy"]
_EULER = 0.57721566490153286
_EVERYWHERE = (-math.inf, math.inf)

# Between which numbers the draws of a family lie.
LIMITS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Beta: lambda p: (0.0, 1.0),
    ContinuousBernoulli: lambda p: (0.0, 1.0),
    Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf),
    Gumbel: lambda p: _EVERYWHERE,
    Laplace: lambda p: _EVERYWHERE,
    Normal: lambda p: _EVERYWHERE,
    Pareto: lambda p: (p.scale, math.inf),
    Uniform: lambda p: (p.low, p.high),
}


def _mean_of_logarithms(low: Any, high: Any) -> Any:
    """The mean of ``log x`` between two numbers."""
    return (_xlogy(high, high) - _xlogy(low, low)) / (high - low) - 1


# E[log x]
_LOGARITHM: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: (
        _digamma(p.concentration1) - _digamma(p.concentration1 + p.concentration0)
    ),
    Exponential: lambda p: -_EULER - p.rate.log(),
    Gamma: lambda p: _digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _mean_of_logarithms(p.low, p.high),
}
# E[log(1 - x)]
_OF_THE_REST: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: (
        _digamma(p.concentration0) - _digamma(p.concentration1 + p.concentration0)
    ),
    Uniform: lambda p: _mean_of_logarithms(1 - p.high, 1 - p.low),
}
# E[exp(-t x)]
_EXPONENTIAL: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (p.rate / (p.rate + t)) ** p.concentration,
    Gumbel: lambda p, t: (_lgamma(1 + p.scale * t) - p.loc * t).exp(),
    Normal: lambda p, t: ((p.scale * t) ** 2 / 2 - p.loc * t).exp(),
    Uniform: lambda p, t: (
        ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))
    ),
}


def _normal_distance(p: Any, c: Any) -> Any:
    """E[|x - c|] of normal draws."""
    z = (p.loc - c) / (p.scale * math.sqrt(2))
    return p.scale * math.sqrt(2 / math.pi) * (-(z**2)).exp() + (p.loc - c) * z.erf()


_DISTANCE: dict[type, Callable[[Any, Any], Any]] = {Normal: _normal_distance}


def _expected(table: dict[type, Any], p: Any, *args: Any) -> Any:
    """What a family expects of a function, where that is known."""
    for family in type(p).__mro__:
        if family in table:
            return table[family](p, *args)
    raise MissingRuleError(
        "kl_divergence: what that takes has no formula for a "
        f"{type(p).__name__}. Register a divergence with register_kl."
    )


def _beta(q: Any, p: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    powers = (a - 1) * _expected(_LOGARITHM, p) + (b - 1) * _expected(_OF_THE_REST, p)
    return _lgamma(a) + _lgamma(b) - _lgamma(a + b) - powers


def _gamma(q: Any, p: Any) -> Any:
    a, b = q.concentration, q.rate
    powers = (a - 1) * _expected(_LOGARITHM, p) - b * p.mean
    return _lgamma(a) - a * b.log() - powers


def _gumbel(q: Any, p: Any) -> Any:
    t = 1 / q.scale
    inner = _expected(_EXPONENTIAL, p, t) * (q.loc * t).exp()
    return q.scale.log() + (p.mean - q.loc) * t + inner


def _normal(q: Any, p: Any) -> Any:
    squares = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return squares + q.scale.log() + 0.5 * math.log(2 * math.pi)


# E_p[-log q]
CROSS: dict[type, Callable[[Any, Any], Any]] = {
    Beta: _beta,
    ContinuousBernoulli: lambda q, p: (
        -p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    ),
    Exponential: lambda q, p: q.rate * p.mean - q.rate.log(),
    Gamma: _gamma,
    Gumbel: _gumbel,
    Laplace: lambda q, p: (
        (2 * q.scale).log() + _expected(_DISTANCE, p, q.loc) / q.scale
    ),
    Normal: _normal,
    Pareto: lambda q, p: (
        (q.alpha + 1) * _expected(_LOGARITHM, p)
        - q.alpha * q.scale.log()
        - q.alpha.log()
    ),
    Uniform: lambda q, p: (q.high - q.low).log(),
}


def between_families(p: Any, q: Any) -> Any:
    """The divergence of two different families: infinite where q has no such draws.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Exponential, Normal, kl_divergence
        >>> kl_divergence(Exponential(torch.tensor(1.0)), Normal(0.0, 1.0))
        tensor(0.9189)
    """
    shape = FUNCTIONS["broadcast_shapes"](p.batch_shape, q.batch_shape)
    like = {"dtype": p.mean.dtype, "device": p.mean.device}
    (low, high), (least, most) = (
        (x if hasattr(x, "dtype") else full(shape, x, **like) for x in limits)
        for limits in (_expected(LIMITS, p), _expected(LIMITS, q))
    )
    beyond = ((low < least) | (high > most)).expand(shape)
    if beyond.all():
        return full(shape, math.inf, **like)
    return (_expected(CROSS, q, p) - p.entropy()).masked_fill(beyond, math.inf)

"""The Kullback-Leibler divergence: how much one distribution differs from another."""

import math
from collections.abc import Callable
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.distributions.chances import Bernoulli, Binomial, Geometric, Poisson
from lantern.torch.distributions.classes import Categorical, OneHotCategorical
from lantern.torch.distributions.distribution import Independent
from lantern.torch.distributions.located import Cauchy, HalfNormal, Laplace, Normal
from lantern.torch.distributions.matrices import LowRankMultivariateNormal
from lantern.torch.distributions.moments import CROSS, LIMITS, between_families
from lantern.torch.distributions.positive import Exponential, Gamma, Uniform
from lantern.torch.distributions.several import Beta, Dirichlet, MultivariateNormal
from lantern.torch.distributions.transformed import TransformedDistribution
from lantern.torch.functions.creation import full
from lantern.torch.linalg import solve_triangular
from lantern.torch.methods.table import FUNCTIONS

__all__ = ["kl_divergence", "register_kl"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator for the divergence of two classes of distributions.

    Example:
        >>> import lantern.torch as torch
        >>> class Point(torch.distributions.Distribution):
        ...     def __init__(self, at):
        ...         self.at = at
        ...         super().__init__()
        >>> @torch.distributions.register_kl(Point, Point)
        ... def between_points(p, q):
        ...     return 0.0 if p.at == q.at else float("inf")
        >>> torch.distributions.kl_divergence(Point(1.0), Point(2.0))
        inf
    """

    def decorator(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return decorator


def kl_divergence(p: Any, q: Any) -> Any:
    """The expected value of ``p.log_prob - q.log_prob`` of draws of p.

    Of the rules of the classes that p and q are made from, the first is taken, the
    nearest class of p before that of q.

    Raises:
        NotImplementedError: for a pair of classes whose divergence is not known.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Normal
        >>> torch.distributions.kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _KL_REGISTRY:
                return _KL_REGISTRY[a, b](p, q)
    raise MissingRuleError(
        f"kl_divergence: no divergence of {type(p).__name__} and {type(q).__name__} is "
        "known. Register one with register_kl."
    )


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingRuleError("kl_divergence: two Independent differ in their axes.")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + _lgamma(q.concentration)
        - _lgamma(p.concentration)
        + (p.concentration - q.concentration) * _digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    terms = (a - b) * (_digamma(a) - _digamma(a.sum(-1, True)))
    return (
        _lgamma(a.sum(-1))
        - _lgamma(b.sum(-1))
        - (_lgamma(a) - _lgamma(b)).sum(-1)
        + terms.sum(-1)
    )


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    return _ratio(p.probs, q.probs) + _ratio(1 - p.probs, 1 - q.probs)


def _ratio(p: Any, q: Any) -> Any:
    """``p * log(p / q)``, also where a probability is 0."""
    z = FUNCTIONS["xlogy"](p, p / q)
    return z.masked_fill(q == 0, math.inf).masked_fill(p == 0, 0.0)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill(q.probs == 0, math.inf)
    return terms.masked_fill(p.probs == 0, 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_bounded(p: Any, q: Any) -> Any:
    shape = FUNCTIONS["broadcast_shapes"](p.batch_shape, q.batch_shape)
    return full(shape, math.inf, dtype=p.rate.dtype, device=p.rate.device)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise MissingRuleError(
            "kl_divergence: two Binomial, the second of more tries, is not implemented."
        )
    found = _ratio(p.probs, q.probs) + _ratio(1 - p.probs, 1 - q.probs)
    return (p.total_count * found).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() * (1 / p.probs - 1) - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p._both(), q._both())


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    away = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return away.log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise MissingRuleError(
            "kl_divergence: two TransformedDistribution differ in their transforms."
        )
    found = kl_divergence(p.base_dist, q.base_dist)
    axes = len(p.event_shape) - len(p.base_dist.event_shape)
    return found.sum(tuple(range(-axes, 0))) if axes else found


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    away = solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    spread = solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    squares = (spread**2).sum((-2, -1)) + (away**2).sum((-2, -1))
    half = (_log_diagonal(q) - _log_diagonal(p)).sum(-1)
    return half + 0.5 * (squares - p.event_shape[0])


def _log_diagonal(p: Any) -> Any:
    return p.scale_tril.diagonal(0, -2, -1).log()


# A family beside itself may have a shorter formula.
for _p in LIMITS:
    for _q in CROSS:
        _KL_REGISTRY.setdefault((_p, _q), between_families)

"""Fisher's and von Mises' distributions, continuous yes or no, Pareto's general one."""

import math
from typing import Any, ClassVar

from lantern.eager.grad_mode import no_grad
from lantern.torch.distributions import constraints
from lantern.torch.distributions.chances import _ByChance, clamped
from lantern.torch.distributions.derived import derived
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.distributions.positive import Gamma
from lantern.torch.methods.sampling import rand, rng
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.functional import softplus
from lantern.torch.special import i0e, i1e
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.tensor import fresh

__all__ = ["ContinuousBernoulli", "FisherSnedecor", "GeneralizedPareto", "VonMises"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_where = FUNCTIONS["where"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared draws, each over its degrees of freedom.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.FisherSnedecor(torch.tensor([1.0]), 4.0).mean
        tensor([2.])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "df1": constraints.positive,
        "df2": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The expected value; nan up to two degrees below."""
        return self.df2 / (self.df2.masked_fill(self.df2 <= 2, math.nan) - 2)

    @property
    def mode(self) -> Any:
        """The most likely value."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean; nan up to 4 below."""
        b = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * b**2 * (self.df1 + b - 2) / (self.df1 * (b - 2) ** 2 * (b - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        above = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        below = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        tiny = 1.2e-38 if self.df1.element_size() == 4 else 2.3e-308
        return above.rsample(sample_shape) / below.rsample(sample_shape).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        value = self._checked(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        norm = _lgamma(a + b) - _lgamma(a) - _lgamma(b)
        inner = a * ratio.log() + (a - 1) * value.log()
        return norm + inner - (a + b) * (ratio * value).log1p()


class ContinuousBernoulli(_ByChance):
    """Numbers between 0 and 1, whose density is a power of one parameter.

    Args:
        probs: the parameter, between 0 and 1.
        logits: in its place, its logit.
        lims: near a half, where a series is used.
        validate_args: see ``Distribution``.

    References:
        Loaiza-Ganem, Cunningham (2019), "The continuous Bernoulli".

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.5])).mean
        tensor([0.5000])
    """

    has_rsample = True
    support = constraints.unit_interval

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Any = None,
    ) -> None:
        given = self._take(probs, logits)
        self._lims = lims
        super().__init__(given.shape, (), validate_args)
        if probs is not None:
            self.__dict__["probs"] = clamped(given)

    @derived
    def probs(self) -> Any:
        """The probabilities, kept from 0 and 1."""
        return clamped(self.__dict__["logits"].sigmoid())

    def _parts(self) -> Any:
        """Where the formulas hold, and parameters that are kept from a half."""
        p = self.probs
        outside = (p <= self._lims[0]) | (p > self._lims[1])
        return p, outside, _where(outside, p, self._lims[0] * p.new_ones(p.shape))

    def _log_norm(self) -> Any:
        p, outside, cut = self._parts()
        low, high = cut.clamp(max=0.5), cut.clamp(min=0.5)
        odds = ((-cut).log1p() - cut.log()).abs().log()
        found = odds - _where(
            cut <= 0.5, (-2.0 * low).log1p(), (2.0 * high - 1.0).log()
        )
        x = (p - 0.5) ** 2
        return _where(outside, found, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Any:
        """The expected value."""
        p, outside, cut = self._parts()
        found = cut / (2 * cut - 1) + 1 / ((-cut).log1p() - cut.log())
        x = p - 0.5
        return _where(outside, found, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        p, outside, cut = self._parts()
        found = cut * (cut - 1) / (1 - 2 * cut) ** 2
        found = found + 1 / ((-cut).log1p() - cut.log()) ** 2
        x = (p - 0.5) ** 2
        return _where(outside, found, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameter."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.probs.dtype).to(self.probs))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        return value * logits - softplus(logits) + self._log_norm()

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        value = self._checked(value)
        _, outside, cut = self._parts()
        powers = cut**value * (1 - cut) ** (1 - value) + cut - 1
        inner = _where(outside, powers / (2 * cut - 1), value)
        inner = _where(value >= 1, value.new_ones(()), inner)
        return _where(value <= 0, value.new_zeros(()), inner)

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        _, outside, cut = self._parts()
        top = (-cut + value * (2 * cut - 1)).log1p() - (-cut).log1p()
        return _where(outside, top / (cut.log() - (-cut).log1p()), value)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        p = self.probs
        yes, no = p.log(), (-p).log1p()
        return self.mean * (no - yes) - self._log_norm() - no


class VonMises(Distribution):
    """Angles around one: on a circle, what the normal distribution is on a line.

    Args:
        loc: the angle in the middle.
        concentration: how near to it draws are.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.VonMises(torch.tensor([0.0]), 1.0)
        >>> x.log_prob(torch.tensor([0.0]))
        tensor([-1.0738])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The angle in the middle."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """1 less the mean of the cosines of the distances."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Angles that are drawn."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            k = base(self.concentration.detach())
            drawn = rng().vonmises(0.0, on_host(k).astype("float64"), shape)
            drawn = fresh(beside(drawn.astype(k.dtype), k))
            return (drawn + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at an angle."""
        away, k = self._checked(value) - self.loc, self.concentration
        norm = math.log(2 * math.pi) + i0e(k).log()
        return k * (away.cos() - 1) - norm


class GeneralizedPareto(Distribution):
    """What is left beyond a threshold: of light, exponential or heavy tails.

    Args:
        loc: the threshold.
        scale: by what it is stretched.
        concentration: the tail's weight; at 0 it is exponential.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, torch.tensor([0.5])).mean
        tensor([2.])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: Any = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(
            loc, scale, concentration
        )
        super().__init__(self.loc.shape, (), validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """What is beyond the threshold; for light tails, up to an end."""
        end = self.loc - self.scale / self.concentration
        high = _where(self.concentration < 0, end, math.inf)
        return constraints.interval(self.loc, high)

    def _tail(self) -> Any:
        """Where the tail is exponential, and a weight that can be divided by."""
        flat = self.concentration.abs() < 1e-8
        return flat, self.concentration.masked_fill(flat, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype).to(self.loc))

    def _log_survival(self, value: Any) -> Any:
        flat, k = self._tail()
        z = (value - self.loc) / self.scale
        return _where(flat, -z, -(k * z).log1p() / k)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        left = self._log_survival(self._checked(value))
        return (1 + self.concentration) * left - self.scale.log()

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return -self._log_survival(self._checked(value)).expm1()

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        flat, k = self._tail()
        left = (-value).log1p()
        z = _where(flat, -left, (-k * left).expm1() / k)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Any:
        """The expected value: infinite from a weight of 1 on."""
        k = self.concentration
        found = self.loc + self.scale / (1 - k.masked_fill(k >= 1, 0.0))
        return found.masked_fill(k >= 1, math.inf)

    @property
    def mode(self) -> Any:
        """The threshold."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        k = self.concentration
        inner = k.masked_fill(k >= 0.5, 0.0)
        found = self.scale**2 / ((1 - inner) ** 2 * (1 - 2 * inner))
        return found.masked_fill(k >= 0.5, math.inf)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self.scale.log() + self.concentration + 1

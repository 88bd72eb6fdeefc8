"""Location-scale families: a standard distribution, shifted and scaled."""

import math
from typing import Any, ClassVar

from lantern.torch.distributions import constraints
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.functions.creation import as_tensor, empty, full_like
from lantern.torch.methods.sampling import rand, randn
from lantern.torch.methods.table import FUNCTIONS

__all__ = ["Cauchy", "Gumbel", "HalfNormal", "Laplace", "Normal"]

_EULER = 0.57721566490153286


class Located(Distribution):
    """A location-scale family: a standard distribution, shifted and scaled.

    Args:
        loc: where it is moved to.
        scale: by what it is stretched.
        validate_args: see ``Distribution``.
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    def _standard(self, shape: Any, dtype: Any) -> Any:
        """Draws of the form itself, in the type of the parameters."""
        raise self._absent("rsample")

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        drawn = self._standard(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + self.scale * drawn.to(self.loc)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return self.loc


class Normal(Located):
    """Normal distributions.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(2))
        tensor([-0.9189, -0.9189])
    """

    def _standard(self, shape: Any, dtype: Any) -> Any:
        return randn(shape, dtype=dtype)

    @property
    def variance(self) -> Any:
        """The square of the scale."""
        return self.scale**2

    @property
    def stddev(self) -> Any:
        """The scale."""
        return self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        z = (self._checked(value) - self.loc) / self.scale
        return -(z**2) / 2 - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        z = (self._checked(value) - self.loc) / (self.scale * math.sqrt(2))
        return 0.5 * (1 + z.erf())

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(Located):
    """Laplace distributions: exponential on both sides.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Laplace
        >>> Laplace(torch.tensor([0.0]), 2.0).log_prob(torch.tensor([0.0])).exp()
        tensor([0.2500])
    """

    def _standard(self, shape: Any, dtype: Any) -> Any:
        u = 2 * rand(shape, dtype=dtype) - 1
        return -u.sign() * FUNCTIONS["log1p"](-u.abs())

    @property
    def variance(self) -> Any:
        """Twice the square of the scale."""
        return 2 * self.scale**2

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        return (
            -(2 * self.scale).log()
            - (self._checked(value) - self.loc).abs() / self.scale
        )

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        z = self._checked(value) - self.loc
        return 0.5 - 0.5 * z.sign() * FUNCTIONS["expm1"](-z.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        from_half = value - 0.5
        z = from_half.sign() * FUNCTIONS["log1p"](-2 * from_half.abs())
        return self.loc - self.scale * z

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return 1 + (2 * self.scale).log()


class Cauchy(Located):
    """Cauchy distributions, which have no mean.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Cauchy
        >>> Cauchy(torch.tensor([0.0]), 1.0).cdf(torch.tensor([1.0]))
        tensor([0.7500])
    """

    def _standard(self, shape: Any, dtype: Any) -> Any:
        return empty(shape, dtype=dtype).cauchy_()

    @property
    def mean(self) -> Any:
        """nan: there is none."""
        return full_like(self.loc, math.nan)

    @property
    def variance(self) -> Any:
        """inf."""
        return full_like(self.loc, math.inf)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return ((self._checked(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(Located):
    """Gumbel distributions: of the largest of many draws.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Gumbel
        >>> Gumbel(torch.tensor([0.0]), 1.0).mean  # Euler's constant
        tensor([0.5772])
    """

    def _standard(self, shape: Any, dtype: Any) -> Any:
        return -(-(1 - rand(shape, dtype=dtype)).log()).clamp(min=1e-30).log()

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return (math.pi**2 / 6) * self.scale**2

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        value = self._checked(as_tensor(value))
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self.scale.log() + (1 + _EULER)


class HalfNormal(Distribution):
    """The sizes of normal draws around 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.HalfNormal(torch.tensor([1.0])).mean
        tensor([0.7979])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, (), validate_args)

    def _both(self) -> Normal:
        """The distribution of either sign."""
        return Normal(0.0, self.scale, validate_args=False)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Any:
        """The most likely value: 0."""
        return self.scale.new_zeros(self.scale.shape)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the scale."""
        return self._both().rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        return self._both().log_prob(self._checked(value)) + math.log(2)

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return 2 * self._both().cdf(self._checked(value)) - 1

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self._both().icdf((value + 1) / 2)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self._both().entropy() - math.log(2)

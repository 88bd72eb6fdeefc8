"""Distributions of positive numbers, of intervals, and what is made of them."""

import math
from typing import Any, ClassVar

from lantern import random
from lantern.torch.distributions import constraints
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.distributions.located import Located
from lantern.torch.functions.creation import tensor
from lantern.torch.methods.sampling import rand, randn, rng
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.operators import call
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Chi2", "Exponential", "Gamma", "StudentT", "Uniform"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]


class Uniform(Distribution):
    """Uniform distributions between two bounds.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Uniform
        >>> Uniform(torch.tensor([0.0]), 4.0).log_prob(torch.tensor([1.0])).exp()
        tensor([0.2500])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "low": constraints.real,
        "high": constraints.real,
    }

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)

    @property
    def arg_ranges(self) -> Any:
        """The bounds."""
        return self.low, self.high

    @property
    def mode(self) -> Any:
        """nan: all values are equally likely."""
        return float("nan") * self.high

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """What lies between the bounds."""
        return constraints.interval(self.low.detach(), self.high.detach())

    def _check_parameters(self) -> None:
        # The upper bound must be above the lower one.
        bound = constraints.greater_than(self.low.detach())
        self.arg_constraints = {"low": constraints.real, "high": bound}  # type: ignore[misc]
        super()._check_parameters()

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the bounds."""
        drawn = rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + drawn.to(self.low) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        value = self._checked(value)
        inside = (self.low <= value) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """The logarithm of the distance of the bounds."""
        return (self.high - self.low).log()


class Exponential(Distribution):
    """Exponential distributions of a rate.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Exponential(torch.tensor([2.0])).mean
        tensor([0.5000])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """1 over the rate."""
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self) -> Any:
        """The most likely value: 0."""
        return self.rate.new_zeros(self.rate.shape)

    @property
    def variance(self) -> Any:
        """1 over the square of the rate."""
        return self.rate ** (-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the rate."""
        drawn = self.rate.new_zeros(self._extended_shape(sample_shape))
        return drawn.exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return 1 - (-self.rate * self._checked(value)).exp()

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return 1 - self.rate.log()


class Gamma(Distribution):
    """Gamma distributions of a shape and a rate.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.Gamma(torch.tensor([3.0]), 2.0)
        >>> x.mean, x.variance
        (tensor([1.5000]), tensor([0.7500]))
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative

    def __init__(
        self, concentration: Any, rate: Any, validate_args: Any = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        if not isinstance(value, Tensor):
            value = tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        value = self._checked(value)
        return (
            FUNCTIONS["xlogy"](self.concentration, self.rate)
            + FUNCTIONS["xlogy"](self.concentration - 1, value)
            - self.rate * value
            - _lgamma(self.concentration)
        )

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return (
            self.concentration
            - self.rate.log()
            + _lgamma(self.concentration)
            + (1.0 - self.concentration) * _digamma(self.concentration)
        )


def standard_gamma(concentration: Any) -> Any:
    """Draws of gamma distributions of rate 1, with a derivative."""
    drawn = call(lambda a: random.standard_gamma(rng(), a), concentration)
    tiny = 1e-38 if drawn.itemsize == 4 else 1e-300
    return drawn.to(concentration.dtype).clamp(min=tiny)


_standard_gamma = standard_gamma  # PyTorch's name for it, in torch


def log_standard_gamma(concentration: Any) -> Any:
    """Logarithms of such draws, also of those that are too small for the type.

    A draw for a is one for a + 1, times a uniform draw to the power 1 / a.
    """
    small = concentration < 1
    drawn = standard_gamma(concentration + small.to(concentration.dtype)).log()
    uniform = 1 - rand(concentration.shape, dtype=concentration.dtype)
    power = uniform.to(concentration).log() / concentration
    return drawn + power.masked_fill(~small, 0.0)


class Chi2(Gamma):
    """The sums of the squares of normal draws, by their number.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Chi2(torch.tensor([3.0])).mean
        tensor([3.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class StudentT(Located):
    """Student's distributions: of heavier tails than the normal ones.

    Args:
        df: the degrees of freedom.
        loc: where it is moved to.
        scale: by what it is stretched.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.StudentT(torch.tensor([4.0])).variance
        tensor([2.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None
    ) -> None:
        self.df, loc, scale = broadcast_all(df, loc, scale)
        super().__init__(loc, scale, validate_args)

    def _standard(self, shape: Any, dtype: Any) -> Any:
        chi = Chi2(self.df.expand(shape)).rsample()
        return randn(shape, dtype=dtype, device=chi.device) * (chi / self.df).rsqrt()

    @property
    def mean(self) -> Any:
        """The expected value; nan up to one degree of freedom."""
        return FUNCTIONS["where"](self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        known = self.scale**2 * self.df / (self.df - 2)
        beyond = FUNCTIONS["where"](self.df > 1, math.inf, math.nan)
        return FUNCTIONS["where"](self.df > 2, known, beyond.to(known.dtype))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        z = (self._checked(value) - self.loc) / self.scale
        norm = (
            self.scale.log()
            + 0.5 * (self.df.log() + math.log(math.pi))
            + _lgamma(self.df / 2)
            - _lgamma((self.df + 1) / 2)
        )
        return -0.5 * (self.df + 1) * (z**2 / self.df).log1p() - norm

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        half, more = self.df / 2, (self.df + 1) / 2
        return (
            self.scale.log()
            + more * (_digamma(more) - _digamma(half))
            + 0.5 * self.df.log()
            + _lgamma(half)
            + math.lgamma(0.5)
            - _lgamma(more)
        )

"""Binomial, Poisson and other count distributions."""

import math
from typing import Any, ClassVar

from lantern.eager.grad_mode import no_grad
from lantern.errors import MissingRuleError, OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.derived import derived
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.distributions.positive import Gamma
from lantern.torch.functions.ranges import arange
from lantern.torch.methods.sampling import bernoulli, poisson, rng
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.functional import binary_cross_entropy_with_logits, softplus
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array, beside, on_host
from lantern.torch.tensor.tensor import fresh

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]

_lgamma = FUNCTIONS["lgamma"]


def clamped(probs: Any) -> Any:
    """Probabilities whose logarithms are finite."""
    eps = 1.1920928955078125e-07 if probs.itemsize == 4 else 2.220446049250313e-16
    return probs.clamp(min=eps, max=1 - eps)


def _from_0(count: int, of: Any, expand: bool) -> Any:
    """The first whole numbers, for each of a batch."""
    values = arange(count, dtype=of._param.dtype, device=of._param.device)
    values = values.view(-1, *(1,) * len(of.batch_shape))
    return values.expand(-1, *of.batch_shape) if expand else values


class WithGiven(Distribution):
    """A distribution by one of two parameters: the other follows."""

    @property
    def _param(self) -> Any:
        given = self.__dict__
        return given["probs"] if "probs" in given else given["logits"]

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._param.shape

    def _new(self, *args: Any, **options: Any) -> Any:
        return self._param.new(*args, **options)


class _ByChance(WithGiven):
    """A distribution by probabilities, or by their logits: the other follows."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def _take(self, probs: Any, logits: Any) -> Any:
        """Keep the one that was given, broadcast."""
        if (probs is None) == (logits is None):
            raise OptionError(
                "Either `probs` or `logits` must be specified, but not both."
            )
        name = "logits" if probs is None else "probs"
        (value,) = broadcast_all(logits if probs is None else probs)
        self.__dict__[name] = value
        return value

    @derived
    def probs(self) -> Any:
        """The probabilities."""
        return self.__dict__["logits"].sigmoid()

    @derived
    def logits(self) -> Any:
        """Their logits."""
        inner = clamped(self.__dict__["probs"])
        return inner.log() - (-inner).log1p()


class Bernoulli(_ByChance):
    """1 by chance, else 0.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Bernoulli
        >>> Bernoulli(torch.tensor([0.25])).log_prob(torch.tensor([1.0]))
        tensor([-1.3863])
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        super().__init__(self._take(probs, logits).shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The probability of 1."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The more likely value; nan for a tie."""
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a value."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1, along a new first axis."""
        return _from_0(2, self, expand)


class Geometric(_ByChance):
    """How often a try fails before the first success.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Geometric(torch.tensor([0.25])).mean
        tensor([3.])
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        given = self._take(probs, logits)
        super().__init__(given.shape, (), validate_args)
        if self._validate_args and probs is not None and not (given > 0).all():
            raise OptionError(
                f"Expected parameter probs (Tensor of shape {tuple(given.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n"
                f"{given}"
            )

    @property
    def mean(self) -> Any:
        """The expected value."""
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        """The most likely value: 0."""
        return self.probs.new_zeros(self.probs.shape)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        with no_grad():
            chance = base(self.probs.expand(self._extended_shape(sample_shape)))
            drawn = as_array(rng().geometric(on_host(chance)) - 1)
            return fresh(beside(drawn.astype(chance.dtype), chance))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a value."""
        value, probs = broadcast_all(self._checked(value), self.probs)
        certain = (probs == 1) & (value == 0)  # no failure, times log(0)
        return value * (-probs.masked_fill(certain, 0)).log1p() + self.probs.log()

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        each = binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )
        return each / self.probs


class Poisson(Distribution):
    """Numbers of events at a rate.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Poisson
        >>> Poisson(torch.tensor([2.0])).log_prob(torch.tensor([0.0]))
        tensor([-2.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The rate."""
        return self.rate

    variance = mean

    @property
    def mode(self) -> Any:
        """The most likely number."""
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers that are drawn."""
        return poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a number."""
        rate, value = broadcast_all(self.rate, self._checked(value))
        return FUNCTIONS["xlogy"](value, rate) - rate - _lgamma(value + 1)


class _Tries(_ByChance):
    """A distribution by a number of tries, or of failures, and a chance."""

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        given = self._take(probs, logits)
        self.total_count, given = broadcast_all(total_count, given)
        self.total_count = self.total_count.to(given.dtype)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, (), validate_args)


class Binomial(_Tries):
    """How many of a number of tries succeed.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Binomial
        >>> Binomial(4, torch.tensor([0.5])).log_prob(torch.tensor([2.0])).exp()
        tensor([0.3750])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer,
        **_ByChance.arg_constraints,
    }

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers up to that of the tries."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """The most likely value."""
        highest = ((self.total_count + 1) * self.probs).floor()
        return highest.clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers that are drawn."""
        shape = self._extended_shape(sample_shape)
        probs = base(self.probs.detach().expand(shape))
        count = on_host(base(self.total_count.expand(shape))).astype(int)
        drawn = as_array(rng().binomial(count, on_host(probs)))
        return fresh(beside(drawn.astype(probs.dtype), probs))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a number."""
        value, n = self._checked(value), self.total_count
        ways = _lgamma(n + 1) - _lgamma(value + 1) - _lgamma(n - value + 1)
        return ways + value * self.logits - n * softplus(self.logits)

    def _tries(self) -> int:
        """How many tries all of the batch have."""
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise MissingRuleError(
                "Binomial: an entropy, or all values, of numbers of tries that differ "
                "(inhomogeneous total count) is not implemented."
            )
        return most

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``: a sum over all numbers."""
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The numbers from 0 to that of the tries, along a new first axis."""
        return _from_0(self._tries() + 1, self, expand)


class NegativeBinomial(_Tries):
    """How many tries succeed before a number of failures.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.NegativeBinomial(3.0, torch.tensor([0.5])).mean
        tensor([3.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers from 0 on."""
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers that are drawn."""
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a number."""
        value, n = self._checked(value), self.total_count
        ways = _lgamma(n + value) - _lgamma(value + 1) - _lgamma(n)
        return (
            ways - n * softplus(self.logits) - value * softplus(-self.logits)
        ).masked_fill(n + value == 0, 0.0)

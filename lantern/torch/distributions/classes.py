"""Distributions of classes: one of several, or how often each."""

import math
from typing import Any, ClassVar

from lantern.errors import MissingRuleError, OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.chances import Binomial, WithGiven, clamped
from lantern.torch.distributions.derived import derived
from lantern.torch.distributions.distribution import broadcast_all
from lantern.torch.functions.creation import eye
from lantern.torch.functions.ranges import arange
from lantern.torch.methods.sampling import multinomial
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.functional import one_hot

__all__ = [
    "Categorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
]


class Categorical(WithGiven):
    """One of several classes, by weights or by logits along the last axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise OptionError(
                "Either `probs` or `logits` must be specified, but not both."
            )
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        shape = self.param_shape
        self._num_events = shape[-1]
        super().__init__(shape[:-1], (), validate_args)

    @derived
    def probs(self) -> Any:
        """The probabilities."""
        return self.__dict__["logits"].softmax(-1)

    @derived
    def logits(self) -> Any:
        """Their logarithms."""
        return clamped(self.__dict__["probs"]).log()

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers of the classes."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        """nan: classes have no mean."""
        return self.probs.detach().sum(-1) * math.nan

    variance = mean

    @property
    def mode(self) -> Any:
        """The most likely class."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Classes that are drawn."""
        shape = self._extended_shape(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = multinomial(rows, math.prod(sample_shape), True).t()
        return drawn.reshape(shape)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a class."""
        value = self._checked(value).long().unsqueeze(-1)
        shape = FUNCTIONS["broadcast_shapes"](value.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        lowest = -3.4028234663852886e38
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All classes, along a new first axis."""
        values = arange(self._num_events, device=self.probs.device)
        values = values.view(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class _OfCategorical(WithGiven):
    """A distribution of what one of classes does, whose parameters it has."""

    _categorical: Categorical

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def _param(self) -> Any:
        return self._categorical._param


class OneHotCategorical(_OfCategorical):
    """One of several classes, as a row of zeros and a 1.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.OneHotCategorical(torch.tensor([1.0, 3.0]))
        >>> x.log_prob(torch.tensor([0.0, 1.0])).exp()
        tensor(0.7500)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        self._categorical = inner = Categorical(probs, logits, validate_args)
        super().__init__(inner.batch_shape, inner.param_shape[-1:], validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self._categorical.expand(batch_shape)
        (name,) = inner._parameters()
        return OneHotCategorical(**{name: inner.__dict__[name]})

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The most likely class."""
        return one_hot(self._categorical.mode, self.event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Classes that are drawn."""
        drawn = self._categorical.sample(sample_shape)
        return one_hot(drawn, self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a class."""
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All classes, along a new first axis."""
        n = self.event_shape[0]
        values = eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(n, *(1,) * len(self.batch_shape), n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As ``OneHotCategorical``; draws have the derivative of the probabilities.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([0.5, 0.5], requires_grad=True)
        >>> draw = torch.distributions.OneHotCategoricalStraightThrough(p).rsample()
        >>> draw.sum().item(), draw.requires_grad
        (1.0, True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with the derivative of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OfCategorical):
    """How often each class comes in a number of draws.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.Multinomial(2, torch.tensor([0.5, 0.5]))
        >>> x.log_prob(torch.tensor([1.0, 1.0])).exp()
        tensor(0.5000)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise MissingRuleError("Multinomial: total_count must be one whole number.")
        self.total_count = total_count
        self._categorical = inner = Categorical(probs, logits)
        super().__init__(inner.batch_shape, inner.param_shape[-1:], validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self._categorical.expand(batch_shape)
        (name,) = inner._parameters()
        return Multinomial(self.total_count, **{name: inner.__dict__[name]})

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Numbers that come to no more than all."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        """The expected numbers."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        """The expected squares of the distances from the mean."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Numbers that are drawn."""
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        ones = one_hot(drawn, self.event_shape[0])
        return ones.sum(0).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of numbers."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0.0)
        ways = (value.sum(-1) + 1).lgamma() - FUNCTIONS["lgamma"](value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``, by the numbers of each class alone."""
        n = self.total_count
        each = Binomial(n, probs=self.probs)
        counts = each.enumerate_support(False)[1:]
        weights = (each.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + weights

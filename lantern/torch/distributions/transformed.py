"""Distributions of what functions make of another one's draws."""

import math
from typing import Any, ClassVar

from lantern.eager.grad_mode import no_grad
from lantern.errors import OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.chances import Bernoulli, clamped
from lantern.torch.distributions.classes import Categorical
from lantern.torch.distributions.distribution import (
    Distribution,
    Independent,
    broadcast_all,
)
from lantern.torch.distributions.located import Cauchy, Normal
from lantern.torch.distributions.positive import Exponential, Gamma, Uniform
from lantern.torch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
    Transform,
)
from lantern.torch.methods.sampling import rand_like
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "HalfCauchy", "InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal",
    "Pareto", "RelaxedBernoulli", "RelaxedOneHotCategorical", "TransformedDistribution",
    "Weibull",
]  # fmt: skip

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_EULER = 0.57721566490153286


class TransformedDistribution(Distribution):
    """What functions make of a distribution's draws.

    Args:
        base_distribution: the distribution.
        transforms: a function, or several.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import ExpTransform, Normal
        >>> x = torch.distributions.TransformedDistribution(
        ...     Normal(torch.zeros(1), 1.0), [ExpTransform()]
        ... )
        >>> x.log_prob(torch.tensor([1.0]))
        tensor([-0.9189])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: Any = None
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list | tuple) or not all(
            isinstance(t, Transform) for t in transforms
        ):
            raise OptionError(
                f"transforms must be a Transform or list, but was {transforms}"
            )
        self.transforms = list(transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        whole, n = ComposeTransform(self.transforms), len(base_distribution.event_shape)
        needed = whole.domain.event_dim
        if len(shape) < needed:
            raise OptionError(
                f"base_distribution needs to have shape with size at least {needed}, "
                f"but got {tuple(shape)}."
            )
        after = whole.forward_shape(tuple(shape))
        before = whole.inverse_shape(after)
        if tuple(before) != tuple(shape):  # by parameters of the functions
            cut = len(before) - n
            base_distribution = base_distribution.expand(before[:cut])
        if needed > n:
            base_distribution = Independent(base_distribution, needed - n)
        self.base_dist = base_distribution
        event = whole.codomain.event_dim + max(n - needed, 0)
        cut = len(after) - event
        super().__init__(after[:cut], after[cut:], validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        whole = ComposeTransform(self.transforms)
        shape = whole.inverse_shape((*batch_shape, *self.event_shape))
        cut = len(shape) - len(self.base_dist.event_shape)
        inner = self.base_dist.expand(shape[:cut])
        return TransformedDistribution(inner, self.transforms, validate_args=False)

    @property
    def has_rsample(self) -> bool:
        """Whether draws have a derivative."""
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """What the last function gives."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        y, n, total = self._checked(value), len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            n += transform.domain.event_dim - transform.codomain.event_dim
            grown = transform.log_abs_det_jacobian(x, y)
            axes = tuple(range(-(n - transform.domain.event_dim), 0))
            total, y = total - (grown.sum(axes) if axes else grown), x
        inner, more = self.base_dist.log_prob(y), n - len(self.base_dist.event_shape)
        return total + (inner.sum(tuple(range(-more, 0))) if more > 0 else inner)

    def _sign(self) -> Any:
        return math.prod(t.sign for t in self.transforms)

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        # A falling function turns the order round.
        sign = self._sign()
        found = self.base_dist.cdf(value)
        return sign * (found - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        value = self.base_dist.icdf(self._sign() * (value - 0.5) + 0.5)
        for transform in self.transforms:
            value = transform(value)
        return value


class LogNormal(TransformedDistribution):
    """The exponentials of normal draws.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.LogNormal(torch.tensor([0.0]), 1.0).mean
        tensor([1.6487])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        inner = Normal(loc, scale, validate_args=validate_args)
        super().__init__(inner, ExpTransform(), validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self.base_dist.expand(batch_shape)
        return LogNormal(inner.loc, inner.scale, validate_args=False)

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        """The expected value."""
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return (self.loc - self.scale**2).exp()

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self.base_dist.entropy() + self.loc


class HalfCauchy(TransformedDistribution):
    """The sizes of Cauchy draws around 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.HalfCauchy(torch.tensor([1.0])).cdf(torch.tensor([1.0]))
        tensor([0.5000])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        inner = Cauchy(0, scale, validate_args=False)
        super().__init__(inner, AbsTransform(), validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        return HalfCauchy(self.scale.expand(batch_shape), validate_args=False)

    @property
    def scale(self) -> Any:
        """The median."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        """Infinite."""
        return self.scale * 0 + math.inf

    variance = mean

    @property
    def mode(self) -> Any:
        """Zero, where the density is largest."""
        return self.scale * 0

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        value = self._checked(value).to(self.scale.dtype)
        found = self.base_dist.log_prob(value) + math.log(2)
        return FUNCTIONS["where"](value >= 0, found, -math.inf)

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self.base_dist.entropy() - math.log(2)


class InverseGamma(TransformedDistribution):
    """1 over draws of a gamma distribution.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.InverseGamma(torch.tensor([3.0]), 4.0).mean
        tensor([2.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive

    def __init__(
        self, concentration: Any, rate: Any, validate_args: Any = None
    ) -> None:
        inner = Gamma(concentration, rate, validate_args=validate_args)
        upside_down = PowerTransform(-inner.rate.new_ones(()))
        super().__init__(inner, upside_down, validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self.base_dist.expand(batch_shape)
        return InverseGamma(inner.concentration, inner.rate, validate_args=False)

    @property
    def concentration(self) -> Any:
        """The gamma distribution's shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The gamma distribution's rate."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        """The expected value: infinite up to a shape of 1."""
        found = self.rate / (self.concentration - 1)
        return FUNCTIONS["where"](self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return FUNCTIONS["where"](a > 2, found, math.inf)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        a = self.concentration
        return a + self.rate.log() + _lgamma(a) - (1 + a) * _digamma(a)


class Kumaraswamy(TransformedDistribution):
    """Distributions of a number between 0 and 1, much as ``Beta``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Kumaraswamy(torch.tensor([1.0]), 1.0).mean
        tensor([0.5000])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: Any = None
    ) -> None:
        self.concentration1, self.concentration0 = a, b = broadcast_all(
            concentration1, concentration0
        )
        inner = Uniform(a * 0, a * 0 + 1, validate_args=validate_args)
        steps = [
            PowerTransform(b.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(a.reciprocal()),
        ]
        super().__init__(inner, steps, validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        return Kumaraswamy(**options, validate_args=False)

    def _moment(self, n: int) -> Any:
        """The expected value of a power."""
        b = self.concentration0
        power = 1 + n / self.concentration1
        return (_lgamma(power) + b.log() + _lgamma(b) - _lgamma(power + b)).exp()

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self._moment(1)

    @property
    def mode(self) -> Any:
        """The most likely value; nan where there is none."""
        a, b = self.concentration1, self.concentration0
        inner = (1 - a.reciprocal()) / (b - a.reciprocal())
        found = inner.abs() ** a.reciprocal()
        none = (a < 1) | (b < 1)
        return found.masked_fill(none, math.nan)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self._moment(2) - self.mean**2

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        a, b = self.concentration1, self.concentration0
        harmonic = _digamma(b + 1) + _EULER
        left = 1 - b.reciprocal()
        return left + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class Pareto(TransformedDistribution):
    """Pareto distributions: powers fall off above a least value.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Pareto(1.0, torch.tensor([2.0])).mean
        tensor([2.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        inner = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(inner, steps, validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        return Pareto(**options, validate_args=False)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """What is no less than the least value."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        """The expected value: infinite up to a power of 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        """The least value."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """Weibull distributions: powers of exponential draws.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Weibull(2.0, torch.tensor([1.0])).mean
        tensor([2.])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(
        self, scale: Any, concentration: Any, validate_args: Any = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        inner = Exponential(self.scale * 0 + 1, validate_args=validate_args)
        steps = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(0, self.scale),
        ]
        super().__init__(inner, steps, validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        return Weibull(**options, validate_args=False)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.scale * _lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Any:
        """The most likely value."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        r = self.concentration_reciprocal
        square = _lgamma(1 + 2 * r).exp() - (2 * _lgamma(1 + r)).exp()
        return self.scale**2 * square

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        r = self.concentration_reciprocal
        return _EULER * (1 - r) + (self.scale * r).log() + 1


class LogisticNormal(TransformedDistribution):
    """Weights that sum to 1, by breaking a stick where normal draws say.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2))
        >>> x.event_shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        inner = Normal(loc, scale, validate_args=validate_args)
        if not inner.batch_shape:
            inner = inner.expand((1,))
        super().__init__(inner, StickBreakingTransform(), validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self.base_dist.expand(batch_shape).base_dist
        return LogisticNormal(inner.loc, inner.scale, validate_args=False)

    @property
    def loc(self) -> Any:
        """The normal draws' means."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The normal draws' deviations."""
        return self.base_dist.base_dist.scale


class _LogitRelaxed(Distribution):
    """Logits of a relaxed yes or no."""

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        self.temperature = temperature
        inner = Bernoulli(probs, logits, validate_args=validate_args)
        self._chance = inner
        super().__init__(inner.batch_shape, (), validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        logits = self.logits.expand(batch_shape)
        return _LogitRelaxed(self.temperature, logits=logits, validate_args=False)

    @property
    def probs(self) -> Any:
        """The chance of a yes."""
        return self._chance.probs

    @property
    def logits(self) -> Any:
        """Its logit."""
        return self._chance.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the chances."""
        return self._chance.param_shape

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        probs = clamped(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamped(rand_like(probs.detach()))
        noise = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return noise / self.temperature

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        logits, value = broadcast_all(self.logits, self._checked(value))
        away = logits - value * self.temperature
        rate = FUNCTIONS["log"](_as_tensor(self.temperature, away))
        return rate + away - 2 * away.exp().log1p()


def _as_tensor(x: Any, like: Any) -> Any:
    return x if isinstance(x, Tensor) else like.new_tensor(x)


class RelaxedBernoulli(TransformedDistribution):
    """A yes or no as a number between 0 and 1, with a derivative.

    Args:
        temperature: how far from 0 and 1 draws are.
        probs: the chance of a yes.
        logits: in its place, its logit.
        validate_args: see ``Distribution``.

    References:
        Maddison, Mnih, Teh (2017), "The Concrete Distribution".

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.RelaxedBernoulli(torch.tensor(0.5), logits=0.0)
        >>> x.log_prob(torch.tensor(0.5)).exp()
        tensor(0.5000)
    """

    arg_constraints = _LogitRelaxed.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        inner = _LogitRelaxed(temperature, probs, logits)
        super().__init__(inner, SigmoidTransform(), validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        logits = self.logits.expand(batch_shape)
        return RelaxedBernoulli(self.temperature, logits=logits, validate_args=False)

    @property
    def temperature(self) -> Any:
        """How far from 0 and 1 draws are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logit of a yes."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The chance of a yes."""
        return self.base_dist.probs


class _ExpRelaxed(Distribution):
    """Logarithms of relaxed classes."""

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        self._categorical = inner = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(inner.batch_shape, inner.param_shape[-1:], validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        logits = self.logits.expand((*batch_shape, *self.event_shape))
        return _ExpRelaxed(self.temperature, logits=logits, validate_args=False)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        logits = self.logits.expand(self._extended_shape(sample_shape))
        u = clamped(rand_like(logits.detach()))
        scores = (logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, self._checked(value))
        rate = _as_tensor(self.temperature, logits)
        norm = math.lgamma(k) - rate.log().mul(-(k - 1))
        scores = logits - value * self.temperature
        return (scores - scores.logsumexp(-1, keepdim=True)).sum(-1) + norm


class RelaxedOneHotCategorical(TransformedDistribution):
    """One of several classes as weights that sum to 1, with a derivative.

    Args:
        temperature: how far from 0 and 1 weights are.
        probs: the probabilities.
        logits: in their place, their logarithms.
        validate_args: see ``Distribution``.

    References:
        Jang, Gu, Poole (2017), "Categorical Reparameterization with Gumbel-Softmax".

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.RelaxedOneHotCategorical(
        ...     torch.tensor(0.5), torch.tensor([0.2, 0.8])
        ... )
        >>> x.rsample().sum().item() - 1 < 1e-6
        True
    """

    has_rsample = True
    arg_constraints = _ExpRelaxed.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        inner = _ExpRelaxed(temperature, probs, logits, validate_args)
        super().__init__(inner, ExpTransform(), validate_args=validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner = self.base_dist.expand(batch_shape)
        options = {"logits": inner.logits, "validate_args": False}
        return RelaxedOneHotCategorical(self.temperature, **options)

    @property
    def temperature(self) -> Any:
        """How far from 0 and 1 weights are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs

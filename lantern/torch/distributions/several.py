"""Distributions of vectors, and mixtures."""

import math
from typing import Any, ClassVar

from lantern.eager.grad_mode import no_grad
from lantern.errors import OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.derived import derived
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.distributions.positive import log_standard_gamma
from lantern.torch.linalg import cholesky, inv, solve_triangular
from lantern.torch.methods.sampling import randn
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.functional import one_hot

__all__ = ["Beta", "Dirichlet", "MixtureSameFamily", "MultivariateNormal"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_stack = FUNCTIONS["stack"]


def _sample_dirichlet(concentration: Any, generator: Any = None) -> Any:
    """Draws of a distribution of proportions."""
    if generator is not None:
        raise OptionError("_sample_dirichlet: draw from the generator of all.")
    return Dirichlet(concentration, validate_args=False).rsample()


class Dirichlet(Distribution):
    """Distributions of probabilities that sum to 1, along the last axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.simplex

    def __init__(self, concentration: Any, validate_args: Any = None) -> None:
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """The most likely value; a corner where no element exceeds 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        found = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(-1, True)
        at = one_hot(self.concentration.argmax(-1), self.event_shape[0])
        return FUNCTIONS["where"](corner, at.to(found), found)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        total, mean = self.concentration.sum(-1, True), self.mean
        return mean * (1 - mean) / (total + 1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameter."""
        shape = self._extended_shape(sample_shape)
        drawn = log_standard_gamma(self.concentration.expand(shape)).softmax(-1)
        tiny, eps = (1.2e-38, 6e-8) if drawn.itemsize == 4 else (2.3e-308, 1.2e-16)
        return drawn if drawn.itemsize == 2 else drawn.clamp(tiny, 1 - eps)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        a = self.concentration
        terms = FUNCTIONS["xlogy"](a - 1.0, self._checked(value)).sum(-1)
        return terms + _lgamma(a.sum(-1)) - _lgamma(a).sum(-1)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            _lgamma(a).sum(-1)
            - _lgamma(total)
            - (k - total) * _digamma(total)
            - ((a - 1.0) * _digamma(a)).sum(-1)
        )


class Beta(Distribution):
    """Distributions of a probability.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Beta(torch.tensor([1.0]), 3.0).mean
        tensor([0.2500])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: Any = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(
            concentration1, concentration0
        )
        both = _stack([self.concentration1, self.concentration0], -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self._dirichlet.mean[..., 0]

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        value = self._checked(value)
        inner = Dirichlet(self._dirichlet.concentration, validate_args=False)
        inner._validate_args = False
        return inner.log_prob(_stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self._dirichlet.entropy()


class MultivariateNormal(Distribution):
    """Normal distributions of vectors, by one of three matrices.

    Args:
        loc: the mean.
        covariance_matrix: the covariance.
        precision_matrix: its inverse.
        scale_tril: its Cholesky factor.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import MultivariateNormal
        >>> x = MultivariateNormal(torch.zeros(2), torch.diag(torch.tensor([2.0, 0.5])))
        >>> x.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        names = ("covariance_matrix", "precision_matrix", "scale_tril")
        values = (covariance_matrix, precision_matrix, scale_tril)
        given = {n: x for n, x in zip(names, values, strict=True) if x is not None}
        if len(given) != 1:
            raise OptionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        ((name, matrix),) = given.items()
        n = loc.shape[-1]
        batch = FUNCTIONS["broadcast_shapes"](loc.shape[:-1], matrix.shape[:-2])
        self.loc = loc.expand(*batch, n)
        self.__dict__[name] = matrix.expand(*batch, n, n)
        super().__init__(batch, (n,), validate_args)
        if name == "precision_matrix":
            matrix = inv(matrix)
        self._unbroadcasted_scale_tril = (
            matrix if name == "scale_tril" else cholesky(matrix)
        )

    @derived
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        shape = (*self.batch_shape, *self.event_shape * 2)
        return self._unbroadcasted_scale_tril.expand(shape)

    @derived
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(*self.batch_shape, *self.event_shape * 2)

    @derived
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return inv(self.covariance_matrix)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances of the parts."""
        return (self.scale_tril**2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        drawn = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        drawn = drawn.to(self.loc)
        return self.loc + (
            self._unbroadcasted_scale_tril @ drawn.unsqueeze(-1)
        ).squeeze(-1)

    def _half_log_det(self) -> Any:
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        difference = (self._checked(value) - self.loc).unsqueeze(-1)
        factor = self._unbroadcasted_scale_tril.expand(
            *difference.shape[:-2], *self._unbroadcasted_scale_tril.shape[-2:]
        )
        whitened = solve_triangular(factor, difference, upper=False)
        distance = (whitened**2).sum((-2, -1))
        norm = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + distance) - self._half_log_det()

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        norm = 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi))
        return norm + self._half_log_det()


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, by chance.

    Args:
        mixture_distribution: a ``Categorical`` that chooses.
        component_distribution: a distribution, whose last batch axis is chosen from.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> both = torch.distributions.Normal(torch.tensor([-1.0, 1.0]), torch.ones(2))
        >>> choice = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
        >>> x = torch.distributions.MixtureSameFamily(choice, both)
        >>> x.mean
        tensor(0.5000)
    """

    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: Any = None,
    ) -> None:
        self.mixture_distribution = mixture_distribution
        self.component_distribution = inner = component_distribution
        super().__init__(inner.batch_shape[:-1], inner.event_shape, validate_args)
        self._n = len(inner.event_shape)

    @constraints.dependent_property()
    def support(self) -> Any:
        """As the components'."""
        return self.component_distribution.support

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        inner, mixture = self.component_distribution, self.mixture_distribution
        return MixtureSameFamily(
            mixture.expand(batch_shape),
            inner.expand((*batch_shape, inner.batch_shape[-1])),
        )

    def _weights(self) -> Any:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1,) * self._n)

    @property
    def mean(self) -> Any:
        """The expected value."""
        means = self.component_distribution.mean
        return (self._weights() * means).sum(-1 - self._n)

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        inner, axis = self.component_distribution, -1 - self._n
        within = (self._weights() * inner.variance).sum(axis)
        away = (inner.mean - self.mean.unsqueeze(axis)) ** 2
        return within + (self._weights() * away).sum(axis)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        with no_grad():
            axis = -1 - self._n
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            where = chosen.reshape(*chosen.shape, *(1,) * (self._n + 1))
            shape = list(drawn.shape)
            shape[axis] = 1
            return drawn.gather(axis, where.expand(shape)).squeeze(axis)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at a value."""
        value = self._checked(value)
        parts = self.component_distribution.log_prob(value.unsqueeze(-1 - self._n))
        logits = self.mixture_distribution.logits
        return (parts + logits.log_softmax(-1)).logsumexp(-1)

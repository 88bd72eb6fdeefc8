"""Functions that turn draws of one distribution into those of another."""

import math
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.distribution import (
    Distribution,
    Independent,
    broadcast_all,
)
from lantern.torch.distributions.located import Normal
from lantern.torch.nn.functional import softplus

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "LogNormal",
    "SigmoidTransform", "TanhTransform", "Transform", "TransformedDistribution",
]  # fmt: skip


class Transform:
    """A function that can be undone.

    Args:
        cache_size: has no effect: an inverse is computed.

    Example:
        >>> import lantern.torch as torch
        >>> class Cube(torch.distributions.Transform):
        ...     def _call(self, x):
        ...         return x**3
        ...
        ...     def _inverse(self, y):
        ...         return y.sign() * y.abs() ** (1 / 3)
        >>> Cube().inv(torch.tensor([8.0]))
        tensor([2.])
    """

    event_dim = 0
    bijective = True
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        pass

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        return self._call(x)

    def _call(self, x: Any) -> Any:
        raise self._missing()

    def _inverse(self, y: Any) -> Any:
        raise self._missing()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By how much volumes grow, as a logarithm."""
        raise self._missing()

    def _missing(self) -> MissingRuleError:
        return MissingRuleError(f"{type(self).__name__} does not define it.")

    @property
    def inv(self) -> Any:
        """The inverse function."""
        return _Inverse(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """A transform backwards."""

    def __init__(self, transform: Transform) -> None:
        self.transform, self.event_dim = transform, transform.event_dim

    def _call(self, x: Any) -> Any:
        return self.transform._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.transform._call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By how much volumes grow, as a logarithm."""
        return -self.transform.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Any:
        """The function itself."""
        return self.transform


class AffineTransform(Transform):
    """``loc + scale * x``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.tensor([3.0]))
        tensor([7.])
    """

    def __init__(
        self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the scale."""
        scale, x = broadcast_all(self.scale, x)
        logarithm = scale.abs().log()
        axes = tuple(range(-self.event_dim, 0))
        return logarithm.sum(axes) if axes else logarithm


class ExpTransform(Transform):
    """``exp(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([0.0, 1.0])
        >>> torch.distributions.ExpTransform().log_abs_det_jacobian(x, x.exp())
        tensor([0., 1.])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x itself."""
        return x


class SigmoidTransform(Transform):
    """``1 / (1 + exp(-x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return x.sigmoid().clamp(1e-38, 1 - 1.2e-7)

    def _inverse(self, y: Any) -> Any:
        y = y.clamp(1e-38, 1 - 1.2e-7)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """``tanh(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.TanhTransform().inv(torch.tensor([0.5]))
        tensor([0.5493])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class ComposeTransform(Transform):
    """Several functions, one after another.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import AffineTransform, ExpTransform
        >>> both = [AffineTransform(1.0, 2.0), ExpTransform()]
        >>> torch.distributions.ComposeTransform(both)(torch.tensor([0.0]))
        tensor([2.7183])
    """

    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in self.parts), default=0)
        if self.parts:
            self.codomain = self.parts[-1].codomain

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the parts'."""
        total: Any = 0
        for part in self.parts:
            after = part(x)
            grown = part.log_abs_det_jacobian(x, after)
            axes = tuple(range(-(self.event_dim - part.event_dim), 0))
            total, x = total + (grown.sum(axes) if axes else grown), after
        return total


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

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: Any = None
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        self.base_dist, self.transforms = base_distribution, list(transforms)
        n = max((t.event_dim for t in self.transforms), default=0)
        n -= len(base_distribution.event_shape)
        if n > 0:
            self.base_dist = Independent(base_distribution, n)
        shapes = self.base_dist.batch_shape, self.base_dist.event_shape
        super().__init__(*shapes, validate_args)

    @property
    def has_rsample(self) -> bool:
        """Whether draws have a derivative."""
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """What the last function gives."""
        if not self.transforms:
            return self.base_dist.support
        return self.transforms[-1].codomain

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        return ComposeTransform(self.transforms)(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        return ComposeTransform(self.transforms)(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        y, n, total = self._checked(value), len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform._inverse(y)
            grown = transform.log_abs_det_jacobian(x, y)
            axes = tuple(range(-(n - transform.event_dim), 0))
            total, y = total - (grown.sum(axes) if axes else grown), x
        return total + self.base_dist.log_prob(y)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its parameters broadcast to a batch."""
        return TransformedDistribution(
            self.base_dist.expand(batch_shape), self.transforms
        )

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value, for functions that grow."""
        return self.base_dist.cdf(ComposeTransform(self.transforms)._inverse(value))


class LogNormal(TransformedDistribution):
    """The exponentials of normal draws.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.LogNormal(torch.tensor([0.0]), 1.0).mean
        tensor([1.6487])
    """

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        inner = Normal(loc, scale, validate_args)
        super().__init__(inner, ExpTransform(), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its parameters broadcast to a batch."""
        inner = self.base_dist.expand(batch_shape)
        return LogNormal(inner.loc, inner.scale)

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

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self.base_dist.entropy() + self.loc

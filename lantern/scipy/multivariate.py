"""Distributions of vectors."""

import math
from typing import Any

from lantern.core.value import base, is_tracked
from lantern.errors import ArgumentError, MissingRuleError
from lantern.rules import selection
from lantern.rules.exponential import exp, log
from lantern.rules.special import lgamma
from lantern.scipy.distributions import Distribution
from lantern.tensor.linalg.eigen_svd import eigh
from lantern.tensor.linalg.factorisations import cholesky
from lantern.tensor.linalg.solve import solve_triangular
from lantern.tensor.ops import reduction, zero_derivative
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.matrix_forms import plain_namespace
from lantern.tensor.ops.products import diagonal, matmul
from lantern.tensor.ops.special import xlogy

__all__ = ["dirichlet", "multivariate_normal"]


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    Example:
        >>> import numpy as np
        >>> round(float(multivariate_normal.logpdf([0.0, 0.0], cov=np.eye(2))), 6)
        -1.837877
    """

    def logpdf(
        self, x: Any, /, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False
    ) -> Any:
        """The logarithm of the density at x.

        Args:
            x: where.
            mean: of the distribution.
            cov: its covariance; a number or a vector stands for a diagonal.
            allow_singular: whether the covariance may be singular. Then the density is
                that on the subspace in which the numbers vary, and 0 outside.

        Shapes:
            x: (..., n); mean: (n,); cov: (n, n); result: (...)

        Raises:
            MissingRuleError: for a tracked covariance that is singular.
        """
        x = asarray(x)
        x = x if x.shape else x[None]
        n = x.shape[-1]
        apart, cov = x - mean, _matrix(cov, n)
        if allow_singular:
            return _log_density_on_subspace(apart, cov)
        factor = cholesky(cov)
        z = solve_triangular(factor, apart.reshape(-1, n).mT, lower=True)
        distance = reduction.sum(z * z, axis=0).reshape(apart.shape[:-1])
        return -distance / 2 - _log_volume(factor) - n / 2 * math.log(2 * math.pi)

    def pdf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The density at x; see ``logpdf``.

        Shapes:
            x: (..., n); mean: (n,); cov: (n, n); result: (...)
        """
        return exp(self.logpdf(x, *args, **named))

    def entropy(self, mean: Any = 0.0, cov: Any = 1.0) -> Any:
        """The entropy, which does not depend on the mean.

        Shapes:
            mean: (n,); cov: (n, n); result: ()
        """
        shape = asarray(mean).shape or asarray(cov).shape or (1,)
        factor = cholesky(_matrix(cov, shape[-1]))
        n = factor.shape[-1]
        return _log_volume(factor) + n / 2 * (math.log(2 * math.pi) + 1)


def _matrix(cov: Any, n: int) -> Any:
    """A covariance, or its diagonal, or one variance for all, as a matrix."""
    cov = asarray(cov)
    if len(cov.shape) < 2:
        return cov * plain_namespace(cov).eye(n)
    return cov


def _log_volume(factor: Any) -> Any:
    """Half the logarithm of the determinant, from a triangular factor."""
    return reduction.sum(log(diagonal(factor)))


def _log_density_on_subspace(apart: Any, cov: Any) -> Any:
    """The logarithm of the density where the covariance does not vanish."""
    xp = plain_namespace(cov)
    variances, directions = eigh(cov)
    plain = base(variances)
    limit = 1e6 * xp.finfo(plain.dtype).eps * xp.max(xp.abs(plain))
    free = plain > limit
    if is_tracked(cov) and not free.all():
        raise MissingRuleError(
            "multivariate_normal: no rule for a tracked covariance that is singular. "
            "Add a small multiple of the identity, or hold the covariance constant."
        )
    z = matmul(apart, directions[:, free])
    variances = variances[free]
    density = -reduction.sum(z * z / variances + log(variances), axis=-1) / 2
    density = density - int(free.sum()) / 2 * math.log(2 * math.pi)
    beside = xp.linalg.norm(base(apart) @ base(directions)[:, ~free], axis=-1)
    return selection.where(beside < 1e3 * limit, density, -math.inf)


class Dirichlet(Distribution):
    """The Dirichlet distribution, of vectors of probabilities.

    Example:
        >>> import numpy as np
        >>> round(float(dirichlet.pdf([0.5, 0.5], np.array([2.0, 2.0]))), 6)
        1.5
    """

    def logpdf(self, x: Any, /, alpha: Any) -> Any:
        """The logarithm of the density at x.

        Shapes:
            x: (n,) or (n, ...), positive, of sum 1 along the first axis; without the
            last entry, that is what is missing to 1; alpha: (n,); result: () or (...)

        Raises:
            ArgumentError: if x has not that form.
        """
        x, alpha = asarray(x), asarray(alpha)
        n = alpha.shape[0]
        if x.shape[0] == n - 1:
            last = 1 - reduction.sum(x, axis=0, keepdims=True)
            x = concat([x, last])
        off = zero_derivative.any(
            selection.abs(base(reduction.sum(x, axis=0)) - 1) > 1e-9
        )
        if x.shape[0] != n or off or zero_derivative.any(base(x) < 0):
            raise ArgumentError(
                f"dirichlet: x must hold {n} or {n - 1} positive numbers of sum 1 "
                f"along its first axis, got shape {x.shape}. Divide by the sum."
            )
        powers = alpha.reshape(-1, *[1] * (len(x.shape) - 1)) - 1
        scale = reduction.sum(lgamma(alpha)) - lgamma(reduction.sum(alpha))
        return reduction.sum(xlogy(powers, x), axis=0) - scale

    def pdf(self, x: Any, /, alpha: Any) -> Any:
        """The density at x; see ``logpdf``.

        Shapes:
            x: (n,) or (n, ...); alpha: (n,); result: () or (...)
        """
        return exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = MultivariateNormal(), Dirichlet()

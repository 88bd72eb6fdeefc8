"""Probability distributions, under the names of ``scipy.stats``."""

import math
from typing import Any

from lantern.rules import selection
from lantern.rules.exponential import exp, expm1, log, log1p
from lantern.rules.trigonometry import atan2
from lantern.scipy import special
from lantern.scipy.distributions import Continuous, Discrete
from lantern.scipy.multivariate import dirichlet, multivariate_normal
from lantern.tensor.ops.shape import as_array

__all__ = [
    "bernoulli",
    "beta",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "laplace",
    "logistic",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
    "uniform",
]


def _log_power(z: Any, exponent: Any) -> Any:
    """``log(z**exponent)``, at 0 infinite for numbers too, as for arrays."""
    number_zero = not hasattr(z, "shape") and z == 0
    return special.xlogy(exponent, as_array(z) if number_zero else z)


class Normal(Continuous):
    """The normal distribution.

    Example:
        >>> round(norm.cdf(1.0, loc=1.0), 6), round(norm.logpdf(0.0), 6)
        (0.5, -0.918939)
    """

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return z * z / -2 - math.log(2 * math.pi) / 2

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.ndtr(z)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.ndtr(-z)

    def log_below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.log_ndtr(z)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.log_ndtr(-z)


class Student(Continuous):
    """Student's distribution, of ``df`` degrees of freedom.

    Example:
        >>> round(t.pdf(0.0, 1.0), 6)
        0.31831
    """

    parameters = ("df",)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (df,) = parameters
        tail = (df + 1) / 2 * log1p(z * z / df)
        return -tail - special.betaln(0.5, df / 2) - log(df) / 2

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.stdtr(parameters[0], z)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.stdtr(parameters[0], -z)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return log(self.above(z, *parameters))


class Gamma(Continuous):
    """The gamma distribution, of shape ``a``.

    Example:
        >>> round(gamma.logpdf(1.0, 2.0, scale=1.0), 6)
        -1.0
    """

    parameters = ("a",)
    support = (0.0, math.inf)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (a,) = parameters
        return _log_power(z, a - 1) - z - special.gammaln(a)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (a,) = parameters
        return special.gammainc(a, z)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (a,) = parameters
        return special.gammaincc(a, z)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return log(self.above(z, *parameters))


class ChiSquared(Gamma):
    """The distribution of the sum of ``df`` squared standard normal numbers.

    Example:
        >>> round(chi2.cdf(2.0, 2), 6)
        0.632121
    """

    parameters = ("df",)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (df,) = parameters
        return super().log_density(z / 2, df / 2) - math.log(2)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (df,) = parameters
        return super().below(z / 2, df / 2)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        (df,) = parameters
        return super().above(z / 2, df / 2)


class Beta(Continuous):
    """The beta distribution, of shapes ``a`` and ``b``.

    Example:
        >>> round(beta.pdf(0.5, 2.0, 2.0), 6)
        1.5
    """

    parameters = ("a", "b")
    support = (0.0, 1.0)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        a, b = parameters
        powers = _log_power(z, a - 1) + special.xlog1py(b - 1, -z)
        return powers - special.betaln(a, b)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        a, b = parameters
        return special.betainc(a, b, z)


class Exponential(Continuous):
    """The exponential distribution.

    Example:
        >>> expon.logpdf(3.0), expon.pdf(-1.0)
        (-3.0, 0.0)
    """

    support = (0.0, math.inf)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return -z

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return -expm1(-z)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return exp(-z)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return -z


class Laplace(Continuous):
    """The Laplace distribution.

    Example:
        >>> laplace.pdf(0.0)
        0.5
    """

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return -selection.abs(z) - math.log(2)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        tail = exp(-selection.abs(z)) / 2
        return selection.where(z > 0, 1 - tail, tail)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return self.below(-z)

    def log_below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        tail = -selection.abs(z) - math.log(2)
        return selection.where(z > 0, log1p(-exp(tail)), tail)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return self.log_below(-z)


class Logistic(Continuous):
    """The logistic distribution.

    Example:
        >>> logistic.pdf(0.0), logistic.cdf(0.0)
        (0.25, 0.5)
    """

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.log_expit(z) + special.log_expit(-z)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.expit(z)

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.expit(-z)

    def log_below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.log_expit(z)

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return special.log_expit(-z)


class Cauchy(Continuous):
    """The Cauchy distribution.

    Example:
        >>> round(cauchy.pdf(0.0), 6), cauchy.cdf(0.0)
        (0.31831, 0.5)
    """

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return -log1p(z * z) - math.log(math.pi)

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return atan2(1.0, -z) / math.pi

    def above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return atan2(1.0, z) / math.pi

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return log(self.above(z, *parameters))


class Uniform(Continuous):
    """The uniform distribution, from loc to loc + scale.

    Example:
        >>> uniform.pdf(1.5, loc=1.0, scale=2.0), uniform.cdf(1.5, 1.0, 2.0)
        (0.5, 0.25)
    """

    support = (0.0, 1.0)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return 0 * z

    def below(self, z: Any, *parameters: Any) -> Any:
        """See ``Continuous``."""
        return z


class Poisson(Discrete):
    """The Poisson distribution, of mean ``mu``.

    Example:
        >>> round(poisson.pmf(2, 2.0), 6), poisson.pmf(0.5, 2.0)
        (0.270671, 0.0)
    """

    parameters = ("mu",)

    def log_mass(self, k: Any, *parameters: Any) -> Any:
        """See ``Discrete``."""
        (mu,) = parameters
        return special.xlogy(k, mu) - mu - special.gammaln(k + 1)

    def below(self, k: Any, *parameters: Any) -> Any:
        """See ``Discrete``."""
        (mu,) = parameters
        return special.gammaincc(k + 1, mu)


class Bernoulli(Discrete):
    """The distribution of 1 with probability ``p``, and 0 otherwise.

    Example:
        >>> bernoulli.pmf(1, 0.25), bernoulli.cdf(0, 0.25)
        (0.25, 0.75)
    """

    parameters = ("p",)

    def log_mass(self, k: Any, *parameters: Any) -> Any:
        """See ``Discrete``."""
        (p,) = parameters
        return special.xlogy(k, p) + special.xlog1py(1 - k, -p)

    def below(self, k: Any, *parameters: Any) -> Any:
        """See ``Discrete``."""
        return 1 - parameters[0]

    def last(self, *parameters: Any) -> Any:
        """See ``Discrete``."""
        return 1


norm, t, gamma, chi2, beta = Normal(), Student(), Gamma(), ChiSquared(), Beta()
expon, laplace, logistic, cauchy = Exponential(), Laplace(), Logistic(), Cauchy()
uniform, poisson, bernoulli = Uniform(), Poisson(), Bernoulli()

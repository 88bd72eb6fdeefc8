"""Random draws with an explicit generator, under the names of ``numpy.random``.

Example:
    >>> import lantern.random
    >>> from numpy.random import default_rng
    >>> lantern.random.uniform(default_rng(0), size=2).shape
    (2,)
"""

from lantern.tensor.ops.random import (
    beta,
    categorical,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    gumbel,
    gumbel_softmax,
    laplace,
    logistic,
    lognormal,
    normal,
    rayleigh,
    standard_gamma,
    uniform,
    weibull,
)

__all__ = [
    "beta",
    "categorical",
    "chisquare",
    "dirichlet",
    "exponential",
    "gamma",
    "gumbel",
    "gumbel_softmax",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "rayleigh",
    "standard_gamma",
    "uniform",
    "weibull",
]

"""Distributions: draws, densities and divergences, under PyTorch's names."""

from typing import Any as _Any

from lantern.torch.distributions import constraints as constraints
from lantern.torch.distributions import multivariate_normal as multivariate_normal
from lantern.torch.distributions.chances import *
from lantern.torch.distributions.classes import *
from lantern.torch.distributions.constraint_registry import *
from lantern.torch.distributions.distribution import *
from lantern.torch.distributions.kl import *
from lantern.torch.distributions.located import *
from lantern.torch.distributions.matrices import *
from lantern.torch.distributions.positive import *
from lantern.torch.distributions.rarer import *
from lantern.torch.distributions.several import *
from lantern.torch.distributions.transformed import *
from lantern.torch.distributions.transforms import *
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.aliases import missing as _missing

_lead(
    __name__,
    "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet "
    "exp_family exponential fishersnedecor gamma geometric gumbel half_cauchy "
    "half_normal independent inverse_gamma kumaraswamy laplace lkj_cholesky log_normal "
    "logistic_normal lowrank_multivariate_normal mixture_same_family multinomial "
    "negative_binomial normal one_hot_categorical pareto poisson "
    "relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform "
    "generalized_pareto von_mises weibull wishart",
)


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    raise _missing("module 'torch.distributions'", name, globals())

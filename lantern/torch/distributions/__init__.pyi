# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.distributions import constraints as constraints
from lantern.torch.distributions import multivariate_normal as multivariate_normal
from lantern.torch.distributions.chances import Bernoulli as Bernoulli
from lantern.torch.distributions.chances import Binomial as Binomial
from lantern.torch.distributions.chances import Geometric as Geometric
from lantern.torch.distributions.chances import NegativeBinomial as NegativeBinomial
from lantern.torch.distributions.chances import Poisson as Poisson
from lantern.torch.distributions.classes import Categorical as Categorical
from lantern.torch.distributions.classes import Multinomial as Multinomial
from lantern.torch.distributions.classes import OneHotCategorical as OneHotCategorical
from lantern.torch.distributions.classes import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from lantern.torch.distributions.constraint_registry import ConstraintRegistry as ConstraintRegistry
from lantern.torch.distributions.constraint_registry import ConstraintRegistry as _ConstraintRegistry
from lantern.torch.distributions.distribution import Distribution as Distribution
from lantern.torch.distributions.distribution import ExponentialFamily as ExponentialFamily
from lantern.torch.distributions.distribution import Independent as Independent
from lantern.torch.distributions.distribution import broadcast_all as broadcast_all
from lantern.torch.distributions.kl import register_kl as register_kl
from lantern.torch.distributions.located import Cauchy as Cauchy
from lantern.torch.distributions.located import Gumbel as Gumbel
from lantern.torch.distributions.located import HalfNormal as HalfNormal
from lantern.torch.distributions.located import Laplace as Laplace
from lantern.torch.distributions.located import Normal as Normal
from lantern.torch.distributions.matrices import LKJCholesky as LKJCholesky
from lantern.torch.distributions.matrices import LowRankMultivariateNormal as LowRankMultivariateNormal
from lantern.torch.distributions.matrices import Wishart as Wishart
from lantern.torch.distributions.positive import Chi2 as Chi2
from lantern.torch.distributions.positive import Exponential as Exponential
from lantern.torch.distributions.positive import Gamma as Gamma
from lantern.torch.distributions.positive import StudentT as StudentT
from lantern.torch.distributions.positive import Uniform as Uniform
from lantern.torch.distributions.rarer import ContinuousBernoulli as ContinuousBernoulli
from lantern.torch.distributions.rarer import FisherSnedecor as FisherSnedecor
from lantern.torch.distributions.rarer import GeneralizedPareto as GeneralizedPareto
from lantern.torch.distributions.rarer import VonMises as VonMises
from lantern.torch.distributions.several import Beta as Beta
from lantern.torch.distributions.several import Dirichlet as Dirichlet
from lantern.torch.distributions.several import MixtureSameFamily as MixtureSameFamily
from lantern.torch.distributions.several import MultivariateNormal as MultivariateNormal
from lantern.torch.distributions.transformed import HalfCauchy as HalfCauchy
from lantern.torch.distributions.transformed import InverseGamma as InverseGamma
from lantern.torch.distributions.transformed import Kumaraswamy as Kumaraswamy
from lantern.torch.distributions.transformed import LogNormal as LogNormal
from lantern.torch.distributions.transformed import LogisticNormal as LogisticNormal
from lantern.torch.distributions.transformed import Pareto as Pareto
from lantern.torch.distributions.transformed import RelaxedBernoulli as RelaxedBernoulli
from lantern.torch.distributions.transformed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from lantern.torch.distributions.transformed import TransformedDistribution as TransformedDistribution
from lantern.torch.distributions.transformed import Weibull as Weibull
from lantern.torch.distributions.transforms import AbsTransform as AbsTransform
from lantern.torch.distributions.transforms import AffineTransform as AffineTransform
from lantern.torch.distributions.transforms import CatTransform as CatTransform
from lantern.torch.distributions.transforms import ComposeTransform as ComposeTransform
from lantern.torch.distributions.transforms import ComposeTransform as _ComposeTransform
from lantern.torch.distributions.transforms import CorrCholeskyTransform as CorrCholeskyTransform
from lantern.torch.distributions.transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from lantern.torch.distributions.transforms import ExpTransform as ExpTransform
from lantern.torch.distributions.transforms import IndependentTransform as IndependentTransform
from lantern.torch.distributions.transforms import LowerCholeskyTransform as LowerCholeskyTransform
from lantern.torch.distributions.transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from lantern.torch.distributions.transforms import PowerTransform as PowerTransform
from lantern.torch.distributions.transforms import ReshapeTransform as ReshapeTransform
from lantern.torch.distributions.transforms import SigmoidTransform as SigmoidTransform
from lantern.torch.distributions.transforms import SoftmaxTransform as SoftmaxTransform
from lantern.torch.distributions.transforms import SoftplusTransform as SoftplusTransform
from lantern.torch.distributions.transforms import StackTransform as StackTransform
from lantern.torch.distributions.transforms import StickBreakingTransform as StickBreakingTransform
from lantern.torch.distributions.transforms import TanhTransform as TanhTransform
from lantern.torch.distributions.transforms import Transform as Transform
from lantern.torch.tensor.tensor import Tensor
from typing import Any

biject_to: _ConstraintRegistry
identity_transform: _ComposeTransform
def kl_divergence(p: Any, q: Any) -> Tensor: ...
transform_to: _ConstraintRegistry

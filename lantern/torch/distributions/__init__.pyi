# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.distributions import constraints as constraints
from lantern.torch.distributions.chances import Bernoulli as Bernoulli
from lantern.torch.distributions.chances import Binomial as Binomial
from lantern.torch.distributions.chances import Geometric as Geometric
from lantern.torch.distributions.chances import NegativeBinomial as NegativeBinomial
from lantern.torch.distributions.chances import Poisson as Poisson
from lantern.torch.distributions.classes import Categorical as Categorical
from lantern.torch.distributions.classes import Multinomial as Multinomial
from lantern.torch.distributions.classes import OneHotCategorical as OneHotCategorical
from lantern.torch.distributions.classes import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from lantern.torch.distributions.distribution import Distribution as Distribution
from lantern.torch.distributions.distribution import Independent as Independent
from lantern.torch.distributions.distribution import broadcast_all as broadcast_all
from lantern.torch.distributions.kl import register_kl as register_kl
from lantern.torch.distributions.located import Cauchy as Cauchy
from lantern.torch.distributions.located import Gumbel as Gumbel
from lantern.torch.distributions.located import HalfNormal as HalfNormal
from lantern.torch.distributions.located import Laplace as Laplace
from lantern.torch.distributions.located import Normal as Normal
from lantern.torch.distributions.positive import Chi2 as Chi2
from lantern.torch.distributions.positive import Exponential as Exponential
from lantern.torch.distributions.positive import Gamma as Gamma
from lantern.torch.distributions.positive import StudentT as StudentT
from lantern.torch.distributions.positive import Uniform as Uniform
from lantern.torch.distributions.several import Beta as Beta
from lantern.torch.distributions.several import Dirichlet as Dirichlet
from lantern.torch.distributions.several import MixtureSameFamily as MixtureSameFamily
from lantern.torch.distributions.several import MultivariateNormal as MultivariateNormal
from lantern.torch.distributions.transforms import AffineTransform as AffineTransform
from lantern.torch.distributions.transforms import ComposeTransform as ComposeTransform
from lantern.torch.distributions.transforms import ExpTransform as ExpTransform
from lantern.torch.distributions.transforms import LogNormal as LogNormal
from lantern.torch.distributions.transforms import SigmoidTransform as SigmoidTransform
from lantern.torch.distributions.transforms import TanhTransform as TanhTransform
from lantern.torch.distributions.transforms import Transform as Transform
from lantern.torch.distributions.transforms import TransformedDistribution as TransformedDistribution
from lantern.torch.tensor.tensor import Tensor
from typing import Any

def kl_divergence(p: Any, q: Any) -> Tensor: ...

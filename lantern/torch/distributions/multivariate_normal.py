"""What libraries take from the file of PyTorch's normal distributions of vectors."""

from typing import Any

from lantern.torch.distributions import constraints as constraints
from lantern.torch.distributions.distribution import Distribution as Distribution
from lantern.torch.distributions.several import MultivariateNormal as MultivariateNormal
from lantern.torch.distributions.utils import _standard_normal as _standard_normal
from lantern.torch.distributions.utils import lazy_property as lazy_property
from lantern.torch.functions.creation import eye
from lantern.torch.linalg import cholesky, solve_triangular

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    """Products of matrices and vectors."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:
    """The squares ``xᵀ A⁻¹ x``, where L are the Cholesky factors of A."""
    y = solve_triangular(bL, bx.unsqueeze(-1), upper=False)
    return y.pow(2).sum((-2, -1))


def _precision_to_scale_tril(P: Any) -> Any:
    """The Cholesky factors of the inverse matrices."""
    turned = cholesky(P.flip((-2, -1)))
    one = eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return solve_triangular(turned.flip((-2, -1)).mT, one, upper=False)

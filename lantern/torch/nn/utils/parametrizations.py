"""Weights of a given size or form, as parametrizations: see ``parametrize``."""

from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import ShapeError
from lantern.torch.linalg import matrix_exp, qr
from lantern.torch.nn.module import Module
from lantern.torch.nn.utils.norms import SpectralNorm, WeightNorm, outputs_axis
from lantern.torch.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def weight_norm(module: Any, name: str = "weight", dim: Any = 0) -> Any:
    """Let a module train a weight's length and its direction apart.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> lengths = layer.parametrizations.weight.original0
        >>> torch.allclose(layer.weight.norm(dim=1, keepdim=True), lengths)
        True
    """
    return register_parametrization(module, name, WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: Any = None,
) -> Any:
    """Let a module use a weight over its largest singular value.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'parametrizations.weight.original']
    """
    if dim is None:
        dim = outputs_axis(module)
    rule = SpectralNorm(getattr(module, name), n_power_iterations, dim, eps)
    return register_parametrization(module, name, rule)


class _Orthogonal(Module):
    """The exponential of a skew matrix, times the matrix that it started from."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        rows, columns = weight.shape[-2:]
        self.wide = rows < columns
        tall = weight.detach().mT if self.wide else weight.detach()
        self.register_buffer("base", qr(tall)[0])

    def forward(self, x: Any) -> Any:
        """A matrix whose columns, or whose rows if they are fewer, are orthonormal."""
        x = x.mT if self.wide else x
        n, k = x.shape[-2:]
        full = x.new_zeros(*x.shape[:-2], n, n)
        full[..., :k] = x.tril(-1)
        z = matrix_exp(full - full.mT) @ self.base
        return z.mT if self.wide else z

    def right_inverse(self, weight: Any) -> Any:
        """Zeros: the matrix that it started from."""
        return weight.detach() * 0


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: Any = None, **options: Any
) -> Any:
    """Let a module have a weight with orthonormal rows or columns.

    Raises:
        ValueError: for a weight that is no matrix.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
        >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-5)
        True
    """
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ShapeError(
            "Expected a matrix or batch of matrices. Got a tensor of "
            f"{weight.ndim} dimensions."
        )
    with no_grad():
        return register_parametrization(module, name, _Orthogonal(weight))

"""Helpers of those who write distributions."""

from typing import Any

from lantern.torch.distributions.chances import clamped
from lantern.torch.distributions.derived import lazy_property as lazy_property
from lantern.torch.distributions.distribution import broadcast_all as broadcast_all
from lantern.torch.functions.creation import tril_indices
from lantern.torch.methods.sampling import randn
from lantern.torch.nn.functional import softmax
from lantern.torch.tensor.dtypes import Size

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs",
    "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Normal draws."""
    return randn(Size(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sums along the last axes."""
    return value.flatten(-dim).sum(-1) if dim else value


def clamp_probs(probs: Any) -> Any:
    """Probabilities whose logarithms are finite.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.utils import clamp_probs
        >>> clamp_probs(torch.tensor([0.0, 0.5])).log().isfinite()
        tensor([True, True])
    """
    return clamped(probs)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from logits: of a yes, or of classes along the last axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.utils import logits_to_probs
        >>> logits_to_probs(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits from probabilities: of a yes, or of classes along the last axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.utils import probs_to_logits
        >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    inner = clamped(probs)
    return inner.log() - (-inner).log1p() if is_binary else inner.log()


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The entries of matrices on and below a diagonal, row by row.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(torch.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Matrices from their entries on and below a diagonal, row by row.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(torch.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])
    """
    n = round((-1 - 2 * diag + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1]
        + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)  # fmt: skip
    rows, columns = tril_indices(n, n, diag)
    made = vec.new_zeros((*vec.shape[:-1], n, n))
    made[..., rows, columns] = vec
    return made

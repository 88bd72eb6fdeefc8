"""Factorisations of matrices as they were before ``torch.linalg``."""

from typing import Any

from lantern.torch import linalg
from lantern.torch.results import named
from lantern.torch.tensor import Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The factors U, S and V of a matrix, as ``U @ diag(S) @ V.mH``."""
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return _Factors(u, s, vh.mH)


def logdet(input: Tensor) -> Any:
    """The logarithm of the determinant; nan for a negative one."""
    return linalg.det(input).log()


def cholesky(input: Tensor, upper: bool = False) -> Any:
    """The triangle L with ``L @ L.mH``, or U with ``U.mH @ U``, as given."""
    return linalg.cholesky(input, upper=upper)


def qr(input: Tensor, some: bool = True) -> Any:
    """Orthonormal columns and an upper triangle."""
    return linalg.qr(input, "reduced" if some else "complete")


_Factors = named("svd", "U S V")
functions: dict[str, Any] = {f.__name__: f for f in (cholesky, logdet, qr, svd)}

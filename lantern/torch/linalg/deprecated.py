"""Factorisations of matrices as they were before ``torch.linalg``."""

from typing import Any

from lantern.torch import linalg
from lantern.torch.linalg.elimination import lu_unpack
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.tensor import Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The factors U, S and V of a matrix, as ``U @ diag(S) @ V.mH``."""
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return _Factors(u, s, vh.mH)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """As ``linalg.lu_factor``; with infos, 0 where no pivot is 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.lu(torch.tensor([[2.0]]))[0]
        tensor([[2.]])
    """
    both, pivots, info = linalg.lu_factor_ex(A, pivot=pivot)
    return (both, pivots, info) if get_infos else (both, pivots)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """As ``linalg.lu_solve``, with its arguments in another order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.lu_solve(torch.tensor([[6.0]]), *torch.lu(torch.tensor([[2.0]])))
        tensor([[3.]])
    """
    return linalg.lu_solve(LU_data, LU_pivots, b)


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
functions: dict[str, Any] = {
    f.__name__: f for f in (cholesky, logdet, lu, lu_solve, qr, svd)
}
functions["lu_unpack"] = lu_unpack

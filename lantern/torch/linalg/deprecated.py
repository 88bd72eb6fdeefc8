"""Factorisations of matrices as they were before ``torch.linalg``."""

from typing import Any

from lantern.torch import linalg
from lantern.torch.linalg.elimination import lu_unpack
from lantern.torch.tensor.named_results import into, named
from lantern.torch.tensor.tensor import Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The factors U, S and V of a matrix, as ``U @ diag(S) @ V.mH``.

    Example:
        >>> import lantern.torch as torch
        >>> U, S, V = torch.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
        >>> S
        tensor([3., 2.])
    """
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


def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """As ``linalg.solve_triangular``; with the matrix, as it was given.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> torch.triangular_solve(torch.tensor([[2.0], [9.0]]), A, upper=False)[0]
        tensor([[1.],
                [2.]])
    """
    turned = A.mT if transpose else A
    x = linalg.solve_triangular(
        turned, input, upper=upper != transpose, unitriangular=unitriangular
    )
    return into(_Solved(x, A.clone()), out)


def logdet(input: Tensor) -> Any:
    """The logarithm of the determinants of matrices; nan where it is negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.logdet(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor(1.7918)
    """
    return linalg.det(input).log()


def cholesky(input: Tensor, upper: bool = False) -> Any:
    """The triangle L with ``L @ L.mH``, or U with ``U.mH @ U``, as given.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
        tensor([[2., 0.],
                [1., 1.]])
    """
    return linalg.cholesky(input, upper=upper)


def qr(input: Tensor, some: bool = True) -> Any:
    """Orthonormal columns and an upper triangle.

    Example:
        >>> import lantern.torch as torch
        >>> q, r = torch.qr(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
        >>> (q @ r).round()
        tensor([[0., 2.],
                [1., 0.]])
    """
    return linalg.qr(input, "reduced" if some else "complete")


_Factors = named("svd", "U S V")
_Solved = named("triangular_solve", "solution cloned_coefficient")
functions: dict[str, Any] = {
    f.__name__: f for f in (cholesky, logdet, lu, lu_solve, qr, svd, triangular_solve)
}
functions["lu_unpack"] = lu_unpack

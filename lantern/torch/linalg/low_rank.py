"""The few largest singular values and eigenvalues, of large matrices."""

from typing import Any

from lantern.errors import OptionError
from lantern.torch import linalg
from lantern.torch.methods.sampling import randn
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.tensor import Tensor

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _basis(A: Any, q: int, niter: int) -> Any:
    """Orthonormal columns whose span has nearly all of A's range."""
    start = randn(*A.shape[:-2], A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = linalg.qr(A @ start)[0]
    for _ in range(niter):
        Q = linalg.qr(A.mH @ Q)[0]
        Q = linalg.qr(A @ Q)[0]
    return Q


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Any = None) -> Any:
    """The q largest singular values, nearly, with their vectors as columns.

    Args:
        A: the matrix, or several.
        q: how many; a few more than are wanted make them exact.
        niter: how often the subspace is multiplied by the matrix and its adjoint.
        M: what is subtracted from the matrix: such as the mean of its rows.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.outer(torch.tensor([3.0, 0.0, 4.0]), torch.tensor([1.0, 0.0]))
        >>> torch.svd_lowrank(A, q=1)[1]
        tensor([5.])

    References:
        Halko, Martinsson and Tropp (2011), algorithms 4.4 and 5.1.
    """
    if M is not None:
        A = A - M.expand_as(A)
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = _basis(A, min(q, A.shape[-1]), niter)
    U, S, Vh = linalg.svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: Any = None, center: bool = True, niter: int = 2) -> Any:
    """Principal components of rows: ``A - mean`` is nearly ``U @ diag(S) @ V.mH``.

    Args:
        A: the rows.
        q: how many components: 6, or as many as there are.
        center: whether the mean of the rows is subtracted.
        niter: see ``svd_lowrank``.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]])
        >>> torch.pca_lowrank(A, q=1)[2].abs()
        tensor([[1.],
                [0.]])
    """
    least = min(A.shape[-2:])
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise OptionError(
            f"q(={q}) must be non-negative integer and not greater than "
            f"min(m, n)={least}"
        )
    if niter < 0:
        raise OptionError(f"niter(={niter}) must be non-negative integer")
    A = A.to_dense() if A.is_sparse else A
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def lobpcg(
    A: Tensor,
    k: Any = None,
    B: Any = None,
    X: Any = None,
    n: Any = None,
    iK: Any = None,
    niter: Any = None,
    tol: Any = None,
    largest: Any = None,
    method: Any = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> Any:
    """The k largest or smallest eigenvalues of ``A x = λ B x``, with their vectors.

    They are computed from all eigenvalues, so that they are exact, and what steers
    PyTorch's iteration has no effect: ``n``, ``iK``, ``niter``, ``tol``, ``method``.

    Args:
        A: a symmetric matrix.
        k: how many; as many as X has columns, or 1, by default.
        B: a positive definite matrix; the identity by default.
        X: the iteration's start, of which only the number of columns counts.
        n: no effect, as what follows but for ``largest``.
        iK: no effect.
        niter: no effect.
        tol: no effect.
        largest: whether the largest ones are wanted: yes by default.
        method: no effect.
        tracker: no effect.
        ortho_iparams: no effect.
        ortho_fparams: no effect.
        ortho_bparams: no effect.

    Example:
        >>> import lantern.torch as torch
        >>> torch.lobpcg(torch.diag(torch.tensor([1.0, 3.0, 2.0])), k=2)[0]
        tensor([3., 2.])
    """
    k = k or (1 if X is None else X.shape[-1])
    A = A.to_dense() if A.is_sparse else A
    factor = None if B is None else linalg.cholesky(B)
    if factor is not None:
        half = linalg.solve_triangular(factor, A, upper=False)
        A = linalg.solve_triangular(factor, half.mH, upper=False).mH
    values, vectors = linalg.eigh(A)
    if factor is not None:
        vectors = linalg.solve_triangular(factor.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return _PAIRS(values[..., :k], vectors[..., :k])


_PAIRS = named("lobpcg", "eigenvalues eigenvectors")
functions: dict[str, Any] = {f.__name__: f for f in (svd_lowrank, pca_lowrank, lobpcg)}

"""Solutions of equations in tensors; factors that say whether they could be found."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError
from lantern.tensor import linalg
from lantern.torch.functions.join_repeat import stack
from lantern.torch.linalg.elimination import lu_factor_ex
from lantern.torch.linalg.matrices import LinAlgError, _square, cholesky, inv, solve
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.operators import call, cast, promote
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "inv_ex",
    "solve_ex",
    "tensorinv",
    "tensorsolve",
    "vander",
]

_INFO = {
    name: named(f"linalg_{name}", f"{row} info")
    for name, row in (
        ("cholesky_ex", "L"),
        ("inv_ex", "inverse"),
        ("solve_ex", "result"),
    )
}


def _first_minor(A: Any) -> int:
    """The size of the smallest leading part that is not positive definite, or 0."""
    good, bad = 0, A.shape[-1] + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            np.linalg.cholesky(A[:middle, :middle])
            good = middle
        except np.linalg.LinAlgError:
            bad = middle
    return 0 if bad > A.shape[-1] else bad


def _infos(name: str, A: Any, upper: bool) -> Any:
    """For each matrix 0, or where its factorisation stops, counted from 1."""
    if name != "cholesky_ex":
        return base(lu_factor_ex(fresh(A)).info)
    lower = np.conj(np.swapaxes(A, -1, -2)) if upper else A
    rows = [_first_minor(one) for one in lower.reshape(-1, *A.shape[-2:])]
    return np.array(rows, np.int32).reshape(A.shape[:-2])


def _with_info(
    name: str, function: Any, A: Any, *args: Any, check: bool, **options: Any
) -> Any:
    """What a function finds, and 0; nan and a number where a matrix stops it."""
    xp, shape = namespace(base(A)), base(A).shape[:-2]
    try:
        found = function(A, *args, **options)
        return _INFO[name](found, fresh(xp.zeros(shape, np.int32)))
    except LinAlgError:
        if check:
            raise
    info = xp.asarray(_infos(name, base(A), options.get("upper", False)))
    bad = fresh((info != 0).reshape(*shape, 1, 1))
    eye = fresh(xp.eye(base(A).shape[-1], dtype=base(A).dtype))
    found = function(A.masked_fill(bad, 0) + eye * bad, *args, **options)
    if base(found).ndim < base(A).ndim:
        bad = bad[..., 0]  # a vector for each matrix
    return _INFO[name](found.masked_fill(bad, float("nan")), fresh(info))


@each_example
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """As ``cholesky``, with a number: 0, or the first part not positive definite.

    The result is nan there; an error is raised if ``check_errors`` asks for it.

    Example:
        >>> import lantern.torch as torch
        >>> L, info = torch.linalg.cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        >>> info
        tensor(0, dtype=torch.int32)
    """
    return _with_info("cholesky_ex", cholesky, A, upper=upper, check=check_errors)


@each_example
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """As ``inv``, with a number: 0, or the first pivot that is 0.

    The result is nan there; an error is raised if ``check_errors`` asks for it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.inv_ex(torch.tensor([[2.0, 0.0], [1.0, 4.0]])).info
        tensor(0, dtype=torch.int32)
    """
    return _with_info("inv_ex", inv, A, check=check_errors)


@each_example
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    """As ``solve``, with a number: 0, or the first pivot that is 0.

    The result is nan there; an error is raised if ``check_errors`` asks for it.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> torch.linalg.solve_ex(A, torch.tensor([2.0, 8.0])).result
        tensor([1., 2.])
    """
    return _with_info("solve_ex", solve, A, B, left=left, check=check_errors)


def tensorinv(A: Tensor, ind: int = 2) -> Any:
    """The inverse of a tensor as a linear map between some axes and the others.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
        torch.Size([6, 2, 3])
    """
    if ind <= 0:
        raise EagerError("Expected a strictly positive integer for 'ind'")
    return call(linalg.solve.tensorinv, A, ind)


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Any:
    """The X with ``tensordot(A, X, X.ndim) == B``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.tensorsolve(
        ...     2 * torch.eye(4).reshape(4, 2, 2), torch.arange(4.0)
        ... )
        tensor([[0.0000, 0.5000],
                [1.0000, 1.5000]])
    """
    return call(linalg.solve.tensorsolve, A, B, dims if dims is None else tuple(dims))


def vander(x: Tensor, *, N: int | None = None) -> Any:
    """The powers of each element, from 0, as rows.

    Shapes:
        x: (..., n); result: (..., n, N)

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.vander(torch.tensor([2, 3]))
        tensor([[1, 2],
                [1, 3]])
    """
    if not base(x).shape:
        x = x.reshape(1)
    n = base(x).shape[-1] if N is None else N
    if n <= 1:
        raise EagerError("N must be greater than 1.")
    (x,) = promote(x)
    if base(x).dtype.kind in "iub":
        x = cast(x, np.dtype(np.int64))
    return stack([x**i for i in range(n)], -1)


def _triangular(L: Tensor, upper: bool) -> Any:
    """The triangle alone; its gradient is, as PyTorch's, that of the whole matrix."""
    plain = L.detach()
    part = plain.triu() if upper else plain.tril()
    return part + (L - plain) if L.requires_grad else part


def _real(name: str, x: Tensor) -> None:
    """Raise for whole numbers."""
    if base(x).dtype.kind in "iub":
        raise refuse_type(name, x)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Any:
    """The inverse of the matrices of which L are the Cholesky factors.

    Shapes:
        L: (..., n, n); result: (..., n, n)

    Example:
        >>> import lantern.torch as torch
        >>> torch.cholesky_inverse(torch.tensor([[2.0]]))
        tensor([[0.2500]])
    """
    _square("cholesky_inverse", L)
    _real("cholesky_inverse", L)
    L = _triangular(L, upper)
    return inv(L.mH @ L if upper else L @ L.mH)


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Any:
    """The X with ``A @ X == B``, where L are the Cholesky factors of A.

    Shapes:
        B: (..., n, k); L: (..., n, n); result: (..., n, k)

    Example:
        >>> import lantern.torch as torch
        >>> torch.cholesky_solve(torch.tensor([[8.0]]), torch.tensor([[2.0]]))
        tensor([[2.]])
    """
    _real("cholesky_solve", B)
    _square("cholesky_solve", L)
    L = _triangular(L, upper)
    return solve(L.mH @ L if upper else L @ L.mH, B)

"""Matrices as products of two triangles, by elimination with pivots."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base
from lantern.errors import EagerError
from lantern.op import adjoint
from lantern.tensor import linalg
from lantern.tensor.ops import rearrange
from lantern.tensor.ops.shape import matrix_transpose
from lantern.torch.functions.join_repeat import cat
from lantern.torch.linalg.matrices import solve_triangular
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.operators import unary
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve"]


def _size(x: Any) -> Any:
    """By what LAPACK compares pivots: both parts of complex numbers are added."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def _eliminated(a: Any) -> tuple[Any, Any]:
    """Both triangles of plain matrices in one, and with which row each was swapped."""
    a = np.array(a)
    *lead, n, m = a.shape
    rows = a.reshape(math.prod(lead), n, m)
    each, count = np.arange(len(rows)), min(n, m)
    swaps = np.empty((len(rows), count), np.int64)
    for k in range(count):
        swaps[:, k] = p = k + _size(rows[:, k:, k]).argmax(1)
        rows[each, k], rows[each, p] = rows[each, p], rows[each, k]
        pivots = rows[:, k, k]
        rows[:, k + 1 :, k] /= np.where(pivots == 0, 1, pivots)[:, None]
        rows[:, k + 1 :, k + 1 :] -= (
            rows[:, k + 1 :, k, None] * rows[:, k, None, k + 1 :]
        )
    return rows.reshape(a.shape), swaps.reshape(*lead, count)


def _order(swaps: Any, n: int) -> Any:
    """Which row of the matrix each row of the triangles is."""
    *lead, count = swaps.shape
    many = math.prod(lead)
    order, each = np.tile(np.arange(n), (many, 1)), np.arange(many)
    for k, p in enumerate(swaps.reshape(many, count).T):
        order[each, k], order[each, p] = order[each, p], order[each, k]
    return order.reshape(*lead, n)


@adjoint
def _triangles(a: Any, /) -> Rule:
    """L below the diagonal, whose own is 1, and U, of a matrix in the order of pivots.

    Shapes:
        a: (..., n, n); result: (..., n, n)

    Rule:
        a_bar = L^-H (tril(L^H z_bar, -1) + triu(z_bar U^H)) U^-H
    """
    z = _triangles(a) if isinstance(a, Value) else _eliminated(a)[0]
    one = np.eye(a.shape[-1], dtype=base(a).dtype)
    del a
    z_bar = yield z
    lower = _adjoint(rearrange.tril(z, -1) + one)
    upper = rearrange.triu(z)
    inner = rearrange.tril(lower @ rearrange.tril(z_bar, -1), -1)
    inner = inner + rearrange.triu(rearrange.triu(z_bar) @ _adjoint(upper))
    inner = _adjoint(linalg.solve.solve(lower, inner))
    yield _adjoint(linalg.solve.solve(upper, inner))


def _adjoint(x: Any) -> Any:
    x = matrix_transpose(x)
    return namespace(x).conj(x) if base(x).dtype.kind == "c" else x


def _tracked(A: Tensor, order: Any) -> Any:
    """Both triangles in one, from the square part and what it makes of the rest."""
    n, m = base(A).shape[-2:]
    k = min(n, m)
    where = np.broadcast_to(order[..., None], base(A).shape)
    A = A.take_along_dim(fresh(np.array(where)), -2)
    both = _factor(A[..., :k, :k])
    if n > m:
        rest = solve_triangular(both, A[..., k:, :], upper=True, left=False)
        return cat([both, rest], -2)
    if n < m:
        right = A[..., k:]
        rest = solve_triangular(both, right, upper=False, unitriangular=True)
        return cat([both, rest], -1)
    return both


_factor = unary(_triangles)
_LU, _FACTOR = named("linalg_lu", "P L U"), named("linalg_lu_factor", "LU pivots")
_FACTOR_EX = named("linalg_lu_factor_ex", "LU pivots info")
_UNPACKED = named("lu_unpack", "P L U")


@each_example
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Both triangles in one, and the rows that were swapped, counted from 1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
        torch.return_types.linalg_lu_factor(
        LU=tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]]),
        pivots=tensor([2, 2], dtype=torch.int32))
    """
    if not pivot:
        raise EagerError("linalg.lu_factor: LU without pivoting is not implemented")
    if base(A).ndim < 2:
        raise EagerError(
            "linalg.lu_factor: The input tensor A must have at least 2 dimensions."
        )
    plain, swaps = _eliminated(np.asarray(base(A)))
    both = _tracked(A, _order(swaps, plain.shape[-2])) if A.requires_grad else plain
    both = both if isinstance(both, Tensor) else fresh(both)
    return _FACTOR(both, fresh((swaps + 1).astype(np.int32)))


@each_example
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """As ``lu_factor``, with the number of the first pivot that is 0; 0 for none.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.lu_factor_ex(torch.eye(2)).info
        tensor(0, dtype=torch.int32)
    """
    both, pivots = lu_factor(A, pivot=pivot)
    zero = np.diagonal(base(both), 0, -2, -1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32)
    return _FACTOR_EX(both, pivots, fresh(np.asarray(info)))


@each_example
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> Any:
    """The factors P, L and U from what ``lu_factor`` gives.

    Example:
        >>> import lantern.torch as torch
        >>> p, l, u = torch.lu_unpack(*torch.linalg.lu_factor(torch.eye(2)))
        >>> (p @ l @ u).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    n, m = base(LU_data).shape[-2:]
    count, kind = min(n, m), base(LU_data).dtype
    order = _order(base(LU_pivots).astype(np.int64) - 1, n)
    P = np.swapaxes(np.eye(n, dtype=kind)[order], -1, -2)
    L = LU_data[..., :count].tril(-1) + fresh(np.eye(n, count, dtype=kind))
    return _UNPACKED(fresh(np.ascontiguousarray(P)), L, LU_data[..., :count, :].triu())


@each_example
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """The factors of ``A == P @ L @ U``: a permutation and two triangles.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).U
        tensor([[4., 4.],
                [0., 1.]])
    """
    return _LU(*lu_unpack(*lu_factor(A, pivot=pivot)))


@each_example
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Any:
    """The X with ``A @ X == B``, from what ``lu_factor`` gives of A.

    Example:
        >>> import lantern.torch as torch
        >>> factors = torch.linalg.lu_factor(torch.tensor([[2.0]]))
        >>> torch.linalg.lu_solve(*factors, torch.tensor([[6.0]]))
        tensor([[3.]])
    """
    P, L, U = lu_unpack(LU, pivots)
    if not left:
        B, adjoint = B.mH, not adjoint
    if adjoint:
        inner = solve_triangular(U.mH, B, upper=False)
        z = P @ solve_triangular(L.mH, inner, upper=True, unitriangular=True)
    else:
        inner = solve_triangular(L, P.mT @ B, upper=False, unitriangular=True)
        z = solve_triangular(U, inner, upper=True)
    return z if left else z.mH

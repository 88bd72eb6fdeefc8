"""Triangular factors of matrices."""

from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.core.value import Rule, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import adjoint
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.matrix_forms import (
    conj_transpose,
    half_triangle,
    plain_namespace,
    untracked,
)
from lantern.tensor.ops.shape import as_array

__all__ = ["QRResult", "cholesky", "qr"]


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle.

    Example:
        >>> import numpy as np
        >>> abs(qr(np.array([[3.0], [4.0]])).R)
        array([[5.]])
    """

    Q: Any
    R: Any


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The triangle L with ``L @ L.mT.conj() == a``; U with ``U.mT.conj() @ U == a``.

    Of the Hermitian matrix only the triangle of the result's form is read; so the
    derivative belongs to that triangle.

    Shapes:
        a: (..., n, n), positive definite; result: (..., n, n)

    Example:
        >>> import numpy as np
        >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
        array([[2., 0.],
               [1., 1.]])
    """
    a = as_array(a)
    return conj_transpose(_cholesky(conj_transpose(a))) if upper else _cholesky(a)


@adjoint
def _cholesky(x: Any, /) -> Rule:
    """The Cholesky factor of a positive definite matrix, from its lower triangle.

    Shapes:
        x: (..., n, n); result: (..., n, n)

    Rule:
        s = inv(L).mT @ phi(L.mT @ L_bar) @ inv(L), with phi half the diagonal and
        what is below it
        x_bar = s + s.mT below the diagonal, s on it

    References:
        Murray (2016), section 3.
    """
    z = namespace(x).linalg.cholesky(x)
    del x
    z_bar = yield z
    z_h, half = conj_transpose(z), half_triangle(z)
    xp = namespace(z, z_bar)
    s = xp.linalg.solve(z_h, (z_h @ z_bar) * half)
    s = xp.linalg.solve(z_h, conj_transpose(s))
    yield (s + conj_transpose(s)) * half


def qr(a: Any, mode: str = "reduced") -> Any:
    """Orthonormal columns Q and an upper triangle R with ``Q @ R == a``.

    Shapes:
        a: (..., n, m), its first columns independent, with k = min(n, m); result: Q
        (..., n, k), R (..., k, m)

    Args:
        mode: "reduced"; "r" for R alone; "complete" for a square Q, which for n > m has
            no derivative: its further columns are arbitrary.

    Raises:
        MissingRuleError: for a mode that has no derivative.

    Example:
        >>> import numpy as np
        >>> qr(np.array([[0.0, 2.0], [3.0, 0.0]])).R
        array([[-3.,  0.],
               [ 0., -2.]])
    """
    if not is_tracked(a):
        z = untracked(plain_namespace(a).linalg.qr, a, mode)
        return QRResult(*z) if mode in ("reduced", "complete") else z
    n, m = a.shape[-2:]
    if mode not in ("reduced", "r") and (mode != "complete" or n > m):
        raise MissingRuleError(
            f"qr: mode {mode!r} has no rule for a matrix of shape {(n, m)}, for its "
            f"result is not unique. Use mode 'reduced'."
        )
    q, r = _qr(a[..., :n])
    if n < m:
        r = concat([r, conj_transpose(q) @ a[..., n:]], axis=-1)
    return r if mode == "r" else QRResult(q, r)


@adjoint
def _qr(x: Any, /) -> Rule:
    """Orthonormal columns and an upper triangle, of a matrix that is not wide.

    Shapes:
        x: (..., n, m), n >= m; result: (..., n, m) and (..., m, m)

    Rule:
        s = R @ R_bar.mT - Q_bar.mT @ Q, its lower triangle reflected to the upper one
        x_bar = (Q_bar + Q @ s) @ inv(R).mT

    References:
        Walter and Lehmann (2010); Roberts and Roberts (2020), for complex matrices too.
    """
    q, r = namespace(x).linalg.qr(x)
    del x
    q_bar, r_bar = yield q, r
    s = r @ conj_transpose(r_bar) - conj_transpose(q_bar) @ q
    s = s * half_triangle(r)
    y = q_bar + q @ (s + conj_transpose(s))
    yield conj_transpose(namespace(y, r).linalg.solve(r, conj_transpose(y)))

"""Eigenvalues and singular values, and their vectors.

Where vectors are not unique, the derivative is that of what does not depend on the
choice: complex vectors have arbitrary phases, and a cotangent that depends on them is
refused; where values coincide, the derivative of their vectors is nan.
"""

from typing import Any, NamedTuple

from lantern.errors import MissingRuleError
from lantern.namespace import namespace
from lantern.op import adjoint
from lantern.tensor.matrices import (
    conj_if_complex,
    conj_transpose,
    half_triangle,
    plain_namespace,
    received_nothing,
)
from lantern.tensor.namespace import array_namespace
from lantern.value import Rule, Value, base, is_complex

__all__ = [
    "EigResult",
    "EighResult",
    "SVDResult",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "svd",
    "svdvals",
]


class EighResult(NamedTuple):
    """Real eigenvalues, ascending, and orthonormal eigenvectors, as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors of length 1, as columns."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, right vectors as rows."""

    U: Any
    S: Any
    Vh: Any


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and orthonormal eigenvectors of a Hermitian matrix.

    Only one triangle is read; so the derivative belongs to it. Where eigenvalues
    coincide, the derivative of their eigenvectors is nan, that of the values' sum right.

    Shapes:
        a: (..., n, n); result: eigenvalues (..., n), ascending; eigenvectors
        (..., n, n), as columns

    Args:
        UPLO: "L" or "U", the triangle that is read.

    Raises:
        MissingRuleError: if what follows depends on the phases of complex eigenvectors.

    Example:
        >>> import numpy as np
        >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        array([1., 3.])
    """
    return EighResult(*_eigh(a, UPLO=UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix, ascending.

    Shapes:
        a: (..., n, n); result: (..., n)

    Example:
        >>> import numpy as np
        >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
        array([1., 3.])
    """
    if not isinstance(a, Value):
        return array_namespace(a).linalg.eigvalsh(a, UPLO)
    return eigh(a, UPLO).eigenvalues


@adjoint
def _eigh(x: Any, /, UPLO: str) -> Rule:
    """Eigenvalues and eigenvectors of a Hermitian matrix.

    Shapes:
        x: (..., n, n); result: (..., n) and (..., n, n)

    Rule:
        s = v @ (diag(w_bar) + (v.mT @ v_bar) / (w_j - w_i)) @ v.mT
        x_bar = s + s.mT below the diagonal, s on it, for the lower triangle

    References:
        Giles (2008), section 3.1.
    """
    w, v = namespace(x).linalg.eigh(x, UPLO)
    del x
    w_bar, v_bar = yield w, v
    v_h = conj_transpose(v)
    s = (v * w_bar[..., None, :]) @ v_h
    idle = received_nothing(v_bar)
    if not idle.all():
        turn = v_h @ v_bar
        _check_phases("eigh", turn, v_bar)
        s = s + v @ (turn * _inverse_gaps(w, w, idle)) @ v_h
    yield (s + conj_transpose(s)) * half_triangle(v, UPLO in "uU")


def _inverse_gaps(x: Any, y: Any, idle: Any) -> Any:
    """``1 / (x_j - y_i)``; 0 on the diagonal and between vectors that are not used.

    Where such a difference is 0, nan: the vectors are not differentiable.
    """
    xp = plain_namespace(x)
    unused = (idle[..., None, :] & idle[..., :, None]) | xp.eye(x.shape[-1], dtype=bool)
    return ~unused * _inverse(x[..., None, :] - y[..., :, None], unused)


def _inverse(x: Any, unused: Any) -> Any:
    """``1 / x``, with nan for 0, and 1 where it is not used."""
    xp, plain = plain_namespace(x), base(x)
    usable = (plain != 0) & ~unused
    filled = xp.where(unused, 1, xp.where(usable, 0, xp.nan)).astype(plain.dtype)
    return namespace(x).ieee_divide(1, x * usable + filled)


def _check_phases(where: str, turn: Any, *cotangents: Any) -> None:
    """Refuse cotangents of vectors that depend on the vectors' phases."""
    if not is_complex(turn):
        return
    xp, off, scale = plain_namespace(turn), base(turn), 0
    for z_bar in cotangents:
        scale = scale + xp.abs(base(z_bar)).sum(axis=(-2, -1))
    off = xp.abs(xp.diagonal(off, 0, -2, -1).imag).max(axis=-1)
    if (off > scale * xp.finfo(off.dtype).eps ** 0.5).any():
        raise MissingRuleError(
            f"{where}: the result depends on the phases of complex vectors, which are "
            f"arbitrary. Use only what they leave alone, as abs(v) or v @ v.mT.conj()."
        )


def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors of a square matrix.

    Shapes:
        a: (..., n, n); result: eigenvalues (..., n); eigenvectors (..., n, n), as
        columns

    Raises:
        MissingRuleError: if what follows depends on the phases of complex eigenvectors.

    Example:
        >>> import numpy as np
        >>> eig(np.array([[2.0, 1.0], [0.0, 3.0]])).eigenvalues
        array([2., 3.])
    """
    return EigResult(*_eig(a))


def eigvals(a: Any) -> Any:
    """The eigenvalues of a square matrix.

    Shapes:
        a: (..., n, n); result: (..., n)

    Example:
        >>> import numpy as np
        >>> eigvals(np.array([[2.0, 1.0], [0.0, 3.0]]))
        array([2., 3.])
    """
    if not isinstance(a, Value):
        return array_namespace(a).linalg.eigvals(a)
    return eig(a).eigenvalues


@adjoint
def _eig(x: Any, /) -> Rule:
    """Eigenvalues and eigenvectors of length 1 of a square matrix.

    Shapes:
        x: (..., n, n); result: (..., n) and (..., n, n)

    Rule:
        s = v.mT @ v_bar, less what would change the vectors' lengths
        x_bar = inv(v.mT) @ (diag(w_bar) + s / (w_j - w_i)) @ v.mT

    References:
        Giles (2008), section 3.1; Boeddeker et al. (2017), section 4.
    """
    w, v = namespace(x).linalg.eig(x)
    del x
    w_bar, v_bar = yield w, v
    v_h = conj_transpose(v)
    s = w_bar[..., :, None] * v_h
    idle = received_nothing(v_bar)
    if not idle.all():
        turn = v_h @ v_bar
        _check_phases("eig", turn, v_bar)
        xp = namespace(v_bar, v)
        stretch = xp.sum(xp.real(conj_if_complex(v) * v_bar), axis=-2, keepdims=True)
        gaps = conj_if_complex(_inverse_gaps(w, w, idle))
        s = s + ((turn - (v_h @ v) * stretch) * gaps) @ v_h
    yield namespace(s, v).linalg.solve(v_h, s)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:
    """Singular vectors and values: ``U @ diag(S) @ Vh == a``.

    Where singular values coincide, or one of the vectors' is 0, the derivative of their
    vectors is nan.

    Shapes:
        a: (..., n, m), with k = min(n, m); result: U (..., n, k), S (..., k),
        descending, Vh (..., k, m)

    Args:
        full_matrices: whether U and Vh are square; with a derivative, a must be then.
        compute_uv: False for S alone.
        hermitian: for plain arrays only.

    Raises:
        MissingRuleError: for full matrices, whose further vectors are arbitrary; or if
            what follows depends on the phases of complex vectors.

    Example:
        >>> import numpy as np
        >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
        array([2., 1.])
    """
    if not isinstance(a, Value):
        z = array_namespace(a).linalg.svd(a, full_matrices, compute_uv, hermitian)
        return SVDResult(*z) if compute_uv else z
    if hermitian or (full_matrices and compute_uv and a.shape[-1] != a.shape[-2]):
        option = "hermitian" if hermitian else "full_matrices"
        raise MissingRuleError(
            f"svd: {option}=True has no rule for a matrix of shape {a.shape[-2:]}. Use "
            f"{'eigh' if hermitian else 'full_matrices=False'}."
        )
    return SVDResult(*_svd(a)) if compute_uv else _svd(a)[1]


def svdvals(x: Any, /) -> Any:
    """The singular values, descending.

    Shapes:
        x: (..., n, m); result: (..., min(n, m))

    Example:
        >>> import numpy as np
        >>> svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
        array([2., 1.])
    """
    return svd(x, compute_uv=False)


@adjoint
def _svd(x: Any, /) -> Rule:
    """Singular vectors and values, with no more vectors than values.

    Shapes:
        x: (..., n, m); result: (..., n, k), (..., k) and (..., k, m), k = min(n, m)

    Rule:
        p = (skew(u.mT @ u_bar) @ S + S @ skew(v.mT @ v_bar)) / (s_j**2 - s_i**2)
        x_bar = u @ (p + diag(s_bar)) @ v.mT, and outside the vectors' spans
        (1 - u @ u.mT) @ u_bar @ inv(S) @ v.mT + u @ inv(S) @ v_bar.mT @ (1 - v @ v.mT)

    References:
        Giles (2008), section 3.2; Townsend (2016); Wan and Zhang (2019), equation (1).
    """
    u, s, v_h = namespace(x).linalg.svd(x, full_matrices=False)
    del x
    u_bar, s_bar, v_h_bar = yield u, s, v_h
    x_bar = (u * s_bar[..., None, :]) @ v_h
    idle = received_nothing(u_bar, v_h_bar.mT)
    if not idle.all():
        x_bar = x_bar + _from_vectors(u, s, v_h, u_bar, v_h_bar, idle)
    yield x_bar


def _from_vectors(
    u: Any, s: Any, v_h: Any, u_bar: Any, v_h_bar: Any, idle: Any
) -> Any:
    """What a matrix receives from its singular vectors."""
    a = conj_transpose(u) @ u_bar
    b = conj_transpose(v_h_bar @ conj_transpose(v_h))
    _check_phases("svd", a + b, u_bar, v_h_bar)
    inverse = _inverse(s, idle)
    gaps = _inverse_gaps(s, s, idle) * _inverse_gaps(s, -s, idle)
    row, column = s[..., None, :], s[..., :, None]
    p = gaps * ((a - conj_transpose(a)) * row + column * (b - conj_transpose(b)))
    if is_complex(u):
        xp, k = namespace(u_bar, v_h_bar), s.shape[-1]
        phase = (xp.imag(a) - xp.imag(b)) * (inverse[..., None, :] / 2)
        p = p + 1j * (phase * plain_namespace(s).eye(k, dtype=base(s).dtype))
    x_bar = u @ p @ v_h
    if u.shape[-2] > s.shape[-1]:
        x_bar = x_bar + ((u_bar - u @ a) * inverse[..., None, :]) @ v_h
    if v_h.shape[-1] > s.shape[-1]:
        rest = v_h_bar - conj_transpose(b) @ v_h
        x_bar = x_bar + (u * inverse[..., None, :]) @ rest
    return x_bar

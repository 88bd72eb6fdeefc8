"""Eigenvalues and singular values, and their vectors.

Complex vectors are unique up to a phase. The rules leave it alone, and then the vectors
get the phase that makes their largest component real and positive: so they are
functions with a derivative. Where values coincide, the derivative of their vectors is
nan.
"""

from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_complex, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import adjoint
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.matrix_forms import (
    any_value,
    conj_if_complex,
    conj_transpose,
    half_triangle,
    plain_namespace,
    received_nothing,
    untracked,
)
from lantern.tensor.ops.shape import as_array

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
    """Real eigenvalues, ascending, and orthonormal eigenvectors, as columns.

    Example:
        >>> eigh([[0.0, 1.0], [1.0, 0.0]]).eigenvalues.round(6)
        array([-1.,  1.])
    """

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors of length 1, as columns.

    Example:
        >>> eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues
        array([0.+1.j, 0.-1.j])
    """

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, right vectors as rows.

    Example:
        >>> svd([[1.0, 0.0], [0.0, 2.0]]).S
        array([2., 1.])
    """

    U: Any
    S: Any
    Vh: Any


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and orthonormal eigenvectors of a Hermitian matrix.

    Only one triangle is read; so the derivative belongs to it. Where eigenvalues
    coincide, the derivative of their eigenvectors is nan.

    Shapes:
        a: (..., n, n); result: eigenvalues (..., n), ascending; eigenvectors
        (..., n, n), as columns

    Args:
        UPLO: "L" or "U", the triangle that is read.

    Example:
        >>> import numpy as np
        >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        array([1., 3.])
    """
    w, v = _eigh(as_array(a), UPLO=UPLO)
    return EighResult(w, _with_phases(v)[0])


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix, ascending.

    Shapes:
        a: (..., n, n); result: (..., n)

    Example:
        >>> import numpy as np
        >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
        array([1., 3.])
    """
    if not any_value(a):
        return array_namespace(a).linalg.eigvalsh(a, UPLO)
    return _eigvalsh(a, UPLO=UPLO)


@adjoint
def _eigvalsh(x: Any, /, UPLO: str) -> Rule:
    """The eigenvalues of a Hermitian matrix.

    Shapes:
        x: (..., n, n); result: (..., n)

    Rule:
        s = v @ diag(w_bar) @ v.mT
        x_bar = s + s.mT below the diagonal, s on it, for the lower triangle

    References:
        Giles (2008), section 3.1.
    """
    w, v = namespace(x).linalg.eigh(x, UPLO)
    del x
    w_bar = yield w
    s = (v * w_bar[..., None, :]) @ conj_transpose(v)
    yield (s + conj_transpose(s)) * half_triangle(v, UPLO in "uU")


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
    turn = (v_h @ v_bar) * _inverse_gaps(w, w, received_nothing(v_bar))
    s = (v * w_bar[..., None, :] + v @ turn) @ v_h
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


def _with_phases(v: Any, partner: Any = None, of_real: bool = False) -> tuple[Any, Any]:
    """Complex vectors as columns, each with its largest component real and positive.

    A partner's rows turn against them, so that their product stays.

    Args:
        v: the vectors.
        partner: other vectors, as rows.
        of_real: whether they come from a real matrix: then real ones stay as they are.
    """
    if not is_complex(v):
        return v, partner
    xp, plain = plain_namespace(v), base(v)
    largest = xp.expand_dims(xp.argmax(xp.abs(plain), axis=-2), -2)
    chosen = xp.arange(plain.shape[-2])[:, None] == largest
    xp = namespace(v)
    component = xp.sum(v * chosen, axis=-2, keepdims=True)
    phase = xp.conj(component) / xp.abs(component)
    if of_real:
        are_real = (plain.imag == 0).all(axis=-2, keepdims=True)
        phase = xp.where(are_real, 1.0, phase)
    return v * phase, None if partner is None else conj_transpose(phase) * partner


def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors of a square matrix.

    Shapes:
        a: (..., n, n); result: eigenvalues (..., n); eigenvectors (..., n, n), as
        columns

    Example:
        >>> import numpy as np
        >>> eig(np.array([[2.0, 1.0], [0.0, 3.0]])).eigenvalues.real
        array([2., 3.])
    """
    a = as_array(a)
    w, v = _eig(a)
    return EigResult(w, _with_phases(v, of_real=not is_complex(a))[0])


def eigvals(a: Any) -> Any:
    """The eigenvalues of a square matrix.

    Shapes:
        a: (..., n, n); result: (..., n)

    Example:
        >>> import numpy as np
        >>> eigvals(np.array([[2.0, 1.0], [0.0, 3.0]])).real
        array([2., 3.])
    """
    if not any_value(a):
        return array_namespace(a).linalg.eigvals(a)
    return _eigvals(a)


@adjoint
def _eigvals(x: Any, /) -> Rule:
    """The eigenvalues of a square matrix.

    Shapes:
        x: (..., n, n); result: (..., n)

    Rule:
        x_bar = inv(v.mT) @ diag(w_bar) @ v.mT

    References:
        Giles (2008), section 3.1.
    """
    w, v = namespace(x).linalg.eig(x)
    del x
    w_bar = yield w
    v_h = conj_transpose(v)
    yield namespace(w_bar, v).linalg.solve(v_h, w_bar[..., :, None] * v_h)


@adjoint
def _eig(x: Any, /) -> Rule:
    """Eigenvalues and eigenvectors of length 1 of a square matrix.

    Shapes:
        x: (..., n, n); result: (..., n) and (..., n, n)

    Rule:
        s = v.mT @ v_bar, less what would change the vectors' lengths
        x_bar = inv(v.mT) @ (diag(w_bar) + s / (w_j - w_i)) @ v.mT

    References:
        Boeddeker et al. (2017), equation (4.77); Giles (2008), section 3.1.
    """
    w, v = namespace(x).linalg.eig(x)
    del x
    w_bar, v_bar = yield w, v
    v_h, xp = conj_transpose(v), namespace(v, v_bar)
    stretch = xp.sum(xp.real(conj_if_complex(v) * v_bar), axis=-2, keepdims=True)
    gaps = conj_if_complex(_inverse_gaps(w, w, received_nothing(v_bar)))
    turn = (v_h @ v_bar - (v_h @ v) * stretch) * gaps
    yield xp.linalg.solve(v_h, w_bar[..., :, None] * v_h + turn @ v_h)


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
        MissingRuleError: for full matrices, whose further vectors are arbitrary.

    Example:
        >>> import numpy as np
        >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
        array([2., 1.])
    """
    if not is_tracked(a):
        options = {"hermitian": True} if hermitian else {}
        function = plain_namespace(a).linalg.svd
        z = untracked(function, a, full_matrices, compute_uv, **options)
        return _svd_result(*z) if compute_uv else z
    if hermitian or (compute_uv and full_matrices and a.shape[-1] != a.shape[-2]):
        option = "hermitian" if hermitian else "full_matrices"
        raise MissingRuleError(
            f"svd: {option}=True has no rule for a matrix of shape {a.shape[-2:]}. Use "
            f"{'eigh' if hermitian else 'full_matrices=False'}."
        )
    return _svd_result(*_svd(a)) if compute_uv else _svdvals(a)


def _svd_result(u: Any, s: Any, v_h: Any) -> SVDResult:
    if u.shape[-1] == v_h.shape[-2]:
        u, v_h = _with_phases(u, v_h)
    return SVDResult(u, s, v_h)


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
def _svdvals(x: Any, /) -> Rule:
    """The singular values.

    Shapes:
        x: (..., n, m); result: (..., min(n, m))

    Rule:
        x_bar = u @ diag(s_bar) @ v.mT

    References:
        Giles (2008), section 3.2.
    """
    u, s, v_h = namespace(x).linalg.svd(x, full_matrices=False)
    del x
    s_bar = yield s
    yield (u * s_bar[..., None, :]) @ v_h


@adjoint
def _svd(x: Any, /) -> Rule:
    """Singular vectors and values, with no more vectors than values.

    Shapes:
        x: (..., n, m); result: (..., n, k), (..., k) and (..., k, m), k = min(n, m)

    Rule:
        p = (skew(u.mT @ u_bar) @ S + S @ skew(v.mT @ v_bar)) / (s_j**2 - s_i**2)
        x_bar = u @ (p + diag(s_bar)) @ v.mT, and outside the vectors' spans
        (1 - u @ u.mT) @ u_bar @ inv(S) @ v.mT + u @ inv(S) @ v_bar.mT @ (1 - v @ v.mT);
        of complex vectors also the imaginary parts on p's diagonal, divided by 2 * S

    References:
        Giles (2008), section 3.2; Townsend (2016); Wan and Zhang (2019), for complex
        matrices.
    """
    u, s, v_h = namespace(x).linalg.svd(x, full_matrices=False)
    del x
    u_bar, s_bar, v_h_bar = yield u, s, v_h
    yield (u * s_bar[..., None, :]) @ v_h + _from_vectors(u, s, v_h, u_bar, v_h_bar)


def _from_vectors(u: Any, s: Any, v_h: Any, u_bar: Any, v_h_bar: Any) -> Any:
    """What a matrix receives from its singular vectors."""
    a = conj_transpose(u) @ u_bar
    b = conj_transpose(v_h_bar @ conj_transpose(v_h))
    idle = received_nothing(u_bar, v_h_bar.mT)
    inverse = _inverse(s, idle)
    gaps = _inverse_gaps(s, s, idle) * _inverse_gaps(s, -s, idle)
    skew_a, skew_b = a - conj_transpose(a), b - conj_transpose(b)
    p = gaps * (skew_a * s[..., None, :] + s[..., :, None] * skew_b)
    if is_complex(u):
        one = plain_namespace(s).eye(s.shape[-1], dtype=base(s).dtype)
        p = p + one * (skew_a - skew_b) * inverse[..., None, :] / 4
    x_bar = u @ p @ v_h
    if u.shape[-2] > s.shape[-1]:
        x_bar = x_bar + ((u_bar - u @ a) * inverse[..., None, :]) @ v_h
    if v_h.shape[-1] > s.shape[-1]:
        rest = v_h_bar - conj_transpose(b) @ v_h
        x_bar = x_bar + (u * inverse[..., None, :]) @ rest
    return x_bar

"""Polynomials by their coefficients, the highest power first."""

from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_complex
from lantern.op import op
from lantern.rules.arithmetic import real
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.concat_stack import concat, stack
from lantern.tensor.ops.convolution import convolve
from lantern.tensor.ops.creation import arrays, asarray
from lantern.tensor.ops.cumulative import cumprod
from lantern.tensor.ops.products import trace
from lantern.tensor.ops.shape import as_array, broadcast_to

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "vander",
]


_CLOSE = 1e-10
"""The share of the largest coefficient that rounding may take."""


def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p at x, by Horner's scheme.

    Shapes:
        p: (n,); x: (...); result: (...)

    Example:
        >>> polyval([1.0, 2.0, 3.0], 2.0)
        11.0
    """
    x = from_lists(x)
    z = 0 * x
    for coefficient in p:
        z = z * x + coefficient
    return z


def polyder(p: Any, m: int = 1) -> Any:
    """The coefficients of the m-th derivative of a polynomial.

    Shapes:
        p: (n,); result: (n - m,)

    Example:
        >>> polyder([1.0, 2.0, 3.0])
        array([2., 2.])
    """
    p = asarray(p)
    for _ in range(int(m)):
        n = p.shape[0] - 1
        p = p[:-1] * array_namespace(base(p)).arange(n, 0, -1)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The coefficients of an m-fold integral of a polynomial.

    Args:
        p: the coefficients.
        m: how many times to integrate.
        k: the constants of integration: one for all, or m of them; by default 0.

    Shapes:
        p: (n,); result: (n + m,)

    Example:
        >>> polyint([2.0, 2.0], k=3.0)
        array([1., 2., 3.])
    """
    p, constants = arrays(p, 0.0 if k is None else k)
    if not constants.shape or constants.shape == (1,):
        constants = broadcast_to(constants, (int(m),))
    for i in range(int(m)):
        n = p.shape[0]
        whole = p / array_namespace(base(p)).arange(n, 0, -1)
        p = concat([whole, constants[i : i + 1]])
    return p


def polyadd(a1: Any, a2: Any) -> Any:
    """The coefficients of the sum of two polynomials.

    Shapes:
        a1: (n,); a2: (m,); result: (max(n, m),)

    Example:
        >>> polyadd([1.0, 2.0], [3.0])
        array([1., 5.])
    """
    a1, a2 = _equally_long(*arrays(a1, a2))
    return a1 + a2


def polysub(a1: Any, a2: Any) -> Any:
    """The coefficients of the difference of two polynomials.

    Shapes:
        a1: (n,); a2: (m,); result: (max(n, m),)

    Example:
        >>> polysub([1.0, 2.0], [3.0])
        array([ 1., -1.])
    """
    a1, a2 = _equally_long(*arrays(a1, a2))
    return a1 - a2


def _equally_long(*polynomials: Any) -> list[Any]:
    """Coefficients with zeros in front of the shorter ones."""
    rows = [p if p.shape else p[None] for p in polynomials]
    n = max(p.shape[0] for p in rows)
    xp = array_namespace(*map(base, rows))
    return [
        concat([xp.zeros(n - p.shape[0], dtype=p.dtype), p]) if p.shape[0] < n else p
        for p in rows
    ]


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of the elements of x, in rows, the highest first.

    Args:
        x: the elements.
        N: how many powers; by default as many as elements.
        increasing: whether the lowest comes first.

    Shapes:
        x: (n,); result: (n, N)

    Example:
        >>> vander([2.0, 3.0], 3)
        array([[4., 2., 1.],
               [9., 3., 1.]])
    """
    x = asarray(x)
    n = x.shape[0]
    count = n if N is None else N
    ones = array_namespace(base(x)).ones((n, min(count, 1)), dtype=x.dtype)
    rows = broadcast_to(x[:, None], (n, max(count - 1, 0)))
    z = concat([ones, cumprod(rows, axis=1)], axis=1)
    return z if increasing else z[:, ::-1]


def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of a polynomial with given roots, or of a matrix's.

    Those of a matrix are computed without its eigenvalues, so that several may be the
    same, where that is accurate: a matrix of many rows loses too many digits there.

    Args:
        seq_of_zeros: the roots, or a square matrix.

    Shapes:
        seq_of_zeros: (n,) or (n, n); result: (n + 1,)

    Example:
        >>> poly([2.0, 3.0])
        array([ 1., -5.,  6.])

    References:
        Faddeev and Faddeeva (1963), section 47.
    """
    zeros = as_array(asarray(seq_of_zeros))
    if len(zeros.shape) != 2:
        return _product(zeros)
    z = _characteristic(zeros)
    if _accurate(base(z), base(zeros)):
        return z
    from lantern.tensor.linalg.eigen_svd import eigvals  # few programs need it

    z = _product(eigvals(zeros))
    return z if is_complex(zeros) else real(z)


def _product(zeros: Any) -> Any:
    """The coefficients of the product of all ``t - zero``."""
    xp = array_namespace(base(zeros))
    p = xp.ones(1, dtype=zeros.dtype)
    for zero in zeros if zeros.shape else zeros[None]:
        p = concat([p, xp.zeros(1, dtype=p.dtype)]) - zero * concat([[0.0], p])
    plain = base(zeros)
    if is_complex(zeros) and bool((xp.sort(plain) == xp.sort(plain.conj())).all()):
        p = real(p)
    return p


def _characteristic(A: Any) -> Any:
    """The coefficients of ``det(t * I - A)``, by traces of powers."""
    n = A.shape[0]
    one = array_namespace(base(A)).eye(n, dtype=A.dtype)
    coefficients, M = [one[0, 0]], one
    for k in range(1, n + 1):
        M = A @ M
        coefficients.append(-trace(M) / k)
        M = M + coefficients[-1] * one
    return stack(coefficients)


def _accurate(z: Any, A: Any) -> bool:
    """Whether traces gave the coefficients that the eigenvalues of A give."""
    if type(A) is not numpy_namespace.ndarray:
        return len(z) <= 5  # to look at many examples, or on a device, is not allowed
    expected = numpy_namespace.poly(A)
    return bool(abs(z - expected).max() <= _CLOSE * abs(expected).max())


def polymul(a1: Any, a2: Any) -> Any:
    """The coefficients of the product of two polynomials.

    Shapes:
        a1: (n,); a2: (m,); result: (n + m - 1,), without leading zeros of a1 and a2

    Example:
        >>> polymul([1.0, 2.0], [1.0, 3.0])
        array([1., 5., 6.])
    """
    return convolve(*map(_without_leading_zeros, arrays(a1, a2)))


def _without_leading_zeros(p: Any) -> Any:
    p = p if p.shape else p[None]
    plain = base(p)
    nonzero = array_namespace(plain).nonzero(plain)[0]
    return p[int(nonzero[0]) :] if nonzero.size else p[:1] * 0


def polydiv(u: Any, v: Any) -> Any:
    """The coefficients of quotient and remainder of two polynomials.

    Shapes:
        u: (n,); v: (m,); result: (max(n - m + 1, 1),) and the remainder, without
        leading zeros

    Example:
        >>> polydiv([1.0, 5.0, 6.5], [1.0, 2.0])
        (array([1., 3.]), array([0.5]))
    """
    u, v = (p if p.shape else p[None] for p in arrays(u, v))
    n, rest = v.shape[0], u + 0.0 * (u[0] + v[0])
    quotient = [rest[0] * 0] * (u.shape[0] < n)
    for _ in range(u.shape[0] - n + 1):
        factor = rest[0] / v[0]
        quotient.append(factor)
        rest = concat([rest[1:n] - factor * v[1:], rest[n:]])
    rest = rest if rest.shape[0] else quotient[0][None] * 0
    while rest.shape[0] > 1 and abs(base(rest)[0]) <= 1e-8:
        rest = rest[1:]
    return stack(quotient), rest


@op
def roots(p: Any, /) -> Rule:
    """The roots of a polynomial, in NumPy's order.

    Shapes:
        p: (n + 1,); result: (n,), less for leading zeros

    Rule:
        p_bar[k] = -sum(z_bar * z**(n - k) / slope), slope the polynomial's own
        derivative at z; infinite where roots coincide

    Example:
        >>> import numpy as np
        >>> roots(np.array([2.0, 0.0, -8.0]))
        array([-2.,  2.])
    """
    z = namespace(p).roots(p)
    z_bar = yield z
    yield -(z_bar / polyval(polyder(p), z)) @ vander(z, p.shape[0])

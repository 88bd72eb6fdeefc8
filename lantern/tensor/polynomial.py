"""Polynomials by their coefficients, the highest power first."""

from typing import Any

from lantern.tensor.creation import arrays, asarray
from lantern.tensor.cumulative import cumprod
from lantern.tensor.manipulation import broadcast_to
from lantern.tensor.namespace import array_namespace
from lantern.tensor.stacking import concat
from lantern.value import base

__all__ = ["polyadd", "polyder", "polyint", "polysub", "polyval", "vander"]


def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p at x, by Horner's scheme.

    Shapes:
        p: (n,); x: (...); result: (...)

    Example:
        >>> polyval([1.0, 2.0, 3.0], 2.0)
        11.0
    """
    x = asarray(x) if isinstance(x, list | tuple) else x
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

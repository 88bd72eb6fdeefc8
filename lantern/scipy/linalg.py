"""Linear algebra under the names and with the defaults of ``scipy.linalg``."""

from typing import Any

from lantern.core.value import Rule
from lantern.errors import ShapeError
from lantern.linalg import det, expm, inv, lstsq, norm, pinv, solve, solve_triangular
from lantern.op import op
from lantern.rules import selection
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.linalg import factorisations
from lantern.tensor.ops import reduction
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.indexing import getitem
from lantern.tensor.ops.matrix_forms import any_value, as_arrays, plain_namespace

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "expm",
    "inv",
    "lstsq",
    "norm",
    "pinv",
    "solve",
    "solve_banded",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
]


def cholesky(a: Any, lower: bool = False) -> Any:
    """The triangular factor of a positive definite matrix, by default the upper one.

    Shapes:
        a: (..., n, n); result: (..., n, n)

    Example:
        >>> import numpy as np
        >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
        array([[2., 1.],
               [0., 2.]])
    """
    return factorisations.cholesky(a, upper=not lower)


def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """What ``cho_solve`` takes: the factor of ``cholesky``, and which one it is.

    Shapes:
        a: (n, n); result: (n, n) and a bool

    Example:
        >>> import numpy as np
        >>> cho_factor(np.eye(1))
        (array([[1.]]), False)
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """The solution x of ``a @ x == b``, from the factor of a.

    Shapes:
        c_and_lower: as ``cho_factor`` gives it; b: (n,) or (n, m); result: as b

    Example:
        >>> import numpy as np
        >>> cho_solve(cho_factor(4 * np.eye(2)), np.array([4.0, 8.0]))
        array([1., 2.])
    """
    c, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    z = solve_triangular(c, b, trans=first, lower=lower)
    return solve_triangular(c, z, trans=second, lower=lower)


def sqrtm(a: Any) -> Any:
    """The principal square root of a square matrix; complex, where it has to be.

    Shapes:
        a: (n, n); result: (n, n)

    Example:
        >>> import numpy as np
        >>> sqrtm(np.diag([4.0, 9.0]))
        array([[2., 0.],
               [0., 3.]])
    """
    return _sqrtm(asarray(a))


@op
def _sqrtm(x: Any, /) -> Rule:
    """The principal square root of a square matrix.

    Shapes:
        x: (n, n); result: (n, n)

    Rule:
        x_bar solves ``z.mT @ x_bar + x_bar @ z.mT == z_bar``

    References:
        Higham (2008), section 6.1.
    """
    z = _sqrtm(x) if any_value(x) else array_namespace(x).scipys("sqrtm", "linalg")(x)
    del x
    z_bar = yield z
    yield _sylvester(z.mT, z.mT, z_bar)


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x of ``a @ x + x @ b == q``.

    Shapes:
        a: (n, n); b: (m, m); q: (n, m); result: (n, m)

    Example:
        >>> import numpy as np
        >>> solve_sylvester(np.eye(1), np.eye(1), np.array([[6.0]]))
        array([[3.]])
    """
    return _sylvester(asarray(a), asarray(b), asarray(q))


@op
def _sylvester(a: Any, b: Any, q: Any, /) -> Rule:
    """The solution x of ``a @ x + x @ b == q``.

    Shapes:
        a: (n, n); b: (m, m); q: (n, m); result: (n, m)

    Rule:
        q_bar solves ``a.mT @ q_bar + q_bar @ b.mT == z_bar``
        a_bar = -q_bar @ z.mT, b_bar = -z.mT @ q_bar

    References:
        Magnus and Neudecker (1999), section 2.4.
    """
    if any_value(a, b, q):
        z = _sylvester(a, b, q)
    else:
        z = array_namespace(a, b, q).scipys("solve_sylvester", "linalg")(a, b, q)
    del q
    z_bar = yield z
    q_bar = _sylvester(a.mT, b.mT, z_bar)
    yield -q_bar @ z.mT
    yield -z.mT @ q_bar
    yield q_bar


def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any) -> Any:
    """The solution x of ``a @ x == b`` for a matrix of few diagonals.

    Args:
        l_and_u: how many diagonals a has below and above the main one.
        ab: the diagonals, the uppermost first: ``ab[u + i - j, j]`` is ``a[i, j]``.
        b: the right side.

    Shapes:
        ab: (l + u + 1, n); b: (n,) or (n, m); result: as b

    Raises:
        ShapeError: if ab does not have as many rows as l_and_u says.

    Example:
        >>> import numpy as np
        >>> ab = np.array([[0.0, 1.0], [2.0, 1.0]])
        >>> solve_banded((0, 1), ab, np.array([4.0, 2.0]))
        array([1., 2.])
    """
    ab, b = as_arrays(ab, b)
    low, up = l_and_u
    if len(ab.shape) != 2 or ab.shape[0] != low + up + 1 or low < 0 or up < 0:
        raise ShapeError(
            f"solve_banded: expected {low} + {up} + 1 rows of diagonals, got shape "
            f"{ab.shape}. Give l_and_u, what is below and above the main diagonal."
        )
    return _solve_banded(ab, b, (int(low), int(up)))


@op
def _solve_banded(ab: Any, b: Any, /, l_and_u: tuple[int, int]) -> Rule:
    """The solution x of ``a @ x == b`` for a matrix of few diagonals.

    Shapes:
        ab: (l + u + 1, n); b: (n,) or (n, m); result: as b

    Rule:
        b_bar = the solution for z_bar with a transposed, ab_bar[u + i - j, j] =
        -b_bar[i] * z[j], summed over the columns of b
    """
    if any_value(ab, b):
        z = _solve_banded(ab, b, l_and_u)
    else:
        z = array_namespace(ab, b).scipys("solve_banded", "linalg")(l_and_u, ab, b)
    del b
    z_bar = yield z
    low, up = l_and_u
    rows, inside = _band(ab, -up)
    b_bar = _solve_banded(_transposed(ab, l_and_u), z_bar, (up, low))
    product = getitem(b_bar, rows) * z
    if len(product.shape) == 3:
        product = reduction.sum(product, axis=-1)
    yield -product * inside
    yield b_bar


def _band(ab: Any, first: int) -> tuple[Any, Any]:
    """``j + r + first`` for each row r and column j, and where that is a position.

    Shapes:
        ab: (k, n); result: (k, n) and (k, n), plain
    """
    xp, (count, n) = plain_namespace(ab), ab.shape
    places = xp.arange(n) + xp.arange(count)[:, None] + first
    inside = (places >= 0) & (places < n)
    return xp.where(inside, places, 0), inside


def _transposed(ab: Any, l_and_u: tuple[int, int]) -> Any:
    """The diagonals of the transposed matrix."""
    low, up = l_and_u
    columns, inside = _band(ab, -low)
    rows = plain_namespace(ab).arange(low + up, -1, -1)[:, None]
    return selection.where(inside, getitem(ab, (rows, columns)), 0.0)

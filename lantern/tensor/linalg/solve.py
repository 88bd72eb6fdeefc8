"""Inverses, and the solutions of linear equations."""

from importlib import import_module
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import adjoint, op
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.linalg.eigen_svd import svdvals
from lantern.tensor.ops import reduction
from lantern.tensor.ops.matrix_forms import (
    any_value,
    as_arrays,
    axes_last,
    conj_if_complex,
    conj_transpose,
    plain_namespace,
    untracked,
)
from lantern.tensor.ops.shape import as_array, reshape

__all__ = [
    "inv",
    "lstsq",
    "pinv",
    "solve",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]


def inv(a: Any) -> Any:
    """The inverse of a square matrix.

    Shapes:
        a: (..., n, n); result: (..., n, n)

    Example:
        >>> import numpy as np
        >>> inv(np.array([[1.0, 2.0], [0.0, 1.0]]))
        array([[ 1., -2.],
               [ 0.,  1.]])
    """
    return _inv(as_array(a))


@op
def _inv(x: Any, /) -> Rule:
    """The inverse of a square matrix.

    Shapes:
        x: (..., n, n); result: (..., n, n)

    Rule:
        x_bar = -z.mT @ z_bar @ z.mT

    References:
        Giles (2008), section 2.2.3; Petersen and Pedersen (2012), equation (59).
    """
    z = namespace(x).linalg.inv(x)
    del x
    z_bar = yield z
    yield -(z.mT @ z_bar @ z.mT)


def solve(a: Any, b: Any) -> Any:
    """The solution x of ``a @ x == b``.

    Shapes:
        a: (..., n, n); b: (n,) or (..., n, m); result: (..., n) or (..., n, m)

    Example:
        >>> import numpy as np
        >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 8.0]))
        array([1., 2.])
    """
    return _solve(*as_arrays(a, b))


@op
def _solve(a: Any, b: Any, /) -> Rule:
    """The solution x of ``a @ x == b``.

    Shapes:
        a: (..., n, n); b: (n,) or (..., n, m); result: (..., n) or (..., n, m)

    Rule:
        b_bar = solve(a.mT, z_bar), a_bar = -b_bar @ z.mT

    References:
        Giles (2008), section 2.3.1.
    """
    z, vector = namespace(a, b).linalg.solve(a, b), len(b.shape) == 1
    del b
    z_bar = yield z
    if vector:
        z, z_bar = z[..., None], z_bar[..., None]
    b_bar = namespace(a, z_bar).linalg.solve(a.mT, z_bar)
    yield lambda: -(b_bar @ z.mT)
    yield b_bar[..., 0] if vector else b_bar


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution x of ``a @ x == b`` for a triangle a, as ``scipy.linalg`` has it.

    Only the triangle is read; so the derivative belongs to it.

    Shapes:
        a: (..., n, n); b: (n,) or (..., n, m); result: (..., n) or (..., n, m)

    Args:
        trans: 0 or "N" for a itself, 1 or "T" for its transpose, 2 or "C" for the
            conjugate transpose.
        lower: whether the lower triangle is read, not the upper one.
        unit_diagonal: whether the diagonal counts as 1, and is not read.
        overwrite_b: accepted, and without effect.
        check_finite: accepted, and without effect.

    Example:
        >>> import numpy as np
        >>> a = np.array([[2.0, 0.0], [1.0, 1.0]])
        >>> solve_triangular(a, np.array([2.0, 3.0]), lower=True)
        array([1., 2.])
    """
    a, b = as_arrays(a, b)
    if trans in (2, "C"):
        a = conj_if_complex(a)
    transposed = trans not in (0, "N")
    return _solve_triangular(
        a, b, transposed=transposed, lower=lower, unit_diagonal=unit_diagonal
    )


@op
def _solve_triangular(
    a: Any, b: Any, /, transposed: bool, lower: bool, unit_diagonal: bool
) -> Rule:
    """The solution x of ``a @ x == b``, or of ``a.mT @ x == b``, for a triangle a.

    Shapes:
        a: (..., n, n); b: (n,) or (..., n, m); result: (..., n) or (..., n, m)

    Rule:
        b_bar = the solution for z_bar, with a transposed
        a_bar = -b_bar @ z.mT, or -z @ b_bar.mT if a was transposed, in the triangle
    """
    z, vector = _triangular(a, b, transposed, lower, unit_diagonal), len(b.shape) == 1
    del b
    z_bar = yield z
    if vector:
        z, z_bar = z[..., None], z_bar[..., None]
    b_bar = _triangular(a, z_bar, not transposed, lower, unit_diagonal)
    part = _triangle(a, lower, unit_diagonal)
    if transposed:
        yield lambda: -(z @ b_bar.mT) * part
    else:
        yield lambda: -(b_bar @ z.mT) * part
    yield b_bar[..., 0] if vector else b_bar


def _triangle(a: Any, lower: bool, unit_diagonal: bool) -> Any:
    """Weights 1 on the triangle that is read, 0 elsewhere."""
    xp, n = plain_namespace(a), a.shape[-1]
    weights = xp.tri(n, k=-1 if unit_diagonal else 0, dtype=base(a).real.dtype)
    return weights if lower else weights.T


def _triangular(
    a: Any, b: Any, transposed: bool, lower: bool, unit_diagonal: bool
) -> Any:
    """The solution itself: of one matrix by SciPy, if it is installed."""
    how = {"lower": lower, "unit_diagonal": unit_diagonal}
    if any_value(a, b):
        return _solve_triangular(a, b, transposed=transposed, **how)
    xp = namespace(a, b)
    if len(b.shape) <= len(a.shape) == 2:
        try:
            module: Any = import_module(xp.special.replace("special", "linalg"))
        except ImportError:
            pass
        else:
            return module.solve_triangular(
                a, b, trans=int(transposed), check_finite=False, **how
            )
    a = a * _triangle(a, lower, unit_diagonal)
    if unit_diagonal:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    return xp.linalg.solve(a.mT if transposed else a, b)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = ...) -> Any:
    """The pseudo-inverse of a matrix, whose derivative holds while the rank does.

    Shapes:
        a: (..., n, m); result: (..., m, n)

    Args:
        rcond: singular values below this part of the largest one count as 0.
        hermitian: for plain arrays only.
        rtol: as rcond; None for the larger side times the precision.

    Raises:
        MissingRuleError: for a tracked matrix with ``hermitian``.

    Example:
        >>> import numpy as np
        >>> pinv(np.array([[2.0], [0.0]]))
        array([[0.5, 0. ]])
    """
    options = {} if rcond is None else {"rcond": base(rcond)}
    if rtol is not ...:
        options["rtol"] = base(rtol)
    if not is_tracked(a):
        options |= {"hermitian": True} if hermitian else {}
        return untracked(plain_namespace(a).linalg.pinv, a, **options)
    if hermitian:
        raise MissingRuleError(
            "pinv: hermitian=True has no rule. Leave it out; the result is the same."
        )
    return _pinv(a, options=options)


@adjoint
def _pinv(x: Any, /, options: dict[str, Any]) -> Rule:
    """The pseudo-inverse of a matrix.

    Shapes:
        x: (..., n, m); result: (..., m, n)

    Rule:
        x_bar = -z.mT @ z_bar @ z.mT + (1 - x @ z) @ z_bar.mT @ z @ z.mT
            + z.mT @ z @ z_bar.mT @ (1 - z @ x)

    References:
        Golub and Pereyra (1973), equation (4.12).
    """
    z = namespace(x).linalg.pinv(x, **options)
    z_bar = yield z
    z_h, z_bar_h = conj_transpose(z), conj_transpose(z_bar)
    left, right = z_bar_h @ z @ z_h, z_h @ z @ z_bar_h
    x_bar = -(z_h @ z_bar @ z_h)
    x_bar = x_bar + (left - x @ (z @ left))
    yield x_bar + (right - (right @ z) @ x)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The vector x of least length among those with the least ``norm(b - a @ x)``.

    Shapes:
        a: (n, m); b: (n,) or (n, k); result: x (m,) or (m, k); the squared residuals
        (1,) or (k,), or (0,) without full rank or with n <= m; the rank; the singular
        values of a (min(n, m),)

    Args:
        rcond: singular values below this part of the largest one count as 0.

    Example:
        >>> import numpy as np
        >>> x, residuals, rank, _ = lstsq(
        ...     np.array([[1.0], [1.0]]), np.array([1.0, 3.0])
        ... )
        >>> x.round(12), residuals.round(12), int(rank)
        (array([2.]), array([2.]), 1)
    """
    if not any_value(a, b):
        return array_namespace(a, b).linalg.lstsq(a, b, base(rcond))
    a, b = as_arrays(a, b)
    rcond, xp = base(rcond), array_namespace(base(a), base(b))
    _, residuals, rank, _ = xp.linalg.lstsq(base(a), base(b), rcond)
    if rcond is None or rcond == -1:
        eps = float(xp.finfo(base(a).dtype).eps)
        rcond = eps if rcond == -1 else eps * max(a.shape)
    x = _lstsq(a, b[:, None] if len(b.shape) == 1 else b, rcond=rcond)
    x = x[:, 0] if len(b.shape) == 1 else x
    if residuals.size:
        r = b - a @ x
        squares = namespace(r).real(conj_if_complex(r) * r)
        residuals = reduction.sum(squares, axis=0, keepdims=len(b.shape) == 1)
    return x, residuals, rank, svdvals(a)


@adjoint
def _lstsq(a: Any, b: Any, /, rcond: float) -> Rule:
    """The shortest solution with the least residuals.

    Shapes:
        a: (n, m); b: (n, k); result: (m, k)

    Rule:
        p = pinv(a), b_bar = p.mT @ z_bar
        a_bar = (b - a @ z) @ (p @ b_bar).mT - b_bar @ z.mT
            + p.mT @ z @ (z_bar - a.mT @ b_bar).mT

    References:
        Golub and Pereyra (1973), equation (4.12), applied to b.
    """
    z = _least_squares(a, b, rcond)
    z_bar = yield z
    p = namespace(a).linalg.pinv(a, rcond)
    p_h = conj_transpose(p)
    b_bar = p_h @ z_bar

    def a_bar() -> Any:
        rest = z_bar - conj_transpose(a) @ b_bar
        outside = (b - a @ z) @ conj_transpose(p @ b_bar)
        within = (p_h @ z) @ conj_transpose(rest)
        return outside + within - b_bar @ conj_transpose(z)

    yield a_bar
    yield b_bar


def _least_squares(a: Any, b: Any, rcond: float) -> Any:
    if any_value(a, b):
        return _lstsq(a, b, rcond=rcond)
    return namespace(a, b).linalg.lstsq(a, b, rcond)[0]


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse for ``tensordot`` over the first ind axes.

    Shapes:
        a: (n0, ..., m0, ...), its first ind axes with as many elements as the others;
        result: (m0, ..., n0, ...)

    Example:
        >>> import numpy as np
        >>> tensorinv(np.eye(6).reshape(6, 2, 3), ind=1).shape
        (2, 3, 6)
    """
    if not any_value(a) or ind <= 0:
        return plain_namespace(a).linalg.tensorinv(base(a), ind)
    rows, columns = a.shape[:ind], a.shape[ind:]
    size = base(a)[(..., *(0,) * len(columns))].size
    return reshape(inv(reshape(a, (size, -1))), columns + rows)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The x with ``tensordot(a, x, x.ndim) == b``.

    Shapes:
        a: (n0, ..., m0, ...); b: (n0, ...), as many elements as x; result: x (m0, ...)

    Args:
        axes: of a, to be moved to its end first.

    Example:
        >>> import numpy as np
        >>> tensorsolve(np.eye(6).reshape(6, 2, 3), np.ones(6)).shape
        (2, 3)
    """
    if not any_value(a, b):
        return array_namespace(a, b).linalg.tensorsolve(a, b, axes)
    a, b = as_arrays(a, b)
    if axes is not None:
        a = axes_last(a, *axes)
    shape = a.shape[len(b.shape) :]
    return reshape(solve(reshape(a, (base(b).size, -1)), reshape(b, (-1,))), shape)

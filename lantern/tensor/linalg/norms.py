"""Norms of vectors and matrices, and what is measured by them.

The norm of 0 has derivative 0.
"""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_complex, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import adjoint
from lantern.rules.selection import abs as absolute
from lantern.tensor.linalg.eigen_svd import svdvals
from lantern.tensor.linalg.solve import inv
from lantern.tensor.ops import reduction
from lantern.tensor.ops.matrix_forms import (
    any_value,
    axes_last,
    plain_namespace,
    untracked,
)
from lantern.tensor.ops.shape import as_array, reshape

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors along one axis, or of matrices along two.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Args:
        ord: None for the root of the sum of squares; for vectors any number; for
            matrices 1, -1, 2, -2, inf, -inf, "fro" or "nuc".
        axis: one axis, a pair, or None for all axes, of which there may be any number
            if ord is None.

    Example:
        >>> import numpy as np
        >>> norm(np.array([3.0, 4.0]))
        np.float64(5.0)
    """
    x = as_array(x)
    _refuse_tracked(ord)
    if not any_value(x):
        return namespace(x).linalg.norm(x, ord, axis, keepdims)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = tuple(range(len(x.shape))) if axis is None else axis
    axes = axes if isinstance(axes, tuple | list) else (int(axes),)  # as NumPy
    if len(axes) == 1 and not isinstance(ord, str):
        return vector_norm(
            x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord
        )
    _let_numpy_refuse(x, ord, None if axis is None else tuple(axes))
    z = _matrix_norm(axes_last(x, *axes), "fro" if ord is None else ord)
    return _kept(z, x.shape, axes) if keepdims else z


def _refuse_tracked(ord: Any) -> None:
    if is_tracked(ord):
        raise MissingRuleError("norm: a tracked ord has no rule. Give a plain number.")


def _let_numpy_refuse(x: Any, ord: Any, axis: Any) -> None:
    """Raise NumPy's error for a norm or an axis that does not exist."""
    shape = tuple(1 for _ in x.shape)
    xp = plain_namespace(x)
    xp.linalg.norm(xp.ones(shape), ord, axis)


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    """The norm of all elements along some axes.

    Shapes:
        x: (...); result: without the axes, or with length 1 there (keepdims)

    Args:
        axis: an axis, several, or None for all.
        ord: any number, inf and -inf included; 0 counts what is not 0.

    Example:
        >>> import numpy as np
        >>> vector_norm(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
        array([ 5., 10.])
    """
    x = as_array(x)
    _refuse_tracked(ord)
    axes = tuple(range(len(x.shape))) if axis is None else axis
    if not isinstance(axes, tuple | list):
        return _along(x, ord, axes, keepdims)
    flat = axes_last(x, *axes)
    kept = flat.shape[: len(x.shape) - len(axes)]
    z = _along(reshape(flat, (*kept, math.prod(flat.shape[len(kept) :]))), ord, -1)
    return _kept(z, x.shape, axes) if keepdims else z


def _kept(z: Any, shape: tuple[int, ...], axes: Any) -> Any:
    """A norm with the axes that it removed back, of length 1."""
    removed = {a % len(shape) for a in axes}
    return reshape(z, [1 if i in removed else n for i, n in enumerate(shape)])


def _along(x: Any, ord: Any, axis: int, keepdims: bool = False) -> Any:
    """The norm of vectors along one axis."""
    if ord in (math.inf, -math.inf):
        return _extreme(absolute(x), ord, axis, keepdims)
    if ord == 1:
        return reduction.sum(absolute(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return untracked(plain_namespace(x).linalg.norm, x, 0, axis, keepdims)
    return _vector_norm(x, ord=ord, axis=axis, keepdims=keepdims)


def _extreme(x: Any, ord: Any, axis: int, keepdims: bool = False) -> Any:
    """The largest elements for a positive ord, the smallest for a negative one."""
    choose = reduction.max if ord > 0 else reduction.min
    return choose(x, axis=axis, keepdims=keepdims)


@adjoint
def _vector_norm(x: Any, /, ord: float, axis: int, keepdims: bool = False) -> Rule:
    """The root of degree ord of the sum of powers, along one axis.

    Shapes:
        x: (...); result: without the axis, or with length 1 there (keepdims)

    Rule:
        x_bar = z_bar * u * abs(u)**(ord - 2) with u = x / z, 0 where x or z is 0

    References:
        Petersen and Pedersen (2012), equation (129).
    """
    z = namespace(x).linalg.norm(x, ord, axis, keepdims)
    z_bar = yield z
    if not keepdims:
        xp = namespace(z_bar, z)
        z, z_bar = xp.expand_dims(z, axis=axis), xp.expand_dims(z_bar, axis=axis)
    zero = base(z) == 0
    u = x / (z + zero)
    yield z_bar * ~zero * (u if ord == 2 else _signed_power(u, ord - 1))


def _signed_power(u: Any, exponent: float) -> Any:
    """``abs(u)**exponent`` with u's sign, and 0 for 0."""
    xp = namespace(u)
    if exponent > 0 and exponent == int(exponent) and not is_complex(u):
        power = u ** int(exponent)
        return power if exponent % 2 else power * xp.sign(u)
    zero = base(u) == 0
    u = xp.where(zero, 1, u)
    return xp.where(zero, 0, u * xp.abs(u) ** (exponent - 1))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices along the last two axes.

    Shapes:
        x: (..., n, m); result: (...), or (..., 1, 1) with keepdims

    Args:
        ord: 1, -1, 2, -2, inf, -inf, "fro" or "nuc".

    Example:
        >>> import numpy as np
        >>> matrix_norm(np.array([[3.0, 0.0], [0.0, 4.0]]), ord=2)
        np.float64(4.0)
    """
    return norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def _matrix_norm(x: Any, ord: Any) -> Any:
    """The norm of matrices along the last two axes."""
    if ord in ("fro", "f"):
        return vector_norm(x, axis=(-2, -1))
    if ord in (2, -2, "nuc"):
        s = svdvals(x)
        s = s * (base(s) != 0)
        return reduction.sum(s, axis=-1) if ord == "nuc" else _extreme(s, ord, -1)
    sums = reduction.sum(absolute(x), axis=-2 if ord in (1, -1) else -1)
    return _extreme(sums, ord, -1)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number: the norm of matrices times that of their inverses.

    Shapes:
        x: (..., n, n), or (..., n, m) for p None, 2 or -2; result: (...)

    Args:
        p: as ord of ``norm``; None and 2 for the ratio of singular values.

    Example:
        >>> import numpy as np
        >>> cond(np.array([[4.0, 0.0], [0.0, 2.0]]))
        np.float64(2.0)
    """
    x = as_array(x)
    if not any_value(x):
        return namespace(x).linalg.cond(x, p)
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> Any:
    """The number of singular values that are not 0; its derivative is zero.

    Shapes:
        A: (..., n, m); result: (...), plain integers

    Args:
        tol: singular values up to it count as 0.
        hermitian: whether A is Hermitian.
        rtol: as tol, relative to the largest one.

    Example:
        >>> import numpy as np
        >>> int(matrix_rank(np.ones((2, 2))))
        1
    """
    options = {"tol": base(tol), "hermitian": hermitian or None, "rtol": base(rtol)}
    given = {name: value for name, value in options.items() if value is not None}
    return untracked(plain_namespace(A).linalg.matrix_rank, A, **given)

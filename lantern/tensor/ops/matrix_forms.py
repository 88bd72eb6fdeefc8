"""Forms of arrays and matrices that the rules of linear algebra share."""

from typing import Any

from lantern.core.tree import tree_map
from lantern.core.value import Value, base, is_complex, is_tracked
from lantern.rules.arithmetic import conj
from lantern.tensor.array_api_methods import as_constant
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.shape import as_array, axis_of, permute_dims

__all__ = [
    "any_value",
    "as_arrays",
    "axes_last",
    "conj_if_complex",
    "conj_transpose",
    "half_triangle",
    "plain_namespace",
    "received_nothing",
    "untracked",
]


def any_value(*operands: Any) -> bool:
    """Whether any of these is Lantern's own value, and not a plain array."""
    return any(isinstance(x, Value) for x in operands)


def as_arrays(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands as arrays, a number or list as one of the other's library."""
    return as_array(x, y), as_array(y, x)


def untracked(function: Any, *operands: Any, **options: Any) -> Any:
    """What the array library computes of the operands, without a derivative."""
    z = function(*map(base, operands), **options)
    classes = [type(x) for x in operands if isinstance(x, Value)]
    if not classes:
        return z
    return tree_map(lambda leaf: as_constant(classes[0], leaf, *operands), z)


def plain_namespace(x: Any) -> Any:
    """The functions that make constant arrays beside x."""
    return array_namespace(base(x))


def conj_if_complex(x: Any) -> Any:
    """The conjugate, without an operation for a real array."""
    return conj(x) if is_complex(x) else x


def conj_transpose(x: Any) -> Any:
    """The conjugate transpose of matrices.

    Shapes:
        x: (..., n, m); result: (..., m, n)
    """
    return conj_if_complex(x.mT)


def half_triangle(x: Any, upper: bool = False) -> Any:
    """Weights that keep one triangle of square matrices, and half of the diagonal.

    Together with its transpose this is 1 everywhere.

    Shapes:
        x: (..., n, n); result: (n, n), plain

    Example:
        >>> import numpy as np
        >>> half_triangle(np.zeros((2, 2)))
        array([[0.5, 0. ],
               [1. , 0.5]])
    """
    xp, n = plain_namespace(x), x.shape[-1]
    lower = xp.tri(n, dtype=base(x).real.dtype)
    return (lower.T if upper else lower) - xp.eye(n, dtype=lower.dtype) / 2


def axes_last(x: Any, *axes: int) -> Any:
    """An array with some axes moved to the end, in this order."""
    ndim = len(x.shape)
    last = [axis_of(a, ndim) for a in axes]
    order = [i for i in range(ndim) if i not in last] + last
    return x if order == list(range(ndim)) else permute_dims(x, order)


def received_nothing(*cotangents: Any) -> Any:
    """Which columns have no cotangent in any of these matrices.

    A tracked cotangent may be 0 here and yet depend on something: it never counts as
    nothing.

    Shapes:
        cotangents: (..., n_i, k) each; result: (..., k), plain booleans
    """
    xp, nothing = plain_namespace(cotangents[0]), True
    for z_bar in cotangents:
        zero = xp.all(base(z_bar) == 0, axis=-2)
        nothing = nothing & zero & (not is_tracked(z_bar))
    return nothing

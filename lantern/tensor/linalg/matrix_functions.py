"""Determinants, powers and exponentials of square matrices; chains of products."""

from importlib import import_module
from operator import index
from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_complex
from lantern.errors import MissingExtraError
from lantern.op import adjoint, op
from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.linalg.solve import inv
from lantern.tensor.ops.matrix_forms import (
    any_value,
    conj_if_complex,
    plain_namespace,
    untracked,
)
from lantern.tensor.ops.products import matmul
from lantern.tensor.ops.shape import as_array

__all__ = [
    "SlogdetResult",
    "det",
    "expm",
    "matrix_power",
    "multi_dot",
    "slogdet",
]


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value.

    Example:
        >>> import numpy as np
        >>> slogdet(np.diag([-1.0, 1.0]))
        SlogdetResult(sign=np.float64(-1.0), logabsdet=np.float64(0.0))
    """

    sign: Any
    logabsdet: Any


def det(a: Any) -> Any:
    """The determinant of a square matrix.

    Shapes:
        a: (..., n, n); result: (...)

    Example:
        >>> import numpy as np
        >>> round(float(det(np.array([[1.0, 2.0], [3.0, 4.0]]))), 12)
        -2.0
    """
    return _det(as_array(a))


@op
def _det(x: Any, /) -> Rule:
    """The determinant of a square matrix.

    Shapes:
        x: (..., n, n); result: (...)

    Rule:
        x_bar = z_bar * the cofactors of x, which are z * inv(x).mT where that exists

    References:
        Giles (2008), section 2.2.4; Petersen and Pedersen (2012), equation (49).
    """
    z = namespace(x).linalg.det(x)
    z_bar = yield z
    yield z_bar[..., None, None] * _cofactors_from(x, z)


def _cofactors_from(a: Any, z: Any) -> Any:
    """The cofactors: from the determinant z and the inverse, if that is accurate."""
    xp, plain = plain_namespace(a), base(a)
    if any_value(plain):  # matrices of many examples, each to be looked at
        return _cofactors(a)
    if xp is not numpy_namespace:
        return z[..., None, None] * inv(a).mT  # to look would be a copy to the host
    try:
        inverse = xp.linalg.inv(plain)
    except xp.linalg.LinAlgError:
        return _cofactors(a)
    condition = xp.linalg.norm(plain, axis=(-2, -1))
    condition = condition * xp.linalg.norm(inverse, axis=(-2, -1))
    if not (condition * xp.finfo(plain.dtype).eps ** (1 / 3) < 1).all():
        return _cofactors(a)
    return z[..., None, None] * (inverse if plain is a else inv(a)).mT


@op
def _cofactors(x: Any, /) -> Rule:
    """The cofactors of a square matrix: from singular values, so that some may be 0.

    Between the singular vectors the matrix is diag(s), whose cofactors and their
    derivatives are products of all s but one or two.

    Shapes:
        x: (..., n, n); result: (..., n, n)

    Rule:
        p_ij = the product of all s but s_i and s_j, w = det(u) * det(v) * u.mT @ z_bar
        @ v, q_ii = the sum of p_ij * w_jj, q_ij = -p_ij * w_ji, x_bar = u @ q @ v.mT

    References:
        Magnus and Neudecker (1999), section 8.6.
    """
    xp = namespace(x)
    u, s, v_h = xp.linalg.svd(x, full_matrices=False)
    del x
    sign = (xp.linalg.det(u) * xp.linalg.det(v_h))[..., None, None]
    u, v_h = conj_if_complex(u), conj_if_complex(v_h)
    one = plain_namespace(s).eye(s.shape[-1], dtype=base(s).dtype)
    z_bar = yield sign * ((u * _product_without(one, s)[..., None, :]) @ v_h)
    w = sign * (u.mT @ z_bar @ v_h.mT)
    either = one[:, None] + one * (1 - one[:, None])
    p = _product_without(either, s) * (1 - one)
    own = (p @ (w * one).sum(axis=-1)[..., None]) * one
    yield u @ (own - p * w.mT) @ v_h


def _product_without(left_out: Any, s: Any) -> Any:
    """The product of s over its last axis, but for what is left out.

    Shapes:
        left_out: (..., n), 0 or 1; s: (..., n); result: (...), those of s before those
        of left_out
    """
    for _ in left_out.shape[:-1]:
        s = s[..., None, :]
    return namespace(s).prod(s * (1 - left_out) + left_out, axis=-1)


def slogdet(a: Any) -> Any:
    """The sign of a determinant, and the logarithm of its absolute value.

    Shapes:
        a: (..., n, n); result: sign (...), logabsdet (...)

    Example:
        >>> import numpy as np
        >>> slogdet(np.array([[0.0, 1.0], [1.0, 0.0]])).sign
        np.float64(-1.0)
    """
    return SlogdetResult(*_slogdet(as_array(a)))


@adjoint
def _slogdet(x: Any, /) -> Rule:
    """The sign of a determinant, and the logarithm of its absolute value.

    Shapes:
        x: (..., n, n); result: (...) and (...)

    Rule:
        x_bar = (log_bar - 1j * imag(conj(sign_bar) * sign)) * inv(x).mT

    References:
        Giles (2008), section 2.2.4; Petersen and Pedersen (2012), equation (57).
    """
    sign, log = namespace(x).linalg.slogdet(x)
    sign_bar, log_bar = yield sign, log
    if is_complex(sign):
        turn = conj_if_complex(sign_bar) * sign
        log_bar = log_bar - (turn - conj_if_complex(turn)) / 2
    inverse = namespace(x).linalg.inv(x)
    yield log_bar[..., None, None] * conj_if_complex(inverse.mT)


def expm(a: Any) -> Any:
    """The exponential of a square matrix.

    Shapes:
        a: (..., n, n); result: (..., n, n)

    Raises:
        MissingExtraError: without SciPy.

    Example:
        >>> import numpy as np
        >>> expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
        array([[1., 1.],
               [0., 1.]])
    """
    return _expm(as_array(a))


@op
def _expm(x: Any, /) -> Rule:
    """The exponential of a square matrix.

    Shapes:
        x: (..., n, n); result: (..., n, n)

    Rule:
        x_bar = the derivative of expm at x.mT, applied to z_bar

    References:
        Higham (2008), equation (3.16).
    """
    z_bar = yield _exponential(x)
    yield _frechet(x.mT, z_bar)


@op
def _frechet(x: Any, e: Any, /) -> Rule:
    """The derivative of the exponential at x, applied to e.

    Shapes:
        x, e: (..., n, n); result: (..., n, n)

    Rule:
        e_bar = the derivative at x.mT, applied to z_bar; x_bar = the second derivative
        there, applied to e.mT and z_bar

    References:
        Mathias (1996), theorem 2.1: derivatives are blocks of the exponential of a
        block triangle; Higham (2008), equation (3.16).
    """
    z_bar = yield _derivative(x, e)
    yield lambda: _second_derivative(x.mT, e.mT, z_bar)
    yield lambda: _frechet(x.mT, z_bar)


def _exponential(x: Any) -> Any:
    if any_value(x):
        return _expm(x)
    xp = namespace(x)
    name = xp.special.replace("special", "linalg")
    try:
        module: Any = import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"expm: it needs {name}. Install it with pip install "
            f'"lantern-ad[{xp.extra}]".'
        ) from None
    if xp is numpy_namespace or len(x.shape) == 2:
        return module.expm(x)
    matrices = x.reshape(-1, *x.shape[-2:])
    return xp.stack([module.expm(m) for m in matrices]).reshape(x.shape)


def _derivative(x: Any, e: Any) -> Any:
    """The upper right block of the exponential of ``[[x, e], [0, x]]``.

    The direction is scaled to x's size, so that it costs no accuracy.
    """
    if any_value(x, e):
        return _frechet(x, e)
    xp, n = namespace(x, e), x.shape[-1]
    if n == 0:
        return x + e
    own, size = (xp.max(xp.abs(a), axis=(-2, -1), keepdims=True) for a in (x, e))
    scale = xp.maximum(own, 1) / xp.where(size == 0, 1, size)
    return _exponential(_blocks(x, e * scale))[..., :n, n:] / scale


def _second_derivative(x: Any, e: Any, f: Any) -> Any:
    """The mixed derivative in the directions e and f: that of a block triangle."""
    n = x.shape[-1]
    zero = 0 * f
    return _frechet(_blocks(x, e), _blocks(f, zero))[..., :n, n:]


def _blocks(x: Any, e: Any) -> Any:
    """The block triangle ``[[x, e], [0, x]]``."""
    xp = namespace(x, e)
    x, e = xp.broadcast_to(x, (x + e).shape), xp.broadcast_to(e, (x + e).shape)
    return xp.concat([xp.concat([x, e], axis=-1), xp.concat([0 * x, x], axis=-1)], -2)


def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of a square matrix; of its inverse, for negative n.

    Shapes:
        a: (..., m, m); result: (..., m, m)

    Example:
        >>> import numpy as np
        >>> matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 5)
        array([[1., 5.],
               [0., 1.]])
    """
    exponent = index(n)
    if not any_value(a) or exponent == 0:
        return untracked(plain_namespace(a).linalg.matrix_power, a, exponent)
    square = inv(a) if exponent < 0 else a
    exponent, power = abs(exponent), None
    while exponent:
        if exponent % 2:
            power = square if power is None else matmul(power, square)
        exponent //= 2
        if exponent:
            square = matmul(square, square)
    return power


def multi_dot(arrays: Any) -> Any:
    """The product of a chain of matrices, in the order that costs least.

    Shapes:
        arrays: (n0, n1), (n1, n2), ...; the first and the last may be vectors; result:
        (n0, nk), without the axes that vectors lack

    Example:
        >>> import numpy as np
        >>> multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)])
        array([12., 12.])

    References:
        Cormen et al. (2009), section 15.2.
    """
    chain = [as_array(x) for x in arrays]
    if len(chain) < 2 or any(len(x.shape) != 2 for x in chain[1:-1]):
        ones = [numpy_namespace.ones((1,) * len(x.shape)) for x in chain]
        return numpy_namespace.linalg.multi_dot(ones)  # which refuses them
    sizes = [x.shape[0] for x in chain]
    if len(chain[0].shape) == 1:
        sizes[0] = 1
    split = _cheapest_splits([*sizes, *(chain[-1].shape[1:] or (1,))])

    def product(i: int, j: int) -> Any:
        if i == j:
            return chain[i]
        return matmul(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(chain) - 1)


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where the product of matrices i to j is split in two, for every i and j."""
    count = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            ends = sizes[i] * sizes[j + 1]
            options = [
                cost[i, k] + cost[k + 1, j] + ends * sizes[k + 1] for k in range(i, j)
            ]
            cost[i, j] = min(options)
            split[i, j] = i + options.index(cost[i, j])
    return split

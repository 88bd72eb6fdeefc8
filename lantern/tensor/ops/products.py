"""Products of vectors and matrices, and diagonals: bilinear or linear, all of them.

What a matrix receives from a product is a product itself: a ``Product``, not yet
computed, that may wait for others (``deferred_products``).
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

from lantern.core.contribution import Call, Contribution
from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base, is_tracked
from lantern.engines import products as engine
from lantern.errors import MissingRuleError
from lantern.op import bilinear
from lantern.rules.arithmetic import multiply
from lantern.tensor.accumulate.accumulator import LARGE, Accumulator
from lantern.tensor.accumulate.deferred_products import Collector, patient
from lantern.tensor.backend.blas import adding_product
from lantern.tensor.backend.numpy_namespace import (
    array_namespace,
    buffers,
    numpy_namespace,
)
from lantern.tensor.ops import reduction
from lantern.tensor.ops.matrix_forms import (
    any_value,
    as_arrays,
    axes_last,
    conj_if_complex,
    untracked,
)
from lantern.tensor.ops.shape import as_array, astype, permute_dims, reshape

__all__ = [
    "cross",
    "diagonal",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]


@bilinear
def matmul(x: Any, y: Any, /) -> Rule:
    """The matrix product, over all leading axes together.

    Shapes:
        x: (..., n, k) or (k,); y: (..., k, m) or (k,); result: (..., n, m), without the
        axes that a vector lacks

    Rule:
        x_bar = z_bar @ y.mT, y_bar = x.mT @ z_bar

    Example:
        >>> import numpy as np
        >>> matmul(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
        array([11.])

    References:
        Giles (2008), section 2.2.2.
    """
    z_bar = yield x @ y if x.ndim < 3 else engine.matmul(x, y)
    if x.ndim == y.ndim == 1:
        yield lambda: z_bar * y
        yield lambda: z_bar * x
    elif y.ndim == 1:
        yield lambda: z_bar[..., None] * y
        yield lambda: (z_bar[..., None, :] @ x)[..., 0, :]
    elif x.ndim == 1:
        yield lambda: (y @ z_bar[..., None])[..., 0]
        z_bar = z_bar[..., None, :]
        yield Product(x[None], z_bar) if y.ndim == 2 else x[:, None] * z_bar
    else:
        yield lambda: _product(z_bar, y.mT, x)
        yield Product(x, z_bar) if y.ndim == 2 else lambda: _product(x.mT, z_bar, y)


def _product(x: Any, y: Any, like: Any) -> Any:
    """``x @ y``, in the way that takes NumPy least, perhaps laid like an array.

    Of two matrices ``dot`` takes half of the time, of small ones less; of many, where
    nothing is summed over, a product of elements takes a quarter.
    """
    if type(x) is type(y) in buffers and x.ndim == y.ndim == 2:
        return x.dot(y)
    return x * y if x.shape[-1] == 1 else engine.matmul(x, y, like)


class Product(Contribution):
    """The cotangent ``x.mT @ z_bar`` of a matrix y in ``x @ y``, not yet computed.

    A rule may yield it for a weight that is used many times.

    Args:
        x: (..., n, k).
        z_bar: (..., n, m).
        own: whether nobody else holds these arrays.
    """

    __slots__ = ("own", "x")
    scatters: ClassVar[bool] = False

    def __init__(self, x: Any, z_bar: Any, own: bool = False) -> None:
        self.x, self.z_bar, self.own = x, z_bar, own

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The product: of a whole batch, as one."""
        x, z_bar = self.factors(shape)
        if type(x) is type(z_bar) in buffers:
            return self.multiplied(x, z_bar)
        if x.shape[0] == 1 and type(x) not in buffers:
            return x.T * z_bar  # in a ``vmap`` a row for each example
        return namespace(x, z_bar).dot(x.T, z_bar)

    @staticmethod
    def multiplied(x: Any, z_bar: Any, out: Any = None) -> Any:
        """``x.T @ z_bar`` of two matrices; ``@`` takes 20 times as long for one row."""
        return x.T.dot(z_bar, out=out)

    def factors(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Both factors, as matrices of the same number of rows."""
        x, z_bar = self.x, self.z_bar
        if len(x.shape) == 2:
            return x, z_bar
        rows = math.prod(x.shape[:-1])
        return x.reshape(rows, shape[0]), z_bar.reshape(rows, shape[1])

    def stays(self, size: int, room: float) -> bool:
        """As ``Contribution.stays``; for small weights that takes longer."""
        large = room >= max(2 * size, LARGE * self.x.itemsize)
        return large and type(self.x) is numpy_namespace.ndarray

    def write_to(self, target: Any, factor: Any) -> None:
        """As ``Contribution.write_to``, computed there."""
        x, z_bar = self.factors(target.shape)
        self.multiplied(x, z_bar * factor, target)

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """As ``Contribution.additions``, without a matrix for the product."""
        return [self.adding(buffer, *self.factors(buffer.shape), factor)]

    # A call that does ``buffer += factor * x.T @ z_bar``.
    adding = staticmethod(adding_product)

    @classmethod
    def joined(cls, products: list[Any], shape: tuple[int, ...]) -> "Product":
        """The sum of several products, as one, in arrays of its own."""
        if len(products) == 1:
            product: Product = products[0]
            if product.own:
                return product
            x, z_bar = product.factors(shape)
            return cls(x.copy(), z_bar.copy(), True)
        xs, z_bars = zip(*(p.factors(shape) for p in products), strict=True)
        xp = namespace(xs[0])
        return cls(xp.concatenate(xs), xp.concatenate(z_bars), True)

    def each(self, function: Callable[[Any], Any]) -> Any:
        """The contribution, a function applied to both factors."""
        self.x = function(self.x)
        return super().each(function)

    def ready(self, receiver: Any) -> Any:
        """Itself, if it may wait at a receiver; otherwise the product, computed now."""
        return self if self._room(receiver) else self.dense(receiver.shape)

    def _room(self, receiver: Any) -> float:
        """How many bytes may wait at a receiver; 0 if this product may not."""
        x, z_bar, shape = self.x, self.z_bar, receiver.shape
        if not (
            type(x) in buffers
            and type(z_bar) in buffers
            and x.dtype is z_bar.dtype is receiver.dtype
            and type(receiver) in patient
            and len(shape) == 2
        ):
            return 0
        room = Collector.share * x.itemsize * shape[0] * shape[1]
        return room if x.nbytes + z_bar.nbytes <= room else 0

    def wait_at(self, receiver: Any) -> bool:
        """Wait, if it may; the first one is computed instead."""
        kind, shape = type(receiver), receiver.shape
        little = kind is not Collector and math.prod(shape) < LARGE  # never stays
        if (kind is Accumulator or little) and receiver.cotangent is None:
            product = self.dense(shape)
            receiver.accumulate(product)
            receiver.owned = receiver.cotangent is product and type(product) in buffers
            return True
        room = self._room(receiver)
        if not room:
            return False
        if kind is Accumulator:
            if isinstance(receiver.cotangent, Value):
                return False
            Collector.begin(receiver)
        receiver.collect(self, self.x.nbytes + self.z_bar.nbytes, room)
        return True


def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors, over all leading axes together.

    Shapes:
        x1: (..., n, k); x2: (..., k); result: (..., n)

    Example:
        >>> import numpy as np
        >>> matvec(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[1., 2.],
               [3., 4.]])
    """
    x1, x2 = as_arrays(x1, x2)
    return matmul(x1, x2) if len(x2.shape) < 2 else matmul(x1, x2[..., None])[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Conjugated vectors times matrices, over all leading axes together.

    Shapes:
        x1: (..., k); x2: (..., k, m); result: (..., m)

    Example:
        >>> import numpy as np
        >>> vecmat(np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
        array([[1., 2.],
               [3., 4.]])
    """
    x1, x2 = as_arrays(x1, x2)
    x1 = conj_if_complex(x1)
    if len(x1.shape) < 2:
        return matmul(x1, x2)
    return matmul(x1[..., None, :], x2)[..., 0, :]


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The inner products of vectors along an axis; the first one is conjugated.

    Shapes:
        x1, x2: (..., n), broadcast but for n; result: (...)

    Example:
        >>> import numpy as np
        >>> vecdot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
        array([3., 7.])
    """
    x1, x2 = as_arrays(x1, x2)
    if axis != -1:
        x1, x2 = axes_last(x1, axis), axes_last(x2, axis)
    return _vecdot(conj_if_complex(x1), x2)


@bilinear
def _vecdot(x: Any, y: Any, /) -> Rule:
    """The products of vectors along the last axis, none of them conjugated.

    Shapes:
        x, y: (..., n), broadcast but for n; result: (...)

    Rule:
        x_bar = z_bar * y, y_bar = z_bar * x, over the last axis
    """
    z_bar = yield (x[..., None, :] @ y[..., None])[..., 0, 0]
    yield lambda: z_bar[..., None] * y
    yield lambda: z_bar[..., None] * x


def dot(a: Any, b: Any) -> Any:
    """The product over the last axis of a and the last but one of b, if it has two.

    Shapes:
        a: (..., k); b: (..., k, m), (k,) or (); result: the other axes of a, then of b

    Example:
        >>> import numpy as np
        >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        np.float64(11.0)
    """
    a, b = as_arrays(a, b)
    if not a.shape or not b.shape:
        return multiply(a, b)
    if len(b.shape) <= 2 or len(a.shape) == 1:
        return matmul(a, b)
    return _tensordot(a, b, axes=(-1, -2))


def vdot(a: Any, b: Any, /) -> Any:
    """The inner product of all elements, in order; those of a are conjugated.

    Shapes:
        a, b: (...), as many elements; result: ()

    Example:
        >>> import numpy as np
        >>> vdot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        np.float64(11.0)
    """
    a, b = as_arrays(a, b)
    return matmul(conj_if_complex(_flat(a)), _flat(b))


def inner(a: Any, b: Any) -> Any:
    """The products over the last axes of both.

    Shapes:
        a: (..., n) or (); b: (..., n) or (); result: the other axes of a, then of b

    Example:
        >>> import numpy as np
        >>> inner(np.array([1.0, 2.0]), np.array([[3.0, 4.0], [5.0, 6.0]]))
        array([11., 17.])
    """
    a, b = as_arrays(a, b)
    if not a.shape or not b.shape:
        return multiply(a, b)
    if len(a.shape) == 1 or len(b.shape) == 1:
        return matmul(a, b) if len(b.shape) == 1 else matmul(b, a)
    return _tensordot(a, b, axes=(-1, -1))


def outer(a: Any, b: Any) -> Any:
    """The products of every element of a with every element of b.

    Shapes:
        a: (...) with n elements; b: (...) with m; result: (n, m)

    Example:
        >>> import numpy as np
        >>> outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        array([[3., 4.],
               [6., 8.]])
    """
    a, b = as_arrays(a, b)
    return multiply(_flat(a)[:, None], _flat(b))


def _flat(x: Any) -> Any:
    return x if len(x.shape) == 1 else reshape(x, (-1,))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The product over chosen axes of both.

    Shapes:
        a, b: (...); result: the axes of a that were not chosen, then those of b

    Args:
        axes: a number n, for the last n axes of a and the first n of b; or a pair of
            the axes of a and those of b.

    Example:
        >>> import numpy as np
        >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), ((1, 2), (1, 0))).shape
        (2, 5)
    """
    a, b = as_arrays(a, b)
    return _tensordot(a, b, axes=axes)


@bilinear
def _tensordot(x: Any, y: Any, /, axes: Any) -> Rule:
    """The product over chosen axes of both, its operands first.

    Shapes:
        x, y: (...); result: the axes of x that were not chosen, then those of y

    Rule:
        x_bar = z_bar times y, over y's other axes; y_bar = x times z_bar, over x's
        other axes
    """
    z_bar = yield namespace(x, y).tensordot(x, y, axes=axes)
    pairs = _pairs(axes, len(x.shape), len(y.shape))
    free_x = tuple(i for i in range(len(x.shape)) if i not in {a for a, _ in pairs})
    free_y = tuple(i for i in range(len(y.shape)) if i not in {b for _, b in pairs})
    n, m = len(free_x), len(z_bar.shape)

    def x_bar() -> Any:
        z = namespace(z_bar, y).tensordot(z_bar, y, (tuple(range(n, m)), free_y))
        by_y = sorted(pairs, key=lambda pair: pair[1])
        return _in_order(z, [*free_x, *(a for a, _ in by_y)])

    def y_bar() -> Any:
        z = namespace(x, z_bar).tensordot(x, z_bar, (free_x, tuple(range(n))))
        return _in_order(z, [*(b for _, b in sorted(pairs)), *free_y])

    yield x_bar
    yield y_bar


def _pairs(axes: Any, n: int, m: int) -> list[tuple[int, int]]:
    """Which axis of x was summed with which of y, counted from 0."""
    if not hasattr(axes, "__iter__"):
        return [(n - axes + i, i) for i in range(axes)]
    of_x, of_y = (a if hasattr(a, "__iter__") else (a,) for a in axes)
    return [(a % n, b % m) for a, b in zip(of_x, of_y, strict=True)]


def _in_order(z: Any, axes: list[int]) -> Any:
    """An array whose i-th axis belongs at ``axes[i]``, with its axes there."""
    if axes == sorted(axes):
        return z
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return namespace(z).permute_dims(z, order)


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: each element of a times the whole of b, as blocks.

    Shapes:
        a: (n0, n1, ...); b: (m0, m1, ...); result: (n0 * m0, n1 * m1, ...)

    Example:
        >>> import numpy as np
        >>> kron(np.array([1.0, 10.0]), np.array([1.0, 2.0]))
        array([ 1.,  2., 10., 20.])
    """
    a, b = as_arrays(a, b)
    ndim = max(len(a.shape), len(b.shape))
    n, m = ([1] * (ndim - len(x.shape)) + list(x.shape) for x in (a, b))
    blocks = multiply(
        reshape(a, [k for i in n for k in (i, 1)]),
        reshape(b, [k for i in m for k in (1, i)]),
    )
    return reshape(blocks, [i * j for i, j in zip(n, m, strict=True)])


def cross(
    a: Any,
    b: Any,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Any:
    """The vector product of vectors of length 3.

    Shapes:
        a, b: (..., 3), broadcast, their vectors along axisa and axisb; result:
        (..., 3), its vectors along axisc; axis stands for all three

    Example:
        >>> import numpy as np
        >>> cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
        array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    if not is_tracked(a) and not is_tracked(b):
        xp = array_namespace(base(a), base(b))
        return untracked(xp.cross, a, b, axisa, axisb, axisc)
    a, b = as_arrays(a, b)
    x, y = axes_last(a, axisa), axes_last(b, axisb)
    if 2 in (*x.shape[-1:], *y.shape[-1:]):
        raise MissingRuleError(
            "cross: vectors of length 2 have no rule. Append a zero to each vector."
        )
    z = _cross(x, y)
    order = list(range(len(z.shape) - 1))
    order.insert(axisc % len(z.shape), len(order))
    return z if order[-1] == len(order) - 1 else permute_dims(z, order)


@bilinear
def _cross(x: Any, y: Any, /) -> Rule:
    """The vector product along the last axis.

    Shapes:
        x, y: (..., 3), broadcast; result: (..., 3)

    Rule:
        x_bar = cross(y, z_bar), y_bar = cross(z_bar, x)
    """
    z_bar = yield namespace(x, y).cross(x, y)
    yield lambda: namespace(z_bar, y).cross(y, z_bar)
    yield lambda: namespace(z_bar, x).cross(z_bar, x)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of the matrices along two axes, as the last axis.

    Shapes:
        a: (..., n, m), its matrices along axis1 and axis2; result: (..., k)

    Example:
        >>> import numpy as np
        >>> diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([1., 4.])
    """
    a = as_array(a)
    if not any_value(a):
        return namespace(a).diagonal(a, offset, axis1, axis2)
    x = axes_last(a, axis1, axis2)
    n, m = x.shape[-2:]
    below, right = max(-offset, 0), max(offset, 0)
    start, length = below * m + right, max(min(n - below, m - right), 0)
    flat = reshape(x, (*x.shape[:-2], n * m))
    return flat[..., start : start + length * (m + 1) : m + 1]


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    """The sums of the diagonals of the matrices along two axes.

    Shapes:
        a: (..., n, m), its matrices along axis1 and axis2; result: (...)

    Example:
        >>> import numpy as np
        >>> trace(np.array([[1.0, 2.0], [3.0, 4.0]]))
        np.float64(5.0)
    """
    z = diagonal(a, offset, axis1, axis2)
    return reduction.sum(z if dtype is None else astype(z, dtype), axis=-1)

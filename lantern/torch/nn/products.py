"""Products of a layer's matrices, each in the way that takes the least time.

The only products of ``lantern.torch`` that an engine may compute.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from lantern.core.contribution import Call
from lantern.core.value import Value
from lantern.engines import gpu, halves
from lantern.engines import products as engine
from lantern.engines.onednn import has_avx512, is_on
from lantern.tensor.ops.products import Product
from lantern.torch.tensor.dtypes import F32, is_half

__all__ = [
    "LayerProduct",
    "affine",
    "in_parts",
    "multiplier",
    "parts",
    "product",
    "rounded",
    "times",
    "turned",
    "widened",
]


def turned(x: Any, weight: Any) -> bool:
    """Whether OpenBLAS takes less time for ``weight @ x.T`` than for its transpose.

    Of few rows, it may be half.
    """
    return (
        weight.size >= 1 << 16
        and 2 < x.shape[0] <= 64
        and type(x) is type(weight) is np.ndarray
    )


def parts(x: Any, weight: Any) -> int:
    """In how many parts of a weight OpenBLAS takes the least time; 0 for it as a whole.

    With AVX-512 it has kernels for products whose results have at most 1,200 elements:
    of 3 to 32 rows they take 0.33 to 0.9 of the time of the weight times ``x.T``.
    """
    if not (
        turned(x, weight) and weight.flags.c_contiguous and is_on() and has_avx512()
    ):
        return 0
    return _parts(x.shape[0], weight.shape[0])


@lru_cache(512)
def _parts(n: int, m: int) -> int:
    count = 1
    while n * m > 1200 * count:
        count *= 2
    return 0 if m % count or n > 32 else count


def in_parts(x: Any, weight: Any, count: int) -> Any:
    """``x @ weight.T``, by so many parts of the weight, one after another.

    Shapes:
        x: (n, k); weight: (m, k); result: (count, n, m / count)
    """
    rows, k = weight.shape
    return np.matmul(x, weight.reshape(count, rows // count, k).swapaxes(1, 2))


def times(x: Any, y: Any) -> Any:
    """``x @ y`` of two matrices; of few rows, ``@`` takes twice as long as ``dot``."""
    if type(x) is np.ndarray is type(y):
        if x.size * y.shape[-1] <= engine.LEAST:  # as the engine has it, in no call
            return x.dot(y)
        z = engine.product(x, y)
    elif type(x) is type(y) and not isinstance(x, Value):  # of one device
        z = gpu.products.product(x, y)
    else:
        return x @ y
    return x.dot(y) if z is None else z


def product(x: Any, weight: Any) -> Any:
    """``x @ weight.T`` of two matrices."""
    if len(x) > 2 and turned(x, weight):
        z = engine.product(x, weight.T)
        return _of_few_rows(x, weight) if z is None else z
    return times(x, weight.T)


def affine(x: Any, weight: Any, bias: Any) -> Any:
    """``x @ weight.T + bias`` in one call of an engine; None where that has none."""
    how = engine if type(x) is np.ndarray else gpu.products
    return how.affine(x, weight, bias)


def _of_few_rows(x: Any, weight: Any) -> Any:
    count = parts(x, weight)
    if count < 2:
        return x.dot(weight.T) if count else np.ascontiguousarray(weight.dot(x.T).T)
    return in_parts(x, weight, count).swapaxes(0, 1).reshape(len(x), len(weight))


def rounded(x: Any, y: Any, bias: Any = None) -> Any:
    """``x @ y + bias`` of halves, computed in float32 and rounded once.

    Shapes:
        x: (n, k); y: (k, m); bias: (m,) or None; result: (n, m)
    """
    z = halves.product(x, y, bias)
    if z is None:
        z = times(widened(x), widened(y))
        z = (z if bias is None else z + widened(bias)).astype(x.dtype)
    return z


def widened(x: Any) -> Any:
    """Halves in float32; anything else as it is."""
    return x.astype(F32) if is_half(x.dtype) else x


def multiplier(y: Any, n: int, count: int) -> Callable[[Any], Any]:
    """What multiplies matrices by a plain one: count of them, of n rows or fewer."""
    found = engine.repeated(y, n, count) if type(y) is np.ndarray else None
    if found is None:
        return lambda x: product(x, y.T)

    def multiply(x: Any) -> Any:
        z = found(x) if x.shape[0] == n else None
        return product(x, y.T) if z is None else z

    return multiply


class LayerProduct(Product):
    """The cotangent ``x.mT @ z_bar`` of a layer's weight, not yet computed."""

    __slots__ = ()

    @staticmethod
    def multiplied(x: Any, z_bar: Any, out: Any = None) -> Any:
        """As ``Product.multiplied``, perhaps by an engine."""
        if type(x) is np.ndarray:
            if x.size * z_bar.shape[-1] <= engine.LEAST:
                return x.T.dot(z_bar, out)
            z = engine.product(x.T, z_bar, out)
        else:
            z = gpu.products.product(x.T, z_bar) if out is None else None
        return Product.multiplied(x, z_bar, out) if z is None else z

    @staticmethod
    def adding(buffer: Any, x: Any, z_bar: Any, factor: float) -> Call:
        """As ``Product.adding``, perhaps by an engine."""
        call: Any = None
        if x.size * z_bar.shape[-1] > engine.LEAST:
            call = engine.adding_product(buffer, x.T, z_bar, factor)
        return Product.adding(buffer, x, z_bar, factor) if call is None else call

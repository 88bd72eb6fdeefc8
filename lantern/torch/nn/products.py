"""Products of a layer's matrices, each in the way that takes the least time.

The only products of ``lantern.torch`` that an engine may compute.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.value import Value
from lantern.engines import halves
from lantern.engines import products as engine
from lantern.tensor.accumulate.deferred_products import Product
from lantern.torch.tensor.dtypes import F32, is_half

__all__ = [
    "LayerProduct",
    "multiplier",
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


def times(x: Any, y: Any) -> Any:
    """``x @ y`` of two matrices; of few rows, ``@`` takes twice as long as ``dot``."""
    if type(x) is type(y) and not isinstance(x, Value):  # of one device
        z = engine.product(x, y)
        return x.dot(y) if z is None else z
    return x @ y


def product(x: Any, weight: Any) -> Any:
    """``x @ weight.T`` of two matrices."""
    if turned(x, weight):
        z = engine.product(x, weight.T)
        return np.ascontiguousarray(weight.dot(x.T).T) if z is None else z
    return times(x, weight.T)


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
        z = engine.product(x.T, z_bar, out)
        return Product.multiplied(x, z_bar, out) if z is None else z

    def add_to(self, buffer: Any, factor: float = 1.0) -> None:
        """As ``Product.add_to``, perhaps by an engine."""
        x, z_bar = self.factors(buffer.shape)
        if not engine.add_product(buffer, x.T, z_bar, factor):
            super().add_to(buffer, factor)

"""Sums of each row, with products of rows or without, and of all, in several threads.

The rule: matrices of single precision with 2 ** 16 elements or more in the order of
their axes, where oneDNN has several threads: half of the time of a product with ones by
NumPy, which takes one, where the elements are not in the cache yet (2 million of them,
AMD EPYC, two threads); in one thread it takes as long or longer. From 2 ** 20 elements
on all rows are added up, by a product with ones: 0.6 to 0.75 of the time (Intel Xeon,
two threads); and a team takes NumPy's sums and products of rows together, in 0.8 to 0.9
of the time that they take one after another in several threads.
"""

import ctypes
from functools import lru_cache
from typing import Any

from lantern.engines import products
from lantern.engines.arrays import empty_rows, filled, multiply_up, single, whole
from lantern.engines.onednn import Layout, Primitive, described, is_on, threads
from lantern.engines.team import share

__all__ = ["of_rows", "over_rows", "with_products"]

_LEAST, _MANY = 1 << 16, 1 << 20
_FEWEST = 512  # rows for which NumPy lets other threads run
_SUM, _X, _Z = 0x2FFF4, 1, 17


def of_rows(x: Any) -> Any:
    """The sum of each row; None if not for the engine.

    Shapes:
        x: (n, k); result: (n,)
    """
    large = single(x) and x.size >= _LEAST and whole(x) and is_on()
    if not large or (number := threads()) == 1:
        return None
    primitive = _primitive(x.shape, number)
    if primitive is None:
        return None
    z = empty_rows((len(x), 1))
    primitive.run(x, z)
    return z.reshape(-1)


def with_products(x: Any, y: Any) -> Any:
    """The sum of each row, and that of its products with another one.

    None if not for the engine.

    Shapes:
        x, y: (n, k); results: two times (n,)
    """
    alike = x.shape == y.shape and all(single(a) and whole(a) for a in (x, y))
    if not alike or x.size < _MANY or not is_on():
        return None
    n, ones = len(x), filled(x.shape[1], 1)
    count = min(threads(), n // _FEWEST)
    rows = -(-n // max(1, count))
    sums, products = empty_rows(n), empty_rows(n)

    def work(turn: int) -> None:
        here = slice(turn * rows, (turn + 1) * rows)
        x[here].dot(ones, out=sums[here])
        multiply_up(x[here], y[here], products[here])

    return (sums, products) if count > 1 and share(work, count) else None


def over_rows(x: Any) -> Any:
    """The sum of all rows; None if not for the engine.

    Shapes:
        x: (n, k); result: (k,)
    """
    if x.size <= products.LEAST or not is_on() or threads() == 1:
        return None
    z = products.product(filled(len(x), 1).reshape(1, -1), x)
    return z if z is None else z[0]


@lru_cache(512)
def _primitive(shape: Any, _: int) -> Primitive | None:
    n, k = shape
    rows, sums, none = Layout(shape, (k, 1)), Layout((n, 1), (1, 1)), ctypes.c_float(0)
    description = described("reduction", _SUM, rows, sums, none, none)
    return description and Primitive(description, _X, _Z)

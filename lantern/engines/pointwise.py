"""Convolutions by windows of one element, as products of two matrices.

The rule: at most 1,024 windows, and what is for ``products``. Of so few oneDNN's
convolution takes as long to bring weights into its order, and their cotangent back, as
to multiply. Measured on layers of ResNet-50 (Intel Xeon, one thread, 64 to 1,024
windows): 0.2 to 1.0 of the time of its convolutions, 0.75 in the middle.

Of arrays in PyTorch's order each example is a product, from 64 windows and 2 ** 23
products of elements on: 0.8 to 0.93 of the time of NumPy's BLAS (64 to 1,024 channels);
of 16 windows it would be 1.9, of 49 up to 1.2. In several threads all examples are one
call, from 2 ** 20 products of elements on: with two, 0.5 to 0.8 of the layers' time.
With strides the elements in windows are copied first: 0.72 of the time of the general
way of 256 channels by 512 (0.78 in one thread), which goes over all others, too.
"""

import math
from typing import Any

from lantern.engines.arrays import FIRST, LAST, empty, in_rows, whole
from lantern.engines.onednn import threads
from lantern.engines.products import LEAST, adding_product, matmul, product, times_each

__all__ = ["correlate", "is_pointwise", "match", "spread"]

_MOST, _LARGE, _WIDE = 1 << 10, 1 << 23, 64


def is_pointwise(form: Any) -> bool:
    """Whether each window has one element, and none lies outside."""
    return set(form.size) == {1} and not any(map(any, form.padding))


def correlate(x: Any, w: Any, form: Any, bias: Any) -> Any:
    """As ``convolution.correlate`` has it."""
    if _are_products(x, w.size, form):
        z = _each(_matrix(w), _picked(x, form))
        if z is not None and bias is not None:
            z += bias.reshape(-1, *[1] * len(form.size))
        return z
    fits = _fits(x, form)
    z = product(_rows(x, form.stride), _matrix(w).T) if fits else None
    if z is None:
        return None
    if bias is not None:
        z += bias
    return _images(z, len(x), form.steps)


def spread(z: Any, w: Any, form: Any) -> Any:
    """As ``convolution.spread`` has it."""
    if _are_products(z, w.size, form):
        images, order = _each(_matrix(w).T, z), FIRST
    else:
        x = product(_rows(z), _matrix(w)) if _fits(z, form) else None
        images, order = x if x is None else _images(x, len(z), form.steps), LAST
    if images is None or form.steps == form.lengths:
        return images
    out = empty((*images.shape[:2], *form.lengths), order)
    out[...] = 0
    out[_starts(form.stride)] = images
    return out


def match(x: Any, z: Any, form: Any) -> Any:
    """As ``convolution.match`` has it."""
    size = x.shape[1] * z.shape[1]
    if whole(z) and _are_products(x, size, form):
        return _sum_of_each(z, _picked(x, form), form)
    fits = _fits(x, form)
    w = product(_rows(z).T, _rows(x, form.stride)) if fits else None
    return w if w is None else w.reshape(*w.shape, *form.size)


def _fits(x: Any, form: Any) -> bool:
    """Whether there are few enough windows, of one element."""
    few = form.groups == 1 and len(x) * math.prod(form.steps) <= _MOST
    return few and is_pointwise(form)


def _are_products(x: Any, size: int, form: Any) -> bool:
    """Whether each example, as it lies, is a matrix worth a product of its own."""
    windows = math.prod(form.steps)
    if windows < _WIDE or form.groups != 1 or not (is_pointwise(form) and whole(x)):
        return False
    each = size * windows
    return each >= _LARGE or (threads() > 1 and each * len(x) > LEAST)


def _each(matrix: Any, x: Any) -> Any:
    """A matrix times each example."""
    columns = x.reshape(*x.shape[:2], -1)
    z = times_each(matrix, columns)
    if z is not None:
        return z.reshape(*z.shape[:2], *x.shape[2:])
    z = empty((len(x), len(matrix), *x.shape[2:]), FIRST)
    out = z.reshape(*z.shape[:2], -1)
    done = (product(matrix, columns[i], out[i]) is not None for i in range(len(x)))
    return z if all(done) else None


def _sum_of_each(z: Any, x: Any, form: Any) -> Any:
    """The products of all examples' matrices with others' transposes, added up."""
    rows, columns = (a.reshape(*a.shape[:2], -1) for a in (z, x))
    if threads() > 1 and len(x) * rows.shape[1] * columns.shape[1] <= x.size + z.size:
        w = matmul(rows, columns.swapaxes(1, 2)).sum(axis=0)
        return w.reshape(*w.shape, *form.size)
    w = product(rows[0], columns[0].T)
    if w is None:
        return None
    for a, b in zip(rows[1:], columns[1:], strict=True):
        call = adding_product(w, a, b.T, 1.0)
        if call is None:
            return None
        call[0](*call[1:])
    return w.reshape(*w.shape, *form.size)


def _matrix(w: Any) -> Any:
    return in_rows(w).reshape(w.shape[:2])


def _starts(stride: Any) -> Any:
    """Where windows of one element are."""
    return (..., *(slice(None, None, step) for step in stride))


def _picked(x: Any, form: Any) -> Any:
    """The elements in windows, as they lie."""
    return x if form.steps == form.lengths else in_rows(x[_starts(form.stride)])


def _rows(x: Any, stride: Any = ()) -> Any:
    """The elements in windows, with a row for the channels of each."""
    x = x[_starts(stride)]
    return x.transpose(0, *range(2, x.ndim), 1).reshape(-1, x.shape[1])


def _images(rows: Any, n: int, lengths: Any) -> Any:
    """Rows as images, whose channels are last in memory."""
    images = rows.reshape(n, *lengths, rows.shape[1])
    return images.transpose(0, images.ndim - 1, *range(1, images.ndim - 1))

"""How elements are stored: names of layouts, and in which order axes lie in memory."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.engines import plan as engine
from lantern.errors import EagerError
from lantern.op import additive
from lantern.torch.tensor.batches import first_example
from lantern.vectorizing.batched import Batched

__all__ = ["copied", "laid", "layout", "lies", "like_leaf", "memory_format"]


class layout:
    """How the elements of a tensor are stored, a name.

    Example:
        >>> import lantern.torch as torch
        >>> torch.strided, isinstance(torch.strided, torch.layout)
        (torch.strided, True)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format:
    """In which order the axes lie in memory, a name.

    Example:
        >>> import lantern.torch as torch
        >>> torch.channels_last
        torch.channels_last
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


LAYOUTS = {
    name: layout(name)
    for name in (
        "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"
    ).split()
}
FORMATS = {
    name: memory_format(name)
    for name in (
        "contiguous_format preserve_format channels_last channels_last_3d"
    ).split()
}
strided = LAYOUTS["strided"]
# The axes from the outermost to the innermost.
_ORDERS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def _in_rows(array: Any, form: Any) -> Any:
    """An array whose axes are in the order of memory, if it lies as a format says."""
    order = _ORDERS.get(getattr(form, "name", ""))
    if order is None:
        return array
    return array.transpose(order) if array.ndim == len(order) else None


def lies(array: Any, form: Any) -> bool:
    """Whether an array lies in memory as a format says, with no gaps."""
    rows = _in_rows(first_example(array), form)
    return rows is not None and (
        isinstance(rows, np.generic) or bool(rows.flags.c_contiguous)
    )


def channels_last(array: Any) -> Any:
    """The format by which the channels of an array lie innermost; None for the others.

    An array that lies so and in rows as well is in rows; gaps do not count.
    """
    if type(array) is Batched or array.ndim not in (4, 5) or array.flags.c_contiguous:
        return None
    form = FORMATS["channels_last" if array.ndim == 4 else "channels_last_3d"]
    strides, reach = array.strides, 1
    for axis in reversed(_ORDERS[form.name]):
        n = array.shape[axis]
        if not n or strides[axis] < reach or (axis == 0 and reach == strides[1]):
            return None
        reach = strides[axis] * n
    return form


_TILE = 128  # a matrix of 768 by 3,072 is transposed in a fifth of the time


def in_order_of(array: Any, z: Any) -> Any:
    """A new array with its axes in the order in which those of another one lie."""
    if type(array) is Batched or type(z) is Batched:  # where no order is seen
        return z
    if array.flags.c_contiguous or array.shape != z.shape:
        return z
    made = np.empty_like(array, dtype=z.dtype)
    made[...] = z
    return made


def like_leaf(leaf: Any, grad: Any) -> Any:
    """A gradient in the order of its leaf's memory if that has no gaps, else in rows.

    Programs that look at memory, as those that join gradients in one buffer, count on
    it. Of plain arrays only: in others no order is seen.
    """
    if type(leaf) is not np.ndarray or type(grad) is not np.ndarray:
        return grad
    if leaf.flags.c_contiguous and grad.flags.c_contiguous:
        return grad
    made = np.empty_like(leaf, dtype=grad.dtype)
    if made.strides != leaf.strides:
        made = np.empty(leaf.shape, grad.dtype)
    if made.strides == grad.strides:
        return grad
    _fill(made, grad)
    return made


def _fill(made: Any, x: Any) -> None:
    """Write one array to another: matrices in tiles, which both stay in the cache."""
    if engine.moved(x, made):
        return
    if made.ndim != 2:
        made[...] = x
        return
    n, m = made.shape
    for i in range(0, n, _TILE):
        for j in range(0, m, _TILE):
            tile = slice(i, i + _TILE), slice(j, j + _TILE)
            made[tile] = x[tile]


def laid(array: Any, form: Any) -> Any:
    """An array in the order of a format; itself, if it lies so already."""
    if form is FORMATS["preserve_format"] or lies(array, form):
        return array
    if type(array) is Batched:  # its axes are in the order of all examples
        return array
    rows = _in_rows(array, form)
    if rows is None:
        raise EagerError(
            f"required rank {len(_ORDERS[form.name])} tensor to use {form.name} format"
        )
    rows = namespace(rows).ascontiguousarray(rows)
    order = _ORDERS.get(form.name)
    return rows if order is None else rows.transpose(np.argsort(order).tolist())


@additive
def copied(x: Any, /, form: Any) -> Rule:
    """The elements of x in a new array, which lies as a format says.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar
    """
    z = laid(x, form) if type(x) is np.ndarray else x
    z_bar = yield (+x if z is x else z, x := None, z := None)[0]
    yield z_bar

"""Nested lists of numbers as arrays: their type, what is refused; ``Tensor(data)``."""

from functools import reduce
from typing import Any

import numpy as np

from lantern.core.value import UNTRACKED
from lantern.errors import ArgumentError, EagerError, ShapeError
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import in_transform, lost
from lantern.torch.tensor.devices import is_array
from lantern.torch.tensor.dtypes import Size, promoted
from lantern.torch.tensor.subclasses import joined
from lantern.torch.tensor.tensor import NOBODY, Tensor

__all__ = ["array_of"]

_LISTS = (list, tuple)


def array_of(data: Any, kind: Any) -> Any:
    """Numbers, lists and tensors in lists as a new array.

    Args:
        data: the numbers; tensors of one element count as numbers.
        kind: NumPy's type; None for the one that holds them all, where Python's floats
            are of the default type.
    """
    if isinstance(data, Tensor):
        if in_transform(data):
            raise lost("tensor")
        data = base(data)
    if isinstance(data, np.ndarray | np.generic):
        dtypes.as_dtype(data.dtype)
        return np.array(data, dtype=kind)
    if not isinstance(data, _LISTS) and is_array(data):
        return data.copy() if kind is None else data.astype(kind)
    if data is None:
        raise EagerError("Could not infer dtype of NoneType")
    found: set[Any] = set()
    row = data if isinstance(data, _LISTS) else [data]
    if _collect(row, found):
        data = _numbers(data)
    array = np.array(data)
    if array.dtype.kind in "OUS":
        raise ArgumentError(f"new(): invalid data type '{type(data).__name__}'")
    if kind is None:
        kind = reduce(promoted, found) if found else array.dtype
        kind = kind if array.size else dtypes.default()
    return array.astype(kind, copy=False)


def _collect(row: Any, found: set[Any]) -> bool:
    """Note the types of all numbers in lists; whether tensors are among them."""
    python = {
        bool: dtypes.BOOL,
        int: dtypes.I64,
        float: dtypes.default(),
        complex: np.result_type(dtypes.default(), np.complex64),
    }
    kinds = set(map(type, row))
    found.update(python[kind] for kind in kinds & python.keys())
    tensors = False
    for x in row if kinds - python.keys() else ():
        if isinstance(x, _LISTS):
            tensors |= _collect(x, found)
        elif isinstance(x, Tensor | np.ndarray | np.generic):
            found.add(base(x).dtype)
            tensors |= isinstance(x, Tensor)
        elif type(x) not in python and hasattr(x, "__iter__"):
            found.add(np.array(x).dtype)
    return tensors


def _numbers(data: Any) -> Any:
    """Lists with numbers in place of tensors of one element."""
    if isinstance(data, _LISTS):
        return [_numbers(x) for x in data]
    if not isinstance(data, Tensor):
        return data
    if in_transform(data):
        raise lost("tensor")
    if base(data).size != 1:
        raise ShapeError("only one element tensors can be converted to Python scalars")
    return base(data).item()


def new(cls: Any, *data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor of the default type, from data or of a shape."""
    joined(cls)
    first: Any = data[0] if len(data) == 1 else Size(data or (0,))
    rest: Any = UNTRACKED, NOBODY, None
    if isinstance(first, Tensor):  # the same memory, and derivative
        first = first.view_as(first)
        if cls is Tensor:
            return first
        array, *rest = first.primal, first.level, first.receiver, first.viewed
    elif isinstance(first, int | Size):
        array = np.zeros(first, dtypes.default())
    else:
        array = array_of(first, dtypes.default())
    x = object.__new__(cls)
    x.primal, x.sharers, (x.level, x.receiver, x.viewed) = array, None, rest
    return x


# The class is below: what reads lists asks whether a tensor is among the numbers.
Tensor.__new__ = staticmethod(new)  # type: ignore[method-assign]

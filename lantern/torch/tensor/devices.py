"""Devices of tensors' arrays, and what is brought to one."""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from lantern.core.namespace import is_scalar, namespace
from lantern.tensor.backend.device import device as device_name
from lantern.tensor.backend.numpy_namespace import array_namespace, buffers, find_device
from lantern.torch.tensor import dtypes
from lantern.vectorizing.batched import Batched

__all__ = [
    "address",
    "as_array",
    "beside",
    "grid",
    "is_array",
    "kernel",
    "made",
    "moved",
    "on_host",
]


def as_array(x: Any, kind: Any = None) -> Any:
    """An array as it is, wherever it lies; a number as one without axes.

    Args:
        x: an array of any library, or a number.
        kind: NumPy's type that its elements shall have.
    """
    if type(x) in buffers or type(x) is Batched:
        return x if kind is None or x.dtype == kind else x.astype(kind)
    return np.asarray(x, kind)


def is_array(x: Any) -> bool:
    """Whether something is an array, of any library that is known here."""
    return not is_scalar(namespace(x)) and type(x) in buffers


def beside(x: Any, array: Any) -> Any:
    """What was computed on the host, where an array lies; a number lies nowhere."""
    if type(x) is not np.ndarray or isinstance(array, np.ndarray | np.generic):
        return x
    return array_namespace(x).to_device(x, device_name(array))


def on_host(x: Any) -> Any:
    """A plain array in the host's memory: a copy, of what lies on a device."""
    return array_namespace(x).to_device(x, "cpu")


def address(array: Any) -> int:
    """Where the first element of an array lies in the memory of its device."""
    if isinstance(array, np.ndarray):
        return array.__array_interface__["data"][0]
    place: int = array.__cuda_array_interface__["data"][0]
    return place


def grid(lengths: Any, array: Any) -> list[Any]:
    """For each axis the positions along it, to be broadcast; where an array lies."""
    n, xp = len(lengths), namespace(array)
    if n == 1:
        return [xp.arange(lengths[0])]
    shapes = [[-1 if i == j else 1 for j in range(n)] for i in range(n)]
    return [xp.arange(m).reshape(s) for m, s in zip(lengths, shapes, strict=True)]


def moved(array: Any, device: Any) -> Any:
    """A plain array on a device."""
    library, number = find_device(str(dtypes.device(device)))
    return library.receive(array, number) if str(device) != "cpu" else array


def made(device: Any, name: str, *args: Any, **options: Any) -> Any:
    """What a function of NumPy's makes from nothing, made on a device."""
    library, number = find_device(str(dtypes.device(device)))
    function = getattr(library.module, name)
    if number is None:
        return function(*args, **options)
    with library.module.cuda.Device(number):
        return function(*args, **options)


@lru_cache(None)
def kernel(function: Any, xp: Any) -> Any:
    """A function of the elements of arrays, as one kernel of a device's library.

    Args:
        function: takes arrays that it may write to, numbers and None, and the library
            as ``xp``. Numbers may meet arrays alone: CuPy computes what is made of two
            numbers in half precision.
        xp: the library.
    """
    return xp.fuse(kernel_name=function.__name__)(partial(function, xp=xp))

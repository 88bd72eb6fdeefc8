"""Arrays of a file: nothing is allocated before its size is known to be there.

The only file that opens what a model names besides itself: files in its own folder, or
below, and no others.
"""

import math
import os
import stat
from typing import Any

import numpy as np

from lantern.errors import FileFormatError
from lantern.onnx.extra import package
from lantern.onnx.limits import Limits

__all__ = ["array_of"]

# Elements that one byte of a message can hold at most: of two bits each.
_IN_A_BYTE = 4
# Types of which several elements share a byte.
_NARROW = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4}


def array_of(tensor: Any, folder: str | None, limits: Limits) -> Any:
    """The array that a message holds, or names.

    Args:
        tensor: a ``TensorProto``.
        folder: where the model lies; None where it lies in no folder.
        limits: what may still be read.

    Raises:
        FileFormatError: if it is not what it says, or not there.
    """
    onnx = package()
    name = tensor.name or "a tensor"
    shape = tuple(tensor.dims)
    if any(length < 0 for length in shape):
        raise FileFormatError(f"onnx.load: {name} has the shape {shape}.")
    try:
        onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, ValueError, TypeError):
        raise FileFormatError(
            f"onnx.load: {name} has elements of type {tensor.data_type}, which this "
            f"version of onnx does not know."
        ) from None
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        tensor = _read(tensor, shape, folder, limits)
    elif math.prod(shape) > _IN_A_BYTE * tensor.ByteSize():
        raise FileFormatError(
            f"onnx.load: {name} is said to have the shape {shape}, and the file holds "
            f"{tensor.ByteSize()} bytes of it. The file is damaged."
        )
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, IndexError) as error:
        raise FileFormatError(
            f"onnx.load: {name}, of shape {shape}, is damaged: {error}"
        ) from None


def _read(tensor: Any, shape: Any, folder: str | None, limits: Limits) -> Any:
    """A message with the bytes that it names."""
    onnx = package()
    name = tensor.name or "a tensor"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _place(name, entries.get("location", ""), folder)
    bits = _bits(onnx, tensor.data_type, name)
    needed = (math.prod(shape) * bits + 7) // 8
    try:
        start = int(entries.get("offset", "0"))
        length = int(entries.get("length", needed))
    except ValueError:
        raise FileFormatError(
            f"onnx.load: where the data of {name} begins is no number."
        ) from None
    with open(path, "rb") as file:
        there = os.fstat(file.fileno()).st_size
        if start < 0 or length != needed or start + length > there:
            raise FileFormatError(
                f"onnx.load: {name}, of shape {shape}, needs {needed:,} bytes; the "
                f"file says {length:,} from byte {start:,} on of "
                f"{entries['location']!r}, which has {there:,}."
            )
        limits.take(length, name)
        file.seek(start)
        data = file.read(length)
    whole = onnx.TensorProto(name=name, data_type=tensor.data_type, dims=shape)
    whole.raw_data = data
    return whole


def _bits(onnx: Any, data_type: int, name: str) -> int:
    """How many bits an element takes in a file."""
    kind = onnx.TensorProto.DataType.Name(data_type)
    if kind == "STRING":
        raise FileFormatError(f"onnx.load: {name}, of texts, lies in another file.")
    if kind in _NARROW:
        return _NARROW[kind]
    return 8 * int(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(data_type)).itemsize)


def _place(name: str, location: str, folder: str | None) -> str:
    """The path of a file that a model names, in its folder or below.

    Raises:
        FileFormatError: for a path that leads elsewhere, also by a link, and for what
            is no ordinary file.
    """
    if folder is None:
        raise FileFormatError(
            f"onnx.load: the data of {name} lies in another file, and the model was "
            f"given without a path. Give load the path."
        )
    home = os.path.realpath(folder)
    if "\0" in location:
        location = ""
    path = os.path.realpath(os.path.join(home, location))
    if (
        not location
        or os.path.isabs(location)
        or os.path.commonpath([home, path]) != home
    ):
        raise FileFormatError(
            f"onnx.load: the data of {name} lies in {location!r}, outside of the "
            f"model's folder. Such a file is refused."
        )
    try:
        ordinary = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        raise FileFormatError(
            f"onnx.load: the data of {name} lies in {location!r}, which is not there."
        ) from None
    if not ordinary:
        raise FileFormatError(
            f"onnx.load: the data of {name} lies in {location!r}, which is no file."
        )
    return path

"""A model file as a message: read whole, and refused where it is none."""

import os
import stat
from typing import Any

from lantern.errors import ArgumentError, FileFormatError
from lantern.onnx.extra import package
from lantern.onnx.limits import Limits
from lantern.onnx.messages import check_fields

__all__ = ["read_model"]


def read_model(source: Any, limits: Limits) -> tuple[Any, str | None]:
    """The ``ModelProto`` in a file, and the folder where it lies.

    Args:
        source: a path, the bytes of a file, an open binary file, or a ``ModelProto``.
        limits: what may be read.

    Raises:
        FileFormatError: if it is no model.
        OSError: if there is no such file.
    """
    onnx = package()
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        return model, None
    data, folder = _bytes(source, limits)
    model = onnx.ModelProto()
    check_fields(data, model.DESCRIPTOR)
    try:
        model.ParseFromString(data)
    except Exception:  # protobuf's own class, which has no name of its own here
        raise FileFormatError(
            "onnx.load: the file is cut off, or no ONNX model."
        ) from None
    if not model.HasField("graph") or not model.ir_version:
        raise FileFormatError(
            "onnx.load: the file is no ONNX model: it has no graph or no version."
        )
    if model.ir_version > onnx.IR_VERSION:
        raise FileFormatError(
            f"onnx.load: the file has version {model.ir_version} of the format, and "
            f"onnx {onnx.__version__} knows those up to {onnx.IR_VERSION}. Install a "
            f"newer onnx."
        )
    return model, folder


def _bytes(source: Any, limits: Limits) -> tuple[bytes, str | None]:
    """What a file holds, and its folder."""
    if isinstance(source, bytes):
        limits.take(len(source), "the file")
        return source, None
    if hasattr(source, "read"):
        data = source.read(limits.left + 1)
        if not isinstance(data, bytes):
            raise ArgumentError(
                "onnx.load: the file is open for text. Open it with mode 'rb'."
            )
        limits.take(len(data), "the file")
        return data, None
    try:
        path = os.fsdecode(source)
    except TypeError:
        raise ArgumentError(
            f"onnx.load: cannot read a {type(source).__name__}. Give a path, bytes, or "
            f"an open file."
        ) from None
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(f"onnx.load: {path!r} is no file.")
    limits.take(status.st_size, "the file")
    with open(path, "rb") as file:
        return file.read(status.st_size), os.path.dirname(os.path.abspath(path))

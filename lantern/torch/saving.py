"""Tensors, and structures of them, in safetensors files: nothing in them is executed.

Tensors are named by their paths, so that a state is a plain file of the format, as
PyTorch users exchange them; the structure stands in the file's metadata, as JSON. A
file is checked whole before anything is allocated for it, and replaces another one at
once or not at all.
"""

import json
import math
import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from lantern.errors import ArgumentError, FileFormatError, MissingExtraError
from lantern.torch import dtypes
from lantern.torch.dtypes import Size
from lantern.torch.nn.parameter import Parameter
from lantern.torch.operators import in_memory
from lantern.torch.places import on_host
from lantern.torch.serialization import packed_object, unpacked_object
from lantern.torch.tensor import Tensor, fresh

__all__ = ["load", "save"]

_NAMES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32,
    "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
}  # fmt: skip
_BY_TYPE = {np.dtype(kind): name for name, kind in _NAMES.items()}
# What has no type of its own here: stored as bits, given back as float32.
_BRAIN = "BF16"
_STRUCTURE = "lantern.structure"
_LARGEST_HEADER = 100_000_000
_PICKLE = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def _package() -> Any:
    """The part of safetensors that writes arrays."""
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingExtraError(
            "torch.save: files of tensors need the package safetensors. Install it "
            'with: pip install "lantern-ad[torch]"'
        ) from None
    return safetensors.numpy


# --- writing --------------------------------------------------------------------------


def save(obj: Any, f: Any, *args: Any, **options: Any) -> None:
    """Write a tensor or a structure of tensors to a file.

    Args:
        obj: tensors, numbers, texts and None, in dictionaries, lists and tuples: what
            ``state_dict()`` of a module, an optimiser or a schedule gives, or several.
        f: a path, or an open binary file.
        args: have no effect; as PyTorch has them.
        options: have no effect.

    Raises:
        TypeError: for an object of another class, which only a pickle could hold.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2), "epoch": 3}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    package = _package()
    arrays: dict[str, Any] = {}
    structure = json.dumps(_packed(obj, "", arrays))
    ordered = {n: np.array(on_host(x), order="C") for n, x in arrays.items()}
    packed = package.save(ordered, {"format": "pt", _STRUCTURE: structure})
    if hasattr(f, "write"):
        f.write(packed)
    else:
        _replace(os.fspath(f), packed)


def _plain(x: Any) -> Any:
    """A tensor's array, of a type that the format has."""
    array = in_memory(x.detach())
    if array.dtype not in _BY_TYPE:
        raise ArgumentError(
            f"torch.save: the format has no complex numbers, got {x.dtype}. Save real "
            f"and imaginary parts."
        )
    return array


def _packed(x: Any, path: str, arrays: dict[str, Any]) -> Any:
    """A structure for JSON; its tensors go to ``arrays``, by their paths."""
    if isinstance(x, Parameter):
        return _packed_parameter(x, path, arrays)
    if isinstance(x, Tensor | np.ndarray | np.generic):
        name = path or "tensor"
        while name in arrays or name == "__metadata__":
            name += "_"
        kind = "tensor" if isinstance(x, Tensor) else "array"
        arrays[name] = _plain(x) if kind == "tensor" else np.asarray(x)
        return {kind: name}
    if x is None or isinstance(x, bool | str):
        return x
    if isinstance(x, int | float):
        return int(x) if isinstance(x, int) else float(x)
    if isinstance(x, dtypes.dtype):
        return {"dtype": x.name}
    if isinstance(x, Mapping):
        items = [
            [_packed(k, path, arrays), _packed(v, _joined(path, k), arrays)]
            for k, v in x.items()
        ]
        metadata = getattr(x, "_metadata", None)
        if isinstance(metadata, Mapping):  # of a module's state
            return {"state": [items, _packed(metadata, path, arrays)]}
        kind = "ordered" if isinstance(x, OrderedDict) else "dict"
        return {kind: items}
    if isinstance(x, list | tuple):
        items = [_packed(v, _joined(path, i), arrays) for i, v in enumerate(x)]
        kind = "tuple" if isinstance(x, tuple) else "list"
        return {"size" if isinstance(x, Size) else kind: items}
    return packed_object(x, path, lambda v, at: _packed(v, at, arrays))


def _packed_parameter(x: Any, path: str, arrays: dict[str, Any]) -> Any:
    """A parameter; one that two modules share is stored once."""
    array = _plain(x)
    for name, known in arrays.items():
        if known is array:
            return {"parameter": [name, x.requires_grad]}
    ((_, name),) = _packed(x.detach(), path, arrays).items()
    arrays[name] = array
    return {"parameter": [name, x.requires_grad]}


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _replace(path: str, data: bytes) -> None:
    """Write a file beside another, and let it take the other's place."""
    temporary = f"{path}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


# --- reading --------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, *args: Any, **options: Any) -> Any:
    """Read what ``save`` has written, or any other safetensors file.

    Args:
        f: a path, or an open binary file.
        map_location: the device for the tensors; by default the CPU.
        args: have no effect; as PyTorch has them.
        options: ``weights_only=False`` allows modules of the program's own classes:
            see ``torch.serialization``. Others have no effect.

    Raises:
        RuntimeError: if the file is cut off, damaged, or of another format.

    Example:
        >>> import lantern.torch as torch
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.tensor([1.0, 2.0])}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 2.])}
    """
    name = getattr(f, "name", "the file")
    if hasattr(f, "read"):
        data = f.read()
    else:
        name = os.fspath(f)
        with open(f, "rb") as file:
            data = file.read()
    header = _header(data, name)
    metadata = header.pop("__metadata__", {})
    start = 8 + int.from_bytes(data[:8], "little")
    _check(header, len(data) - start, name)
    arrays = {key: _array(entry, data, start) for key, entry in header.items()}

    def placed(key: str) -> Tensor:
        if key not in arrays:
            raise FileFormatError(f"torch.load: {name} has not the tensor {key}.")
        x = fresh(arrays[key])
        return x if map_location is None else x.to(map_location)

    if _STRUCTURE not in metadata:
        return {key: placed(key) for key in header}
    try:
        trusted = options.get("weights_only") is False
        return _Reader(placed, arrays, trusted).read(json.loads(metadata[_STRUCTURE]))
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError) as error:
        raise FileFormatError(
            f"torch.load: {name} has a damaged structure ({error})."
        ) from None


def _header(data: bytes, name: str) -> dict[str, Any]:
    """The header of a file, as JSON without names that come twice."""
    # A header of 640 bytes begins like a pickle, but for the brace behind its size.
    if data[8:9] != b"{" and (data[:4] == _PICKLE[0] or data[:2] in _PICKLE):
        raise FileFormatError(
            f"torch.load: {name} is a pickle, which could run any program. Where "
            f"PyTorch is installed, write its tensors with safetensors.torch.save_file."
        )
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _LARGEST_HEADER):
        raise FileFormatError(
            f"torch.load: {name} is cut off, or no safetensors file: {len(data)} "
            f"bytes, with a header of {length} announced."
        )

    def once(pairs: Any) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise FileFormatError(f"torch.load: {name} has one name twice.")
        return found

    try:
        header = json.loads(data[8 : 8 + length], object_pairs_hook=once)
    except FileFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(
            f"torch.load: {name} has a damaged header ({error})."
        ) from None
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise FileFormatError(f"torch.load: {name} has a header that is no dictionary.")
    return header


def _check(header: dict[str, Any], size: int, name: str) -> None:
    """Raise unless the tensors fill the file's data exactly, none over another."""
    parts = []
    for key, entry in header.items():
        try:
            kind, shape, (start, end) = (
                entry["dtype"], entry["shape"], entry["data_offsets"],
            )  # fmt: skip
        except (TypeError, KeyError, ValueError):
            raise FileFormatError(
                f"torch.load: {name} describes {key!r} incompletely."
            ) from None
        if kind != _BRAIN and kind not in _NAMES:
            raise FileFormatError(
                f"torch.load: {key!r} in {name} is of type {kind!r}, which is not "
                f"supported. Convert it to one of {', '.join(_NAMES)}."
            )
        numbers = [*shape, start, end] if isinstance(shape, list) else [None]
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise FileFormatError(
                f"torch.load: {key!r} in {name} has impossible sizes: {shape}, bytes "
                f"{start} to {end}."
            )
        each = 2 if kind == _BRAIN else np.dtype(_NAMES[kind]).itemsize
        if math.prod(shape) * each != end - start:
            raise FileFormatError(
                f"torch.load: {key!r} in {name} of type {kind} and shape {shape} does "
                f"not take {end - start} bytes."
            )
        parts.append((start, end))
    at = 0
    for start, end in sorted(parts):
        if start != at:
            raise FileFormatError(f"torch.load: {name} has a gap or overlap at {at}.")
        at = end
    if at != size:
        raise FileFormatError(
            f"torch.load: {name} is cut off or too long: its tensors take {at} bytes, "
            f"and {size} are there."
        )


def _array(entry: Any, data: bytes, start: int) -> Any:
    """A new array from a tensor's part of a checked file."""
    kind, shape, (first, _) = entry["dtype"], entry["shape"], entry["data_offsets"]
    plain = np.dtype(_NAMES.get(kind, np.uint16)).newbyteorder("<")
    found = np.frombuffer(data, plain, math.prod(shape), start + first)
    if kind == _BRAIN:
        return (found.astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return found.astype(_NAMES[kind]).reshape(shape)


_KINDS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "size": Size,
    "dict": dict,
    "ordered": OrderedDict,
}


class _Reader:
    """How a structure is made from its JSON."""

    def __init__(self, placed: Any, arrays: Any, trusted: bool) -> None:
        self.placed, self.arrays, self.trusted = placed, arrays, trusted
        self.parameters: dict[str, Any] = {}

    def read(self, x: Any) -> Any:
        """A part of the structure."""
        if not isinstance(x, dict):
            return x
        ((kind, inner),) = x.items()
        if kind == "tensor":
            return self.placed(inner)
        if kind == "parameter":
            return self.parameter(*inner)
        if kind == "array":
            return self.arrays[inner]
        if kind == "dtype":
            return dtypes.as_dtype(inner)
        if kind in ("dict", "ordered"):
            return _KINDS[kind]([list(map(self.read, pair)) for pair in inner])
        if kind == "state":
            state: Any = self.read({"ordered": inner[0]})
            state._metadata = self.read({"ordered": inner[1]["ordered"]})
            return state
        if kind in _KINDS:
            return _KINDS[kind](list(map(self.read, inner)))
        return unpacked_object(kind, inner, self.read, self.trusted)

    def parameter(self, name: str, requires_grad: bool) -> Any:
        """A parameter; the same one for all who share it."""
        if name not in self.parameters:
            self.parameters[name] = Parameter(self.placed(name), requires_grad)
        return self.parameters[name]

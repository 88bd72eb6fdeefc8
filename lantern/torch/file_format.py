"""The format of safetensors: written, and read without trust, checked whole first.

A file is eight bytes that say how long its header is, the header, which is JSON, and
the bytes of the tensors, one after another. What is read is as large as the file itself
until all of the header is known to fit; no number in it is believed before that.
"""

import json
import math
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.errors import ArgumentError, FileFormatError
from lantern.torch.tensor import dtypes

__all__ = [
    "BRAIN",
    "TYPES",
    "as_stored",
    "begins_pickle",
    "damaged",
    "file_bytes",
    "parsed",
    "read_file",
    "read_up_to",
    "short",
]

TYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32,
    "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
    "U16": np.uint16, "U32": np.uint32, "U64": np.uint64,
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
# In which order the package has the types: the file has the last first.
_ORDER = "BOOL U8 I8 I16 U16 F16 BF16 I32 U32 F32 F64 I64 U64".split()
# The type of ``ml_dtypes``; without that package what is read becomes float32.
BRAIN = "BF16"
_LARGEST_HEADER = 100_000_000
_MOST_AXES = 64  # of an array of NumPy
_PICKLE = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_ENTRY = {"dtype", "shape", "data_offsets"}

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 80
short: Callable[[Any], str] = _brief.repr


def damaged(name: str, what: str) -> FileFormatError:
    """The error for a file that is not what the format says."""
    return FileFormatError(f"torch.load: {name} {what}")


def parsed(text: str, digits: int, name: str, part: str) -> Any:
    """JSON without names that come twice, and without numbers of many digits.

    Args:
        text: the JSON.
        digits: how many a number may have.
        name: what an error calls the file.
        part: what it calls the text.

    Raises:
        FileFormatError: if it is something else, or too deep.
    """

    def whole(number: str) -> int:
        if len(number) > digits:
            raise damaged(name, f"has a {part} with a number of {len(number)} digits.")
        return int(number)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise damaged(name, f"has a {part} with one name twice.")
        return found

    try:
        return json.loads(text, parse_int=whole, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise damaged(name, f"has a damaged {part} ({error}).") from None
    except RecursionError:
        raise damaged(name, f"has a damaged {part}, too deep to follow.") from None


def stored_as(kind: Any) -> str | None:
    """What the format calls one of NumPy's types; None if it has it not."""
    return BRAIN if kind.kind == "V" and kind.name == "bfloat16" else NAMES.get(kind)


def file_bytes(arrays: dict[str, Any], metadata: dict[str, str]) -> bytes:
    """A file of arrays, byte by byte as the package ``safetensors`` writes it.

    The largest types come first, so that each array begins at a multiple of its own
    type's size; the header ends at a multiple of eight.
    """
    ranks = {n: _ORDER.index(stored_as(x.dtype) or "") for n, x in arrays.items()}
    order = sorted(arrays, key=lambda name: (-ranks[name], name))
    header: dict[str, Any] = {"__metadata__": metadata}
    parts, at = [b"", b""], 0
    for name in order:
        x = arrays[name]
        kind = stored_as(x.dtype)
        bits = np.ascontiguousarray(x.view(np.uint16) if kind == BRAIN else x)
        part = bits.astype(bits.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(x.shape),
            "data_offsets": [at, at + len(part)],
        }
        parts.append(part)
        at += len(part)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    parts[:2] = len(text).to_bytes(8, "little"), text
    return b"".join(parts)


def begins_pickle(first: bytes) -> bool:
    """Whether a file that begins with eight bytes is PyTorch's, or a bare pickle.

    The length of a header may begin with the same bytes as a pickle.
    """
    announced = len(first) == 8 and int.from_bytes(first, "little") <= _LARGEST_HEADER
    return not announced and first.startswith(_PICKLE)


def read_file(f: Any, name: str, first: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a file by their names, and its metadata.

    Args:
        f: the open file.
        name: what an error calls it.
        first: its first eight bytes, which have been read.

    Raises:
        FileFormatError: if the file is cut off, damaged, or of another format.
    """
    length = int.from_bytes(first, "little")
    announced = len(first) == 8 and length <= _LARGEST_HEADER
    packed = read_up_to(f, length, name) if announced else b""
    if not announced or len(packed) < length:
        raise damaged(
            name,
            f"is cut off, or no safetensors file: {len(first) + len(packed)} bytes, "
            f"with a header of {length} announced.",
        )
    header = _header(packed, name)
    metadata = header.pop("__metadata__", {})
    ends = [_end(key, entry, name) for key, entry in header.items()]
    _check_parts(header, name)
    data = f.read()
    if len(data) != max(ends, default=0):
        raise damaged(
            name,
            f"is cut off or too long: its tensors take {max(ends, default=0)} bytes, "
            f"and {len(data)} are there.",
        )
    return {key: _array(key, header[key], data, name) for key in header}, metadata


def read_up_to(f: Any, length: int, name: str) -> bytes:
    """Up to so many bytes; an unbuffered file may give a part at a time."""
    parts = []
    while length > 0 and (part := f.read(min(length, 1 << 20))):
        if not isinstance(part, bytes):
            raise ArgumentError(
                f"torch.load: {name} is open as text. Open it with mode 'rb'."
            )
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _header(packed: bytes, name: str) -> dict[str, Any]:
    """The header as a dictionary, whose entries are not looked at."""
    try:
        text = packed.decode()
        header = parsed(text, 20, name, "header")
        if type(header) is not dict or text[0] != "{":
            raise damaged(name, "has a header that is no dictionary.")
        metadata = header.get("__metadata__", {})
        if type(metadata) is not dict or {*map(type, metadata.values())} - {str}:
            raise damaged(name, "has metadata that are no texts.")
        # Half of a pair of surrogates is no text, though JSON can spell it.
        "".join([*header, *metadata, *metadata.values()]).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise damaged(name, f"has a damaged header ({error.reason}).") from None
    return header


def _end(key: str, entry: Any, name: str) -> int:
    """Where a tensor ends in the file; raises if its entry contradicts itself."""
    if type(entry) is not dict or entry.keys() != _ENTRY:
        raise damaged(name, f"describes {short(key)} incompletely, or says too much.")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind != BRAIN and not (type(kind) is str and kind in TYPES):
        raise damaged(
            name,
            f"has {short(key)} of type {short(kind)}, which is not supported. Convert "
            f"it to one of {', '.join(TYPES)}.",
        )
    each = 2 if kind == BRAIN else np.dtype(TYPES[kind]).itemsize
    if not (_are_sizes(shape, _MOST_AXES) and _are_sizes(offsets, 2)) or (
        len(offsets) != 2 or math.prod(n or 1 for n in shape) * each >= 1 << 63
    ):
        raise damaged(
            name,
            f"has {short(key)} of impossible sizes: {short(shape)}, bytes "
            f"{short(offsets)}.",
        )
    start, end = offsets
    if math.prod(shape) * each != end - start:
        raise damaged(
            name,
            f"has {short(key)} of type {kind} and shape {short(shape)}, which does not "
            f"take {end - start} bytes.",
        )
    return int(end)


def _are_sizes(x: Any, most: int) -> bool:
    """Whether something is a list of a few numbers that may count bytes."""
    return (
        type(x) is list
        and len(x) <= most
        and all(type(n) is int and 0 <= n < 1 << 63 for n in x)
    )


def _check_parts(header: dict[str, Any], name: str) -> None:
    """Raise unless the tensors follow one another, none over another."""
    at = 0
    for start, end in sorted(entry["data_offsets"] for entry in header.values()):
        if start != at:
            raise damaged(name, f"has a gap or overlap at {at}.")
        at = end


def _array(key: str, entry: Any, data: bytes, name: str) -> Any:
    """A new array from a tensor's part of a checked file."""
    kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    raw = np.frombuffer(data, np.uint8, end - start, start)
    plain = "bfloat16" if kind == BRAIN else np.dtype(TYPES[kind]).name
    return as_stored(raw.copy(), plain, f"{name}: {short(key)}").reshape(shape)


def as_stored(raw: Any, kind: str, name: str, order: Any = "<") -> Any:
    """The elements of a type whose bytes a file has, in the same memory if it can be.

    Args:
        raw: the bytes, an array of memory of its own.
        kind: PyTorch's name of the type.
        name: what an error calls the file.
        order: ``<`` if the lowest byte is the first one, else ``>``.
    """
    if kind == "bfloat16":
        bits = raw.view(np.dtype(np.uint16).newbyteorder(order)).astype(np.uint16)
        return _brain(bits)
    if kind == "bool" and raw.max(initial=0) > 1:
        raise damaged(name, "has truth values (BOOL) with a byte above 1.")
    stored = raw.view(np.dtype(kind).newbyteorder(order))
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def _brain(bits: Any) -> Any:
    """Numbers of bfloat16 from their bits; of float32 without ``ml_dtypes``."""
    try:
        kind = dtypes.bfloat16.numpy
    except ArgumentError:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(kind)

"""How many fields a message has, told before it is parsed.

A field of two bytes becomes an object of a hundred. The parser has no limit of its own,
so a large file is walked first, as it lies there: by the wire format of protocol
buffers (a number and a kind, then a value or a length), and nothing is made of it.
"""

from typing import Any

from lantern.errors import FileFormatError

__all__ = ["check_fields"]

# Below this many bytes, whatever comes of them is small.
_SMALL, _MOST = 1 << 20, 1 << 19


def check_fields(data: bytes, descriptor: Any) -> None:
    """Refuse a message of more than half a million fields.

    Args:
        data: the bytes of the message; where they are damaged, the parser will say.
        descriptor: what the message is.

    Raises:
        FileFormatError: if it has more.
    """
    if len(data) < _SMALL:
        return
    tables: dict[str, dict[int, Any]] = {}
    parts, count = [(0, len(data), descriptor)], 0
    try:
        while parts:
            at, end, kind = parts.pop()
            inner = tables.setdefault(kind.full_name, {})
            if not inner:
                inner.update({f.number: f.message_type for f in kind.fields})
            while at < end:
                count += 1
                if count > _MOST:
                    raise _too_many()
                tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
                if tag & 7 == 2:
                    size, at = _varint(data, at)
                    below = inner.get(tag >> 3)
                    if below is not None and size:
                        parts.append((at, min(at + size, end), below))
                    at += size
                elif tag & 7 == 0:
                    _, at = _varint(data, at)
                else:
                    at += 8 if tag & 7 == 1 else 4
    except IndexError:
        return


def _too_many() -> FileFormatError:
    return FileFormatError(
        "onnx.load: the file has more than half a million fields. Give load the "
        "message, onnx.load(path), if you trust the file."
    )


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where the next field begins."""
    byte = data[at]
    at += 1
    if byte < 128:
        return byte, at
    value, shift = byte & 127, 7
    while byte >= 128:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
    return value, at

"""The files that ``torch.save`` wrote before version 1.6: pickles, and then memory."""

from typing import Any

import numpy as np

from lantern.torch.file_format import damaged, read_up_to, short
from lantern.torch.pickles.contents import Contents

__all__ = ["read_legacy"]

_MAGIC, _EDITION = 0x1950A86A20F9469CFC6C, 1001


def read_legacy(file: Any, size: int, name: str, map_location: Any) -> Any:
    """The object in a file of the old format.

    Args:
        file: the file, which can be sought, open where the object begins.
        size: its bytes.
        name: what an error calls it.
        map_location: as ``torch.load`` takes it.

    Raises:
        FileFormatError: if it is damaged, or holds more than tensors and plain values.
    """
    contents = Contents(name, size, map_location)
    reader = contents.reader(file)
    if (reader.load(), reader.load()) != (_MAGIC, _EDITION):
        raise damaged(
            name,
            "is a pickle that torch.save did not write. Save its tensors by torch.save "
            "or safetensors.torch.save_file.",
        )
    about = reader.load()
    big = isinstance(about, dict) and about.get("little_endian") is False
    begin = file.tell()
    reader.load()
    keys = reader.load()
    if type(keys) is not list or {*map(type, keys)} - {str}:
        raise damaged(name, "has a damaged list of its memory.")
    if sorted(keys) != sorted(contents.announced):
        raise damaged(name, "names other memory than it has.")
    for key in keys:
        *_, count, length = contents.announced[key]
        found = int.from_bytes(read_up_to(file, 8, name), "big" if big else "little")
        packed = read_up_to(file, length, name)
        if found != count or len(packed) != length:
            raise damaged(name, f"is cut off in its memory {short(key)}.")
        raw = np.frombuffer(packed, np.uint8).copy()
        contents.place(key, raw, ">" if big else "<")
    file.seek(begin)
    return contents.reader(file).load()

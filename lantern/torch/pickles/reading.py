"""Which of PyTorch's two formats a file has that begins like a pickle."""

import io
from typing import Any

from lantern.errors import EagerError
from lantern.torch.file_format import damaged, read_up_to

__all__ = ["read_pickles"]

_LEGACY = b"\x80\x02\x8a\x0a"  # protocol 2, and a number of ten bytes
_ALL = 1 << 62


def read_pickles(
    f: Any, first: bytes, name: str, map_location: Any, mapped: str | None = None
) -> Any:
    """The object in a file that ``torch.save`` of PyTorch has written.

    Args:
        f: the open file, of which eight bytes have been read.
        first: those.
        name: what an error calls the file.
        map_location: as ``torch.load`` takes it.
        mapped: the path of a file whose memory is mapped, if it is.

    Raises:
        FileFormatError: if it is damaged, or holds more than tensors and plain values.
    """
    # Not before there is such a file: Python's archives import a lot.
    from lantern.torch.pickles.archive import read_archive
    from lantern.torch.pickles.legacy import read_legacy

    if not first.startswith((b"PK", _LEGACY)):
        raise damaged(
            name,
            "is a pickle that torch.save did not write, and could run any program. "
            "Save its tensors by torch.save or safetensors.torch.save_file.",
        )
    if not (isinstance(f, io.BytesIO | io.BufferedReader) and f.seekable()) or (
        f.tell() != len(first)
    ):
        f = io.BytesIO(first + read_up_to(f, _ALL, name))
    size = f.seek(0, io.SEEK_END)
    f.seek(0)
    if first.startswith(b"PK"):
        return read_archive(f, size, name, map_location, mapped)
    if mapped is not None:
        raise EagerError(
            "mmap can only be used with files saved with torch.save in PyTorch 1.6 or "
            "later. Save it anew."
        )
    return read_legacy(f, size, name, map_location)

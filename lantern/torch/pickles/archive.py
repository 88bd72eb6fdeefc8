"""The files that ``torch.save`` writes: an archive of a pickle and the memory it names.

All that is taken from the archive is checked against the size of the file before
anything is allocated; no part of it is ever unpacked to a path.
"""

import io
import mmap
import struct
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lantern.errors import FileFormatError
from lantern.torch.file_format import damaged, short
from lantern.torch.file_reader import record_offset
from lantern.torch.pickles.contents import Contents
from lantern.torch.serialization import LoadEndianness, chosen

__all__ = ["read_archive"]

# What Python's reader raises for an archive that is damaged in one way or another.
_STUMBLES = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, LookupError, ValueError,
    OverflowError, EOFError, struct.error, OSError,
)  # fmt: skip
_LARGEST_PICKLE = 64 << 20
_PIECE = 1 << 20
_ALIGNED = 16


def read_archive(
    file: Any, size: int, name: str, map_location: Any, mapped: str | None = None
) -> Any:
    """The object in an archive.

    Args:
        file: the file, open where the archive begins.
        size: the bytes of the archive.
        name: what an error calls it.
        map_location: as ``torch.load`` takes it.
        mapped: the path of the file, if its memory is to be mapped.

    Raises:
        FileFormatError: if it is damaged, or holds more than tensors and plain values.
    """
    with _undamaged(name):
        opened = zipfile.ZipFile(file)
    with opened:
        archive = _Archive(opened, size, name)
        packed = archive.bytes_of("data.pkl", _LARGEST_PICKLE)
        contents = Contents(name, size, map_location)
        contents.reader(io.BytesIO(packed)).load()
        for key, (*_, length) in contents.announced.items():
            part = f"data/{key}"
            raw = (
                archive.memory(part, length)
                if mapped is None
                else archive.mapped(part, length, mapped)
            )
            contents.place(key, raw, archive.order)
    return contents.reader(io.BytesIO(packed)).load()


@contextmanager
def _undamaged(name: str) -> Iterator[None]:
    """A block in which an archive is read, whose damages are named."""
    try:
        yield
    except FileFormatError:
        raise
    except _STUMBLES as error:
        if str(error).startswith("Bad CRC-32"):
            raise damaged(
                name,
                f"is damaged ({short(str(error))}); or PyTorch has written it without "
                "check sums, or a program into its memory: in that case call "
                "torch.serialization.set_crc32_options(False) first.",
            ) from None
        raise damaged(
            name, f"is cut off, or a damaged archive ({short(str(error))})."
        ) from None


class _Archive:
    """An archive whose parts together are no larger than the file.

    Args:
        archive: the open archive.
        size: the bytes of the file.
        name: what an error calls it.

    Attributes:
        order: in which the bytes of a number are: that of the machine that wrote it.
    """

    def __init__(self, archive: Any, size: int, name: str) -> None:
        self.archive, self.size, self.name = archive, size, name
        entries = archive.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if len(self.entries) < len(entries):
            raise damaged(name, "is an archive with one name twice.")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise damaged(
                    name,
                    f"has {short(entry.filename)} compressed or encrypted, which "
                    "torch.save does not do. Save it anew.",
                )
        # Parts that lie over one another could pretend to be any size.
        if sum(entry.file_size for entry in entries) > size:
            raise damaged(name, "is an archive whose parts are larger than itself.")
        self.folder = self.found_folder()
        if f"{self.folder}/byteorder" in self.entries:
            big = self.bytes_of("byteorder", 100) == b"big"
        else:
            told = chosen("order")
            native = told is LoadEndianness.NATIVE and sys.byteorder == "big"
            big = native or told is LoadEndianness.BIG
        self.order = ">" if big else "<"

    def found_folder(self) -> str:
        """The folder of the archive in which everything is."""
        found = [
            n for n in self.entries if n.count("/") == 1 and n.endswith("/data.pkl")
        ]
        if len(found) != 1:
            raise damaged(
                self.name,
                "is an archive, but none of torch.save: it has no data.pkl. Unpack it.",
            )
        folder = found[0].removesuffix("/data.pkl")
        if f"{folder}/constants.pkl" in self.entries:
            raise damaged(
                self.name,
                "is a TorchScript program, which is not run here. Where PyTorch is "
                "installed, save torch.jit.load(path).state_dict() by torch.save.",
            )
        return folder

    def bytes_of(self, part: str, most: int) -> bytes:
        """A small part of the archive."""
        path = f"{self.folder}/{part}"
        if (size := self.entries[path].file_size) > most:
            raise damaged(self.name, f"has {size} bytes of {short(part)}.")
        return b"".join(self.pieces(self.entries[path]))

    def entry_of(self, part: str, length: int) -> Any:
        """The entry of a large part of the archive, which must have so many bytes."""
        entry = self.entries.get(f"{self.folder}/{part}")
        if entry is None or entry.file_size != length:
            there = "nothing" if entry is None else f"{entry.file_size} bytes"
            raise damaged(
                self.name, f"has {there} where {length} bytes of memory were announced."
            )
        return entry

    def mapped(self, part: str, length: int, path: str) -> Any:
        """The bytes of a large part, read when they are looked at; unchecked."""
        with _undamaged(self.name):
            at = record_offset(self.archive, self.entry_of(part, length))
        if at + length > self.size:
            raise damaged(self.name, f"is cut off in {short(part)}.")
        if not length:
            return np.empty(0, np.uint8)
        shared = chosen("mmap") == getattr(mmap, "MAP_SHARED", None)
        mode: Any = "r+" if shared else "c"
        found = np.memmap(path, np.uint8, mode, at, (length,)).view(np.ndarray)
        return found.copy() if at % _ALIGNED else found  # numbers begin where they may

    def memory(self, part: str, length: int) -> Any:
        """The bytes of a large part of the archive."""
        room, at = np.empty(length, np.uint8), 0
        for found in self.pieces(self.entry_of(part, length)):
            room[at : at + len(found)] = np.frombuffer(found, np.uint8)
            at += len(found)
        if at != length:
            raise damaged(self.name, f"is cut off in {short(part)}.")
        return room

    def pieces(self, entry: Any) -> Iterator[bytes]:
        """The bytes of a part in their order; checked, unless a program leaves it."""
        with _undamaged(self.name):
            if chosen("crc32"):
                with self.archive.open(entry) as opened:
                    while found := opened.read(_PIECE):
                        yield found
                return
            file, left = self.archive.fp, entry.file_size
            file.seek(record_offset(self.archive, entry))
            while left and (found := file.read(min(left, _PIECE))):
                yield found
                left -= len(found)

"""The parts of one of PyTorch's archives, as bytes."""

import struct
import zipfile
from typing import Any

from lantern.errors import FileFormatError

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]

_HEADER = 30  # bytes before the name of a record


_ALIGNED = 64
_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that equal objects give equal files


def entry(kind: Any, name: str, at: int) -> Any:
    """A part of an archive that begins where memory may be mapped."""
    entry = kind(f"archive/{name}", _EPOCH)
    padding = -(at + 30 + len(entry.filename) + 4) % _ALIGNED
    entry.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    return entry


class PyTorchFileReader:
    """An archive that ``torch.save`` has written: its records, by name.

    Args:
        file: a path, or an open file.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> file = io.BytesIO()
        >>> torch.save({"x": torch.ones(2)}, file, format="pytorch")
        >>> reader = torch.PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), len(reader.get_record("data/0"))
        (True, 8)
    """

    def __init__(self, file: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise FileFormatError(
                "PyTorchFileReader failed reading zip archive: failed finding central "
                "directory"
            ) from error
        names = self._archive.namelist()
        self._folder = names[0].partition("/")[0] + "/" if names else ""

    def get_all_records(self) -> list[str]:
        """The names."""
        names = self._archive.namelist()
        return [name.removeprefix(self._folder) for name in names]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of a name."""
        return self._folder + name in self._archive.namelist()

    def get_record(self, name: str) -> bytes:
        """A record."""
        if not self.has_record(name):
            raise FileFormatError(f"PytorchStreamReader: file not found: {name}")
        return self._archive.read(self._folder + name)

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        return record_offset(self._archive, self._archive.getinfo(self._folder + name))


def record_offset(archive: Any, entry: Any) -> int:
    """Where the bytes of a part of an archive begin: after its header and its name."""
    file = archive.fp
    here = file.tell()
    try:
        file.seek(entry.header_offset)
        header = file.read(_HEADER)
    finally:
        file.seek(here)
    if len(header) < _HEADER or header[:4] != b"PK\x03\x04":
        raise FileFormatError("torch.load: the file has a damaged archive (a header).")
    name, extra = struct.unpack("<HH", header[26:])
    return int(entry.header_offset + _HEADER + name + extra)


class PyTorchFileWriter:
    """An archive that is written record by record, whose parts can be mapped.

    Args:
        file: a path, or an open file.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> file = io.BytesIO()
        >>> with torch.PyTorchFileWriter(file) as writer:
        ...     writer.write_record("a", b"bytes", 5)
        >>> torch.PyTorchFileReader(file).get_record("a")
        b'bytes'
    """

    def __init__(self, file: Any) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def __enter__(self) -> "PyTorchFileWriter":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.write_end_of_file()

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write a record: bytes, or a text."""
        file: Any = self._archive.fp
        packed = data.encode() if isinstance(data, str) else bytes(data[:size])
        made = entry(zipfile.ZipInfo, name, file.tell())
        self._archive.writestr(made, packed)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Leave room for a record, whose bytes are written later."""
        self.write_record(name, bytes(size), size)

    def write_end_of_file(self) -> None:
        """Write what ends the archive."""
        self._archive.close()

"""The parts of one of PyTorch's archives, as bytes."""

import zipfile
from typing import Any

from lantern.errors import FileFormatError

__all__ = ["PyTorchFileReader"]


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

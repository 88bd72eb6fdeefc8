"""The one way that files are written: whole, or not at all.

What is written goes to a file of its own beside the path, is brought to the disk, and
then takes the path's place in one step. So a reader finds the old contents or the new
ones, whoever else writes at the time and whenever the program ends.
"""

import contextlib
import os
import secrets
import stat
from typing import Any

from lantern.errors import NotRegularFileError

__all__ = ["write_file"]

_BINARY = getattr(os, "O_BINARY", 0)


def write_file(where: str, place: Any, data: bytes) -> None:
    """Write bytes to a path, or to an open file.

    A file that the path names, also by links, is replaced; its mode stays as it is, and
    if the system allows it, its owner. Other names of the same file (hard links) keep
    the old contents.

    Args:
        where: the function that writes, for an error.
        place: a path, or an open binary file.
        data: what the file shall contain.

    Raises:
        NotRegularFileError: if something else than a file is at the path.
        OSError: if the system refuses.

    Example:
        >>> import os, tempfile
        >>> from lantern.files import write_file
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file("example", os.path.join(folder, "a"), b"new")
        ...     os.listdir(folder)
        ['a']
    """
    if hasattr(place, "write"):
        _write_all(place, data)
        if hasattr(place, "flush"):  # who opens it by its name finds all of it
            place.flush()
        return
    path = os.fsdecode(place)
    target = os.path.realpath(path)
    old = _status(where, path, target)
    beside = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    # What replaces a private file is never open to more readers than that.
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | _BINARY, mode & 0o777)

    try:
        with open(beside, "xb", opener=opened) as file:
            file.write(data)
            file.flush()
            if old is not None:
                _keep_status(file.fileno(), old)
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == beside:
            error.filename = path  # which the caller knows
            error.filename2 = None
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
        raise


def _write_all(file: Any, data: bytes) -> None:
    """Write to an open file; an unbuffered one may take a part at a time."""
    taken = file.write(data)
    while taken is not None and taken < len(data):
        data = data[taken:]
        taken = file.write(data)


def _status(where: str, path: str, target: str) -> os.stat_result | None:
    """What is known of the file at a path, or None if there is none."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotRegularFileError(
            f"{where}: {path} is {kind}, no file whose contents could be replaced. "
            "Choose another path, or hand over an open binary file."
        )
    return found


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def _keep_status(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one that it replaces."""
    if not hasattr(os, "fchown"):
        return
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))

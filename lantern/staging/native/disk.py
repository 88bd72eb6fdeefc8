"""Code kept for later processes: the only file that reads and writes it.

A file is found by what it was made of: for machine code the whole text of the module,
which has no addresses, the processor, LLVM's version and the passes; for rewritten code
the user's, the rewriter and Python's version. It is believed only if it
belongs to the user alone and its digest is right; whatever else is there is not read.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from lantern.errors import LanternError
from lantern.files import write_file

__all__ = ["folder", "key_of", "load", "save"]

MOST_FILES = 2000
"""When there are more, the oldest half goes."""

_MAGIC = b"lantern-jit-1\n"


def folder() -> Path | None:
    """Where code is kept: what LANTERN_JIT_CACHE says; None for nowhere."""
    chosen = os.environ.get("LANTERN_JIT_CACHE")
    if chosen is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        chosen = os.path.join(home, "lantern", "jit")
    if chosen == "off" or not hasattr(os, "getuid"):
        return None
    return _own(chosen)


@cache
def _own(path: str) -> Path | None:
    """A folder that is the user's and no one else's; None if it cannot be that."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
    except OSError:
        return None
    mine = found.st_uid == os.getuid() and not found.st_mode & 0o022
    return Path(path) if mine and stat.S_ISDIR(found.st_mode) else None


def key_of(parts: Iterable[str]) -> str:
    """The name of what is made of some texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(b"%d\n" % len(data) + data)
    return digest.hexdigest()


def load(key: str) -> bytes | None:
    """The code under a name; None if there is none that can be believed."""
    place = folder()
    if place is None:
        return None
    try:
        with open(place / key, "rb") as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.getuid() or found.st_mode & 0o022:
                return None
            whole = file.read()
    except OSError:
        return None
    head, data = whole[: len(_MAGIC) + 32], whole[len(_MAGIC) + 32 :]
    return data if head == _head(key, data) else None


def save(key: str, data: bytes) -> None:
    """Keep code under a name, if there is a place for it."""
    place = folder()
    if place is None:
        return
    with suppress(OSError, LanternError):
        write_file("jit", place / key, _head(key, data) + data)
        os.chmod(place / key, 0o600)
        _make_room(place)


def _head(key: str, data: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(key.encode() + data).digest()


def _make_room(place: Path) -> None:
    names = os.listdir(place)
    if len(names) <= MOST_FILES:
        return
    times = []
    for name in names:
        with suppress(OSError):
            times.append((os.stat(place / name).st_mtime, name))
    for _, name in sorted(times)[: len(times) // 2]:
        with suppress(OSError):
            os.remove(place / name)

"""Shared memory that killed MPI processes have left behind."""

import os
import time
from pathlib import Path

__all__ = ["remove_stale"]

_FOLDER = Path("/dev/shm")


def remove_stale(prefix: str = "mpich_shm_") -> int:
    """Delete the files of this user's that no process has in its memory.

    Returns:
        How many there were.
    """
    if not _FOLDER.is_dir() or not Path("/proc/self/maps").exists():
        return 0
    old = {path for path in _FOLDER.glob(f"{prefix}*") if _is_ours(path)}
    if not old:
        return 0
    used = "".join(_text(path) for path in Path("/proc").glob("[0-9]*/maps"))
    stale = [path for path in old if str(path) not in used]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def _is_ours(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    # What another job is about to take into its memory is new.
    return status.st_uid == os.getuid() and time.time() - status.st_ctime > 0.05


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended, or is another user's
        return ""

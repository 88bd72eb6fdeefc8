"""What the programs that fetch data share: where data are kept, and how they come."""

import hashlib
import io
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class DataError(Exception):
    """Why there are no data, and what to do."""


def home() -> Path:
    """The folder where the data are kept: LANTERN_DATA, or one in the user's cache."""
    named = os.environ.get("LANTERN_DATA")
    return Path(named) if named else Path.home() / ".cache" / "lantern"


def download(url: str, size: int, otherwise: str) -> bytes:
    """A file of the net.

    Args:
        url: where it is.
        size: how many bytes it has.
        otherwise: the option that names one that is here already.
    """
    from tqdm import tqdm

    found = io.BytesIO()
    try:
        with (
            urllib.request.urlopen(url, timeout=60) as answer,
            tqdm(total=size, unit="B", unit_scale=True, disable=None) as bar,
        ):
            while part := answer.read(1 << 16):
                bar.update(found.write(part))
                if found.tell() > size:
                    break  # whatever it is, it is not what was wanted
    except (urllib.error.URLError, OSError) as error:
        raise DataError(
            f"cannot fetch {url}: {error}. Where there is no network, take it from "
            f"elsewhere: {otherwise}."
        ) from None
    return found.getvalue()


def checked(data: bytes, name: str, digest: str) -> bytes:
    """A file, if it is the one that was tried: its SHA-256, or SHA-512, in hex."""
    algorithm = {64: "sha256", 128: "sha512"}[len(digest)]
    if hashlib.new(algorithm, data).hexdigest() != digest:
        raise DataError(
            f"what was fetched is not {name}: {len(data)} bytes, of which the check "
            "sum is another. Try again, or another mirror."
        )
    return data


def write_arrays(path: Path, **arrays: Array) -> Path:
    """Write arrays beside whatever else is in the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)
    part.replace(path)  # at once: another program may be reading
    return path


def read_arrays(path: Path, names: list[str], what: str) -> dict[str, Array]:
    """The arrays of these names that `write_arrays` has written; `what` they are."""
    try:
        with np.load(path) as file:
            return {name: file[name] for name in names}
    except FileNotFoundError:
        program = f"fetch_{path.stem}.py"
        raise DataError(f"no {what} at {path}. Run: python {program}") from None
    except Exception as error:  # a damaged file can make NumPy raise anything
        raise DataError(f"cannot read {path}: {error}. Fetch it again.") from None


@contextmanager
def complaining() -> Iterator[None]:
    """End the program with a line where there are no data."""
    try:
        yield
    except (DataError, OSError, ImportError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(1)

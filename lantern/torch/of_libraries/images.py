"""Pictures in files, by Pillow, as ``torchvision.io`` reads and writes them."""

import io
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from lantern import files
from lantern.errors import EagerError, FileFormatError, MissingExtraError
from lantern.torch.functions.creation import from_numpy
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPERATIONS"]

_MODES = (None, "L", "LA", "RGB", "RGBA")  # as torchvision numbers them


def _pillow(name: str = "Image") -> Any:
    try:
        return import_module(f"PIL.{name}")
    except ImportError:
        raise MissingExtraError(
            "torchvision.io: Pillow reads and writes pictures. pip install pillow."
        ) from None


def read_file(path: str) -> Tensor:
    """The bytes of a file."""
    return from_numpy(np.frombuffer(Path(path).read_bytes(), np.uint8).copy())


def write_file(path: str, data: Tensor) -> Tensor:
    """Write bytes to a file."""
    files.write_file("torchvision.io.write_file", path, data.numpy().tobytes())
    return data


def _decoder(*formats: str) -> Callable[..., Tensor]:
    """What decodes pictures of some formats; of all without any."""

    def decode(
        input: Tensor, mode: int = 0, apply_exif_orientation: bool = False
    ) -> Any:
        pillow = _pillow()
        try:
            picture = pillow.open(
                io.BytesIO(input.numpy().tobytes()), "r", formats or None
            )
            frames, wanted = [picture], _MODES[mode]
            if picture.format == "GIF":
                frames, wanted = _pillow("ImageSequence").Iterator(picture), "RGB"
            if picture.format == "JPEG" and wanted in ("LA", "RGBA"):
                raise EagerError(
                    f"torchvision.io: a JPEG has no transparency: {wanted}"
                )
            found = [_pixels(x, wanted, apply_exif_orientation) for x in frames]
        except (OSError, SyntaxError, ValueError) as e:
            raise FileFormatError(f"torchvision.io: no picture can be read. {e}") from e
        return found[0] if len(found) == 1 else stack(found)

    return decode


def _pixels(picture: Any, mode: Any, turned: bool) -> Tensor:
    """A picture's pixels.

    Shapes:
        result: (channels, height, width)
    """
    if turned:
        picture = _pillow("ImageOps").exif_transpose(picture)
    if picture.mode == "1":
        picture = picture.convert("L")
    deep = picture.mode in ("I", "I;16")  # grey, of two bytes, as Pillow cannot convert
    if mode not in (None, picture.mode) and not deep:
        picture = picture.convert(mode)
    pixels = np.asarray(picture, np.uint16 if deep else None)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if deep and mode not in (None, "L"):
        pixels = np.repeat(pixels, len(mode), axis=2)
        if mode[-1] == "A":
            pixels[..., -1] = 65535
    return from_numpy(np.array(pixels.transpose(2, 0, 1), order="C"))


def _encoder(format: str, setting: str) -> Callable[[Tensor, int], Tensor]:
    def encode(input: Tensor, value: int) -> Tensor:
        pixels = input.numpy()
        if pixels.dtype != np.uint8:
            raise EagerError(
                f"torchvision.io: pixels are bytes, not {pixels.dtype}. "
                "Scale to 255 and use x.to(torch.uint8)."
            )
        if pixels.ndim != 3 or len(pixels) not in (1, 3):
            raise EagerError(
                f"torchvision.io: a picture is (1 or 3, height, width), not "
                f"{pixels.shape}."
            )
        rows = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
        out = io.BytesIO()
        _pillow().fromarray(rows).save(out, format, **{setting: value})
        return from_numpy(np.frombuffer(out.getvalue(), np.uint8).copy())

    return encode


OPERATIONS: dict[str, Any] = {
    "read_file": read_file,
    "write_file": write_file,
    "decode_image": _decoder(),
    "decode_png": _decoder("PNG"),
    "decode_jpeg": _decoder("JPEG"),
    "decode_gif": _decoder("GIF"),
    "decode_webp": _decoder("WEBP"),
    "encode_png": _encoder("PNG", "compress_level"),
    "encode_jpeg": _encoder("JPEG", "quality"),
}

"""Logs that TensorBoard shows: event files, written without TensorFlow.

A file is a row of records: length, checksum, an event in protocol buffers, checksum.
"""

import os
import secrets
import socket
import struct
import time
import warnings
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from lantern.errors import ShapeError
from lantern.torch.run.aliases import lead
from lantern.torch.tensor.tensor import Tensor

__all__ = ["SummaryWriter"]
__path__: list[str] = []

lead(__name__, "writer")


def _table() -> list[int]:
    """For each byte, its part in a CRC-32C (polynomial 0x1EDC6F41, reflected)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def _checksum(data: bytes) -> bytes:
    """The CRC-32C, rotated and moved as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _number(value: int) -> bytes:
    """A whole number, seven bits a byte."""
    value &= 0xFFFFFFFFFFFFFFFF
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _field(number: int, value: Any) -> bytes:
    """A field of a protocol buffer: bytes, a text, a whole number, or a double."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return _number(number << 3 | 2) + _number(len(value)) + value
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 1) + struct.pack("<d", value)


def _array(x: Any) -> Any:
    return x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)


def _png(image: Any) -> bytes:
    """An image of bytes, (height, width, channels), as a PNG file."""
    height, width, channels = image.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image))

    def chunk(name: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + crc

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _bytes_of(image: Any, dataformats: str) -> Any:
    """An image as bytes, (height, width, channels)."""
    image, axes = _array(image), dataformats.upper()
    if image.ndim != len(axes):
        raise ShapeError(
            f"add_image: an image of {image.ndim} axes is no {dataformats}. Name the "
            "axes with dataformats."
        )
    if "C" not in axes:
        image, axes = image[..., None], f"{axes}C"
    image = image.transpose([axes.index(axis) for axis in "HWC"])
    if image.dtype.kind == "f":
        image = np.clip(image * 255, 0, 255)
    return image.astype(np.uint8)


class SummaryWriter:
    """Writes a log for TensorBoard.

    Args:
        log_dir: the folder; ``runs/`` and the time by default.
        comment: what the folder's name ends with, if none was given.
        options: have no effect.

    Example:
        >>> import os, tempfile
        >>> import lantern.torch as torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with torch.utils.tensorboard.SummaryWriter(folder) as writer:
        ...         writer.add_scalar("loss", 0.5, 1)
        ...     os.listdir(folder)[0].startswith("events.out.tfevents.")
        True
    """

    def __init__(self, log_dir: Any = None, comment: str = "", **options: Any) -> None:
        if log_dir is None:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        os.makedirs(self.log_dir, exist_ok=True)
        unique = f"{os.getpid()}.{secrets.token_hex(4)}"
        name = f"events.out.tfevents.{time.time():.6f}.{unique}"
        # A log grows while it is read; so it is no file that replaces another at once.
        self.file = open(os.path.join(self.log_dir, name), "xb")  # noqa: SIM115
        self._write(_field(1, time.time()) + _field(3, "brain.Event:2"))

    def _write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self.file.write(length + _checksum(length) + event + _checksum(event))

    def _add(self, tag: str, value: bytes, step: Any, walltime: Any) -> None:
        summary = _field(1, _field(1, tag) + value)
        now = float(time.time() if walltime is None else walltime)
        self._write(_field(1, now) + _field(2, int(step or 0)) + _field(5, summary))

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: Any = None,
        **options: Any,
    ) -> None:
        """Log a number at a step."""
        value = struct.pack("<f", float(_array(scalar_value).reshape(())))
        self._add(tag, _number(2 << 3 | 5) + value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: Any = None,
        walltime: Any = None,
    ) -> None:
        """Log several numbers at a step."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Any = None,
        walltime: Any = None,
    ) -> None:
        """Log a text at a step."""
        metadata = _field(1, _field(1, "text"))
        shape = _field(2, _field(2, _field(1, 1)))
        tensor = _field(1, 7) + shape + _field(8, text_string)
        value = _field(9, metadata) + _field(8, tensor)
        self._add(f"{tag}/text_summary", value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "auto",
        walltime: Any = None,
        max_bins: Any = None,
    ) -> None:
        """Log how numbers are distributed, at a step."""
        x = _array(values).reshape(-1).astype(float)
        counts, edges = np.histogram(x, 30 if isinstance(bins, str) else bins)
        moments = (x.min(), x.max(), float(x.size), x.sum(), (x * x).sum())
        packed = b"".join(_field(i + 1, float(m)) for i, m in enumerate(moments))
        packed += _field(6, edges[1:].astype("<f8").tobytes())
        packed += _field(7, counts.astype("<f8").tobytes())
        self._add(tag, _field(5, packed), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: Any = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image at a step."""
        image = _bytes_of(img_tensor, dataformats)
        sizes = b"".join(_field(i + 1, int(n)) for i, n in enumerate(image.shape))
        value = _field(4, sizes + _field(4, _png(image)))
        self._add(tag, value, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: Any = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Log several images at a step, side by side."""
        n = dataformats.upper().index("N")
        rest = dataformats[:n] + dataformats[n + 1 :]
        images = [_bytes_of(x, rest) for x in np.moveaxis(_array(img_tensor), n, 0)]
        row = np.concatenate(images, 1)
        self.add_image(tag, row, global_step, walltime, "HWC")

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: Any = None,
    ) -> None:
        """Log a figure of Matplotlib's at a step."""
        import matplotlib.pyplot as plt
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        image = np.asarray(canvas.buffer_rgba())[..., :3]
        self.add_image(tag, image, global_step, walltime, "HWC")
        if close:
            plt.close(figure)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], **options: Any
    ) -> None:
        """Log options as a text, and the numbers that they led to."""
        rows: Iterable[str] = (f"|{k}|{v}|" for k, v in hparam_dict.items())
        self.add_text("hparams", "|option|value|\n|-|-|\n" + "\n".join(rows))
        for tag, value in metric_dict.items():
            self.add_scalar(tag, value)

    def _left_out(self, *args: Any, **options: Any) -> None:
        """Say that this is not logged: a warning, so that training goes on."""
        warnings.warn(
            "SummaryWriter: graphs, embeddings, videos and sounds are not logged",
            stacklevel=2,
        )

    add_graph = add_embedding = add_video = add_audio = add_pr_curve = _left_out

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Let what was logged be in the file."""
        self.file.flush()

    def close(self) -> None:
        """End the log."""
        self.file.close()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

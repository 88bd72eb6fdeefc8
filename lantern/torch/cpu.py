"""The processor, by the names that GPUs have: it is always there, and never waits."""

from typing import Any

from lantern.torch.cuda import Event as Event
from lantern.torch.cuda import Stream as Stream
from lantern.torch.cuda import StreamContext as StreamContext

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream",
    "device_count", "is_available", "is_initialized", "set_device", "stream",
    "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a processor: yes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cpu.is_available(), torch.cpu.device_count()
        (True, 1)
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """1: all cores are one device."""
    return 1


def current_device() -> str:
    """The device's name.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Has no effect: there is one."""


def synchronize(device: Any = None) -> None:
    """Has no effect: what is computed is there."""


def current_stream(device: Any = None) -> Stream:
    """A queue, through which nothing goes."""
    return Stream()


def stream(stream: Any) -> StreamContext:
    """A block without effect."""
    return StreamContext(stream)

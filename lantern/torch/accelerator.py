"""The GPU, by the names that do not say whose: see ``cuda``."""

from typing import Any

from lantern.torch import cuda
from lantern.torch.cuda import device_count as device_count
from lantern.torch.cuda import is_available as is_available
from lantern.torch.cuda import synchronize as synchronize
from lantern.torch.tensor.dtypes import device

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def current_accelerator(check_available: bool = False) -> Any:
    """The kind of device that is fast here; None where there is only the CPU.

    Example:
        >>> import lantern.torch as torch
        >>> torch.accelerator.current_accelerator() in (None, torch.device("cuda"))
        True
    """
    return device("cuda") if is_available() else None


def current_device_index() -> int:
    """The number of the GPU in use."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Use a GPU by its number."""
    cuda.set_device(device)

"""The GPU, by the names that do not say whose: see ``cuda``."""

from typing import Any

from lantern.errors import EagerError
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


def get_device_module(device: Any = None) -> Any:
    """The module of a device: ``torch.cpu`` or ``torch.cuda``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_device_module("cpu") is torch.cpu
        True
    """
    from lantern.torch import cpu

    kind = current_accelerator() if device is None else device
    name = kind if isinstance(kind, str) else getattr(kind, "type", "cpu")
    modules = {"cpu": cpu, "cuda": cuda}
    if name.partition(":")[0] not in modules:
        raise EagerError(f"torch has no module of the device {name!r}")
    return modules[name.partition(":")[0]]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use on a GPU."""
    return cuda.max_memory_allocated(device)


def memory_allocated(device: Any = None) -> int:
    """The bytes in use on a GPU."""
    return cuda.memory_allocated(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """As ``cuda.reset_peak_memory_stats``."""
    cuda.reset_peak_memory_stats(device)


def empty_cache() -> None:
    """As ``cuda.empty_cache``."""
    cuda.empty_cache()

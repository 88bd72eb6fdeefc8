"""GPUs, through CuPy: whether there are any."""

from typing import Any

from lantern.errors import MissingExtraError
from lantern.tensor.namespace import find_device

__all__ = ["current_device", "device_count", "is_available"]


def device_count() -> int:
    """How many GPUs there are."""
    try:
        library, _ = find_device("cuda")
        count: int = library.module.cuda.runtime.getDeviceCount()
    except Exception as error:
        if (
            isinstance(error, MissingExtraError)
            or "cuda" in type(error).__name__.lower()
        ):
            return 0
        raise
    return count


def is_available() -> bool:
    """Whether there is a GPU, and CuPy to use it."""
    return device_count() > 0


def current_device() -> int:
    """The number of the GPU in use."""
    library, _ = find_device("cuda")
    number: int = library.module.cuda.runtime.getDevice()
    return number


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done all that it was given."""
    if is_available():
        find_device("cuda")[0].module.cuda.runtime.deviceSynchronize()


def manual_seed(seed: int) -> None:
    """Has no effect: random numbers are drawn on the CPU."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Let the memory pool of the GPU go."""
    if is_available():
        find_device("cuda")[0].module.get_default_memory_pool().free_all_blocks()

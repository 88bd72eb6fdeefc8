"""What the library was built with: ``torch.__config__``."""

import numpy as np

from lantern.torch.settings import get_num_threads
from lantern.torch.version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What does the arithmetic, as text.

    Example:
        >>> import lantern.torch as torch
        >>> torch.__config__.show().splitlines()[0]
        'lantern.torch built with:'
    """
    return f"lantern.torch built with:\n  - NumPy {np.__version__}\n  - {__version__}\n"


def parallel_info() -> str:
    """How many threads compute, as text.

    Example:
        >>> import lantern.torch as torch
        >>> torch.__config__.parallel_info().startswith("ATen/Parallel:")
        True
    """
    threads = get_num_threads()
    return f"ATen/Parallel:\n\tat::get_num_threads() : {threads}\n"

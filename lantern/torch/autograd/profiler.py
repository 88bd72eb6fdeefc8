"""Blocks that PyTorch measures: here they have a name, and a time."""

import importlib
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["record_function"]


class record_function:
    """A block, or a decorator, that has a name.

    Args:
        name: the name.
        args: has no effect.

    Attributes:
        seconds: how long the block took, once it is over.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.autograd.profiler.record_function("forward") as block:
        ...     pass
        >>> block.seconds < 1
        True
    """

    def __init__(self, name: str, args: Any = None) -> None:
        self.name, self.seconds = name, 0.0

    def __enter__(self) -> Any:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.seconds = time.perf_counter() - self.start

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function inside such a block."""

        @wraps(function)
        def inside(*args: Any, **options: Any) -> Any:
            with type(self)(self.name):
                return function(*args, **options)

        return inside


def __getattr__(name: str) -> Any:
    """``profile``, when it is asked for."""
    if name in ("profile", "emit_nvtx"):
        return importlib.import_module("lantern.torch.profiler").profile
    raise AttributeError(f"module 'torch.autograd.profiler' has no attribute {name!r}")

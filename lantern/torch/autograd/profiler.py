"""Blocks that PyTorch measures: here they have a name, and a time."""

import importlib
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["record_function"]


# The profiles that are being taken, which hear of operations between processes.
running: list[Any] = []


class Event:
    """A block with a name, or an operation between processes, as a profile lists it.

    Attributes:
        name: the block's; what carried the data, and the operation: "gloo:all_reduce".
        input_shapes: the shapes of its tensors.
        cpu_time: seconds; 0 for an operation between processes: nothing waits for it.
    """

    count, is_async, cpu_time, device_type = 1, True, 0.0, None

    def __init__(self, name: str, input_shapes: list[list[int]]) -> None:
        self.name = self.key = name
        self.input_shapes = input_shapes


def note(name: str, tensors: Any) -> None:
    """Let the profiles list an operation between processes."""
    shapes = [
        [*x.shape, 2] if x.is_complex() else list(x.shape)
        for x in tensors or ()
        if hasattr(x, "is_complex")
    ]
    for found in running:
        found.function_events.append(Event(name, shapes))


class EventList(list[Any]):
    """Events in a row."""


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
        for found in running:
            event = Event(self.name, [])
            event.cpu_time = self.seconds
            found.function_events.append(event)

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

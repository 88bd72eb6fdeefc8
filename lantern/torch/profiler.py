"""Times of a program's parts: Python's profiler under PyTorch's names."""

import cProfile
import io
import pstats
from enum import Enum
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.autograd.profiler import record_function as record_function
from lantern.torch.autograd.profiler import running

__all__ = ["ProfilerActivity", "profile", "record_function", "schedule"]


class ProfilerAction(Enum):
    """What a schedule says of a step.

    Example:
        >>> ProfilerAction.RECORD.name
        'RECORD'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(Enum):
    """What is measured: the CPU, whatever is asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU = 0
    CUDA = 1
    XPU = 2


class profile:
    """A block whose functions are timed.

    Args:
        options: have no effect, but for ``on_trace_ready``, which is called at the end,
            and ``enabled``.

    Example:
        >>> import lantern.torch as torch
        >>> kinds = [torch.profiler.ProfilerActivity.CPU]
        >>> with torch.profiler.profile(activities=kinds) as found:
        ...     _ = torch.ones(2) + 1
        >>> "function calls" in found.key_averages().table(row_limit=3)
        True
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.inner = cProfile.Profile()
        self.ready = options.get("on_trace_ready")
        self.enabled = options.get("enabled", True)
        self.step_num = 0
        self.function_events: list[Any] = []

    def start(self) -> None:
        """Begin to measure."""
        if self.enabled:
            running.append(self)
            self.inner.enable()

    def stop(self) -> None:
        """End it."""
        self.inner.disable()
        if self in running:
            running.remove(self)
        if self.ready is not None:
            self.ready(self)

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def events(self) -> list[Any]:
        """The operations between processes."""
        return self.function_events

    def step(self) -> None:
        """Say that a step is over."""
        self.step_num += 1

    def key_averages(self, *args: Any, **options: Any) -> "profile":
        """The measurements."""
        return self

    def table(self, sort_by: Any = None, row_limit: int = 100, **options: Any) -> str:
        """The functions that took longest, as a text."""
        text = io.StringIO()
        order = "tottime" if "self" in str(sort_by) else "cumulative"
        pstats.Stats(self.inner, stream=text).sort_stats(order).print_stats(row_limit)
        return text.getvalue()

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: Any) -> None:
        """Raise: calls are counted here, not put in a row."""
        raise MissingRuleError(
            "export_chrome_trace: no trace is kept. Print key_averages().table()."
        )

    export_stacks = export_chrome_trace


def schedule(**options: Any) -> Any:
    """Which steps to measure: all of them.

    Example:
        >>> import lantern.torch as torch
        >>> options = {"schedule": torch.profiler.schedule(wait=1, warmup=1, active=2)}
        >>> with torch.profiler.profile(**options) as found:
        ...     found.step()
    """
    return lambda step: None


def tensorboard_trace_handler(dir_name: Any, *args: Any, **options: Any) -> Any:
    """What is to be done with measurements: nothing, they can be printed."""
    return lambda found: None


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: no.

    Example:
        >>> kineto_available()
        False
    """
    return False

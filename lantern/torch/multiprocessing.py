"""Python's ``multiprocessing``, with tensors in memory that processes share.

Processes are forked, so that they find Lantern in place of PyTorch, and the memory of
what ``share_memory_`` was said of is theirs as well.
"""

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

from lantern.errors import EagerError

__all__ = ["get_context", "set_start_method", "spawn", "start_processes"]

_can_fork = "fork" in multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("fork" if _can_fork else None)


class ProcessRaisedException(EagerError):  # noqa: N818 (PyTorch's name)
    """A process that was started by ``spawn`` has raised."""


def get_context(method: str | None = None) -> Any:
    """What starts processes: by forking, whatever is asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.multiprocessing.get_context("fork").get_start_method()
        'fork'
    """
    if method not in (None, "fork"):
        warnings.warn(
            f"torch.multiprocessing: processes are forked, not started by {method!r}",
            stacklevel=3,
        )
    return _context


def set_start_method(method: str, force: bool = False) -> None:
    """Say how processes start: they are forked, whatever is said.

    Example:
        >>> import lantern.torch as torch
        >>> torch.multiprocessing.set_start_method("fork")
    """
    get_context(method)


def get_start_method(allow_none: bool = False) -> str:
    """How processes start."""
    return "fork"


def get_all_start_methods() -> list[str]:
    """How processes can start."""
    return ["fork"]


def get_all_sharing_strategies() -> set[str]:
    """How memory is shared."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """How memory is shared."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Has no effect: memory is shared by forking."""


def _numbered(function: Callable[..., Any], i: int, args: Any) -> None:
    function(i, *args)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "fork",
) -> Any:
    """Call a function with a number and arguments in several processes.

    Args:
        fn: the function.
        args: what it takes after the number.
        nprocs: how many processes.
        join: whether to wait for them.
        daemon: whether they end with this one.
        start_method: has no effect: they are forked.

    Raises:
        RuntimeError: if one of them fails.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(3).share_memory_()
        >>> def work(i, x):
        ...     x[i] = 10 * i
        >>> torch.multiprocessing.start_processes(work, args=(x,), nprocs=3)
        >>> x
        tensor([ 0., 10., 20.])
    """
    processes = [
        _context.Process(target=_numbered, args=(fn, i, args), daemon=daemon)
        for i in range(nprocs)
    ]
    for process in processes:
        process.start()
    if not join:
        return processes
    for i, process in enumerate(processes):
        process.join()
        if process.exitcode:
            for other in processes:
                other.terminate()
            raise ProcessRaisedException(
                f"process {i} terminated with exit code {process.exitcode}"
            )
    return None


spawn = start_processes


def __getattr__(name: str) -> Any:
    """What Python has: ``Process``, ``Queue``, ``Pool`` and the rest."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_context if hasattr(_context, name) else multiprocessing, name)

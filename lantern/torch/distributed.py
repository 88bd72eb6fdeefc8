"""Several processes that train together: there is one here, and nothing to talk to."""

from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.run.aliases import absent

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Whether processes can train together: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Whether processes train together: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributed.is_initialized()
        False
    """
    return False


is_nccl_available = is_mpi_available = is_gloo_available = is_available
is_torchelastic_launched = is_available


def _absent(name: str) -> Any:
    def function(*args: Any, **options: Any) -> Any:
        raise MissingRuleError(
            f"torch.distributed.{name}: lantern.torch trains in one process. Ask "
            "torch.distributed.is_available() first, or start the script without a "
            "launcher."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises: there is one process."
    return function


# What can be imported, for programs that call it in several processes only.
globals().update(
    {
        name: _absent(name)
        for name in (
            "all_gather all_gather_object all_reduce all_to_all barrier broadcast "
            "destroy_process_group gather get_backend get_rank get_world_size "
            "init_process_group irecv isend new_group recv reduce reduce_scatter "
            "scatter send"
        ).split()
    }
)
globals().update(absent(__name__, {"nn": "there is one process here."}))

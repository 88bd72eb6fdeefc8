"""Modes that would see PyTorch's inner operations: there are none here."""

from typing import Any

from lantern.errors import MissingRuleError

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """A block that would see each inner operation: it cannot be entered.

    Raises:
        NotImplementedError: when it is entered.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> Any:
        raise MissingRuleError(
            f"{type(self).__name__}: operations are not divided into PyTorch's inner "
            "ones here, which a mode could see."
        )

    def __exit__(self, *exception: Any) -> None:
        """Never reached."""


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is made of others and can be taken apart into them.

    Example:
        >>> import lantern.torch as torch
        >>> is_traceable_wrapper_subclass(torch.ones(1))
        False
    """
    kind = type(t)
    return hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether there is such a block: no."""
    return False


def _get_current_dispatch_mode() -> None:
    """None: there is none."""


def _len_torch_dispatch_stack() -> int:
    """0: there are none."""
    return 0

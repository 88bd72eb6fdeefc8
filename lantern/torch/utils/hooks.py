"""Handles of hooks, where PyTorch has them."""

from typing import Any

from lantern.torch.tensor.nodes import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """A hook as it is: what is saved never holds hooks here.

    Example:
        >>> from lantern.torch.utils.hooks import unserializable_hook
        >>> unserializable_hook(abs) is abs
        True
    """
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Nothing: hooks are not saved."""

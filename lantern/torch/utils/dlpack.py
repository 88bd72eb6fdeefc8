"""The memory of tensors for other libraries, where PyTorch has it."""

from typing import Any

from lantern.torch.functions.creation import from_dlpack as from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """The memory of a tensor, as others take it.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.utils.dlpack import from_dlpack
        >>> from_dlpack(torch.ones(2))
        tensor([1., 1.])
    """
    return tensor.__dlpack__()

"""Small functions that libraries take from PyTorch's inside."""

from typing import Any

from lantern.errors import SizeError
from lantern.torch.functions.table import FUNCTIONS

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Any) -> Any:
    """Several tensors in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch._utils._flatten_dense_tensors([torch.ones(1), torch.zeros(1, 2)])
        tensor([1., 0., 0.])
    """
    return FUNCTIONS["cat"]([x.reshape(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Parts of a row, in the shapes of several tensors.

    Example:
        >>> import lantern.torch as torch
        >>> torch._utils._unflatten_dense_tensors(torch.ones(3), [torch.ones(1, 3)])
        (tensor([[1., 1., 1.]]),)
    """
    parts = flat.split([x.numel() for x in tensors])
    return tuple(part.view_as(x) for part, x in zip(parts, tensors, strict=True))


def _get_device_index(
    device: Any, optional: bool = False, allow_cpu: Any = False
) -> int:
    """The number of a device; -1 for the CPU."""
    index = device if isinstance(device, int) else getattr(device, "index", None)
    return -1 if index is None else index


class ExceptionWrapper:
    """An error of another process, with its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import sys
        import traceback

        kind, error, frames = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, frames))

    def reraise(self) -> None:
        """Raise the error here."""
        kind: Any = self.exc_type
        raise kind(f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}")


def _get_available_device_type() -> str | None:
    """The kind of the fast device; None where there is none."""
    from lantern.torch.accelerator import current_accelerator

    found = current_accelerator()
    return found and str(found.type)


def _get_device_module(device_type: str) -> Any:
    """What one asks a kind of device."""
    from lantern.torch.accelerator import get_device_module

    return get_device_module(device_type)


def _assert(condition: Any, message: str) -> None:
    """Raise ``AssertionError`` with a message unless a condition holds."""
    if not condition:
        raise SizeError(message)  # of shapes, where libraries call it


def _element_size(dtype: Any) -> int:
    """How many bytes an element of a type takes."""
    return int(dtype.itemsize)

"""Lets einops know this room's tensors, as ``tensor/einops_backend`` does arrays."""

import sys
from typing import Any

from lantern.imported import once_imported
from lantern.torch.tensor.tensor import Tensor

__all__ = ["watch"]


def watch() -> None:
    """Let einops know tensors, as soon as there is einops."""
    once_imported("einops._backends", _register)


def _register(backends: Any) -> None:
    class Backend(backends.TorchBackend):
        """What einops calls by PyTorch's names."""

        framework_name = "lantern.torch"

        def __init__(self) -> None:
            self.torch = sys.modules[self.framework_name]

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

    _kept.append(Backend)


_kept: list[Any] = []

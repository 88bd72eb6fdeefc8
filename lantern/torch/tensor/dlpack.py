"""The memory of tensors for other libraries: DLPack."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.torch.tensor.tensor import Tensor


def exported(self: Tensor, **options: Any) -> Any:
    """The memory of a tensor as DLPack has it."""
    plain = base(self)
    on_host = isinstance(plain, np.ndarray | np.generic)
    return (self.numpy() if on_host or self.requires_grad else plain).__dlpack__(
        **options
    )


def device_of(self: Tensor) -> Any:
    """Where that memory lies."""
    plain = base(self)
    plain = np.asarray(plain) if isinstance(plain, np.generic) else plain
    return plain.__dlpack_device__()


METHODS = {"__dlpack__": exported, "__dlpack_device__": device_of}

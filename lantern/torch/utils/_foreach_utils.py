"""Lists of tensors by device and type, where libraries of optimisers look for it."""

from lantern.torch.functions.foreach import group_by_type
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = ["_group_tensors_by_device_and_dtype"]

_group_tensors_by_device_and_dtype = group_by_type
_foreach_supported_types = [Tensor, Parameter]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Where lists are computed at once: nowhere here."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices
_device_has_foreach_support = _has_foreach_support = lambda *args: False

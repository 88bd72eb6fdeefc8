"""Models on several devices: one device does it all here."""

from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.nn.module import Module
from lantern.torch.nn.normalisation import _BatchNorm

__all__ = ["DataParallel", "DistributedDataParallel", "SyncBatchNorm"]


class DataParallel(Module):
    """A model in a wrapper, which calls it as it is, as PyTorch does on one device.

    Args:
        module: the model.
        device_ids: has no effect.
        output_device: has no effect.
        dim: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
        >>> [name for name, _ in model.named_parameters()]
        ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids = device_ids or []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """As the model."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """A model that several processes train: there are none here."""

    def __init__(self, module: Any, *args: Any, **options: Any) -> None:
        raise MissingRuleError(
            "DistributedDataParallel: lantern.torch trains in one process. Use the "
            "model itself where torch.distributed.is_initialized() is False."
        )


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, *args: Any, **options: Any
) -> Any:
    """A call of a model with one input or a tuple of them."""
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)


class SyncBatchNorm(_BatchNorm):
    """As ``BatchNorm1d`` and its kin: the batch of one process is the whole batch.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).eval()
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """

    dims = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """A model as it is: its layers see the whole batch."""
        return module

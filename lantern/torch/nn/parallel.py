"""Models on several devices, of which there is one here, and in several processes."""

from typing import Any

from lantern.torch.nn.module import Module
from lantern.torch.nn.normalisation import BatchNorm
from lantern.torch.run.aliases import lead, missing
from lantern.torch.tensor.tensor import Tensor
from lantern.torch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["DataParallel", "SyncBatchNorm"]

__path__: list[str] = []


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


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, *args: Any, **options: Any
) -> Any:
    """A call of a model with one input or a tuple of them."""
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)


class SyncBatchNorm(BatchNorm):
    """As ``BatchNorm1d`` and its kin, by the moments of all processes' batches.

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the share of a new batch in the running moments.
        affine: whether there are a weight and a bias.
        track_running_stats: whether there are running moments.
        process_group: of which processes.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).eval()
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """

    dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, **options
        )
        self.process_group = process_group

    def forward(self, input: Any) -> Any:
        """The normalised tensor."""
        group = self._several()
        if group is None or not (self.training or self.running_mean is None):
            return super().forward(input)
        from lantern.torch.distributed.nn.functional import all_reduce

        self._check(input)
        axes = [d for d in range(input.dim()) if d != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        own = input.numel() // input.shape[1]
        count = all_reduce(input.new_full((1,), own), group=group)
        mean = all_reduce(input.sum(axes), group=group) / count
        centred = input - mean.reshape(shape)
        variance = all_reduce((centred * centred).sum(axes), group=group) / count
        share = self._share()
        if self.training and self.running_mean is not None:
            unbiased = variance.detach() * (count / (count - 1).clamp(min=1))
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_(unbiased, share)
        result = centred * (variance + self.eps).rsqrt().reshape(shape)
        if self.weight is None:
            return result
        return result * self.weight.reshape(shape) + self.bias.reshape(shape)

    def _several(self) -> Any:
        """The group, if it has several processes."""
        from lantern.torch.distributed import groups

        if not groups.is_initialized():
            return None
        group = groups.chosen(self.process_group)
        return group if group is not None and group.size() > 1 else None

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """A model in which every ``BatchNorm`` layer is one of these."""
        made = module
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for name in ("weight", "bias"):
                made._parameters[name] = module._parameters[name]
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made._buffers[name] = module._buffers[name]
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """The parts of tensors, one for each device, along an axis.

    Args:
        inputs: a tensor, or a structure of them.
        target_gpus: the devices; here all are one, and only their number counts.
        dim: the axis.

    Example:
        >>> import lantern.torch as torch
        >>> [len(part) for part in torch.nn.parallel.scatter(torch.ones(5), [0, 1])]
        [3, 2]
    """
    n = len(target_gpus)
    leaves, spec = tree_flatten(inputs)
    parts = [x.chunk(n, dim) if isinstance(x, Tensor) else (x,) * n for x in leaves]
    return [tree_unflatten(row, spec) for row in zip(*parts, strict=False)]


def __getattr__(name: str) -> Any:
    """What several processes train, imported when it is asked for."""
    if name == "DistributedDataParallel":
        from lantern.torch.distributed.data_parallel import DistributedDataParallel

        return DistributedDataParallel
    raise missing("module 'torch.nn.parallel'", name, globals())


lead(__name__, "distributed data_parallel parallel_apply replicate scatter_gather")

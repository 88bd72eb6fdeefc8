"""Layers that bring their input to mean 0 and variance 1."""

import warnings
from typing import Any

from lantern.errors import OptionError
from lantern.torch.functions.creation import tensor, zeros
from lantern.torch.nn import functional as F
from lantern.torch.nn import init
from lantern.torch.nn.functional.normalisation import count_one_more
from lantern.torch.nn.linear import weights
from lantern.torch.nn.module import Module
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import I64
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "RMSNorm",
]  # fmt: skip


class _Affine(Module):
    """A weight that starts as 1, and a bias that starts as 0; or neither."""

    weight: Any
    bias: Any

    def _add(
        self, shape: Any, affine: bool, bias: bool, dtype: Any, device: Any
    ) -> None:
        options = {"dtype": dtype, "device": device}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(
                name, weights(*shape, **options) if wanted else None
            )

    def reset_parameters(self) -> None:
        """1 for the weight, 0 for the bias."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalised over the last axes.

    Args:
        normalized_shape: the lengths of these axes.
        eps: is added to the variance.
        elementwise_affine: whether there are a weight and a bias.
        bias: whether there is a bias.
        device: where the parameters shall lie.
        dtype: their type.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.LayerNorm(3, elementwise_affine=False)
        >>> layer(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[-1.2247,  0.0000,  1.2247]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        one = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if one else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add(self.normalized_shape, elementwise_affine, bias, dtype, device)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised tensor."""
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """The lengths."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """The tensor over its root mean square along the last axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.RMSNorm(2, elementwise_affine=False)(torch.tensor([[3.0, 4.0]]))
        tensor([[0.8485, 1.1314]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        one = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if one else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = None
        if elementwise_affine:
            made = weights(*self.normalized_shape, dtype=dtype, device=device)
        self.register_parameter("weight", made)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised tensor."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The lengths."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class CrossMapLRN2d(Module):
    """An older LocalResponseNorm: an even size counts as one less, channel 0 stays.

    As PyTorch has it, the squares of channel 0 count for all channels that come after
    those that see it; the gradient is the derivative of just that.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.CrossMapLRN2d(1, alpha=1.0, beta=1.0)
        >>> layer(torch.ones(1, 3, 1, 1)).flatten()
        tensor([0.5000, 0.3333, 0.3333])
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """The tensor over a power of the sum of squares of the channels around each."""
        if input.dim() != 4:
            raise OptionError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead."
            )
        n = (self.size + 1) // 2
        squares = input * input
        around = F.pad(squares, (0, 0, 0, 0, n - 1, n - 1)).unfold(1, 2 * n - 1, 1)
        sums = around.sum(-1) + F.pad(
            squares[:, :1].expand(-1, max(input.shape[1] - n, 0), -1, -1),
            (0, 0, 0, 0, min(n, input.shape[1]), 0),
        )
        return input / (sums * (self.alpha / self.size) + self.k) ** self.beta

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class GroupNorm(_Affine):
    """Normalised over groups of channels.

    Args:
        num_groups: how many groups there are.
        num_channels: how many channels.
        eps: is added to the variance.
        affine: whether there are a weight and a bias.
        device: where the parameters shall lie.
        dtype: their type.
        bias: whether there is a bias.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.GroupNorm(2, 4, affine=False)(torch.tensor([[1.0, 3.0, 5.0, 9.0]]))
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise OptionError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._add((num_channels,), affine, bias, dtype, device)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised tensor."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}, bias={self.bias is not None}"
        )


class _Running(_Affine):
    """With moments that follow those of the batches."""

    dims: tuple[int, ...]
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add((num_features,), affine, bias, dtype, device)
        names = ("running_mean", "running_var", "num_batches_tracked")
        made: list[Any] = [None] * 3
        if track_running_stats:
            made = [
                zeros(num_features, dtype=dtype, device=device) for _ in range(2)
            ] + [tensor(0, dtype=I64, device=device)]
        for name, x in zip(names, made, strict=True):
            self.register_buffer(name, x)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """1 for the weight, 0 for the bias, and the moments of the beginning."""
        self.reset_running_stats()
        super().reset_parameters()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        """Take values; before version 2, a state had no number of batches."""
        key = f"{prefix}num_batches_tracked"
        old = local_metadata.get("version") or 1
        if old < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _check(self, input: Tensor) -> None:
        ndim = base(input).ndim
        if ndim not in self.dims:
            wanted = " or ".join(f"{d}D" for d in self.dims)
            raise OptionError(f"expected {wanted} input (got {ndim}D input)")

    def _share(self) -> float:
        """How far the running moments follow this batch."""
        tracks = self.training and self.track_running_stats
        if tracks and self.num_batches_tracked is not None:
            count_one_more(self.num_batches_tracked)
            if self.momentum is None:
                return 1 / float(self.num_batches_tracked)
        return 0.0 if self.momentum is None else self.momentum

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(_Running):
    """Normalised by the moments of the batch, or by the running ones."""

    def forward(self, input: Tensor) -> Tensor:
        """The normalised tensor."""
        self._check(input)
        share = self._share()
        by_batch = self.training or self.running_mean is None
        follow = self.training and self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if follow or not by_batch else None,
            self.running_var if follow or not by_batch else None,
            self.weight,
            self.bias,
            by_batch,
            share,
            self.eps,
        )


class BatchNorm1d(BatchNorm):
    """Normalised over a batch of rows or sequences.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.BatchNorm1d(1, affine=False)
        >>> layer(torch.tensor([[1.0], [3.0]])).flatten()
        tensor([-1.0000,  1.0000])
        >>> layer.running_mean
        tensor([0.2000])
    """

    dims = (2, 3)


class BatchNorm2d(BatchNorm):
    """Normalised over a batch of images.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.BatchNorm2d(3).eval()
        >>> layer(torch.ones(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])
        >>> layer.num_batches_tracked
        tensor(0)
    """

    dims = (4,)


class BatchNorm3d(BatchNorm):
    """Normalised over a batch of volumes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
        torch.Size([2, 3, 4, 4, 4])
    """

    dims = (5,)


class InstanceNorm(_Running):
    """Each example normalised by its own moments."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
            device,
            dtype,
            bias=bias,
        )

    def forward(self, input: Tensor) -> Tensor:
        """The normalised tensor."""
        self._check(input)
        single = base(input).ndim == self.dims[0]
        self._check_channels(input, 0 if single else 1)
        z = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return z.squeeze(0) if single else z

    def _get_no_batch_dim(self) -> int:
        """How many axes there are without a batch."""
        return self.dims[0]

    def _check_channels(self, input: Tensor, axis: int) -> None:
        found = base(input).shape[axis]
        if found == self.num_features:
            return
        if self.affine:
            raise OptionError(
                f"expected input's size at dim={axis} to match num_features "
                f"({self.num_features}), but got: {found}."
            )
        warnings.warn(
            f"input's size at dim={axis} does not match num_features, which is not "
            f"used because affine=False.",
            stacklevel=4,
        )


class InstanceNorm1d(InstanceNorm):
    """Each sequence normalised by its own moments.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.InstanceNorm1d(2)(torch.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """

    dims = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """Each image normalised by its own moments.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])
    """

    dims = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """Each volume normalised by its own moments.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
        torch.Size([2, 3, 4, 4, 4])
    """

    dims = (4, 5)

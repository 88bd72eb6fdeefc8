"""Layers of weights: linear and bilinear maps; tensors reshaped."""

import math
from typing import Any

from lantern.torch.functions.creation import empty
from lantern.torch.nn import functional as F
from lantern.torch.nn import init
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "Bilinear", "Flatten", "Identity", "Linear", "PReLU", "Softmax2d", "Unflatten",
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


def weights(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter whose values are still to be set."""
    return Parameter(empty(shape, dtype=dtype, device=device))


class Identity(Module):
    """What comes in goes out; arguments are ignored.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Identity()(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """``x @ weight.T + bias``.

    Args:
        in_features: the length of the last axis of the input.
        out_features: the length of the last axis of the result.
        bias: whether there is a bias.
        device: where the parameters shall lie.
        dtype: their type.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(3, 2)
        >>> layer(torch.ones(4, 3)).shape
        torch.Size([4, 2])
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = weights(out_features, in_features, dtype=dtype, device=device)
        if bias:
            self.bias = weights(out_features, dtype=dtype, device=device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform draws, within ``1 / sqrt(in_features)``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The linear map of the last axis."""
        own = self.__dict__["_parameters"]
        try:
            return F.linear(input, own["weight"], own["bias"])
        except KeyError:  # computed from others: see ``nn.utils.parametrize``
            return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each feature k of the result.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Bilinear(3, 4, 2)
        >>> layer(torch.ones(5, 3), torch.ones(5, 4)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        options = {"dtype": dtype, "device": device}
        self.weight = weights(out_features, in1_features, in2_features, **options)
        if bias:
            self.bias = weights(out_features, **options)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform draws, within ``1 / sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.in1_features)
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The bilinear map of the last axes."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Axes joined to one; by default all but the first.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Flatten()(torch.ones(5, 2, 3)).shape
        torch.Size([5, 6])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with joined axes."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """An axis split into several.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Unflatten(1, (2, 3))(torch.ones(5, 6)).shape
        torch.Size([5, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with the axis split."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The axis and its lengths."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PReLU(Module):
    """x, and a learned part of it where it is negative.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.PReLU()
        >>> layer(torch.tensor([-2.0, 2.0])).tolist()
        [-0.5, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = weights(num_parameters, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The same slope for all."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes there are."""
        return f"num_parameters={self.num_parameters}"


class Softmax2d(Module):
    """``softmax`` over the channels of images.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Softmax2d()(torch.zeros(1, 4, 1, 1)).flatten()
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Each channel's share."""
        return F.softmax(input, -3)


class Upsample(Module):
    """Images of another size.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: Any = None,
        recompute_scale_factor: Any = None,
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        if isinstance(scale_factor, tuple | list):
            scale_factor = tuple(map(float, scale_factor))
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        self.scale_factor = scale_factor
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The images in the other size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The size and the mode."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images of another size, by the nearest pixels.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Images of another size, between the nearest pixels.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.UpsamplingBilinear2d((1, 3))(torch.tensor([[[[0.0, 2.0]]]]))
        tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)

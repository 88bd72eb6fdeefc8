"""Layers of convolutions and of their transposes; padding."""

import math
from typing import Any

from lantern.errors import OptionError
from lantern.torch.nn import functional as F
from lantern.torch.nn import init
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.linear import weights
from lantern.torch.nn.module import Module
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d",
]  # fmt: skip


_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What convolutions and their transposes share."""

    axes: int
    padding: Any
    transposed = False
    output_padding: Any = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups < 1:
            raise OptionError("groups must be a positive integer")
        if in_channels % groups:
            raise OptionError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise OptionError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = each(kernel_size, self.axes)
        self.stride, self.dilation = each(stride, self.axes), each(dilation, self.axes)
        self.padding = padding if isinstance(padding, str) else each(padding, self.axes)
        if isinstance(padding, str) and padding not in ("valid", "same"):
            raise OptionError(
                f"Invalid padding string {padding!r}, should be one of 'valid', 'same'"
            )
        if padding == "same" and max(self.stride) > 1:
            raise OptionError(
                "padding='same' is not supported for strided convolutions"
            )
        if padding_mode not in _MODES:
            raise OptionError(
                f"padding_mode must be one of {_MODES}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.groups, self.padding_mode = groups, padding_mode
        first, second = out_channels, in_channels // groups
        if self.transposed:
            first, second = in_channels, out_channels // groups
        self.weight = weights(
            first, second, *self.kernel_size, dtype=dtype, device=device
        )
        if bias:
            self.bias = weights(out_channels, dtype=dtype, device=device)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform draws, within 1 over the root of the inputs of one result."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        inputs = init._fans(self.weight)[0]
        if self.bias is not None and inputs:
            bound = 1 / math.sqrt(inputs)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and what is not as usual."""
        one, zero = (1,) * self.axes, (0,) * self.axes
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != zero:
            parts.append(f"padding={self.padding}")
        if self.dilation != one:
            parts.append(f"dilation={self.dilation}")
        if self.transposed and self.output_padding != zero:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Plain(_Convolution):
    """A convolution."""

    def forward(self, input: Tensor) -> Tensor:
        """The products of the weights with each window."""
        function = getattr(F, f"conv{self.axes}d")
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            both = [n for sides in reversed(self._sides()) for n in sides]
            input, padding = F.pad(input, both, mode=self.padding_mode), 0
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
        )

    def _sides(self) -> list[tuple[int, int]]:
        """The padding before and behind, for each axis."""
        if self.padding == "valid":
            return [(0, 0)] * self.axes
        if self.padding == "same":
            totals = [
                d * (k - 1)
                for d, k in zip(self.dilation, self.kernel_size, strict=True)
            ]
            return [(t // 2, t - t // 2) for t in totals]
        return [(p, p) for p in self.padding]


class Conv1d(_Plain):
    """A convolution along one axis, (n, channels, length).

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Conv1d(2, 4, 3, padding=1)(torch.ones(1, 2, 9)).shape
        torch.Size([1, 4, 9])
    """

    axes = 1


class Conv2d(_Plain):
    """A convolution of images, (n, channels, height, width).

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Conv2d(1, 4, kernel_size=3, stride=2)
        >>> layer(torch.ones(8, 1, 28, 28)).shape
        torch.Size([8, 4, 13, 13])
        >>> layer
        Conv2d(1, 4, kernel_size=(3, 3), stride=(2, 2))
    """

    axes = 2


class Conv3d(_Plain):
    """A convolution along three axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Conv3d(1, 4, 3)(torch.ones(1, 1, 5, 6, 7)).shape
        torch.Size([1, 4, 3, 4, 5])
    """

    axes = 3


class _Transposed(_Convolution):
    """The transpose of a convolution."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise OptionError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, '
                f"not {padding_mode!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = each(output_padding, self.axes)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The sum of windows, each the weights times an element."""
        function = getattr(F, f"conv_transpose{self.axes}d")
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra(input, list(output_size)[-self.axes :])
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra(self, input: Tensor, wanted: Any) -> tuple[int, ...]:
        """The output padding that gives the wanted lengths."""
        lengths = input.shape[-self.axes :]
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                lengths,
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        for n, low, s in zip(wanted, smallest, self.stride, strict=True):
            if not low <= n < low + s:
                largest = [
                    m + t - 1 for m, t in zip(smallest, self.stride, strict=True)
                ]
                raise OptionError(
                    f"requested an output size of {wanted}, but valid sizes range from "
                    f"{smallest} to {largest} (for an input of {list(lengths)})"
                )
        return tuple(n - low for n, low in zip(wanted, smallest, strict=True))


class ConvTranspose1d(_Transposed):
    """The transpose of ``Conv1d``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.ConvTranspose1d(4, 2, 3)(torch.ones(1, 4, 9)).shape
        torch.Size([1, 2, 11])
    """

    axes = 1


class ConvTranspose2d(_Transposed):
    """The transpose of ``Conv2d``.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.ConvTranspose2d(4, 1, kernel_size=2, stride=2)
        >>> layer(torch.ones(8, 4, 14, 14)).shape
        torch.Size([8, 1, 28, 28])
    """

    axes = 2


class ConvTranspose3d(_Transposed):
    """The transpose of ``Conv3d``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.ConvTranspose3d(4, 1, 3)(torch.ones(1, 4, 5, 6, 7)).shape
        torch.Size([1, 1, 7, 8, 9])
    """

    axes = 3

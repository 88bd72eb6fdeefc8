"""Results that lie in memory as the input does, if its channels are the last there."""

from typing import Any

from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.layouts import channels_last
from lantern.torch.tensor.tensor import Tensor

__all__ = ["as_laid"]


def as_laid(z: Tensor, x: Any) -> Tensor:
    """A result, with its channels last in memory if the input has them there.

    Args:
        z: the result, with as many axes as x.
        x: the input.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, 2, 4, 4).to(memory_format=torch.channels_last)
        >>> torch.nn.functional.interpolate(x, scale_factor=2).stride()
        (128, 1, 16, 2)
    """
    form = channels_last(base(x))
    return z if form is None else z.contiguous(memory_format=form)

"""Cotangents of convolutions: of their input alone, or of their weight alone."""

from typing import Any

from lantern.torch.autograd import enable_grad, grad
from lantern.torch.nn import functional
from lantern.torch.tables import documented
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
    "conv3d_weight",
]  # fmt: skip


def _yielded(
    axes: int, x: Any, weight: Any, to_weight: bool, z_bar: Any, how: Any
) -> Any:
    """What a convolution yields for one operand, of which only the shape counts."""
    wanted, given = (weight, x) if to_weight else (x, weight)
    tracked = given.requires_grad or z_bar.requires_grad
    with enable_grad():
        wanted.requires_grad_()
        z = getattr(functional, f"conv{axes}d")(x, weight, None, *how)
    return grad(z, wanted, z_bar, create_graph=tracked)[0]


def _of_input(axes: int) -> Any:
    def function(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, how = weight.new_zeros(input_size), (stride, padding, dilation, groups)
        return _yielded(axes, x, weight, False, grad_output, how)

    function.__name__ = function.__qualname__ = f"conv{axes}d_input"
    function.__doc__ = f"The cotangent of the input of ``conv{axes}d``."
    sizes = f"1, 1{', 3' * axes}", f"1, 1{', 1' * axes}"
    return documented(
        function,
        f"""
    >>> weight, z_bar = torch.ones({sizes[1]}), torch.ones({sizes[0]})
    >>> torch.nn.grad.conv{axes}d_input(({sizes[0]}), weight, z_bar).sum()
    tensor({3.0**axes:.0f}.)
    """,
    )


def _of_weight(axes: int) -> Any:
    def function(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        weight, how = input.new_zeros(weight_size), (stride, padding, dilation, groups)
        return _yielded(axes, input, weight, True, grad_output, how)

    function.__name__ = function.__qualname__ = f"conv{axes}d_weight"
    function.__doc__ = f"The cotangent of the weight of ``conv{axes}d``."
    sizes = f"1, 1{', 3' * axes}", f"1, 1{', 1' * axes}"
    return documented(
        function,
        f"""
    >>> x = z_bar = torch.ones({sizes[0]})
    >>> torch.nn.grad.conv{axes}d_weight(x, ({sizes[1]}), z_bar).sum()
    tensor({3.0**axes:.0f}.)
    """,
    )


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (1, 2, 3))

"""Functions of layers as ``torch`` itself has them: without names for their options.

A reduction is a number here, for "none", "mean" and "sum"; so are ways to interpolate.
"""

from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch.nn import functional as F
from lantern.torch.nn import rules
from lantern.torch.nn.cells import STEPS
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "adaptive_max_pool1d", "affine_grid_generator", "batch_norm_update_stats",
    "binary_cross_entropy_with_logits", "constant_pad_nd", "convolution",
    "cosine_embedding_loss", "feature_dropout", "grid_sampler", "grid_sampler_2d",
    "grid_sampler_3d", "gru_cell", "hinge_embedding_loss", "kl_div", "lstm_cell",
    "margin_ranking_loss",
    "native_channel_shuffle", "native_dropout", "poisson_nll_loss", "rnn_relu_cell",
    "rnn_tanh_cell", "triplet_margin_loss",
]  # fmt: skip

_REDUCTIONS = ("none", "mean", "sum")
_READ = tuple(F.GRID_SAMPLE_INTERPOLATION_MODES)
_OUTSIDE = tuple(F.GRID_SAMPLE_PADDING_MODES)

adaptive_max_pool1d = F.adaptive_max_pool1d_with_indices


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution, or its transpose, along as many axes as the weights have.

    Example:
        >>> import lantern.torch as torch
        >>> x, weight = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
        >>> torch.convolution(x, weight, None, [1], [0], [1], False, [0], 1)
        tensor([[[2., 2.]]])
    """
    axes = base(weight).ndim - 2
    if transposed:
        transpose = getattr(F, f"conv_transpose{axes}d")
        options = (output_padding, groups, dilation)
        return transpose(input, weight, bias, stride, padding, *options)
    direct = getattr(F, f"conv{axes}d")
    return direct(input, weight, bias, stride, padding, dilation, groups)


def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """``functional.pad`` with a constant.

    Example:
        >>> import lantern.torch as torch
        >>> torch.constant_pad_nd(torch.tensor([1, 2]), [1, 2], 9)
        tensor([9, 1, 2, 9, 9])
    """
    return F.pad(input, pad, "constant", value)


def slow_conv3d(
    input: Tensor,
    weight: Tensor,
    kernel_size: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
) -> Tensor:
    """``functional.conv3d``, which knows the size of its windows by the weights."""
    if 0 in base(input).shape[1:]:
        raise EagerError(
            f"Expected non-empty input, but got sizes {list(input.shape)}: none but "
            f"the axis of the batch may be empty."
        )
    return F.conv3d(input, weight, bias, stride, padding)


def thnn_conv2d(
    input: Tensor,
    weight: Tensor,
    kernel_size: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
) -> Tensor:
    """``functional.conv2d``, which knows the size of its windows by the weights."""
    given = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    for name, value in given.items():
        if not isinstance(value, int) and len(value) not in (1, 2):
            raise EagerError(f"2D {name} expected, but got {list(value)}")
    return F.conv2d(input, weight, bias, stride, padding)


def _padded(mode: str, axes: int) -> Any:
    def pad(input: Tensor, padding: Any) -> Tensor:
        if len(padding) != 2 * axes:
            raise EagerError(
                f"padding size is expected to be {2 * axes}, but got: {len(padding)}"
            )
        return F.pad(input, padding, mode)

    return pad


replication_pad1d, replication_pad2d, replication_pad3d = (
    _padded("replicate", axes) for axes in (1, 2, 3)
)
reflection_pad1d, reflection_pad2d, reflection_pad3d = (
    _padded("reflect", axes) for axes in (1, 2, 3)
)


def _masked_softmax(
    input: Tensor, mask: Tensor, dim: Any = None, mask_type: Any = None
) -> Tensor:
    """``functional.softmax`` of the elements that a mask does not hide.

    Args:
        input: the scores; with four axes (n, heads, l, s) if the mask has fewer.
        mask: True where a score does not count.
        dim: the axis of the shares; the last one by default.
        mask_type: 0 for a mask (l, s), 1 for one (n, s), 2 for one of input's shape.
    """
    if mask_type == 1 and mask.dim() < input.dim():
        mask = mask.reshape(mask.shape[0], 1, 1, mask.shape[-1])
    return F.softmax(input.masked_fill(mask, -np.inf), -1 if dim is None else dim)


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """``functional.softmax``; of half precision in single, if that is wanted."""
    return (input.float() if half_to_float else input).softmax(dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """The logarithm of ``_softmax``."""
    return (input.float() if half_to_float else input).log_softmax(dim)


def _add_relu(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """The positive part of a sum."""
    return input.add(other, alpha=alpha).relu()


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """As ``functional.channel_shuffle``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.native_channel_shuffle(
        ...     torch.arange(4.0).reshape(1, 4, 1), 2
        ... ).flatten()
        tensor([0., 2., 1., 3.])
    """
    return F.channel_shuffle(input, groups)


def native_dropout(input: Tensor, p: float, train: Any) -> tuple[Tensor, Tensor]:
    """``functional.dropout``, and what it has kept.

    Example:
        >>> import lantern.torch as torch
        >>> torch.native_dropout(torch.tensor([1.0, 2.0]), 0.5, False)
        (tensor([1., 2.]), tensor([True, True]))
    """
    kept = F.dropout(fresh(base(input)).new_ones(input.shape), p, train is not False)
    return input * kept, kept != 0


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any = None
) -> Tensor:
    """What arrives at softmax's argument.

    Args:
        grad_output: what arrived at its result.
        output: its result.
        dim: its axis.
        input_dtype: the argument's type.
    """
    products = grad_output * output
    found = products - output * products.sum(dim, True)
    return found if input_dtype is None else found.to(input_dtype)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Each channel 0 with chance p, of an input with any number of axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.feature_dropout(torch.ones(2, 3), 0.5, False)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    shape = base(input).shape
    if len(shape) < 2:
        raise EagerError("Feature dropout requires at least 2 dimensions in the input")
    ones = input.detach().new_ones(*shape[:2], *[1] * (len(shape) - 2))
    return input * F.dropout(ones, p, train)


def batch_norm_update_stats(
    input: Tensor, running_mean: Any, running_var: Any, momentum: float
) -> tuple[Tensor, Tensor]:
    """A batch's mean and variance for each channel, which the running ones follow.

    Example:
        >>> import lantern.torch as torch
        >>> x, mean, variance = torch.tensor([[1.0], [3.0]]), torch.zeros(1), None
        >>> torch.batch_norm_update_stats(x, mean, variance, 0.5)
        (tensor([2.]), tensor([1.]))
        >>> mean
        tensor([1.])
    """
    x = input.detach()
    if not x.numel():
        raise EagerError(
            f"input tensor must have at least one element, but got input_sizes = "
            f"{list(x.shape)}"
        )
    axes = (0, *range(2, x.dim()))
    mean, variance = x.mean(axes), x.var(axes, unbiased=False)
    count = x.numel() // x.size(1)
    moments = (mean, variance * (count / max(1, count - 1)))
    for running, now in zip((running_mean, running_var), moments, strict=True):
        if running is not None:
            running.mul_(1 - momentum).add_(now, alpha=momentum)
    return mean, variance


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """As ``functional.affine_grid``.

    Example:
        >>> import lantern.torch as torch
        >>> identity = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> torch.affine_grid_generator(identity, (1, 1, 1, 2), False).shape
        torch.Size([1, 1, 2, 2])
    """
    return F.affine_grid(theta, size, align_corners)


def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """As ``functional.grid_sample``: 0 for bilinear, and for zeros around.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> torch.grid_sampler(x, torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[1.5000]]]])
    """
    how = _READ[interpolation_mode], _OUTSIDE[padding_mode]
    return F.grid_sample(input, grid, *how, align_corners)


def _grid_sampler(axes: int) -> Any:
    def sampler(
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
    ) -> Tensor:
        if len(input) != len(grid):
            raise EagerError(
                f"grid_sampler(): expected grid and input to have same batch size, but "
                f"got input with sizes {list(input.shape)} and grid with sizes "
                f"{list(grid.shape)}"
            )
        if input.dim() != axes + 2:
            raise EagerError(
                f"grid_sampler_{axes}d: expected an input of {axes + 2} axes, but got "
                f"input with sizes {list(input.shape)}"
            )
        how = interpolation_mode, padding_mode
        return grid_sampler(input, grid, *how, align_corners)

    sampler.__name__ = sampler.__qualname__ = f"grid_sampler_{axes}d"
    sampler.__doc__ = f"As ``grid_sampler``, of images with {axes} axes."
    return sampler


grid_sampler_2d = documented(
    _grid_sampler(2),
    """
    >>> x = torch.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> torch.grid_sampler_2d(x, torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.5000]]]])
    """,
)
_grid_sampler_2d_cpu_fallback = grid_sampler_2d
grid_sampler_3d = documented(
    _grid_sampler(3),
    """
    >>> x, grid = torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3)
    >>> torch.grid_sampler_3d(x, grid, 0, 0, False)
    tensor([[[[[1.]]]]])
    """,
)


def _loss(name: str, order: str, example: str) -> Any:
    """A loss whose reduction is a number.

    Args:
        name: of the loss.
        order: its arguments, with their defaults, before the reduction and behind it.
        example: a call.
    """
    by_word = getattr(F, name)
    before, _, behind = order.partition(" reduction ")
    shown = ", ".join([*before.split(), "reduction=0", *behind.split()])
    names = [word.partition("=")[0] for word in shown.split(", ")]

    def loss(*args: Any, **options: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | options
        number = given.pop("reduction", 0)
        return by_word(**given, reduction=_REDUCTIONS[number])

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"As ``functional.{name}``, with a number for the reduction."
    return documented(takes(loss, shown), example)


binary_cross_entropy_with_logits = _loss(
    "binary_cross_entropy_with_logits",
    "input target weight=None pos_weight=None reduction ",
    """
    >>> x = torch.tensor([0.0])
    >>> torch.binary_cross_entropy_with_logits(x, torch.tensor([1.0]))
    tensor([0.6931])
    """,
)
cosine_embedding_loss = _loss(
    "cosine_embedding_loss",
    "input1 input2 target margin=0.0 reduction ",
    """
    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> torch.cosine_embedding_loss(x, y, torch.tensor([1]), 0.0, 1)
    tensor(1.)
    """,
)
hinge_embedding_loss = _loss(
    "hinge_embedding_loss",
    "input target margin=1.0 reduction ",
    """
    >>> x, y = torch.tensor([0.5, 0.2]), torch.tensor([1, -1])
    >>> torch.hinge_embedding_loss(x, y, 1.0, 0)
    tensor([0.5000, 0.8000])
    """,
)
kl_div = _loss(
    "kl_div",
    "input target reduction log_target=False",
    """
    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    >>> torch.kl_div(q.log(), p, 2)
    tensor(0.1438)
    """,
)
margin_ranking_loss = _loss(
    "margin_ranking_loss",
    "input1 input2 target margin=0.0 reduction ",
    """
    >>> x, y = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0])
    >>> torch.margin_ranking_loss(x, y, torch.tensor([1, 1]), 0.0, 0)
    tensor([1., 0.])
    """,
)
poisson_nll_loss = _loss(
    "poisson_nll_loss",
    "input target log_input full eps reduction ",
    """
    >>> x, y = torch.tensor([0.0]), torch.tensor([2.0])
    >>> torch.poisson_nll_loss(x, y, True, False, 1e-8, 1)
    tensor(1.)
    """,
)
triplet_margin_loss = _loss(
    "triplet_margin_loss",
    "anchor positive negative margin=1.0 p=2.0 eps=1e-06 swap=False reduction ",
    """
    >>> x, far = torch.zeros(1, 2), torch.tensor([[0.3, 0.4]])
    >>> torch.triplet_margin_loss(x, x, far, reduction=2)
    tensor(0.5000)
    """,
)


def _cell(name: str, mode: str, example: str) -> Any:
    """One step of a recurrent network, as a function of its weights."""
    step, _, count = STEPS[mode]

    def function(
        input: Tensor,
        hx: Any,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Any = None,
        b_hh: Any = None,
    ) -> Any:
        states = list(hx) if count == 2 else [hx]
        found = step(rules.affine(input, w_ih, b_ih, None), states, w_hh, b_hh)
        return tuple(found) if count == 2 else found[0]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The step of a cell {mode}: its next state."
    return documented(takes(function, parameters(function)), example)


_STEP = """
    >>> x, h = torch.ones(1, 2), torch.zeros(1, 3)
    >>> weights = torch.zeros({0}, 2), torch.zeros({0}, 3)
"""
gru_cell = _cell(
    "gru_cell",
    "GRU",
    f"""{_STEP.format(9)}    >>> torch.gru_cell(x, h, *weights)
    tensor([[0., 0., 0.]])
    """,
)
lstm_cell = _cell(
    "lstm_cell",
    "LSTM",
    f"""{_STEP.format(12)}    >>> torch.lstm_cell(x, (h, h + 1), *weights)[1]
    tensor([[0.5000, 0.5000, 0.5000]])
    """,
)
rnn_tanh_cell = _cell(
    "rnn_tanh_cell",
    "RNN_TANH",
    f"""{_STEP.format(3)}    >>> torch.rnn_tanh_cell(x, h, *weights)
    tensor([[0., 0., 0.]])
    """,
)
rnn_relu_cell = _cell(
    "rnn_relu_cell",
    "RNN_RELU",
    f"""{_STEP.format(3)}    >>> torch.rnn_relu_cell(x, h, *weights)
    tensor([[0., 0., 0.]])
    """,
)

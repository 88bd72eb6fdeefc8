"""Convolutions, their transposes, and images made of windows."""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.errors import ArgumentError, EagerError
from lantern.torch.nn.functional.shaping import pad
from lantern.torch.nn.starting import same_types
from lantern.torch.nn.windows import Form, correlate, spread
from lantern.torch.tables import documented
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "fold", "unfold",
]  # fmt: skip


def each(value: Any, axes: int, name: str = "an option") -> tuple[int, ...]:
    """One number for each axis, from one or several."""
    if hasattr(value, "__index__"):
        return (int(value),) * axes
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * axes
    if len(values) != axes:
        raise EagerError(
            f"{name} must either be a single int, or a tuple of {axes} ints, but got "
            f"{values}"
        )
    return values


def _padding(padding: Any, axes: int, size: Any, dilation: Any) -> Any:
    if padding == "valid":
        return ((0, 0),) * axes
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, size, strict=True)]
        return tuple((t // 2, t - t // 2) for t in totals)
    return tuple((p, p) for p in each(padding, axes))


def _batched(name: str, input: Tensor, axes: int) -> tuple[Tensor, bool]:
    if not isinstance(input, Tensor):
        raise ArgumentError(
            f"{name}: argument 'input' must be Tensor, not {type(input).__name__}"
        )
    ndim = base(input).ndim
    if ndim not in (axes + 1, axes + 2):
        raise EagerError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to "
            f"{name}, but got input of size: {list(base(input).shape)}"
        )
    return (input, True) if ndim == axes + 2 else (input.unsqueeze(0), False)


def _checked(
    x: Tensor, weight: Tensor, bias: Any, form: tuple[Any, ...], groups: int
) -> None:
    """Raise unless array, weights and options may stand together."""
    same_types(x, weight)
    if bias is not None and base(bias).dtype != base(x).dtype:
        raise EagerError(
            f"Input type ({base(x).dtype}) and bias type ({base(bias).dtype}) should "
            f"be the same"
        )
    if base(weight).ndim != base(x).ndim:
        n, m = base(weight).ndim, base(x).ndim
        raise EagerError(
            f"Expected {n}-dimensional input for {n}-dimensional weight"
            f"{list(weight.shape)}, but got {m}-dimensional input of size "
            f"{list(x.shape)} instead"
        )
    stride, padding, dilation = form
    for name, numbers, least in (
        ("non-positive stride is not supported", stride, 1),
        ("negative padding is not supported", padding, 0),
        ("dilation should be greater than zero", dilation, 1),
        ("non-positive groups is not supported", (groups,), 1),
    ):
        if min(numbers) < least:
            raise EagerError(name)
    if base(weight).shape[0] < groups:
        raise EagerError(
            f"Given groups={groups}, expected weight to be at least {groups} at "
            f"dimension 0, but got weight of size {list(weight.shape)} instead"
        )


def _with_bias(z: Tensor, bias: Any, axes: int, batched: bool) -> Tensor:
    if bias is not None:
        z = z + bias.reshape(-1, *[1] * axes)
    return z if batched else z.squeeze(0)


def _convolution(axes: int) -> Any:
    name = f"conv{axes}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, batched = _batched(name, input, axes)
        stride = each(stride, axes, "stride")
        dilation = each(dilation, axes, "dilation")
        numbers = each(0 if isinstance(padding, str) else padding, axes, "padding")
        _checked(x, weight, bias, (stride, numbers, dilation), groups)
        if padding == "same" and max(stride) > 1:
            raise EagerError("padding='same' is not supported for strided convolutions")
        shape, size = base(x).shape, base(weight).shape
        if shape[1] != size[1] * groups:
            raise EagerError(
                f"Given groups={groups}, weight of size {list(size)}, expected "
                f"input{list(shape)} to have {size[1] * groups} channels, but got "
                f"{shape[1]} channels instead"
            )
        form = Form(
            shape[2:],
            size[2:],
            stride,
            _padding(padding, axes, size[2:], dilation),
            dilation,
            groups,
        )
        if any(n < 1 for n in form.steps):
            sizes = [d * (k - 1) + 1 for d, k in zip(dilation, size[2:], strict=True)]
            raise EagerError(
                f"Calculated padded input size per channel: "
                f"({' x '.join(map(str, form.padded))}). Kernel size: "
                f"({' x '.join(map(str, sizes))}). Kernel size can't be greater than "
                f"actual input size"
            )
        if bias is not None and base(bias).shape != size[:1]:
            raise EagerError(
                f"Given weight of size {list(size)}, expected bias to be 1-dimensional "
                f"with {size[0]} elements, but got bias of size {list(bias.shape)} "
                f"instead"
            )
        z = correlate(x, weight, bias, form=form)
        return z if batched else z.squeeze(0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The products of weights with each window, along {axes} axes."
    return function


def _transposed(axes: int) -> Any:
    name = f"conv_transpose{axes}d"

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        z, batched = _batched(name, input, axes)
        stride, dilation = each(stride, axes), each(dilation, axes)
        padding, extra = each(padding, axes), each(output_padding, axes)
        _checked(z, weight, bias, (stride, padding, dilation), groups)
        shape, size = base(z).shape, base(weight).shape
        if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
            raise EagerError(
                f"output padding must be smaller than either stride or dilation, but "
                f"got output_padding: {extra} stride: {stride} dilation: {dilation}"
            )
        if shape[1] != size[0]:
            raise EagerError(
                f"Given transposed=1, weight of size {list(size)}, expected "
                f"input{list(shape)} to have {size[0]} channels, but got {shape[1]} "
                f"channels instead"
            )
        reach = tuple(
            (shape[2 + i] - 1) * stride[i] + dilation[i] * (size[2 + i] - 1) + 1
            for i in range(axes)
        )
        rest = tuple(e - p for e, p in zip(extra, padding, strict=True))
        both = tuple((p, p) for p in padding)
        lengths = tuple(n - p + r for n, p, r in zip(reach, padding, rest, strict=True))
        if any(e >= s for e, s in zip(extra, stride, strict=True)):
            # There would be room for one more window: everything first, then a part.
            form = Form(reach, size[2:], stride, ((0, 0),) * axes, dilation, groups)
            pairs = zip(reversed(padding), reversed(rest), strict=True)
            out = pad(
                spread(z, weight, form=form), [n for p, r in pairs for n in (-p, r)]
            )
        else:
            form = Form(lengths, size[2:], stride, both, dilation, groups)
            out = spread(z, weight, form=form)
        return _with_bias(out, bias, axes, batched)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The transpose of ``conv{axes}d`` in its input."
    return function


conv1d = documented(
    _convolution(1),
    """
    >>> x, weight = torch.tensor([[[1.0, 2.0, 4.0]]]), torch.tensor([[[-1.0, 1.0]]])
    >>> torch.nn.functional.conv1d(x, weight)
    tensor([[[1., 2.]]])
    """,
)
conv2d = documented(
    _convolution(2),
    """
    >>> torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """,
)
conv3d = documented(
    _convolution(3),
    """
    >>> x, weight = torch.ones(1, 2, 5, 5, 5), torch.ones(3, 2, 2, 2, 2)
    >>> torch.nn.functional.conv3d(x, weight).shape
    torch.Size([1, 3, 4, 4, 4])
    """,
)
conv_transpose1d = documented(
    _transposed(1),
    """
    >>> x, weight = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 10.0]]])
    >>> torch.nn.functional.conv_transpose1d(x, weight)
    tensor([[[ 1., 12., 20.]]])
    """,
)
conv_transpose2d = documented(
    _transposed(2),
    """
    >>> x = weight = torch.ones(1, 1, 2, 2)
    >>> torch.nn.functional.conv_transpose2d(x, weight)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """,
)
conv_transpose3d = documented(
    _transposed(3),
    """
    >>> x, weight = torch.ones(1, 2, 5, 5, 5), torch.ones(2, 3, 2, 2, 2)
    >>> torch.nn.functional.conv_transpose3d(x, weight).shape
    torch.Size([1, 3, 6, 6, 6])
    """,
)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """``conv1d`` of what has its axes in another order: time, batch, channels.

    Shapes:
        input: (t, n, c); weight: (size, c, k); bias: (k,); result: (steps, n, k)

    Example:
        >>> import lantern.torch as torch
        >>> x, weight = torch.ones(5, 2, 3), torch.ones(2, 3, 4)
        >>> torch.nn.functional.conv_tbc(x, weight, torch.zeros(4)).shape
        torch.Size([4, 2, 4])
    """
    z = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return z.permute(2, 0, 1)


def _windows(
    lengths: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Form:
    """How windows lie on an image, checked."""
    size, dilation = each(kernel_size, 2), each(dilation, 2)
    padding, stride = each(padding, 2), each(stride, 2)
    for name, numbers, least in (
        ("kernel size", size, 1),
        ("dilation", dilation, 1),
        ("stride", stride, 1),
        ("padding", padding, 0),
    ):
        if min(numbers) < least:
            word = "greater than zero" if least else "non-negative"
            raise EagerError(f"{name} should be {word}, but got {numbers}")
    both = tuple((p, p) for p in padding)
    form = Form(tuple(lengths), size, stride, both, dilation)
    if min(form.steps) < 1:
        raise EagerError(
            f"Given an image of size {tuple(lengths)}, kernel_size={size}, "
            f"dilation={dilation}, padding={padding}, stride={stride}, calculated "
            f"shape of the array of sliding blocks as {form.steps}, but its components "
            f"must be at least one."
        )
    return form


def _each_element(size: Any, array: Any) -> Tensor:
    """Weights that give each element of a window of an array a channel of its own."""
    n = math.prod(size)
    return fresh(namespace(array).eye(n, dtype=array.dtype).reshape(n, 1, *size))


def unfold(
    input: Tensor,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """All windows of images as columns: (n, channels * size, windows).

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.unfold(torch.arange(9.0).reshape(1, 1, 3, 3), 2)
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """
    shape = base(input).shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise EagerError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got: {list(shape)}"
        )
    x = input if len(shape) == 4 else input.unsqueeze(0)
    n, channels, *lengths = base(x).shape
    form = _windows(lengths, kernel_size, dilation, padding, stride)
    weight = _each_element(form.size, base(x))
    z = correlate(x.reshape(n * channels, 1, *lengths), weight, None, form=form)
    z = z.reshape(n, channels * math.prod(form.size), math.prod(form.steps))
    return z if x is input else z.squeeze(0)


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Images as the sum of their windows: the transpose of ``unfold``.

    Example:
        >>> import lantern.torch as torch
        >>> columns = torch.ones(1, 4, 4)  # 4 windows of 2 by 2 pixels
        >>> torch.nn.functional.fold(columns, (3, 3), 2)
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """
    shape = base(input).shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise EagerError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
            f"size and non-zero dimensions for input, but got: {list(shape)}"
        )
    z = input if len(shape) == 3 else input.unsqueeze(0)
    lengths = each(output_size, 2)
    form = _windows(lengths, kernel_size, dilation, padding, stride)
    n, columns, count = base(z).shape
    each_window, steps = math.prod(form.size), math.prod(form.steps)
    if columns % each_window:
        raise EagerError(
            f"Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={columns} and kernel_size={form.size}."
        )
    if count != steps:
        raise EagerError(
            f"Given output_size={lengths}, expected size of input's dimension 2 to "
            f"match the calculated number of sliding blocks {form.steps}, which are "
            f"{steps}, but got input.size(2)={count}."
        )
    channels = columns // each_window
    weight = _each_element(form.size, base(z))
    z = z.reshape(n * channels, each_window, *form.steps)
    out = spread(z, weight, form=form).reshape(n, channels, *lengths)
    return out if len(shape) == 3 else out.squeeze(0)

"""The largest element, or the mean, of windows; and other sizes of images."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, OptionError
from lantern.torch.functions.elementwise import div
from lantern.torch.functions.indexing import gathered
from lantern.torch.nn import rules
from lantern.torch.nn.batching import chosen_of
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.laying import as_laid
from lantern.torch.nn.pools import gather_windows, pick, sum_windows
from lantern.torch.nn.windows import Form
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.dtypes import I64
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.tensor import Tensor, fresh
from lantern.vectorizing.batched import Batched

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip


def _form(
    lengths: Any, size: Any, stride: Any, padding: Any, dilation: Any, up: bool
) -> Form:
    """How the windows of a pool lie; with up, the last may reach over the edge."""
    axes = len(lengths)
    size = each(size, axes, "kernel_size")
    several = stride is not None and stride not in ([], ())
    stride = each(stride, axes, "stride") if several else size
    padding = each(padding, axes, "padding")
    dilation = each(dilation, axes, "dilation")
    numbers = {"kernel_size": size, "stride": stride, "dilation": dilation}
    for name, values in numbers.items():
        if min(values) < 1:
            raise EagerError(f"{name} must be greater than zero, but got {min(values)}")
    if min(padding) < 0:
        raise EagerError(f"pad must be non-negative, but got pad: {min(padding)}")
    if any(
        2 * p > d * (k - 1) + 1 for p, k, d in zip(padding, size, dilation, strict=True)
    ):
        raise EagerError(
            f"pad should be at most half of effective kernel size, but got "
            f"pad={max(padding)}, kernel_size={max(size)} and dilation={max(dilation)}"
        )
    sides = []
    for n, k, s, p, d in zip(lengths, size, stride, padding, dilation, strict=True):
        behind = p
        if up:
            reach = n + 2 * p - d * (k - 1) - 1
            steps = -(-reach // s) + 1
            if (steps - 1) * s >= n + p:
                steps -= 1
            behind = max(p, (steps - 1) * s + d * (k - 1) + 1 - n - p)
        sides.append((p, behind))
    form = Form(tuple(lengths), size, stride, tuple(sides), dilation)
    if any(n < 1 for n in form.steps):
        raise EagerError(
            f"Given input size: {list(lengths)}. Calculated output size: "
            f"{list(form.steps)}. Output size is too small"
        )
    return form


def _batched(input: Tensor, axes: int, channels: bool = True) -> Tensor:
    """The input with an axis of examples, which alone may be empty.

    Args:
        input: pictures, or one of them.
        axes: of a picture.
        channels: whether one without an axis of examples has to have some.
    """
    shape = base(input).shape
    filled = shape[-axes - channels :] if len(shape) == axes + 1 else shape[1:]
    if len(shape) not in (axes + 1, axes + 2) or 0 in filled:
        raise EagerError(
            f"Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with optional 0 "
            f"dim batch size for input, but got:{list(shape)}"
        )
    return input if len(shape) == axes + 2 else input.unsqueeze(0)


def _flat_places(chosen: Any, form: Form) -> Any:
    """Where chosen elements of windows are in a flat array."""
    places = namespace(chosen).arange(math.prod(form.lengths))
    windows = gather_windows(places.reshape(1, 1, *form.lengths), form, -1)
    if type(chosen) is Batched:  # the same windows for all
        shape = (*chosen.shape, windows.shape[-1])
        windows = chosen.common(np.broadcast_to(windows, shape))
    rows = np.take_along_axis(windows, chosen[..., None].astype(np.int64), -1)
    return rows[..., 0].astype(np.int64)


def _max_pool(axes: int) -> Any:
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        x = _batched(input, axes)
        array = base(x)
        form = _form(array.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
        value, chosen = chosen_of(array, form)
        z = as_laid(pick(x, form=form, chosen=chosen, known=[array, value]), x)
        z = z if x is input else z.squeeze(0)
        if not return_indices:
            return z
        indices = as_laid(fresh(_flat_places(chosen, form)), x)
        return z, indices if x is input else indices.squeeze(0)

    function.__name__ = function.__qualname__ = f"max_pool{axes}d"
    function.__doc__ = f"The largest element of each window, along {axes} axes."
    return function


def _picked(x: Tensor, where: Any) -> tuple[Tensor, Tensor]:
    """The elements at flat places behind the first two axes, and the places."""
    rows, lengths = base(x).shape[:2], base(x).shape[2:]
    flat = x.reshape(*rows, math.prod(lengths))
    index = where.reshape(*rows, math.prod(where.shape[2:]))
    z = gathered(flat, 2, index).reshape(where.shape)
    return z, fresh(where.astype(np.int64))  # a copy: it may be written to


def _avg_pool(axes: int) -> Any:
    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Tensor:
        x = _batched(input, axes)
        array = base(x)
        if array.dtype.kind in "iub" and array.dtype != I64:
            raise refuse_type(f"avg_pool{axes}d", input)
        form = _form(array.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
        if divisor_override == 0:
            raise EagerError("divisor must be not zero")
        z = sum_windows(x, form=form)
        count: Any = math.prod(form.size)
        if divisor_override is not None:
            count = divisor_override
        elif any(map(any, form.padding)):
            count = fresh(_counts(form, each(padding, axes), count_include_pad, array))
        whole = "trunc" if array.dtype == I64 else None
        z = as_laid(div(z, count, rounding_mode=whole), x)
        return z if x is input else z.squeeze(0)

    function.__name__ = function.__qualname__ = f"avg_pool{axes}d"
    function.__doc__ = f"The mean of each window, along {axes} axes."
    return function


def _counts(form: Form, padding: Any, with_padding: bool, array: Any) -> Any:
    """How many elements of each window count."""
    if with_padding:  # what reaches over the padding never does
        lengths = tuple(n + 2 * p for n, p in zip(form.lengths, padding, strict=True))
        rest = tuple(
            (0, max(0, b - p)) for (_, b), p in zip(form.padding, padding, strict=True)
        )
        form = form._replace(lengths=lengths, padding=rest)
    ones = fresh(namespace(array).ones((1, 1, *form.lengths), dtype=array.dtype))
    return base(sum_windows(ones, form=form))


max_pool1d = documented(
    _max_pool(1),
    """
    >>> torch.nn.functional.max_pool1d(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2)
    tensor([[[3., 7.]]])
    """,
)
max_pool2d = documented(
    _max_pool(2),
    """
    >>> torch.nn.functional.max_pool2d(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]), 2)
    tensor([[[[7.]]]])
    """,
)
max_pool3d = documented(
    _max_pool(3),
    """
    >>> torch.nn.functional.max_pool3d(torch.ones(1, 1, 4, 4, 2), 2).shape
    torch.Size([1, 1, 2, 2, 1])
    """,
)
avg_pool1d = documented(
    _avg_pool(1),
    """
    >>> torch.nn.functional.avg_pool1d(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2)
    tensor([[[2., 6.]]])
    """,
)
avg_pool2d = documented(
    _avg_pool(2),
    """
    >>> torch.nn.functional.avg_pool2d(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]), 2)
    tensor([[[[4.]]]])
    """,
)
avg_pool3d = documented(
    _avg_pool(3),
    """
    >>> torch.nn.functional.avg_pool3d(torch.ones(1, 1, 4, 4, 2), 2).shape
    torch.Size([1, 1, 2, 2, 1])
    """,
)


def _sizes(output_size: Any, input: Tensor, axes: int) -> tuple[int, ...]:
    """How many parts there are to be along each axis, checked."""
    shape = base(input).shape
    several = isinstance(output_size, tuple | list)
    if several and axes > 1 and len(shape) <= len(output_size):
        raise OptionError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = output_size if several else [output_size] * axes
    if len(sizes) != axes:
        raise EagerError(f"adaptive_pool{axes}d: output_size must be {axes}")
    found = tuple(
        n if size is None else int(size)
        for size, n in zip(sizes, shape[len(shape) - axes :], strict=True)
    )
    if min(found) < 0:
        raise EagerError(
            f"adaptive_pool{axes}d: elements of output_size must be greater than or "
            f"equal to 0 but received {found}"
        )
    if math.prod(found) >= 1 << 60:
        raise EagerError(f"adaptive_pool{axes}d: {found} are too many elements")
    return found


def _edges(n: int, parts: int) -> list[tuple[int, int]]:
    """The beginnings and ends of parts of n elements, all but equal."""
    return [(i * n // parts, -(-(i + 1) * n // parts)) for i in range(parts)]


def _adaptive_mean(axes: int) -> Any:
    def function(input: Tensor, output_size: Any) -> Tensor:
        sizes = _sizes(output_size, input, axes)
        lengths = base(_batched(input, axes, channels=False)).shape[-axes:]
        if base(input).dtype.kind in "iub":
            raise refuse_type(f"adaptive_avg_pool{axes}d", input)
        if sizes == (1,) * axes:
            return input.mean(tuple(range(-axes, 0)), keepdim=True)
        z = input
        for i, (n, m) in enumerate(zip(lengths, sizes, strict=True)):
            weights = np.zeros((n, m), base(input).dtype)
            for j, (a, b) in enumerate(_edges(n, m)):
                weights[a:b, j] = 1 / (b - a)
            weights = beside(weights, base(input))
            z = rules.mixed(z, weights=weights, axis=i - axes)
        return as_laid(z.contiguous(), input)

    function.__name__ = function.__qualname__ = f"adaptive_avg_pool{axes}d"
    function.__doc__ = f"The means of as many parts as asked for, along {axes} axes."
    return function


def _adaptive_max(axes: int) -> Any:
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = _sizes(output_size, input, axes)
        x = _batched(input, axes, channels=False)
        array = base(x)
        if array.dtype.kind in "iub":
            raise refuse_type(f"adaptive_max_pool{axes}d", input)
        lengths = array.shape[2:]
        xp = namespace(array)
        where = xp.empty((*array.shape[:2], *sizes), np.int64)
        places = xp.arange(math.prod(lengths)).reshape(lengths)
        cuts = [_edges(n, m) for n, m in zip(lengths, sizes, strict=True)]
        for cell in np.ndindex(*sizes):
            part = tuple(slice(*cuts[i][j]) for i, j in enumerate(cell))
            inside = array[(..., *part)]
            inside = inside.reshape(*array.shape[:2], math.prod(inside.shape[2:]))
            where[(..., *cell)] = places[part].reshape(-1)[inside.argmax(-1)]
        z, indices = (as_laid(y, x) for y in _picked(x, where))
        if x is not input:
            z, indices = z.squeeze(0), indices.squeeze(0)
        return (z, indices) if return_indices else z

    function = each_example(function)
    function.__name__ = function.__qualname__ = f"adaptive_max_pool{axes}d"
    function.__doc__ = f"The largest of as many parts as asked for, along {axes} axes."
    return function


adaptive_avg_pool1d = documented(
    _adaptive_mean(1),
    """
    >>> x = torch.tensor([[[1.0, 3.0, 5.0, 7.0]]])
    >>> torch.nn.functional.adaptive_avg_pool1d(x, 2)
    tensor([[[2., 6.]]])
    """,
)
adaptive_avg_pool2d = documented(
    _adaptive_mean(2),
    """
    >>> torch.nn.functional.adaptive_avg_pool2d(
    ...     torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]), 1
    ... )
    tensor([[[[4.]]]])
    """,
)
adaptive_avg_pool3d = documented(
    _adaptive_mean(3),
    """
    >>> x = torch.ones(1, 1, 4, 5, 6)
    >>> torch.nn.functional.adaptive_avg_pool3d(x, (1, 2, 3)).shape
    torch.Size([1, 1, 1, 2, 3])
    """,
)
adaptive_max_pool1d = documented(
    _adaptive_max(1),
    """
    >>> x = torch.tensor([[[1.0, 3.0, 5.0, 7.0]]])
    >>> torch.nn.functional.adaptive_max_pool1d(x, 2)
    tensor([[[3., 7.]]])
    """,
)
adaptive_max_pool2d = documented(
    _adaptive_max(2),
    """
    >>> torch.nn.functional.adaptive_max_pool2d(
    ...     torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]), 1
    ... )
    tensor([[[[7.]]]])
    """,
)
adaptive_max_pool3d = documented(
    _adaptive_max(3),
    """
    >>> x = torch.ones(1, 1, 4, 5, 6)
    >>> torch.nn.functional.adaptive_max_pool3d(x, (1, 2, 3)).shape
    torch.Size([1, 1, 1, 2, 3])
    """,
)


def _norm_pool(axes: int) -> Any:
    mean = (avg_pool1d, avg_pool2d, avg_pool3d)[axes - 1]

    def function(
        input: Tensor,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        if abs(norm_type) == math.inf:
            sign = math.copysign(1, norm_type)
            largest = (max_pool1d, max_pool2d, max_pool3d)[axes - 1]
            return sign * largest(
                sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode
            )
        means = mean(input**norm_type, kernel_size, stride, 0, ceil_mode)
        return (means * math.prod(each(kernel_size, axes))) ** (1.0 / norm_type)

    function.__name__ = function.__qualname__ = f"lp_pool{axes}d"
    function.__doc__ = f"The norm of each window, along {axes} axes."
    return function


lp_pool1d = documented(
    _norm_pool(1),
    """
    >>> torch.nn.functional.lp_pool1d(torch.tensor([[[3.0, 4.0]]]), 2, 2)
    tensor([[[5.]]])
    """,
)
lp_pool2d = documented(
    _norm_pool(2),
    """
    >>> torch.nn.functional.lp_pool2d(torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]]]), 2, 2)
    tensor([[[[2.]]]])
    """,
)
lp_pool3d = documented(
    _norm_pool(3),
    """
    >>> torch.nn.functional.lp_pool3d(torch.ones(1, 1, 4, 4, 2), 2, 2).shape
    torch.Size([1, 1, 2, 2, 1])
    """,
)


def _max_unpool(axes: int) -> Any:
    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        x, where = _batched(input, axes), base(indices)
        if where.shape != base(input).shape:
            raise EagerError(
                f"Expected shape of indices to be same as that of the input tensor "
                f"({list(input.shape)}) but got indices tensor with shape: "
                f"{list(where.shape)}"
            )
        size = each(kernel_size, axes, "kernel_size")
        stride = size if stride is None else each(stride, axes, "stride")
        lengths = tuple(
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(
                base(x).shape[2:], stride, each(padding, axes), size, strict=True
            )
        )
        if output_size is not None:
            lengths = _near(tuple(output_size)[-axes:], lengths, stride)
        lead = base(x).shape[:2]
        index = where.reshape(*lead, math.prod(base(x).shape[2:]))
        every = of_all_examples(index)
        if every.size and not 0 <= every.min() <= every.max() < math.prod(lengths):
            raise EagerError(
                f"Found an invalid max index: {index.max()} (output volumes are of "
                f"size {list(lengths)})"
            )
        array = base(x)
        flat = namespace(array).zeros((*lead, math.prod(lengths)), array.dtype)
        z = fresh(flat).scatter(2, fresh(index), x.reshape(index.shape))
        z = as_laid(z.reshape(*lead, *lengths), x)
        return z if x is input else z.squeeze(0)

    function.__name__ = function.__qualname__ = f"max_unpool{axes}d"
    function.__doc__ = (
        f"The inverse of ``max_pool{axes}d``: zeros, but for the largest elements."
    )
    return function


def _near(chosen: Any, lengths: Any, stride: Any) -> Any:
    """The lengths that were chosen, if they pool to what there is."""
    for n, default, s in zip(chosen, lengths, stride, strict=True):
        if not default - s < n < default + s:
            raise OptionError(
                f"invalid output_size {tuple(chosen)} (dim has to be between "
                f"{default - s} and {default + s})"
            )
    return chosen


max_unpool1d = documented(
    _max_unpool(1),
    """
    >>> x, where = torch.tensor([[[3.0, 5.0]]]), torch.tensor([[[1, 2]]])
    >>> torch.nn.functional.max_unpool1d(x, where, 2)
    tensor([[[0., 3., 5., 0.]]])
    """,
)
max_unpool2d = documented(
    _max_unpool(2),
    """
    >>> x, where = torch.tensor([[[[5.0]]]]), torch.tensor([[[[2]]]])
    >>> torch.nn.functional.max_unpool2d(x, where, 2)
    tensor([[[[0., 0.],
              [5., 0.]]]])
    """,
)
max_unpool3d = documented(
    _max_unpool(3),
    """
    >>> x, where = torch.nn.functional.max_pool3d(
    ...     torch.ones(1, 1, 4, 4, 2), 2, return_indices=True
    ... )
    >>> torch.nn.functional.max_unpool3d(x, where, 2).shape
    torch.Size([1, 1, 4, 4, 2])
    """,
)


def with_indices(pool: Any, example: str) -> Any:
    """A pool of largest elements that says where they are as well."""

    def function(*args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        options["return_indices"] = True
        z, indices = pool(*args, **options)
        return z, indices

    function.__name__ = function.__qualname__ = f"{pool.__name__}_with_indices"
    function.__doc__ = f"As ``{pool.__name__}``, with the places of what it takes."
    return documented(takes(function, parameters(pool)), example)


max_pool1d_with_indices = with_indices(
    max_pool1d,
    """
    >>> x = torch.tensor([[[1.0, 3.0, 5.0, 7.0]]])
    >>> torch.nn.functional.max_pool1d_with_indices(x, 2)
    (tensor([[[3., 7.]]]), tensor([[[1, 3]]]))
    """,
)
max_pool2d_with_indices = with_indices(
    max_pool2d,
    """
    >>> x = torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]])
    >>> torch.nn.functional.max_pool2d_with_indices(x, 2)[1]
    tensor([[[[3]]]])
    """,
)
max_pool3d_with_indices = with_indices(
    max_pool3d,
    """
    >>> x = torch.ones(1, 1, 4, 4, 2)
    >>> torch.nn.functional.max_pool3d_with_indices(x, 2)[1].shape
    torch.Size([1, 1, 2, 2, 1])
    """,
)
adaptive_max_pool1d_with_indices = with_indices(
    adaptive_max_pool1d,
    """
    >>> x = torch.tensor([[[1.0, 3.0, 5.0, 7.0]]])
    >>> torch.nn.functional.adaptive_max_pool1d_with_indices(x, 2)[1]
    tensor([[[1, 3]]])
    """,
)
adaptive_max_pool2d_with_indices = with_indices(
    adaptive_max_pool2d,
    """
    >>> x = torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]])
    >>> torch.nn.functional.adaptive_max_pool2d_with_indices(x, 1)[1]
    tensor([[[[3]]]])
    """,
)
adaptive_max_pool3d_with_indices = with_indices(
    adaptive_max_pool3d,
    """
    >>> x = torch.ones(1, 1, 4, 5, 6)
    >>> torch.nn.functional.adaptive_max_pool3d_with_indices(x, (1, 2, 3))[1].shape
    torch.Size([1, 1, 1, 2, 3])
    """,
)

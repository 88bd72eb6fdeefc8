"""Tensors with parts changed: written, added, or combined with what is there."""

from functools import wraps
from typing import Any

import numpy as np

from lantern.core.residuals import copied
from lantern.errors import EagerError, PositionError
from lantern.torch.functions.elementwise import scaled
from lantern.torch.functions.indexing import (
    _checked,
    _positions,
    add_at,
    changed_at_lines,
    plain_index,
    put,
)
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.tensor import Tensor


@each_example
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """The tensor with the source's elements, in order, where a mask holds.

    Shapes:
        input, mask: (...), broadcast; source: any with as many elements as hold

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2, 3])
        >>> torch.masked_scatter(x, x != 2, torch.tensor([10, 20]))
        tensor([10,  2, 20])
    """
    if base(mask).dtype.kind != "b":
        raise EagerError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype}"
        )
    if base(source).dtype != base(input).dtype:
        raise EagerError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{input.dtype} and {source.dtype}"
        )
    shape = np.broadcast_shapes(base(mask).shape, base(input).shape)
    if shape != base(input).shape:
        input = input.expand(shape).clone()
    chosen = copied(np.broadcast_to(base(mask), shape))
    if chosen.sum() > base(source).size:
        raise EagerError("masked_scatter: source is too small for the mask")
    return put(input, chosen, source.reshape(-1)[: int(chosen.sum())])


def _part_of(src: Any, positions: Any) -> Any:
    """As much of a source as there are positions."""
    if not isinstance(src, Tensor) or base(src).shape == positions.shape:
        return src
    return src[tuple(slice(n) for n in positions.shape)]


def check_scattered(input: Tensor, dim: int, positions: Any, src: Any) -> None:
    """Raise unless positions, and a source, are as scattering needs them."""
    array = base(input)
    if positions.size:
        if positions.ndim != array.ndim:
            raise EagerError(
                "Index tensor must have the same number of dimensions as self tensor"
            )
        axis = axis_of(dim, array.ndim)
        _checked("scatter", positions, array.shape[axis], axis)
        fits = all(
            n <= m
            for i, (n, m) in enumerate(zip(positions.shape, array.shape, strict=True))
            if i != axis
        )
        if not fits:
            raise EagerError(
                f"Expected index {list(positions.shape)} to be no larger than self "
                f"{list(array.shape)} apart from dimension {axis}"
            )
    if not isinstance(src, Tensor):
        return
    part = base(src)
    if part.dtype != array.dtype:
        raise EagerError("scatter(): Expected self.dtype to be equal to src.dtype")
    if positions.size and (
        part.ndim != positions.ndim
        or any(n > m for n, m in zip(positions.shape, part.shape, strict=True))
    ):
        raise EagerError(
            f"Expected index {list(positions.shape)} to be no larger than src "
            f"{list(part.shape)}"
        )


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """The tensor with a source's elements added at positions along an axis.

    Rule:
        z[index[i, j], j] += src[i, j] for dim 0,
        z[i, index[i, j]] += src[i, j] for dim 1

    Example:
        >>> import lantern.torch as torch
        >>> x, index = torch.zeros(3), torch.tensor([0, 2, 2])
        >>> torch.scatter_add(x, 0, index, torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 0., 5.])
    """
    positions = _positions("scatter", index, input)
    if not base(input).shape:
        index, src = index.reshape(-1), src.reshape(-1)
        return scatter_add(input.reshape(1), dim, index, src).reshape(())
    check_scattered(input, dim, positions, src)
    src = _part_of(src, positions)
    return changed_at_lines(add_at, input, dim, copied(positions), src)


def _along(input: Tensor, dim: int, index: Tensor) -> Any:
    dim = axis_of(dim, base(input).ndim)
    return (*(slice(None),) * dim, copied(base(index)))


def _of_scalars(function: Any) -> Any:
    """A function of parts along an axis, for tensors without axes as well."""

    @wraps(function)
    def operate(
        input: Tensor, dim: int, index: Tensor, source: Any = None, **options: Any
    ) -> Any:
        source = options.pop("value", source)
        if base(input).shape:
            return function(input, dim, index, source, **options)
        if isinstance(source, Tensor) and not base(source).shape:
            source = source if function.__name__ == "index_fill" else source.reshape(1)
        return function(
            input.reshape(1), dim, index.reshape(-1), source, **options
        ).reshape(())

    return operate


def _in_range(index: Any, shape: Any, dim: int, error: Any) -> None:
    """Raise unless all positions along an axis are there, counted from its start."""
    n = shape[dim]
    here = type(index) is np.ndarray and index.size  # a GPU would be waited for
    if here and (index.min() < 0 or index.max() >= n):
        wrong = index[(index < 0) | (index >= n)][0]
        raise error(
            f"index out of range in self: index {wrong} is out of bounds for dimension "
            f"{axis_of(dim, len(shape))} with size {n}"
        )


@_of_scalars
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Any:
    """The tensor with ``alpha`` times a source's parts added at positions of an axis.

    Shapes:
        input: (..., n, ...); index: (k,); source: (..., k, ...); result: as input

    Example:
        >>> import lantern.torch as torch
        >>> x, index = torch.zeros(3), torch.tensor([0, 2, 2])
        >>> torch.index_add(x, 0, index, torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 0., 5.])
    """
    n, m, shape = base(index).size, base(source).shape, list(base(input).shape)
    if len(m) != len(shape) or any(
        a != b
        for i, (a, b) in enumerate(zip(m, shape, strict=False))
        if i != dim % len(m)
    ):
        raise EagerError(
            "source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {shape} source.shape = {list(m)}"
        )
    if m and n != m[axis_of(dim, len(m))]:
        raise EagerError(
            f"index_add(): Number of indices ({n}) should be equal to source.size(dim) "
            f"({m[dim]})"
        )
    error = EagerError if len(shape) > 1 else PositionError  # as PyTorch has it
    _in_range(base(index), shape, dim, error)
    if isinstance(alpha, float) and base(input).dtype.kind in "iub":
        alpha = int(alpha)  # as PyTorch has it here, other than in sums
    if alpha != 1:
        source = scaled(input, source, alpha)
    return add_at(input, _along(input, dim, index), source)


@_of_scalars
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    """The tensor with a source's parts at positions along an axis.

    Shapes:
        input: (..., n, ...); index: (k,); source: (..., k, ...); result: as input

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(3)
        >>> torch.index_copy(x, 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    _in_range(base(index), base(input).shape, dim, PositionError)
    return put(input, _along(input, dim, index), source)


@_of_scalars
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    """The tensor with a value at positions along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(3)
        >>> torch.index_fill(x, 0, torch.tensor([0, 2]), 7)
        tensor([7., 0., 7.])
    """
    if isinstance(value, complex) and base(input).dtype.kind != "c":
        raise EagerError(
            "index_fill_(): Converting complex Scalar to non-complex type is not "
            "supported"
        )
    return put(input, _along(input, dim, index), value)


def index_put(
    input: Tensor, indices: Any, values: Any, accumulate: bool = False
) -> Any:
    """The tensor with values at an index, or, if they ``accumulate``, added there.

    Shapes:
        input: any; indices: for each axis (...), broadcast; values: (...), broadcast

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(3)
        >>> torch.index_put(x, (torch.tensor([0, 2]),), torch.tensor([5.0, 6.0]))
        tensor([5., 0., 6.])
    """
    where, _ = plain_index(tuple(indices))
    try:
        return (add_at if accumulate else put)(input, where, values)
    except ValueError as error:
        chosen = list(base(input)[where].shape)
        raise EagerError(
            f"shape mismatch: value tensor of shape {list(base(values).shape)} cannot "
            f"be broadcast to indexing result of shape {chosen}"
        ) from error


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """The tensor with a source at one place along an axis.

    Shapes:
        input: (..., n, ...); src: (..., ...), without the axis; result: as input

    Example:
        >>> import lantern.torch as torch
        >>> torch.select_scatter(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), 1, 0)
        tensor([[1., 0.],
                [2., 0.]])
    """
    dim = axis_of(dim, base(input).ndim)
    return put(input, (*(slice(None),) * dim, index, ...), src)


def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Any:
    """The tensor with a source in the slice ``start:end:step`` of an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.slice_scatter(torch.zeros(4), torch.tensor([1.0, 2.0]), 0, 1, 3)
        tensor([0., 1., 2., 0.])
    """
    dim = axis_of(dim, base(input).ndim)
    return put(input, (*(slice(None),) * dim, slice(start, end, step), ...), src)


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
    and name != "check_scattered"
}

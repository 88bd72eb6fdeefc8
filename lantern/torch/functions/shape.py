"""The same elements in another shape or order, joined, or taken apart.

What PyTorch returns as a view is one here: it shows the memory of its operand.
"""

import itertools
import math
import operator
from typing import Any

import numpy as np

from lantern.eager.versions import owner
from lantern.errors import EagerError, PositionError
from lantern.tensor.ops import indexing as ours
from lantern.tensor.ops import shape as manipulation
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import first_example
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import address
from lantern.torch.tensor.operators import as_view, in_memory, mismatch, unary
from lantern.torch.tensor.rows import laid_in_rows
from lantern.torch.tensor.tensor import Tensor, fresh
from lantern.torch.tensor.views import is_shared, repeated
from lantern.vectorizing.batched import Batched

_reshape = unary(manipulation.plain_reshape)
_permute = unary(manipulation.permute_dims)
_swap_last = unary(manipulation.matrix_transpose)
_squeeze = unary(manipulation.squeeze)
_expand_dims = unary(manipulation.expand_dims)
_read = unary(ours.plain_getitem)


_INT = frozenset({int})
_WHOLE = (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8)


def lengths(shape: Any) -> tuple[int, ...]:
    """The lengths of axes that were given one by one, or in a sequence."""
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        shape = shape[0]
    if _INT.issuperset(map(type, shape)):
        return tuple(shape)
    return tuple(map(operator.index, shape))


def _resolved(array: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with its -1 filled in; an error, if the elements do not fill it."""
    size, product, least = array.size, math.prod(shape), min(shape, default=0)
    if product == size and least >= 0:
        return shape
    if least == -1 and product and shape.count(-1) == 1 and not size % product:
        return tuple([size // -product if n == -1 else n for n in shape])
    if -1 in shape and not size and not product:
        raise EagerError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            f"unspecified dimension size -1 can be any value and is ambiguous"
        )
    raise EagerError(f"shape '{list(shape)}' is invalid for input of size {size}")


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Any:
    """The elements in another shape; one -1 is filled in.

    Example:
        >>> import lantern.torch as torch
        >>> torch.reshape(torch.arange(6), (2, -1))
        tensor([[0, 1, 2],
                [3, 4, 5]])
    """
    array = in_memory(input)
    sizes = sizes if shape is None else shape
    z = _reshape(input, _resolved(array, lengths(sizes)))
    return as_view(z, input) if is_shared(z, input) else z


def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """The same memory in another shape, or as another type of one size.

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).view(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if size is not None or dtype is not None:
        shape = (size if dtype is None else dtype,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return as_view(fresh(_as_type(in_memory(input), shape[0].numpy)), input)
    in_memory(input)
    array = first_example(base(input))
    shape = _resolved(array, lengths(shape))
    if not array.flags.c_contiguous and owner(array.reshape(shape)) is not owner(array):
        del array
        if type(base(input)) is Batched:
            return _reshape(input, shape)
        if laid_in_rows(input):
            return as_view(_reshape(input, shape), input)
        raise EagerError(
            "view size is not compatible with input tensor's size and stride (at least "
            "one dimension spans across two contiguous subspaces). Use .reshape(...) "
            "instead."
        )
    return as_view(_reshape(input, shape), input)


def _as_type(array: Any, kind: Any) -> Any:
    """The memory of an array as elements of another type, along its last axis."""
    old, new = array.itemsize, kind.itemsize
    if old == new:
        return array.view(kind)
    said = f"to view {array.dtype} as {kind} (different element sizes), but got"
    if not array.ndim:
        raise EagerError(f"self.dim() cannot be 0 {said} 0")
    steps = [s // old for s in array.strides]
    if array.size and steps[-1] != 1 and (array.shape[-1] > 1 or not steps[-1]):
        raise EagerError(f"self.stride(-1) must be 1 {said} {steps[-1]}")
    if new > old:
        ratio = new // old
        offset = (address(array) - address(owner(array))) // old
        named = [(f"stride({i})", s) for i, s in enumerate(steps[:-1])]
        for what, n in [
            ("size(-1)", array.shape[-1]),
            ("storage_offset()", offset),
            *named,
        ]:
            if n % ratio:
                raise EagerError(f"self.{what} must be divisible by {ratio} {said} {n}")
    if array.size or not array.shape[-1]:
        return array.view(kind)
    last = array.shape[-1] * old // new
    return array.reshape(-1).view(kind).reshape(*array.shape[:-1], last)


def view_as(input: Tensor, other: Tensor) -> Any:
    """The same memory in the shape of another tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).view_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return view(input, *base(other).shape)


def reshape_as(input: Tensor, other: Tensor) -> Any:
    """The elements in the shape of another tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return reshape(input, *base(other).shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The tensor with some neighbouring axes made one.

    Example:
        >>> import lantern.torch as torch
        >>> torch.flatten(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    shape = base(input).shape
    if not shape:
        return reshape(input, 1)
    first, last = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    if first > last:
        raise EagerError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    if first == last:
        return input
    return reshape(
        input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
    )


def unflatten(input: Tensor, dim: int, sizes: Any) -> Any:
    """The tensor with one axis made several.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unflatten(torch.arange(4), 0, (2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    shape = base(input).shape
    dim = axis_of(dim, len(shape))
    sizes = list(sizes)
    if -1 in sizes:
        known = -math.prod(sizes)
        sizes[sizes.index(-1)] = shape[dim] // known
    return reshape(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))


def ravel(input: Tensor) -> Any:
    """The elements along one axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    return reshape(input, -1)


def permute(input: Tensor, *axes: Any, dims: Any = None) -> Any:
    """The tensor with its axes in another order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    dims, ndim = lengths(axes if dims is None else dims), base(input).ndim
    if len(dims) != ndim:
        raise EagerError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not "
            f"match the length of the desired ordering of dimensions i.e. input.dim() "
            f"= {ndim} is not equal to len(dims) = {len(dims)}"
        )
    dims = tuple(axis_of(d, ndim) for d in dims)
    if len(set(dims)) < ndim:
        raise EagerError("permute(): duplicate dims are not allowed.")
    in_memory(input)
    return as_view(_permute(input, dims), input)


def transpose(input: Tensor, dim0: int, dim1: int) -> Any:
    """The tensor with two axes swapped.

    Example:
        >>> import lantern.torch as torch
        >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = in_memory(input).ndim
    i, j = axis_of(dim0, ndim), axis_of(dim1, ndim)
    if i == j:
        return as_view(_reshape(input, base(input).shape), input)
    if ndim == 2:
        return as_view(_swap_last(input), input)
    order = list(range(ndim))
    order[i], order[j] = j, i
    return as_view(_permute(input, tuple(order)), input)


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Any:
    """The tensor with two axes exchanged.

    Example:
        >>> import lantern.torch as torch
        >>> torch.swapaxes(torch.ones(2, 3, 4), 0, 2).shape
        torch.Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


def t(input: Tensor) -> Any:
    """A matrix transposed; vectors as they are.

    Example:
        >>> import lantern.torch as torch
        >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = in_memory(input).ndim
    if ndim > 2:
        raise EagerError(
            f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D"
        )
    return as_view(_swap_last(input), input) if ndim == 2 else input


def reversed_axes(input: Tensor) -> Any:
    """The tensor with its axes in reverse order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([[1, 2], [3, 4]]).T
        tensor([[1, 3],
                [2, 4]])
    """
    in_memory(input)
    return as_view(_permute(input), input)


def matrix_transposed(input: Tensor) -> Any:
    """The matrices along the last two axes transposed.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(5, 2, 3).mT.shape
        torch.Size([5, 3, 2])
    """
    ndim = in_memory(input).ndim
    if ndim < 2:
        raise EagerError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{ndim}-D tensor."
        )
    return as_view(_swap_last(input), input)


def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """The tensor with some axes moved to other places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.movedim(torch.ones(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    ndim = base(input).ndim
    one = isinstance(source, int)
    if one is not isinstance(destination, int) or (
        not one and len(source) != len(destination)
    ):
        raise EagerError(
            f"movedim: Invalid source or destination dims: source ({source} dims) "
            f"should contain the same number of dims as destination ({destination} "
            f"dims)"
        )
    sources = [axis_of(s, ndim) for s in ([source] if one else source)]
    targets = [axis_of(d, ndim) for d in ([destination] if one else destination)]
    for dims, name in ((sources, "source"), (targets, "destination")):
        if len(set(dims)) < len(dims):
            raise EagerError(f"movedim: repeated dim in `{name}` ({dims})")
    order = [i for i in range(ndim) if i not in sources]
    for target, s in sorted(zip(targets, sources, strict=True)):
        order.insert(target, s)
    return permute(input, order)


def unsqueeze(input: Tensor, dim: int) -> Any:
    """The tensor with a new axis of length 1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
        tensor([[1],
                [2]])
    """
    axis = axis_of(dim, len(in_memory(input).shape), 1)
    return as_view(_expand_dims(input, axis), input)


def squeeze(input: Tensor, dim: Any = None) -> Any:
    """The tensor without axes of length 1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.squeeze(torch.ones(1, 2, 1)).shape
        torch.Size([2])
        >>> torch.squeeze(torch.ones(1, 2, 1), 0).shape
        torch.Size([2, 1])
    """
    shape = in_memory(input).shape
    if isinstance(dim, int):
        dim = (dim,)
    named = range(len(shape)) if dim is None else [axis_of(d, len(shape)) for d in dim]
    chosen = tuple([a for a in named if shape and shape[a] == 1])
    return as_view(_squeeze(input, chosen) if chosen else _reshape(input, shape), input)


def expand(input: Tensor, *sizes: Any, size: Any = None) -> Any:
    """The tensor with axes of length 1 repeated, without a copy; -1 keeps a length.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([[1], [2]]).expand(2, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    sizes = lengths(sizes if size is None else size)
    shape = in_memory(input).shape
    new = len(sizes) - len(shape)
    if new < 0:
        raise EagerError(
            f"expand({input.type()}{list(shape)}, size={list(sizes)}): the number of "
            f"sizes provided ({len(sizes)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(shape)})"
        )
    full = tuple(
        (shape[i - new] if n == -1 else n) if i >= new else n
        for i, n in enumerate(sizes)
    )
    if min(full[:new], default=0) < 0:
        raise EagerError(
            f"The expanded size of the tensor ({min(full[:new])}) isn't allowed in a "
            f"leading, non-existing dimension {full.index(min(full[:new]))}"
        )
    for i, (n, m) in enumerate(zip(shape, full[new:], strict=True)):
        if n not in (1, m):
            raise EagerError(
                f"The expanded size of the tensor ({m}) must match the existing size "
                f"({n}) at non-singleton dimension {i + new}.  Target sizes: "
                f"{list(sizes)}.  Tensor sizes: {list(shape)}"
            )
    change = _reshape if math.prod(full) == math.prod(shape) else repeated
    return as_view(change(input, full), input)


def expand_as(input: Tensor, other: Tensor) -> Any:
    """The tensor broadcast to the shape of another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, *base(other).shape)


def broadcast_to(input: Tensor, size: Any) -> Any:
    """The tensor broadcast to a shape.

    Example:
        >>> import lantern.torch as torch
        >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, *size)


def broadcast_tensors(*tensors: Any) -> Any:
    """Tensors broadcast to their common shape.

    Example:
        >>> import lantern.torch as torch
        >>> a, b = torch.broadcast_tensors(
        ...     torch.tensor([1, 2]), torch.tensor([[3], [4]])
        ... )
        >>> a
        tensor([[1, 2],
                [1, 2]])
        >>> b
        tensor([[3, 3],
                [4, 4]])
    """
    try:
        shape = np.broadcast_shapes(*(base(x).shape for x in tensors))
    except ValueError as error:
        raise mismatch(None, tensors[0], tensors[1], error) from None
    return tuple(expand(x, *shape) for x in tensors)


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """A part along an axis, from a start.

    Example:
        >>> import lantern.torch as torch
        >>> torch.narrow(torch.tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
        tensor([[2, 3],
                [5, 6]])
    """
    shape = base(input).shape
    if isinstance(start, Tensor) and (start.ndim or start.dtype not in _WHOLE):
        raise EagerError("start must be an 0-dim integral Tensor.")
    dim = axis_of(dim, len(shape))
    if not shape:
        raise EagerError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise EagerError("narrow(): length must be non-negative.")
    if not -shape[dim] <= int(start) <= shape[dim]:
        raise PositionError(
            f"start out of range (expected to be in range of [{-shape[dim]}, "
            f"{shape[dim]}], but got {int(start)})"
        )
    start = int(start) % shape[dim] if int(start) < 0 else int(start)
    if start + length > shape[dim]:
        raise EagerError(
            f"start ({start}) + length ({length}) exceeds dimension size "
            f"({shape[dim]})."
        )
    return _part(input, dim, slice(start, start + length))


def _part(input: Tensor, dim: int, part: Any) -> Any:
    in_memory(input)
    index = (*(slice(None),) * dim, part, ...)
    return as_view(_read(input, index=index), input)


def select(input: Tensor, dim: int, index: Any) -> Any:
    """One place along an axis, which goes away.

    Example:
        >>> import lantern.torch as torch
        >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
        tensor([1, 3])
    """
    shape = base(input).shape
    dim = axis_of(dim, len(shape))
    if not -shape[dim] <= int(index) < shape[dim]:
        raise PositionError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at "
            f"dimension {dim}"
        )
    return _part(input, dim, int(index))


def unbind(input: Tensor, dim: int = 0) -> Any:
    """All places along an axis, each without it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    shape = base(input).shape
    if not shape:
        raise PositionError("Dimension specified as 0 but tensor has no dimensions")
    dim = axis_of(dim, len(shape))
    return tuple(_part(input, dim, i) for i in range(shape[dim]))


def split(
    tensor: Tensor,
    split_size_or_sections: Any = None,
    dim: int = 0,
    *,
    split_size: Any = None,
) -> Any:
    """Parts along an axis: of one length, or of several.

    Example:
        >>> import lantern.torch as torch
        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> torch.split(torch.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if split_size is not None:
        split_size_or_sections = split_size
    shape = base(tensor).shape
    dim = axis_of(dim, len(shape))
    n, sizes = shape[dim], split_size_or_sections
    if isinstance(sizes, int):
        if sizes < 0 or (n and not sizes):
            raise EagerError(
                f"split expects split_size be non-negative, and 0 for an empty axis "
                f"only, but got split_size={sizes} for an axis of length {n}"
            )
        sizes = [min(sizes, n - i) for i in range(0, n, max(sizes, 1))] or [0]
    elif sum(sizes) != n:
        raise EagerError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    parts, start = [], 0
    for size in sizes:
        parts.append(_part(tensor, dim, slice(start, start + size)))
        start += size
    return tuple(parts)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most so many parts of one length along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.chunk(torch.arange(5), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if chunks < 1:
        raise EagerError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    shape = base(input).shape
    n = shape[axis_of(dim, len(shape))]
    return split(input, -(-n // chunks) if n else [0] * chunks, dim)


def _check_places(where: Any) -> None:
    if where.dtype != np.int64:
        raise EagerError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, "
            f"but got {dtypes.type_name(where.dtype)}"
        )
    if where.ndim > 1:
        raise EagerError(
            f"tensor_split expected tensor_indices_or_sections to be a "
            f"zero-dimensional or one-dimensional tensor, but got a tensor with "
            f"{where.ndim} dims"
        )


def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
) -> Any:
    """Parts along an axis: so many, or divided at some places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor_split(torch.arange(5), 3)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> torch.tensor_split(torch.arange(5), (1, 3))
        (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    if indices_or_sections is None:
        indices_or_sections = sections if indices is None else indices
    shape = base(input).shape
    if not shape:
        raise EagerError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
            "with 0 dims"
        )
    dim = axis_of(dim, len(shape))
    n, where = shape[dim], base(indices_or_sections)
    if isinstance(indices_or_sections, Tensor):
        _check_places(where)
        where = indices_or_sections.tolist()
    if isinstance(where, int) or not getattr(where, "shape", True):
        if where <= 0:
            raise EagerError(f"number of sections must be larger than 0, got {where}")
        bounds = [len(p) for p in np.array_split(np.empty(n), int(where))]
        edges = [0, *np.cumsum(bounds).tolist()]
    else:
        edges = [0, *map(int, where), n]
    pairs = itertools.pairwise(edges)
    return tuple(_part(input, dim, slice(a, b)) for a, b in pairs)


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
    and name not in ("lengths", "axis_of", "reversed_axes", "matrix_transposed")
}
_SYNONYMS = {
    "moveaxis": "movedim",
    "swapdims": "transpose",
}
functions |= {name: functions[target] for name, target in _SYNONYMS.items()}

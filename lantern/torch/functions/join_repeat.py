"""Tensors joined, repeated, or with their elements in another order; grids; pairs."""

import itertools
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import ArgumentError, EagerError, ShapeError
from lantern.tensor.ops import concat_stack, rearrange
from lantern.tensor.ops import indexing as ours
from lantern.torch.functions.reduction import axis_of
from lantern.torch.functions.shape import expand, lengths, movedim, reshape
from lantern.torch.tables import documented
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.operators import call, cast, in_memory, result_dtype
from lantern.torch.tensor.operators import joining as starter
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face
from lantern.torch.tensor.views import alone, in_place_of, shown, strided

_concat, _stack = map(starter, (concat_stack.plain_concat, concat_stack.plain_stack))


def _alike(tensors: Any) -> list[Any]:
    """Tensors in the type of their joint result."""
    if isinstance(tensors, Tensor):
        raise ArgumentError("argument 'tensors' must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise ArgumentError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{type(x).__name__}"
            )
    kinds = {base(x).dtype for x in tensors}
    if len(kinds) > 1:
        kind = result_dtype(*(x.reshape(-1) for x in tensors))
        tensors = [cast(x, kind) for x in tensors]
    return tensors


def cat(tensors: Any, dim: int = 0, *, axis: Any = None, out: Any = None) -> Any:
    """Tensors joined along an axis that they have.

    Shapes:
        each: (..., n_i, ...), alike in the other axes; result: (..., sum of n_i, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.cat([torch.tensor([[1, 2]]), torch.tensor([[3, 4]])], dim=1)
        tensor([[1, 2, 3, 4]])
    """
    try:
        kinds = {(x.primal.dtype, x.primal.ndim) for x in tensors}
        if len(kinds) == 1 and not isinstance(tensors, Tensor):
            return _concat(tensors, axis=dim)
    except (AttributeError, ValueError, IndexError, TypeError):
        pass  # what is wrong is said below
    tensors = _alike(tensors)
    if not tensors:
        raise ShapeError("torch.cat(): expected a non-empty list of Tensors")
    if any(not base(x).shape for x in tensors):
        i = next(i for i, x in enumerate(tensors) if not base(x).shape)
        raise EagerError(
            f"zero-dimensional tensor (at position {i}) cannot be concatenated"
        )
    ndim = max(base(x).ndim for x in tensors)
    dim = axis_of(dim, ndim)
    if ndim > 1:
        tensors = [x for x in tensors if base(x).shape != (0,)]
    shapes = [base(x).shape for x in tensors]
    for i, shape in enumerate(shapes):
        if len(shape) != ndim:
            raise EagerError(
                f"Tensors must have same number of dimensions: got {ndim} and "
                f"{len(shape)}"
            )
        for d in range(ndim):
            if d != dim and shape[d] != shapes[0][d]:
                raise EagerError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected "
                    f"size {shapes[0][d]} but got size {shape[d]} for tensor number "
                    f"{i} in the list."
                )
    return _concat(tensors, axis=dim)


def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Tensors of one shape joined along a new axis.

    Shapes:
        each of k: (...); result: (k, ...) for dim 0

    Example:
        >>> import lantern.torch as torch
        >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    try:
        if len({(x.primal.dtype, x.primal.shape) for x in tensors}) == 1:
            return _stack(tensors, axis=dim)
    except (AttributeError, ValueError):
        pass  # what is wrong is said below
    tensors = _alike(tensors)
    if not tensors:
        raise EagerError("stack expects a non-empty TensorList")
    shape = base(tensors[0]).shape
    for i, x in enumerate(tensors):
        if base(x).shape != shape:
            raise EagerError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at "
                f"entry 0 and {list(base(x).shape)} at entry {i}"
            )
    return _stack(tensors, axis=axis_of(dim, len(shape), 1))


def _joining(name: str) -> Any:
    function = getattr(concat_stack, name)

    def join(tensors: Any) -> Any:
        if not tensors:
            raise EagerError(f"{name} expects a non-empty TensorList")
        return call(function, [numpy_face(x) for x in _alike(tensors)])

    join.__name__ = name
    return join


hstack = documented(
    _joining("hstack"),
    """Tensors joined along the second axis; vectors along their only one.

    >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """,
)
vstack = documented(
    _joining("vstack"),
    """Tensors joined along the first axis; vectors are rows.

    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """,
)
dstack = documented(
    _joining("dstack"),
    """Tensors joined along the third axis.

    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """,
)
column_stack = documented(
    _joining("column_stack"),
    """Columns side by side: vectors, or the columns of matrices.

    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """,
)


def repeat(input: Tensor, *counts: Any, repeats: Any = None) -> Any:
    """Copies of the tensor, side by side: so many along each axis.

    Shapes:
        input: (n, m); counts: (a, b); result: (a * n, b * m)

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    reps = lengths(counts if repeats is None else repeats)
    if len(reps) < base(input).ndim:
        raise EagerError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    return call(rearrange.tile, input, reps)


def tile(input: Tensor, *counts: Any, dims: Any = None) -> Any:
    """Copies of the tensor, side by side, as ``numpy.tile``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tile(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    return call(rearrange.tile, input, lengths(counts if dims is None else dims))


@each_example
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """Each element, or each part along an axis, repeated; of numbers alone, places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([1, 3]))
        tensor([1, 2, 2, 2])
    """
    if repeats is None:
        n, kind = base(input).size, base(input).dtype
        places = namespace(base(input)).arange(n).astype(kind)
        input, repeats = fresh(places), input
    return call(rearrange.repeat, input, base(repeats), dim)


def _dims(names: Any, dims: Any) -> tuple[int, ...]:
    """Axes given one by one, in a sequence, or by name."""
    return lengths((names,) if names is not None and not dims else dims)


def flip(input: Tensor, *axes: Any, dims: Any = None) -> Any:
    """The elements in reverse order along some axes; a copy.

    Example:
        >>> import lantern.torch as torch
        >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), dims=[1])
        tensor([[2, 1],
                [4, 3]])
    """
    ndim = base(input).ndim
    chosen = tuple(axis_of(d, ndim) for d in _dims(dims, axes))
    if len(set(chosen)) < len(chosen):
        raise EagerError(f"dim {chosen[0]} appears multiple times in the list of dims")
    return alone(call(rearrange.flip, input, chosen), input) if ndim else input.clone()


def fliplr(input: Tensor) -> Any:
    """The columns in reverse order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    _needs_axes("fliplr", input, 2)
    return flip(input, 1)


def flipud(input: Tensor) -> Any:
    """The rows in reverse order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    _needs_axes("flipud", input, 1)
    return flip(input, 0)


def _needs_axes(name: str, input: Tensor, n: int) -> None:
    if base(input).ndim < n:
        raise EagerError(f"{name}: input must have at least {n} dimensions")


def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    """The tensor turned by right angles.

    Example:
        >>> import lantern.torch as torch
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    return alone(call(rearrange.rot90, input, k, tuple(dims)), input)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """The elements moved along axes; those that fall off come back at the other end.

    Example:
        >>> import lantern.torch as torch
        >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
        tensor([4, 1, 2, 3])
    """
    shifts = tuple(shifts) if isinstance(shifts, list | tuple) else shifts
    dims = tuple(dims) if isinstance(dims, list | tuple) else dims
    if shifts == ():
        raise EagerError("`shifts` required")
    if dims == ():
        dims = None
    if (len(shifts) if isinstance(shifts, tuple) else 1) != (
        len(dims) if isinstance(dims, tuple) else 1
    ):
        raise EagerError(
            f"shifts and dimensions must align. shifts: {shifts}, dims: {dims}"
        )
    return call(rearrange.roll, input, shifts, dims)


def tril(input: Tensor, diagonal: int = 0) -> Any:
    """The lower triangles of matrices, zeros elsewhere.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, 2)
        >>> torch.tril(x)
        tensor([[1., 0.],
                [1., 1.]])
    """
    _needs_axes("tril", input, 2)
    return call(rearrange.tril, input, diagonal)


def triu(input: Tensor, diagonal: int = 0) -> Any:
    """The upper triangles of matrices, zeros elsewhere.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, 2)
        >>> torch.triu(x)
        tensor([[1., 1.],
                [0., 1.]])
    """
    _needs_axes("triu", input, 2)
    return call(rearrange.triu, input, diagonal)


def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a diagonal.

    Shapes:
        input: (n, n), result: (n,); input: (n,), result: (n, n)

    Example:
        >>> import lantern.torch as torch
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return alone(call(rearrange.diag, input, diagonal), input)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonals of the matrices along two axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    _needs_axes("diagonal", input, 2)

    def show(a: Any) -> Any:
        z = a.diagonal(offset, dim1, dim2)
        if type(z) is np.ndarray:  # NumPy does not let it be written to
            z.flags.writeable = a.flags.writeable
        return z

    try:
        return shown(input, show)
    except ValueError as error:
        raise EagerError(str(error)) from None


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with diagonals, along two axes.

    Shapes:
        input: (..., n); result: (..., n, n)

    Example:
        >>> import lantern.torch as torch
        >>> torch.diag_embed(torch.tensor([1, 2]), offset=1)
        tensor([[0, 1, 0],
                [0, 0, 2],
                [0, 0, 0]])
    """
    array = base(input)
    first, second = (axis_of(d, array.ndim, 1) for d in (dim1, dim2))
    if first == second:
        raise EagerError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = array.shape[-1] + abs(offset)
    i = namespace(array).arange(array.shape[-1])
    index = (..., i + max(-offset, 0), i + max(offset, 0))
    z = call(ours.scatter, input, index=index, shape=(*array.shape[:-1], n, n))
    return movedim(z, (-2, -1), (dim1, dim2))


def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """The coordinates of a grid, an array for each axis.

    Args:
        tensors: the coordinates along each axis.
        indexing: "ij" has the axes in their order, "xy" swaps the first two.

    Shapes:
        each: (n_i,); each result: (n_1, n_2, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tuple(tensors[0])
    if len({base(x).dtype for x in tensors}) > 1:
        raise EagerError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise EagerError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
            f"{indexing}"
        )
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    shape = [base(tensors[i]).size for i in order]
    grids = []
    for i, x in enumerate(tensors):
        own = [-1 if k == i else 1 for k in order]
        grids.append(expand(reshape(x, *own), *shape))
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of elements, one in each row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    if len(tensors) == 1:
        return tensors[0]
    return stack([x.reshape(-1) for x in meshgrid(*tensors)], -1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of r elements, one in each row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.combinations(torch.tensor([1, 2, 3]), r=2)
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    kind = "combinations_with_replacement" if with_replacement else "combinations"
    rows = list(getattr(itertools, kind)(range(len(input)), r))
    return input[fresh(np.array(rows, np.int64).reshape(-1, r))]


def _atleast(n: int) -> Any:
    def convert(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
            tensors = tuple(tensors[0])
        results = tuple(_with_axes(x, n) for x in tensors)
        return results[0] if len(results) == 1 else results

    return convert


def _with_axes(x: Tensor, n: int) -> Any:
    shape = base(x).shape
    if len(shape) >= n:
        return x
    more = {(0, 1): (1,), (0, 2): (1, 1), (0, 3): (1, 1, 1)}
    shapes = {
        (1, 2): lambda: (1, *shape),
        (1, 3): lambda: (1, *shape, 1),
        (2, 3): lambda: (*shape, 1),
    }
    key = (len(shape), n)
    return reshape(x, more[key] if key in more else shapes[key]())


atleast_1d = documented(
    _atleast(1),
    """The tensor, or each of several, with at least one axis.

    >>> torch.atleast_1d(torch.tensor(5))
    tensor([5])
    """,
)
atleast_2d = documented(
    _atleast(2),
    """The tensor, or each of several, with at least two axes.

    >>> torch.atleast_2d(torch.tensor([1, 2]))
    tensor([[1, 2]])
    """,
)
atleast_3d = documented(
    _atleast(3),
    """The tensor, or each of several, with at least three axes.

    >>> torch.atleast_3d(torch.ones(2, 4)).shape
    torch.Size([2, 4, 1])
    """,
)


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Any:
    """All windows of a size along an axis, as a last axis.

    Shapes:
        input: (..., n, ...); result: (..., (n - size) // step + 1, ..., size)

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).unfold(0, size=2, step=1)
        tensor([[0, 1],
                [1, 2],
                [2, 3]])
    """
    if not base(input).shape:
        input = input.reshape(1)
        return unfold(input, dimension, size, step)[0]
    shape = base(input).shape
    dim = axis_of(dimension, len(shape))
    if size > shape[dim]:
        raise EagerError(
            f"maximum size for tensor at dimension {dim} is {shape[dim]} but size is "
            f"{size}"
        )
    if type(base(input)) is not np.ndarray:
        xp = namespace(base(input))
        starts = xp.arange(0, shape[dim] - size + 1, step)
        index = (*(slice(None),) * dim, starts[:, None] + xp.arange(size))
        return movedim(call(ours.getitem, input, index), dim + 1, -1)
    windows = (*shape[:dim], (shape[dim] - size) // step + 1, *shape[dim + 1 :], size)

    def show(a: Any) -> Any:
        steps = list(a.strides)
        steps[dim] *= step
        return strided(a, windows, (*steps, a.strides[dim]))

    return shown(input, show)


def numel(input: Tensor) -> int:
    """How many elements there are.

    Example:
        >>> import lantern.torch as torch
        >>> torch.numel(torch.ones(2, 3))
        6
    """
    return base(input).size


def view_as_real(input: Tensor) -> Any:
    """Complex numbers as pairs along a last axis, in the same memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.view_as_real(torch.tensor([1 + 2j, 3 + 4j]))
        tensor([[1., 2.],
                [3., 4.]])
    """
    array = in_memory(input)
    if base(array).dtype.kind != "c":
        raise EagerError("view_as_real is only supported for complex tensors")
    z = stack([input.real, input.imag], -1)
    if type(array) is np.ndarray:
        parts = array[..., None].view(base(z).dtype)
        return in_place_of(z, parts, input)
    return z


def view_as_complex(input: Tensor) -> Any:
    """Pairs along the last axis as complex numbers, in the same memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1.+2.j, 3.+4.j])
    """
    array = in_memory(input)
    if not base(array).ndim:
        raise EagerError("Input tensor must have one or more dimensions")
    if base(array).shape[-1:] != (2,):
        raise EagerError("Tensor must have a last dimension of size 2")
    z = input[..., 0] + input[..., 1] * 1j
    if type(array) is np.ndarray:
        if array.strides[-1] != array.itemsize and array.size:
            raise EagerError("Tensor must have a last dimension with stride 1")
        if array.size and any(
            step % (2 * array.itemsize) for step in array.strides[:-1]
        ):
            raise EagerError(
                "Tensor must have a stride divisible by 2 for all but last dimension"
            )
        if not array.size:
            return z
        return in_place_of(z, array.view(base(z).dtype)[..., 0], input)
    return z


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
}
functions |= {"concat": cat, "concatenate": cat, "row_stack": vstack}

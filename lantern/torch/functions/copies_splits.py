"""Functions that few programs call: copies of views, statistics, products by name."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.residuals import copied
from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.tensor.ops import elementwise as ours
from lantern.torch.functions import (
    comparison,
    elementwise,
    indexing,
    join_repeat,
    reduction,
    sorting_scans,
)
from lantern.torch.functions import shape as shaping
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.dtypes import F32, F64, FLOATING, INEXACT, Size
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.operators import (
    as_tensor,
    cast,
    in_memory,
    promote,
    refuse_numbers,
    result_dtype,
)
from lantern.torch.tensor.tensor import Tensor, fresh
from lantern.torch.tensor.view_memory import place
from lantern.torch.tensor.views import shown, strided

functions: dict[str, Any] = {}


def _copying(name: str, function: Any) -> Any:
    def copy(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if isinstance(found, tuple):
            return tuple(z.clone().contiguous() for z in found)
        return found.clone().contiguous()

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"As ``{name}``, but a copy."
    return takes(copy, parameters(function, "input"))


functions |= {
    "diagonal_copy": documented(
        _copying("diagonal", join_repeat.functions["diagonal"]),
        """
        >>> torch.diagonal_copy(torch.tensor([[1, 2], [3, 4]]), offset=1)
        tensor([2])
        """,
    ),
    "expand_copy": documented(
        _copying("expand", shaping.functions["expand"]),
        """
        >>> torch.expand_copy(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
        """,
    ),
    "narrow_copy": documented(
        _copying("narrow", shaping.functions["narrow"]),
        """
        >>> torch.narrow_copy(torch.tensor([1, 2, 3]), 0, 1, 2)
        tensor([2, 3])
        """,
    ),
    "view_as_complex_copy": documented(
        _copying("view_as_complex", join_repeat.functions["view_as_complex"]),
        """
        >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1.+2.j, 3.+4.j])
        """,
    ),
    "view_as_real_copy": documented(
        _copying("view_as_real", join_repeat.functions["view_as_real"]),
        """
        >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])
        """,
    ),
    "permute_copy": documented(
        _copying("permute", shaping.functions["permute"]),
        """
        >>> torch.permute_copy(torch.tensor([[1, 2], [3, 4]]), (1, 0))
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "squeeze_copy": documented(
        _copying("squeeze", shaping.functions["squeeze"]),
        """
        >>> torch.squeeze_copy(torch.tensor([[1, 2]]))
        tensor([1, 2])
        """,
    ),
    "t_copy": documented(
        _copying("t", shaping.functions["t"]),
        """
        >>> torch.t_copy(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "transpose_copy": documented(
        _copying("transpose", shaping.functions["transpose"]),
        """
        >>> torch.transpose_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "unbind_copy": documented(
        _copying("unbind", shaping.functions["unbind"]),
        """
        >>> torch.unbind_copy(torch.tensor([[1, 2], [3, 4]]), 1)
        (tensor([1, 3]), tensor([2, 4]))
        """,
    ),
    "unfold_copy": documented(
        _copying("unfold", join_repeat.unfold),
        """
        >>> torch.unfold_copy(torch.arange(4), 0, 2, 1)
        tensor([[0, 1],
                [1, 2],
                [2, 3]])
        """,
    ),
    "unsqueeze_copy": documented(
        _copying("unsqueeze", shaping.functions["unsqueeze"]),
        """
        >>> torch.unsqueeze_copy(torch.tensor([1, 2]), 0)
        tensor([[1, 2]])
        """,
    ),
    "view_copy": documented(
        _copying("view", shaping.functions["view"]),
        """
        >>> torch.view_copy(torch.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
        """,
    ),
}
functions["unsafe_chunk"], functions["unsafe_split"] = shaping.chunk, shaping.split


def alias_copy(input: Tensor) -> Any:
    """A copy of the tensor, in memory of its own.

    Example:
        >>> import lantern.torch as torch
        >>> torch.alias_copy(torch.tensor([1, 2]))
        tensor([1, 2])
    """
    return input.clone()


def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Parts of several lengths along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.split_with_sizes(torch.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return shaping.split(input, list(split_sizes), dim)


def split_copy(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """Copies of the parts of one length along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.split_copy(torch.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
    """
    return tuple(z.clone().contiguous() for z in shaping.split(input, split_size, dim))


split_with_sizes_copy = documented(
    _copying("split_with_sizes", split_with_sizes),
    """
    >>> torch.split_with_sizes_copy(torch.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """,
)


def _axis_split(name: str, axis: int, least: int) -> Any:
    def split(
        input: Tensor,
        indices_or_sections: Any = None,
        *,
        indices: Any = None,
        sections: Any = None,
    ) -> Any:
        if indices_or_sections is None:
            indices_or_sections = sections if indices is None else indices
        ndim = base(input).ndim
        if ndim < least:
            raise EagerError(
                f"torch.{name} requires a tensor with at least {least} dimension, but "
                f"got a tensor with {ndim} dimensions!"
            )
        dim = 0 if ndim == 1 else axis
        n, parts = base(input).shape[dim], base(indices_or_sections)
        if isinstance(parts, str):
            raise ArgumentError(f"{name}(): argument must be int or tuple of ints")
        if isinstance(parts, int) and (parts <= 0 or n % parts):
            raise EagerError(
                f"torch.{name} attempted to split along dimension {dim}, but the size "
                f"of the dimension {n} is not divisible by the split_size {parts}!"
            )
        return shaping.tensor_split(input, indices_or_sections, dim)

    split.__name__ = split.__qualname__ = name
    return split


hsplit = documented(
    _axis_split("hsplit", 1, 1),
    """Parts along the second axis (of vectors: the first), as ``tensor_split``.

    >>> torch.hsplit(torch.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1],
            [3]]), tensor([[2],
            [4]]))
    """,
)
vsplit = documented(
    _axis_split("vsplit", 0, 2),
    """Parts along the first axis: so many, or divided at some places.

    >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """,
)
dsplit = documented(
    _axis_split("dsplit", 2, 3),
    """Parts along the third axis: so many, or divided at some places.

    >>> a, b = torch.dsplit(torch.ones(2, 2, 4), 2)
    >>> b.shape
    torch.Size([2, 2, 2])
    """,
)


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    """The tensor with a source on a diagonal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    array = base(input)
    numbers = namespace(array).arange(array.size).reshape(array.shape)
    where = np.diagonal(numbers, offset, dim1, dim2)
    if base(src).shape != where.shape:
        raise EagerError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(base(src).shape)}, slice size = {list(where.shape)}"
        )
    flat = indexing.put(input.reshape(-1), where.reshape(-1).copy(), src.reshape(-1))
    return flat.reshape(array.shape)


def diagflat(input: Tensor, offset: int = 0) -> Any:
    """A matrix with all elements, in a row, on a diagonal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.diagflat(torch.tensor([1, 2]), offset=1)
        tensor([[0, 1, 0],
                [0, 0, 2],
                [0, 0, 0]])
    """
    return join_repeat.diag_embed(input.reshape(-1), offset)


def sum_to_size(input: Tensor, *size: Any) -> Any:
    """The sum over axes that were broadcast.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    shape, wanted = base(input).shape, shaping.lengths(size)
    extra = len(shape) - len(wanted)
    if extra < 0 or any(
        m not in (1, n) for n, m in zip(shape[extra:], wanted, strict=True)
    ):
        raise EagerError(f"size {list(wanted)} is not expandable to {list(shape)}.")
    dims = [*range(extra), *(i + extra for i, m in enumerate(wanted) if m == 1)]
    z = reduction.sum(input, dims, True) if dims else input
    return z.reshape(wanted)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that several are broadcast to.

    Example:
        >>> import lantern.torch as torch
        >>> torch.broadcast_shapes((2, 1), (1, 3))
        torch.Size([2, 3])
    """
    rows = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if any(n < 0 for row in rows for n in row):
        raise EagerError(
            "Trying to create tensor with negative dimension: "
            f"{[n for row in rows for n in row if n < 0]}"
        )
    try:
        return Size(np.broadcast_shapes(*rows))
    except ValueError as error:
        raise EagerError(f"Shape mismatch: {error}") from None


def positive(input: Tensor) -> Any:
    """The tensor itself.

    Example:
        >>> import lantern.torch as torch
        >>> torch.positive(torch.tensor([-1, 2]))
        tensor([-1,  2])
    """
    if base(input).dtype.kind == "b":
        raise EagerError("The `+` operator, on a bool tensor is not supported.")
    return input


def resolve_conj(input: Tensor) -> Any:
    """The tensor itself: its conjugate is never put off.

    Example:
        >>> import lantern.torch as torch
        >>> torch.resolve_conj(torch.tensor([1 + 2j]))
        tensor([1.+2.j])
    """
    return input


resolve_neg = resolve_conj


def conj_physical(input: Tensor) -> Any:
    """The complex conjugate, in memory of its own.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1 + 2j])
        >>> torch.conj_physical(x)
        tensor([1.-2.j])
    """
    return elementwise.conj(input)


def adjoint(input: Tensor) -> Any:
    """The matrices along the last two axes transposed, and conjugated.

    Example:
        >>> import lantern.torch as torch
        >>> torch.adjoint(torch.tensor([[1 + 1j, 2j]])).resolve_conj()
        tensor([[1.-1.j],
                [0.-2.j]])
    """
    if base(input).ndim < 2:
        raise EagerError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. "
            f"Got {base(input).ndim}-D tensor."
        )
    return elementwise.conj(shaping.matrix_transposed(input))


def polar(abs: Tensor, angle: Tensor) -> Any:
    """Complex numbers of their absolute values and angles.

    Example:
        >>> import lantern.torch as torch
        >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
        tensor([2.+0.j])
    """
    if base(abs).dtype != base(angle).dtype:
        raise EagerError(f"Expected object of scalar type {abs.dtype} for angle")
    wave = elementwise.functions
    return abs * wave["cos"](angle) + abs * wave["sin"](angle) * 1j


_step = elementwise._binary(ours.heaviside)


def heaviside(input: Tensor, values: Tensor) -> Any:
    """0 below 0, 1 above, and other values at 0.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1.0, 0.0, 2.0])
        >>> torch.heaviside(x, torch.tensor([0.5]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    z = _step(input, values)
    strange = np.isnan(base(input)) if base(input).dtype.kind in FLOATING else None
    if strange is not None and np.any(of_all_examples(strange)):
        z = z.masked_fill(fresh(as_array(strange)), 0)
    return cast(z, base(input).dtype) if base(input).dtype.kind in "iub" else z


def float_power(input: Any, exponent: Any) -> Any:
    """As ``pow``, in double precision.

    Example:
        >>> import lantern.torch as torch
        >>> torch.float_power(torch.tensor([1, 4]), 0.5)
        tensor([1., 2.], dtype=torch.float64)
    """
    refuse_numbers("float_power", input, exponent, "either")
    x, y = as_tensor(input), as_tensor(exponent)
    kind = F64
    if result_dtype(x, y).kind == "c":
        kind = np.dtype(np.complex128)
    x = cast(x, kind) if isinstance(x, Tensor) else kind.type(x).item()
    return x ** (cast(y, kind) if isinstance(y, Tensor) else y)


def ldexp(input: Tensor, other: Tensor) -> Any:
    """``input * 2**other``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 3.0])
        >>> torch.ldexp(x, torch.tensor([4, 1]))
        tensor([16.,  6.])
    """
    x, y = promote(input, other)
    kind = base(x).dtype if base(x).dtype.kind in INEXACT else F32
    return cast(x, kind) * elementwise.functions["exp2"](cast(y, kind))


_FREXP = named("frexp", "mantissa exponent")


@each_example
def frexp(input: Tensor) -> Any:
    """Mantissa and exponent: ``mantissa * 2**exponent``, the mantissa in [1/2, 1).

    Example:
        >>> import lantern.torch as torch
        >>> torch.frexp(torch.tensor([8.0, 3.0]))
        torch.return_types.frexp(
        mantissa=tensor([0.5000, 0.7500]),
        exponent=tensor([4, 2], dtype=torch.int32))
    """
    array = base(input)
    if array.dtype.kind not in FLOATING:
        raise EagerError("torch.frexp() only supports floating-point dtypes")
    exponent = as_array(np.frexp(array)[1])
    scale = fresh(np.ldexp(np.ones_like(array), -exponent))
    return _FREXP(input * scale, fresh(exponent.astype(np.int32)))


def msort(input: Tensor) -> Any:
    """The elements in order along the first axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]])
    """
    return sorting_scans.sort(input, 0)[0]


def renorm(input: Tensor, p: Any, dim: int, maxnorm: float) -> Any:
    """The parts along an axis, those scaled down whose norm is above a limit.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
        >>> torch.renorm(x, p=2, dim=0, maxnorm=1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if p <= 0:
        raise EagerError("renorm: non-positive-norm not supported")
    if base(input).ndim < 2:
        raise EagerError(
            f"renorm: input needs at least 2 dimensions, got {base(input).ndim} "
            f"dimensions"
        )
    axis = axis_of(dim, base(input).ndim)
    others = [i for i in range(base(input).ndim) if i != axis]
    size = reduction.vector_norm(input, p, others, True)
    over = comparison.functions["gt"](size, maxnorm)
    return input * elementwise.where(over, maxnorm / (size + 1e-7), 1.0)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """The tensor with values at positions, all counted along one axis.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 2)
        >>> torch.put(x, torch.tensor([1, 2]), torch.tensor([5.0, 6.0]))
        tensor([[0., 5.],
                [6., 0.]])
    """
    where = copied(base(index)).reshape(-1)
    change = indexing.add_at if accumulate else indexing.put
    flat = change(input.reshape(-1), where, source.reshape(-1))
    return flat.reshape(base(input).shape)


def unravel_index(indices: Tensor, shape: Any) -> Any:
    """The positions along axes of positions counted in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unravel_index(torch.tensor([1, 5]), (2, 3))
        (tensor([0, 1]), tensor([1, 2]))
    """
    if not isinstance(shape, int | tuple | list):
        raise ArgumentError(
            f"unravel_index: expected 'shape' to be int or sequence of ints, but got "
            f"{type(shape)}"
        )
    if base(indices).dtype.kind not in "iu":
        raise ArgumentError(
            f"unravel_index: expected 'indices' to be integer dtype, but got "
            f"{indices.dtype}"
        )
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in shape:
        if not isinstance(n, int | np.integer):
            raise ArgumentError(
                f"unravel_index: expected 'shape' sequence to only contain ints, but "
                f"got {type(n)}"
            )
    if any(n < 0 for n in shape):
        raise OptionError(
            f"unravel_index: 'shape' cannot have negative values, but got {shape}"
        )
    found, rest = [], as_array(base(indices)).astype(np.int64)
    for n in reversed(shape):
        found.append(fresh(as_array(rest % n)))
        rest = rest // n
    return tuple(reversed(found))


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """The first positions of what is not 0, filled up to a number of them.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nonzero_static(torch.tensor([0, 3, 0, 5]), size=3)
        tensor([[ 1],
                [ 3],
                [-1]])
    """
    found = base(indexing.nonzero(input))
    z = namespace(found).full((size, found.shape[1]), fill_value, np.int64)
    z[: len(found)] = found[:size]
    return fresh(z)


@each_example
def as_strided(
    input: Tensor, size: Any, stride: Any = None, storage_offset: Any = None
) -> Any:
    """A copy of elements at regular distances in the tensor's memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.as_strided(torch.arange(9), (2, 2), (3, 1), storage_offset=1)
        tensor([[1, 2],
                [4, 5]])
    """
    size = shaping.lengths((size,))
    if stride is None:
        stride = [math.prod(size[i + 1 :]) for i in range(len(size))]
    whole = input.viewed if isinstance(input.viewed, Tensor) else input
    strides = in_memory(whole).strides
    if not in_memory(whole).flags.c_contiguous:  # its axes in the order of memory
        whole = whole.permute(*sorted(range(len(strides)), key=lambda i: -strides[i]))
        whole = whole.contiguous()
    if len(size) != len(stride):
        raise EagerError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise EagerError("as_strided: Negative strides are not supported at the moment")
    n = base(whole).size
    start = storage_offset
    if start is None:
        start = int(place(input, whole).min(initial=n)) if input is not whole else 0
    last = start + sum((m - 1) * step for m, step in zip(size, stride, strict=True))
    if 0 not in size and last >= n:
        raise EagerError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{start} are out of bounds for storage of size {n}"
        )

    def show(a: Any) -> Any:
        steps = [step * a.itemsize for step in stride]
        return strided(a.reshape(-1)[start:], size, steps)

    return shown(whole, show)


def slice_copy(
    input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """A copy of a slice of an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.slice_copy(torch.tensor([1, 2, 3, 4]), 0, 1, 3)
        tensor([2, 3])
    """
    index = (*(slice(None),) * axis_of(dim, base(input).ndim), slice(start, end, step))
    return input[index].clone().contiguous()


def fill(input: Tensor, value: Any) -> Any:
    """A tensor of one value, in the shape and type of another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.fill(torch.tensor([1.0, 2.0]), 7)
        tensor([7., 7.])
    """
    axes = len(getattr(value, "shape", ()))
    if axes:
        raise EagerError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {axes} "
            f"dimensions."
        )
    return input.clone().fill_(value)


functions |= {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
}
functions["slice_copy"] = slice_copy
functions["as_strided_copy"] = documented(
    _copying("as_strided", as_strided),
    """
    >>> torch.as_strided_copy(torch.arange(4), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """,
)

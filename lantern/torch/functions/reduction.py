"""Axes as PyTorch and NumPy name them, and reductions along them."""

from inspect import unwrap
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, PositionError
from lantern.tensor import linalg
from lantern.tensor.ops import mean_variance
from lantern.tensor.ops import reduction as ours
from lantern.tensor.ops.indexing import plain_getitem
from lantern.torch.functions.comparison import tracked_like
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_differentiated
from lantern.torch.tensor.devices import as_array, grid
from lantern.torch.tensor.dtypes import F32, F64, FLOATING, I64, INEXACT, as_numpy_dtype
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.halves import in_single, is_half
from lantern.torch.tensor.named_results import agree_on_type, named, result_into
from lantern.torch.tensor.operators import call, cast, unary
from lantern.torch.tensor.tensor import Tensor, fresh

_read = unary(plain_getitem)
_sum, _mean = unary(ours.plain_sum), unary(ours.plain_mean)


def axes(dim: Any, x: Any) -> Any:
    """Axes as NumPy takes them; no axes at all are all of them, as in PyTorch."""
    if isinstance(dim, list | tuple):
        dim = tuple(int(d) for d in dim) or None
        if dim is not None and len(dim) > 1:
            _once(dim, base(x).ndim)
    if dim is not None and not base(x).shape:
        for d in dim if isinstance(dim, tuple) else (dim,):
            axis_of(d, 0)
        return None
    return dim


def _once(dims: tuple[int, ...], ndim: int) -> None:
    """Raise if an axis is named twice."""
    found = [axis_of(d, ndim) for d in dims]
    for d in found:
        if found.count(d) > 1:
            raise EagerError(f"dim {d} appears multiple times in the list of dims")


def axis_of(dim: int, ndim: int, extra: int = 0) -> int:
    """An axis counted from 0, checked."""
    n = ndim + extra or 1
    if not -n <= dim < n:
        raise PositionError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
            f"got {dim})"
        )
    return dim % n


def also_axis(function: Any) -> Any:
    """A function that takes NumPy's ``axis`` and ``keepdims`` as well."""
    code = unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "dim" not in names:
        return function

    def either(*args: Any, **options: Any) -> Any:
        if options:
            if "axis" in options:
                options["dim"] = options.pop("axis")
            if "keepdims" in options:
                options["keepdim"] = options.pop("keepdims")
            if not args and "input" not in options:
                args = tuple(options.pop(x) for x in ("x", "a", "x1") if x in options)
            out = options.pop("out", None)
            if out is not None:
                agree_on_type(function.__name__, out, options)
                z = function(*args, **options)
                return result_into(function.__name__, z, out)
        return function(*args, **options)

    either.__name__ = either.__qualname__ = function.__name__
    either.__doc__ = function.__doc__
    return takes(either, parameters(function, out=True))


def _wide(input: Tensor, dtype: Any) -> Tensor:
    """What is summed: integers in 64 bits, unless a type is asked for."""
    if dtype is not None:
        return cast(input, as_numpy_dtype(dtype))
    return cast(input, I64) if input.primal.dtype.kind in "iub" else input


def sum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The sum over axes, all by default; integers are summed in 64 bits.

    Shapes:
        input: (..., n, ...); result: (..., ...), with keepdim (..., 1, ...)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.sum(x)
        tensor(10)
        >>> torch.sum(x, dim=0)
        tensor([4, 6])
        >>> torch.sum(x, dim=1, keepdim=True)
        tensor([[3],
                [7]])
    """
    array = input.primal
    plain = dim is None or (type(dim) is int and array.shape)
    if plain and dtype is None and (array.dtype is F32 or array.dtype is F64):
        return _sum(input, dim, keepdim)
    x, where = _wide(input, dtype), axes(dim, input)
    if is_half(x):
        return in_single(_sum, x, where, keepdim)
    return _typed_as(_sum(x, where, keepdim), dtype)


def _typed_as(z: Tensor, dtype: Any) -> Tensor:
    """A result in the type that was asked for: NumPy widens integers."""
    return z if dtype is None else cast(z, as_numpy_dtype(dtype))


def _needs_floating(name: str, input: Tensor, dtype: Any) -> Tensor:
    if dtype is not None:
        if as_numpy_dtype(dtype).kind not in INEXACT:
            raise EagerError(
                f"{name}(): could not infer output dtype. Optional dtype must be "
                f"either a floating point or complex dtype. Got: {dtype}"
            )
        return cast(input, as_numpy_dtype(dtype))
    if input.primal.dtype.kind in "iub":
        word = {"b": "Bool", "u": "Byte"}.get(base(input).dtype.kind, "Long")
        raise EagerError(
            f"{name}(): could not infer output dtype. Input dtype must be either a "
            f"floating point or complex dtype. Got: {word}"
        )
    return input


def mean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The mean over axes, all by default.

    Shapes:
        input: (..., n, ...); result: (..., ...), with keepdim (..., 1, ...)

    Raises:
        RuntimeError: for integers; ``dtype`` says what to count in.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.mean(x)
        tensor(2.5000)
        >>> torch.mean(x, dim=0)
        tensor([2., 3.])
    """
    x = _needs_floating("mean", input, dtype)
    kind = x.primal.dtype
    if kind is not F32 and kind is not F64 and is_half(x):
        return in_single(mean, x, dim, keepdim)
    if not base(x).size:
        with np.errstate(all="ignore"):
            return _sum(x, axes(dim, input), keepdim) / 0.0
    return _mean(x, axes(dim, input), keepdim)


def nansum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The sum over axes of what is a number.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nansum(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(4.)
    """
    if base(input).dtype.kind in FLOATING:
        input = _without_nan(input)
    return sum(input, dim, keepdim, dtype=dtype)


def _without_nan(input: Tensor) -> Any:
    from lantern.torch.functions.elementwise import where

    return where(fresh(~np.isnan(base(input))), input, 0.0)


def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The mean over axes of what is a number.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nanmean(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(2.)
    """
    if base(input).dtype.kind in "iub":
        raise EagerError(
            f"nanmean(): expected input to have floating point or complex dtype but "
            f"got {dtypes.type_name(base(input).dtype)}"
        )
    there = ~np.isnan(base(input))
    count = fresh(as_array(np.sum(there, axes(dim, input), keepdims=keepdim)))
    return nansum(input, dim, keepdim, dtype=dtype) / count


def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The product over an axis, or over all.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.prod(x)
        tensor(24)
        >>> torch.prod(x, dim=1)
        tensor([ 2, 12])
    """
    z = call(ours.prod, _wide(input, dtype), axes(dim, input), keepdims=keepdim)
    return _typed_as(z, dtype)


def _correction(unbiased: bool, correction: Any) -> Any:
    return (1 if unbiased else 0) if correction is None else correction


def _moment(name: str) -> Any:
    function = getattr(mean_variance, name)

    def moment(
        input: Tensor,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if base(input).dtype.kind in "iub":
            raise EagerError(
                f"{name} and {name}_mean only support floating point and complex dtypes"
            )
        ddof = _correction(unbiased, correction)
        with np.errstate(divide="ignore", invalid="ignore"):
            return call(function, input, axes(dim, input), ddof=ddof, keepdims=keepdim)

    def with_mean(input: Tensor, dim: Any = None, *args: Any, **options: Any) -> Any:
        keep = options.get("keepdim", False)
        along = None if isinstance(dim, bool) else dim
        return moment(input, dim, *args, **options), mean(input, along, keep)

    moment.__name__, with_mean.__name__ = name, f"{name}_mean"
    takes(with_mean, parameters(moment))
    return moment, with_mean


var, var_mean = _moment("var")
documented(
    var,
    """The variance over axes; ``correction``, 1, is taken from the count.

    >>> x = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    >>> torch.var(x, dim=1)
    tensor([2., 8.])
    >>> torch.var(x, dim=1, correction=0)
    tensor([1., 4.])
    """,
)
documented(
    var_mean,
    """``var`` and ``mean`` over axes.

    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """,
)
std, std_mean = _moment("std")
documented(
    std,
    """The standard deviation over axes; ``correction``, 1, is taken from the count.

    >>> x = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    >>> torch.std(x, dim=1)
    tensor([1.4142, 2.8284])
    >>> torch.std(x, dim=1, correction=0)
    tensor([1., 2.])
    """,
)
documented(
    std_mean,
    """``std`` and ``mean`` over axes.

    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """,
)


def _extreme(name: str) -> Any:
    """``max`` or ``min``: of all, of two tensors, or along an axis, with positions."""
    pair = named(name)
    whole, position = getattr(ours, name), getattr(np, f"arg{name}")

    def extreme(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None
    ) -> Any:
        from lantern.torch.functions.elementwise import functions

        dim = dim if other is None else other
        if isinstance(dim, Tensor):
            return functions[f"{name}imum"](input, dim)
        array = base(input)
        if dim is None:
            if array.dtype.kind == "c":
                raise refuse_type(name, input)
            if not array.size:
                raise EagerError(
                    f"{name}(): Expected reduction dim to be specified for "
                    f"input.numel() == 0. Specify the reduction dim with the 'dim' "
                    f"argument."
                )
            return call(whole, input)
        return pair(*_chosen(name, input, position, dim, keepdim))

    def everywhere(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
        array = base(input)
        if array.dtype.kind == "c":
            raise refuse_type(f"a{name}", input)
        shape = array.shape
        chosen = None if dim == () else axes(dim, input)
        chosen = range(len(shape)) if chosen is None else chosen
        chosen = (chosen,) if isinstance(chosen, int) else chosen
        if 0 in [shape[d] for d in chosen]:
            raise (EagerError if dim == () else PositionError)(
                f"a{name}(): Expected reduction dim to have non-zero size."
            )
        return call(whole, input, axes(dim, input), keepdims=keepdim)

    extreme.__name__, everywhere.__name__ = name, f"a{name}"
    return extreme, everywhere


def nowhere(array: Any) -> Tensor:
    """The position of an array's only element: 0."""
    return fresh(namespace(array).zeros((), np.int64))


def refuse_empty(name: str, array: Any, dim: int) -> int:
    """An axis counted from 0, along which there must be elements to choose from."""
    axis = axis_of(dim, array.ndim)
    if array.shape and not array.shape[axis]:
        raise PositionError(
            f"{name}(): Expected reduction dim {dim} to have non-zero size."
        )
    return axis


def _chosen(name: str, input: Tensor, position: Any, dim: int, keepdim: bool) -> Any:
    """The elements along an axis that a function points to, and where they are."""
    array = base(input)
    if array.dtype.kind == "c":
        raise refuse_type(name, input)
    before = refuse_empty(name, array, dim)
    if not array.shape:
        return input.clone(), nowhere(array)
    where = position(array, axis=dim)
    rest = [n for i, n in enumerate(array.shape) if i != before]
    others = grid(rest, array)
    values = _read(input, index=(*others[:before], where, *others[before:]))
    where = as_array(where)  # of its own for the program, which may write to it
    indices = fresh(where.copy() if is_differentiated(input) else where)
    if keepdim:
        return values.unsqueeze(dim), indices.unsqueeze(dim)
    return values, indices


max, amax = _extreme("max")
documented(
    max,
    """The greatest element; along an axis, with positions; or each two's greater.

    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> torch.max(x)
    tensor(7)
    >>> torch.max(x, dim=1)
    torch.return_types.max(
    values=tensor([5, 7]),
    indices=tensor([1, 0]))
    """,
)
documented(
    amax,
    """The greatest elements, over all axes or some; ties share the gradient.

    >>> torch.amax(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([5, 7])
    """,
)
min, amin = _extreme("min")
documented(
    min,
    """The least element; along an axis, with positions; or each two's lesser.

    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> torch.min(x)
    tensor(1)
    >>> torch.min(x, dim=1)
    torch.return_types.min(
    values=tensor([1, 2]),
    indices=tensor([0, 1]))
    """,
)
documented(
    amin,
    """The least elements, over all axes or some; ties share the gradient.

    >>> torch.amin(torch.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 2])
    """,
)


_AMINMAX = named("aminmax", "min max")


def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    """The least and the greatest elements, of all or along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.aminmax(torch.tensor([3, 1, 2]))
        torch.return_types.aminmax(
        min=tensor(1),
        max=tensor(3))
    """
    if dim is None and not base(input).size:
        raise EagerError(
            "aminmax(): cannot compute aminmax over an empty dimension as the "
            "operation has no identity."
        )
    dim = () if dim is None else dim
    return _AMINMAX(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _position(name: str) -> Any:
    function = getattr(np, name)

    def position(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        array = base(input)
        if array.dtype.kind == "c":
            raise refuse_type(name, input)
        if not array.size and dim is None:
            raise PositionError(
                f"{name}(): Expected reduction dim to be specified for input.numel() "
                f"== 0. Specify the reduction dim with the 'dim' argument."
            )
        if dim is not None:
            refuse_empty(name, array, dim)
        if not array.shape:
            return nowhere(array)
        return fresh(as_array(function(array, axis=dim, keepdims=keepdim)))

    position.__name__ = name
    return position


argmax = documented(
    _position("argmax"),
    """The position of the greatest element, of all in a row or along an axis.

    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> torch.argmax(x)
    tensor(2)
    >>> torch.argmax(x, dim=1)
    tensor([1, 0])
    """,
)
argmin = documented(
    _position("argmin"),
    """The position of the least element, of all in a row or along an axis.

    >>> x = torch.tensor([[1, 5], [7, 2]])
    >>> torch.argmin(x)
    tensor(0)
    >>> torch.argmin(x, dim=1)
    tensor([0, 1])
    """,
)


def _asking(name: str) -> Any:
    function = getattr(np, name)

    def ask(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        array = base(input)
        z = as_array(function(array, axis=axes(dim, input), keepdims=keepdim))
        return fresh(z.astype(array.dtype) if array.dtype == np.uint8 else z)

    ask.__name__ = name
    return ask


all = documented(
    _asking("all"),
    """Whether all elements hold, or all along an axis; what is not 0 holds.

    >>> x = torch.tensor([[True, True], [True, False]])
    >>> torch.all(x)
    tensor(False)
    >>> torch.all(x, dim=1)
    tensor([ True, False])
    """,
)
any = documented(
    _asking("any"),
    """Whether any element holds, or any along an axis; what is not 0 holds.

    >>> x = torch.tensor([[False, False], [True, False]])
    >>> torch.any(x)
    tensor(True)
    >>> torch.any(x, dim=1)
    tensor([False,  True])
    """,
)


def count_nonzero(input: Tensor, dim: Any = None) -> Any:
    """How many elements are not 0, of all or along axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([1, 2])
    """
    return fresh(as_array(np.count_nonzero(base(input), axis=axes(dim, input))))


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Any:
    """The p-norm of all elements, or over axes, taken as one vector.

    Args:
        input: the elements.
        p: the order; "fro" is 2, "nuc" the sum of a matrix's singular values.
        dim: the axes.
        keepdim: whether they stay, with length 1.
        dtype: the type to compute in.

    Example:
        >>> import lantern.torch as torch
        >>> torch.norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
        tensor([ 5., 10.])
    """
    input = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    if p == "nuc":
        return call(linalg.norms.matrix_norm, input, ord="nuc", keepdims=keepdim)
    ord = 2 if p in ("fro", None) else p
    return vector_norm(input, ord, dim, keepdim)


def vector_norm(
    x: Tensor,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of vectors, over all axes by default.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
        >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]), ord=1)
        tensor(7.)
    """
    x = _needs_floating("linalg.vector_norm", x, dtype)
    if not base(x).shape:
        axes(dim, x)
        return vector_norm(x.reshape(1), ord)
    z = call(linalg.norms.vector_norm, x, ord=ord, axis=axes(dim, x), keepdims=keepdim)
    return z if ord else tracked_like(z, x.sum())  # of a count it is 0


def dist(input: Tensor, other: Tensor, p: Any = 2) -> Any:
    """The p-norm of the difference of two tensors.

    Example:
        >>> import lantern.torch as torch
        >>> torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    return norm(input - other, p)


_HELPERS = "also_axis", "axes", "axis_of", "nowhere", "refuse_empty", "vector_norm"
functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
    and name not in _HELPERS
}

"""Statistics, and differences of neighbours."""

from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.tensor.ops import diff as difference
from lantern.torch.functions import elementwise, join_repeat, reduction, sorting_scans
from lantern.torch.functions import shape as shaping
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import named
from lantern.torch.tensor.operators import as_tensor, call, promote
from lantern.torch.tensor.tensor import Tensor, fresh


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Any:
    """The differences of neighbours along an axis, n times over.

    Shapes:
        input: (..., m, ...); result: (..., m - n, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.diff(torch.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    if not base(input).shape:
        raise EagerError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise EagerError(f"order must be non-negative but got {n}")
    axis_of(dim, base(input).ndim)
    parts = [x for x in (prepend, input, append) if x is not None]
    if any(base(x).ndim != base(input).ndim for x in parts):
        raise EagerError(
            "diff expects prepend or append to be the same dimension as input"
        )
    shapes = [np.delete(base(x).shape, dim).tolist() for x in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise EagerError(
            "diff expects the shape of tensor to prepend or append to match that of "
            "input except along the differencing dimension"
        )
    x = join_repeat.cat(parts, dim) if len(parts) > 1 else input
    length = base(x).shape[dim]
    if n == 0:
        return input.clone()
    for _ in range(min(n, length)):
        length = base(x).shape[dim]
        after = shaping.narrow(x, dim, min(1, length), max(length - 1, 0))
        before = shaping.narrow(x, dim, 0, max(length - 1, 0))
        x = after ^ before if base(x).dtype.kind == "b" else after - before
    return x


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> Any:
    """The slopes along axes, from differences: one tensor for each axis.

    Args:
        input: the values.
        spacing: their distance; a distance, or the places, for each axis.
        dim: the axes, all by default.
        edge_order: 1 or 2 neighbours at the edges.

    Example:
        >>> import lantern.torch as torch
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
        (tensor([3., 4., 5.]),)
    """
    (input,) = promote(input, floating=True)
    array = base(input)
    spacing = 1 if spacing is None else spacing
    if edge_order not in (1, 2):
        raise EagerError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = range(array.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [axis_of(d, array.ndim) for d in dims]
    if len(set(dims)) < len(dims):
        raise EagerError("dim appears multiple times in the list of dims")
    several = isinstance(spacing, list | tuple)
    if isinstance(spacing, Tensor):
        raise EagerError("gradient: spacing is a number, or a list")
    if several and len(spacing) not in (len(dims), 1 if not dims else len(dims)):
        raise EagerError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of "
            f"length equal to {len(dims)}, but got a list of length {len(spacing)}"
        )
    if any(array.shape[d] < edge_order + 1 for d in dims):
        raise EagerError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    if array.dtype == np.uint8:
        raise EagerError("torch.gradient: uint8 is not supported")
    (x,) = promote(input, floating=True)
    steps = list(spacing) if several else [spacing] * len(dims)
    for d, step in zip(dims, steps, strict=True):
        if isinstance(step, Tensor) and base(step).shape != (array.shape[d],):
            raise EagerError(
                "torch.gradient expected each tensor of spacing to be one-dimensional "
                "and as long as its axis"
            )
    return tuple(
        call(
            lambda a, d=d, h=h: difference.gradient(
                a, h, axis=d, edge_order=edge_order
            ),
            x,
        )
        for d, h in zip(dims, [_places(h, base(x)) for h in steps], strict=True)
    )


def _places(step: Any, array: Any) -> Any:
    """A distance, or places in the type of an array."""
    if not isinstance(step, Tensor):
        return step
    return base(step).astype(np.result_type(base(step), array.dtype))


def cumulative_trapezoid(
    y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1
) -> Any:
    """The integrals so far along an axis, by trapezoids.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0, 5.0]))
        tensor([2., 6.])
    """
    both = _neighbours(y, dim)
    if x is None:
        return sorting_scans.cumsum(both * ((1 if dx is None else dx) / 2), dim)
    return sorting_scans.cumsum(both * _steps(y, x, dim), dim) / 2


def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along an axis, by trapezoids; whole numbers add up in their type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.trapezoid(torch.tensor([1.0, 3.0, 5.0]))
        tensor(6.)
    """
    if x is not None:
        return (_neighbours(y, dim) * _steps(y, x, dim)).sum(dim) / 2
    if not base(y).shape[dim]:
        return y.sum(dim) * 1.0
    ends = (y.select(dim, 0) + y.select(dim, -1)) * 0.5
    return (y.sum(dim) - ends) * (1 if dx is None else dx)


def _neighbours(y: Tensor, dim: int) -> Any:
    """The sums of every two neighbours along an axis."""
    n = base(y).shape[dim]
    if not n:
        return y
    return shaping.narrow(y, dim, 1, n - 1) + shaping.narrow(y, dim, 0, n - 1)


def _steps(y: Tensor, x: Tensor, dim: int) -> Any:
    """The distances of places along an axis, in the form of the values there."""
    if base(x).ndim != 1 or base(y).ndim < 2:
        return diff(x, dim=dim)
    axis = axis_of(dim, base(y).ndim)
    form = [-1 if i == axis else 1 for i in range(base(y).ndim)]
    return diff(x.reshape(form), dim=axis)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> Any:
    """The covariances of variables in rows, of observations in columns.

    Shapes:
        input: (n, k); result: (n, n); of one variable, (k,): ()

    Example:
        >>> import lantern.torch as torch
        >>> torch.cov(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    if base(input).ndim > 2:
        raise EagerError(
            f"cov(): expected input to have two or fewer dimensions but got an input "
            f"with {base(input).ndim} dimensions"
        )
    for name, w, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if w is None:
            continue
        n = base(input).shape[-1] if base(input).shape else 1
        if base(w).ndim > 1 or base(w).dtype.kind not in kinds or base(w).size != n:
            raise EagerError(f"cov(): expected {name} to fit the observations")
        if (of_all_examples(base(w)) < 0).any():
            raise EagerError(f"cov(): {name} cannot be negative")
    x = input.reshape(1, -1) if base(input).ndim < 2 else input
    (x,) = promote(x, floating=True)
    weights: Any = None
    for w in (fweights, aweights):
        if w is not None:
            weights = w if weights is None else weights * w
    total = base(x).shape[1] if weights is None else weights.sum()
    y = x if weights is None else x * weights
    mean = y.sum(1, True) / total
    below = total - correction
    if aweights is not None and correction:
        below = total - correction * (weights * aweights).sum() / total
    centred = x - mean
    other = centred if weights is None else centred * weights
    below = as_tensor(below).clamp(0) if isinstance(below, Tensor) else max(below, 0)
    z = (other @ centred.mH) / below
    return z.reshape(()) if base(z).shape == (1, 1) else z


def corrcoef(input: Tensor) -> Any:
    """The correlations of variables in rows, of observations in columns.

    Shapes:
        input: (n, k); result: (n, n)

    Example:
        >>> import lantern.torch as torch
        >>> torch.corrcoef(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    if base(input).ndim > 2:
        raise EagerError("corrcoef(): expected input to have two or fewer dimensions")
    c = cov(input)
    if not base(c).shape:
        return c / c
    d = elementwise.functions["sqrt"](join_repeat.diagonal(elementwise.real(c)))
    return c / d.unsqueeze(-1) / d.unsqueeze(0)


_NANMEDIAN = named("nanmedian")
_HISTOGRAM = named("histogram", "hist bin_edges")


@each_example
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The middle element of what is a number.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nanmedian(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(1.)
    """
    if dim is None:
        flat = input.reshape(-1)
        kept = flat[fresh(np.flatnonzero(~np.isnan(base(flat))))]
        return sorting_scans.median(kept if base(kept).size else flat)
    array = base(input)
    if not array.shape:
        return _NANMEDIAN(input.clone(), reduction.nowhere(array))

    def position(array: Any, axis: int) -> Any:
        order = np.argsort(array, axis=axis, kind="stable")
        count = (~np.isnan(array)).sum(axis, keepdims=True)
        middle = np.maximum(count - 1, 0) // 2
        return np.take_along_axis(order, middle, axis).squeeze(axis)

    return _NANMEDIAN(*reduction._chosen("nanmedian", input, position, dim, keepdim))


@each_example
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
) -> Any:
    """How many elements, or weights, lie in intervals; and the intervals' edges.

    Example:
        >>> import lantern.torch as torch
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2)
        torch.return_types.histogram(
        hist=tensor([2., 1.]),
        bin_edges=tensor([1.0000, 1.5000, 2.0000]))
    """
    array = base(input).reshape(-1)
    w = None if weight is None else base(weight).reshape(-1)
    counts, edges = np.histogram(array, base(bins), range, density, w)
    row = (fresh(part.astype(array.dtype)) for part in (counts, edges))
    return _HISTOGRAM(*row)


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
}
functions["trapz"] = trapezoid

"""A function of one example, for several."""

from collections.abc import Callable
from typing import Any

from lantern.core.tree import tree_map
from lantern.core.value import base
from lantern.errors import ShapeError
from lantern.torch.func.transforms import tree_leaves
from lantern.torch.functions.join_repeat import stack
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tensor.tensor import Tensor

__all__ = ["vmap"]

Function = Callable[..., Any]


def _axes_of(dims: Any, tree: Any, where: str) -> list[Any]:
    """For each tensor of a structure, the axis that counts the examples, or None."""
    leaves = tree_leaves(tree)
    if dims is None or isinstance(dims, int):
        return [dims if isinstance(x, Tensor) else None for x in leaves]
    if isinstance(dims, dict) and isinstance(tree, dict):
        return [a for k in tree for a in _axes_of(dims[k], tree[k], where)]
    if isinstance(tree, tuple | list) and len(dims) == len(tree):
        pairs = zip(dims, tree, strict=True)
        return [a for d, part in pairs for a in _axes_of(d, part, where)]
    raise ShapeError(f"vmap: {where} {dims!r} does not fit the structure of the values")


def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """The function of one example, computed for each and put together.

    It is called once for each example, so that anything may happen in it; nothing is
    faster for that.

    Args:
        func: takes and returns tensors, or structures of them.
        in_dims: which axis counts the examples, for each argument; None for none.
        out_dims: where that axis goes in the results.
        randomness: has no effect: each example draws its own numbers.
        chunk_size: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
        tensor([3., 3.])
    """

    def mapped(*args: Any, **options: Any) -> Any:
        whole = (in_dims,) * len(args) if isinstance(in_dims, int) else in_dims
        axes = _axes_of(whole, args, "in_dims")
        n = _count(tree_leaves(args), axes, tree_leaves(options))
        rows = (_example(i, axes, args, options) for i in range(n))
        results = [func(*row, **names) for row, names in rows]
        if not results:
            raise ShapeError("vmap: there are no examples")
        return _together(results, out_dims)

    return mapped


def _count(leaves: list[Any], axes: list[Any], options: list[Any]) -> int:
    """How many examples there are."""
    sizes = {
        base(x).shape[axis_of(a, base(x).ndim)]
        for x, a in zip(leaves, axes, strict=True)
        if a is not None and isinstance(x, Tensor)
    }
    sizes |= {len(x) for x in options if isinstance(x, Tensor)}
    if not sizes:
        raise ShapeError("vmap: no argument is mapped; in_dims has no axis")
    if len(sizes) > 1:
        raise ShapeError(
            f"vmap: Expected all tensors to have the same size in the mapped "
            f"dimension, got sizes {sorted(sizes)} for the mapped dimension"
        )
    return sizes.pop()


def _example(i: int, axes: list[Any], args: Any, options: Any) -> Any:
    """The arguments of one example."""
    place = iter(axes)

    def one(x: Any) -> Any:
        axis = next(place)
        return x if axis is None else x.select(axis, i)

    def named(x: Any) -> Any:
        return x[i] if isinstance(x, Tensor) else x

    return tree_map(one, args), tree_map(named, options)


def _together(results: list[Any], out_dims: Any) -> Any:
    """The results of all examples along a new axis."""
    first = results[0]
    if any(not isinstance(x, Tensor) for x in tree_leaves(first)):
        raise ShapeError(
            "vmap: the function must return tensors, or structures of them"
        )
    place = iter(_axes_of(out_dims, first, "out_dims"))

    def join(*parts: Any) -> Any:
        axis = next(place)
        return parts[0] if axis is None else stack(parts, axis)

    return tree_map(join, *results)

"""Derivatives of each element by each element: all rows, or all columns, at once.

The directions are the examples of a ``vmap`` (``mapping.py``): a pullback gets the
cotangents of all rows, a pushforward the tangents of all columns.
"""

import math
from collections.abc import Callable
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.errors import ShapeError
from lantern.torch.func.checks import check_argnums, check_only_tensors, check_real
from lantern.torch.func.mapping import vmap
from lantern.torch.func.transforms import jvp, vjp
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.tensor import Tensor, fresh
from lantern.torch.utils import _pytree as pytree

__all__ = ["hessian", "jacfwd", "jacrev"]

Function = Callable[..., Any]


def _replaced(f: Function, args: Any, numbers: Any) -> Function:
    """The function of the chosen arguments alone."""

    def function(*chosen: Any) -> Any:
        row = list(args)
        for n, x in zip(numbers, chosen, strict=True):
            row[n] = x
        return f(*row)

    return function


def _places(leaves: Any) -> list[tuple[int, int]]:
    """Where the elements of each tensor start and stop, counted through all."""
    sizes = accumulate((math.prod(x.shape) for x in leaves), initial=0)
    return list(pairwise(sizes))


def _directions(leaves: Any, places: Any) -> list[Tensor]:
    """Tensors of all directions: 1 at one element of one of them, 0 at all others."""
    size = places[-1][1]
    found = []
    for x, (start, stop) in zip(leaves, places, strict=True):
        xp = namespace(of_all_examples(base(x)))
        rows = xp.eye(size, stop - start, k=-start, dtype=base(x).dtype)
        found.append(fresh(rows.reshape(size, *x.shape)))
    return found


def _each(f: Function, rows: list[Tensor], chunk_size: Any, randomness: str) -> Any:
    """The results of a function for all directions; for one, or one by one, as it is.

    Args:
        f: gets one direction, and returns a list of tensors, and something more.
        rows: the directions.
        chunk_size: how many are computed at once.
        randomness: as in ``vmap``.
    """
    size = rows[0].shape[0]
    if chunk_size == 1 or size == 1:
        found = [f(*(x[i] for x in rows)) for i in range(size)]
        columns = zip(*(z for z, _ in found), strict=True)
        return [stack(parts) for parts in columns], found[-1][1]
    return vmap(f, out_dims=(0, None), randomness=randomness, chunk_size=chunk_size)(
        *rows
    )


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """The derivative of each element of the value by each of the arguments, by rows.

    Args:
        func: returns a tensor, or a structure of them.
        argnums: the arguments with respect to which.
        has_aux: whether the function returns something more, which is handed on.
        chunk_size: how many rows are computed at once; None for all.

    Shapes:
        x: (n...); value: (m...); result: (m..., n...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.jacrev(torch.square)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ShapeError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def jacobian(*args: Any) -> Any:
        numbers = check_argnums(argnums, args)
        chosen = [args[n] for n in numbers]
        inputs, form = pytree.tree_flatten(chosen)
        check_real("jacrev", inputs, "inputs")
        f = _replaced(func, args, numbers)
        value, pullback, *aux = vjp(f, *chosen, has_aux=has_aux)
        outputs, spec = pytree.tree_flatten(value)
        check_real("jacrev", outputs, "outputs")
        places = _places(outputs)

        def row(*seeds: Any) -> Any:
            found = pullback(pytree.tree_unflatten(seeds, spec))
            return pytree.tree_leaves(found), None

        if places[-1][1]:
            rows, _ = _each(row, _directions(outputs, places), chunk_size, "error")
        else:
            rows = [x.new_zeros((0, *x.shape)) for x in inputs]
        blocks = []
        for y, (start, stop) in zip(outputs, places, strict=True):
            parts = [
                g[start:stop].reshape(*y.shape, *x.shape)
                for g, x in zip(rows, inputs, strict=True)
            ]
            found = tuple(pytree.tree_unflatten(parts, form))
            blocks.append(found[0] if isinstance(argnums, int) else found)
        z = pytree.tree_unflatten(blocks, spec)
        return (z, aux[0]) if has_aux else z

    return jacobian


def jacfwd(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """As ``jacrev``, by columns: better for functions with few arguments.

    Args:
        func: as in ``jacrev``.
        argnums: the arguments with respect to which.
        has_aux: whether the function returns something more, which is handed on.
        randomness: as in ``vmap``, of whose examples there is one for each column.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.jacfwd(torch.square)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @wraps(func)
    def jacobian(*args: Any) -> Any:
        numbers = check_argnums(argnums, args)
        chosen = tuple(args[n] for n in numbers)
        inputs, form = pytree.tree_flatten(chosen)
        check_only_tensors("jacfwd", inputs)
        check_real("jacfwd", inputs, "inputs")
        f, places = _replaced(func, args, numbers), _places(inputs)
        kept: list[Any] = []

        def column(*tangents: Any) -> Any:
            along = pytree.tree_unflatten(tangents, form)
            _, found, *aux = jvp(f, chosen, along, has_aux=has_aux)
            leaves, spec = pytree.tree_flatten(found)
            check_real("jacfwd", leaves, "outputs")
            kept[:] = [spec]
            return leaves, aux

        columns, aux = _each(column, _directions(inputs, places), None, randomness)
        blocks = []
        for y in columns:
            lead = y.shape[1:]
            parts = [
                y[start:stop].movedim(0, -1).reshape(*lead, *x.shape)
                for x, (start, stop) in zip(inputs, places, strict=True)
            ]
            found = pytree.tree_unflatten(parts, form)
            blocks.append(found[0] if isinstance(argnums, int) else found)
        z = pytree.tree_unflatten(blocks, kept[0])
        return (z, aux[0]) if has_aux else z

    return jacobian


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The second derivatives of a function with a value without axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)

"""Derivatives of each element by each element, row by row or column by column."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.tree import tree_map
from lantern.core.value import base
from lantern.errors import EagerError
from lantern.torch.func.transforms import jvp, tree_leaves, vjp
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["hessian", "jacfwd", "jacrev"]

Function = Callable[..., Any]


def _chosen(argnums: Any, args: Any) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise EagerError(f"Got argnum={n}, but only {len(args)} positional inputs")
    return tuple(n % len(args) for n in numbers)


def _replaced(f: Function, args: Any, numbers: Any) -> Function:
    """The function of the chosen arguments alone."""

    def function(*chosen: Any) -> Any:
        row = list(args)
        for n, x in zip(numbers, chosen, strict=True):
            row[n] = x
        return f(*row)

    return function


def _units(x: Tensor) -> Any:
    """The tensors of one shape that are 1 at one place and 0 elsewhere."""
    array = base(x)
    for i in range(array.size):
        unit = namespace(array).zeros(array.size, array.dtype)
        unit[i] = 1
        yield fresh(unit.reshape(array.shape))


def _zeros(tree: Any) -> Any:
    return tree_map(lambda x: fresh(np.zeros_like(base(x))), tree)


def _directions(tree: Any) -> Any:
    """For each tensor of a structure: all structures with one 1 in it, 0 elsewhere."""
    zeros = [fresh(np.zeros_like(base(x))) for x in tree_leaves(tree)]
    for n, leaf in enumerate(zeros):
        yield (
            leaf,
            [
                _placed(tree, [*zeros[:n], unit, *zeros[n + 1 :]])
                for unit in _units(leaf)
            ],
        )


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Function:
    """The derivative of each element of the value by each of the arguments, by rows.

    Args:
        func: returns a tensor, or a structure of them.
        argnums: the arguments with respect to which.
        has_aux: whether the function returns something more, which is handed on.
        chunk_size: has no effect.

    Shapes:
        x: (n...); value: (m...); result: (m..., n...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.jacrev(torch.square)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    def jacobian(*args: Any) -> Any:
        numbers = _chosen(argnums, args)
        chosen = [args[n] for n in numbers]
        value, pullback, *aux = vjp(
            _replaced(func, args, numbers), *chosen, has_aux=has_aux
        )
        blocks = []
        for leaf, cotangents in _directions(value):
            rows = [pullback(cotangent) for cotangent in cotangents]
            m = base(leaf).shape
            found = [
                tree_map(
                    lambda x, *r, m=m: stack(r).reshape((*m, *base(x).shape)),
                    x,
                    *(row[i] for row in rows),
                )
                for i, x in enumerate(chosen)
            ]
            blocks.append(found[0] if isinstance(argnums, int) else tuple(found))
        z = _placed(value, blocks)
        return (z, aux[0]) if has_aux else z

    return jacobian


def _placed(tree: Any, blocks: Any) -> Any:
    """A structure with others in place of its tensors."""
    row = iter(blocks)
    return tree_map(lambda _: next(row), tree)


def jacfwd(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """As ``jacrev``, by columns: better for functions with few arguments.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.jacfwd(torch.square)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    def jacobian(*args: Any) -> Any:
        numbers = _chosen(argnums, args)
        chosen = tuple(args[n] for n in numbers)
        f = _replaced(func, args, numbers)
        value: Any = None
        aux: Any = None
        blocks = []
        for i, x in enumerate(chosen):
            parts = []
            for leaf, tangents in _directions(x):
                columns = []
                for tangent in tangents:
                    rest = [_zeros(y) for y in chosen]
                    rest[i] = tangent
                    value, column, *more = jvp(f, chosen, tuple(rest), has_aux=has_aux)
                    aux = more[0] if more else None
                    columns.append(column)
                n = base(leaf).shape
                parts.append(
                    tree_map(
                        lambda *c, n=n: stack(c, -1).reshape((*base(c[0]).shape, *n)),
                        *columns,
                    )
                )
            blocks.append([tree_leaves(part) for part in parts])
        count = len(tree_leaves(value))
        rows = []
        for j in range(count):
            found = [
                _placed(x, [part[j] for part in parts])
                for x, parts in zip(chosen, blocks, strict=True)
            ]
            rows.append(found[0] if isinstance(argnums, int) else tuple(found))
        z = _placed(value, rows)
        return (z, aux) if has_aux else z

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

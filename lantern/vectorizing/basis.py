"""All directions at once: pushes and pulls of every unit vector in one pass.

The directions are the examples of a ``vmap`` (``lantern.vectorizing.batched``):
forward mode pushes a batch of tangents, reverse mode pulls back a batch of cotangents.
The function itself runs on plain values.
"""

import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from lantern.core.residuals import owned
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import strip
from lantern.core.value import Value, base, is_complex, unwrapped, zeros_like
from lantern.errors import ArgumentError
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops import products
from lantern.tensor.ops.shape import as_array, broadcast_to, moveaxis, reshape
from lantern.transforms.arguments import check_result, describe
from lantern.transforms.forward import jvp
from lantern.transforms.reverse import Reverse, grad, track
from lantern.vectorizing.batched import Batched, Examples

__all__ = ["Blocks", "count", "diagonal", "either", "forward", "reverse"]

Function = Callable[..., Any]


class Blocks:
    """What takes the place of one leaf of f's result: an array for each input leaf."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def _sizes(tree: Any) -> list[tuple[int, int]]:
    """Where the numbers of each leaf start and stop, counted through all leaves."""
    counts = (math.prod(_shape(leaf)) for leaf in tree_leaves(tree))
    return list(pairwise(accumulate(counts, initial=0)))


def count(tree: Any) -> int:
    """How many numbers a structure has."""
    return sum(math.prod(_shape(leaf)) for leaf in tree_leaves(tree))


def _directions(leaf: Any, start: int, stop: int, examples: Examples) -> Any:
    """The parts in one leaf of all unit vectors: 1 in one number, 0 in the others."""
    plain = base(leaf)
    dtype = getattr(plain, "dtype", complex if is_complex(plain) else float)
    xp = array_namespace(plain)
    rows = xp.eye(examples.size, stop - start, k=-start, dtype=dtype)
    return Batched(rows.reshape((examples.size, *_shape(leaf))), examples)


def _rows(z: Any, examples: Examples) -> Any:
    """What came of all directions, along a first axis."""
    z = unwrapped(z)
    if examples.owns(z) and z.mapped:
        return z.stacked
    z = as_array(z.stacked if examples.owns(z) else z)
    return broadcast_to(z, (examples.size, *z.shape))


def _refuse_complex(where: str, what: str, tree: Any, instead: str) -> None:
    for leaf in tree_leaves(tree):
        if is_complex(leaf):
            raise ArgumentError(
                f"{where}: {what} is {describe(leaf)}. Use {instead}, or promise "
                f"holomorphic=True."
            )


def _pushed(where: str, g: Function, inputs: Any) -> tuple[Any, Any, Any]:
    """The derivative of g along each unit vector, the examples they are, and aux.

    A single direction needs no batch.
    """
    examples = Examples(where, count(inputs))
    if examples.size == 1:
        tangents = tree_map(lambda x: zeros_like(x) + 1 if count(x) else x, inputs)
    else:
        places = iter(_sizes(inputs))
        tangents = tree_map(lambda x: _directions(x, *next(places), examples), inputs)
    try:
        _, y_dot, aux = jvp(g, inputs, tangents, has_aux=True)
    finally:
        examples.close()
    return y_dot, examples, aux


def forward(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by one push of all unit vectors, and aux."""
    if not holomorphic:
        _refuse_complex(where, "an argument", inputs, "jacrev")
    y_dot, examples, aux = _pushed(where, g, inputs)
    leaves = list(zip(tree_leaves(inputs), _sizes(inputs), strict=True))
    taken: set[int] = set()

    def blocks(z: Any) -> Blocks:
        shape = _shape(z)
        if examples.size == 1:
            own = owned(z, taken)  # beside the only number, arrays without elements
            none = as_array(own)[..., None][..., :0] if len(leaves) > 1 else own
            columns = [own if count(x) else none for x, _ in leaves]
            pairs = zip(columns, leaves, strict=True)
            return Blocks([_reshaped(c, (*shape, *_shape(x))) for c, (x, _) in pairs])
        columns = moveaxis(owned(_rows(z, examples), taken), 0, -1)
        return Blocks(
            [
                _reshaped(columns[..., start:stop], (*shape, *_shape(x)))
                for x, (start, stop) in leaves
            ]
        )

    return tree_map(blocks, y_dot), aux


def _reshaped(z: Any, shape: tuple[int, ...]) -> Any:
    return z if _shape(z) == shape else reshape(z, shape)


def reverse(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by one pull of all unit vectors, and aux."""
    return _pulled(where, g, inputs, holomorphic, math.inf)


def either(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by the mode that needs fewer directions, and aux."""
    found = _pulled(where, g, inputs, holomorphic, count(inputs))
    return forward(where, g, inputs, holomorphic) if found is None else found


def _pulled(
    where: str, g: Function, inputs: Any, holomorphic: bool, most: float
) -> Any:
    """As ``reverse``; None, if g has more outputs than ``most``."""
    level = Reverse(where)
    tracked = track(where, inputs, level)

    def body() -> Any:
        y, aux = g(*tracked)
        check_result(where, y, level)
        if count(y) > most:
            return None
        if not holomorphic:
            _refuse_complex(where, "a result", y, "jacfwd")
        examples = Examples(where, count(y))
        for leaf, place in zip(tree_leaves(y), _sizes(y), strict=True):
            if isinstance(leaf, Value) and leaf.level is level:
                one = examples.size == 1
                seed = leaf.one() if one else _directions(leaf, *place, examples)
                leaf.receiver.accumulate(seed)
        return strip(y, level), examples, strip(aux, level)

    answer = level.run(body)
    if answer is None:
        return None
    y, examples, aux = answer
    gradients = [x.gradient() for x in tree_leaves(tracked)]
    if holomorphic:
        gradients = [x_bar.conjugate() for x_bar in gradients]
    return _by_rows(y, tree_leaves(inputs), gradients, examples), aux


def _by_rows(y: Any, inputs: Any, gradients: list[Any], examples: Examples) -> Any:
    """The Jacobian of gradients for the numbers of y, one after the other."""
    places, shapes = iter(_sizes(y)), [_shape(x) for x in inputs]
    if examples.size != 1:  # two arguments may have received the same array
        taken: set[int] = set()
        gradients = [owned(_rows(g, examples), taken) for g in gradients]

    def blocks(leaf: Any) -> Blocks:
        (start, stop), shape = next(places), _shape(leaf)
        rows = gradients
        if examples.size != 1:
            rows = [g[start:stop] for g in gradients]
        elif start == stop:  # beside the only number, an array without elements
            rows = [as_array(g)[None][:0] for g in gradients]
        pairs = zip(rows, shapes, strict=True)
        return Blocks([_reshaped(row, shape + n) for row, n in pairs])

    return tree_map(blocks, y)


def diagonal(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The diagonal of the Hessian, by one push of all unit vectors through grad."""
    several = tuple(range(len(inputs)))
    inner = grad(g, several, has_aux=True)
    rows, examples, aux = _pushed(where, inner, inputs)
    arrays = []
    for z, (start, stop) in zip(tree_leaves(rows), _sizes(inputs), strict=True):
        if examples.size != 1:
            block = _rows(z, examples)[start:stop]
            n = stop - start
            z = reshape(products.diagonal(reshape(block, (n, n))), _shape(z))
        arrays.append(owned(z, set()))
    return Blocks(arrays), aux

"""Functions that are called once for each example of a ``vmap``.

What computes for all examples at once needs nothing of this. Where a function cannot,
its arguments are taken apart, and its results put together: slow, and as right as the
function is, whatever differentiates it inside or outside.
"""

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any

from lantern.blocks import Setting
from lantern.core.tree import tree_leaves, tree_map
from lantern.errors import EagerError
from lantern.torch.tensor.batches import Mapping, examples_of, mapping, mappings
from lantern.torch.tensor.tensor import Tensor, numpy_face, torch_face
from lantern.vectorizing.apart import apart, together
from lantern.vectorizing.batched import Examples

__all__ = ["each_example", "for_each_example"]

Function = Callable[..., Any]


def each_example(function: Function) -> Function:
    """A function that is called for one example after another inside ``vmap``.

    Args:
        function: takes and returns tensors, or structures of them.
    """

    @wraps(function)
    def operate(*args: Any, **options: Any) -> Any:
        return for_each_example(function, args, options)

    return operate


def for_each_example(function: Function, args: Any, options: Any) -> Any:
    """Call a function, for one example after another inside ``vmap``."""
    if mappings():
        leaves = tree_leaves((args, options))
        found = [e for x in leaves for e in examples_of(x, every=True)]
        if found:
            innermost = max(found, key=attrgetter("depth"))
            return _looped(function, innermost, args, options)
    return function(*args, **options)


def _looped(function: Function, examples: Examples, args: Any, options: Any) -> Any:
    """What a function makes of one example after another, put together."""

    def separate(x: Any) -> Any:
        return apart(numpy_face(x), examples) if isinstance(x, Tensor) else x

    if not examples.size:
        raise EagerError(
            "vmap: there are no examples, and this operation is computed one by one, "
            "so that the form of its result is not known. Give at least one example."
        )
    rows = [[separate(x) for x in tree_leaves(part)] for part in (args, options)]

    def example(i: int, tree: Any, row: list[Any]) -> Any:
        place = iter(row)

        def one(x: Any) -> Any:
            found = next(place)
            return torch_face(found[i]) if isinstance(x, Tensor) else x

        return tree_map(one, tree)

    with Setting(mapping, _without(examples)):
        results = [
            for_each_example(
                function, example(i, args, rows[0]), example(i, options, rows[1])
            )
            for i in range(examples.size)
        ]
    return tree_map(lambda *parts: _joined(parts, examples), *results)


def _without(examples: Examples) -> tuple[Mapping, ...]:
    """The maps under way while one of them computes one example after another."""
    found = []
    for mapped in mappings():
        if mapped.examples is not examples or mapped.randomness == "error":
            found.append(mapped)
        elif mapped.randomness == "same":
            found.append(Mapping(examples, "same among examples"))
    return tuple(found)


def _joined(parts: Any, examples: Examples) -> Any:
    """The results of all examples as one."""
    first = parts[0]
    if not isinstance(first, Tensor):
        if any(x != first for x in parts):
            raise EagerError(
                f"vmap: a function returned another {type(first).__name__} for each "
                f"example. Compute with tensors."
            )
        return first
    if len({x.shape for x in parts}) > 1:
        raise EagerError(
            "vmap: We do not support batching operators that can output dynamic "
            "shape: this one gives a result of another size for each example."
        )
    return torch_face(together([numpy_face(x) for x in parts], examples))

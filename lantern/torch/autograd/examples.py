"""A ``Function`` inside ``vmap``: by its own ``vmap``, or example by example."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from lantern.blocks import Setting
from lantern.errors import BatchedValueError, EagerError
from lantern.tensor.ops.shape import moveaxis
from lantern.torch.tensor.batches import examples_of, mapping, mappings
from lantern.torch.tensor.looped import for_each_example
from lantern.torch.tensor.tensor import Tensor, numpy_face, torch_face
from lantern.torch.utils import _pytree as pytree
from lantern.vectorizing.batched import Batched, Examples

__all__ = ["VmapInfo", "each_way_back", "holds_examples", "of_examples"]


class VmapInfo(NamedTuple):
    """What ``Function.vmap`` is told.

    Attributes:
        batch_size: how many examples there are.
        randomness: "error", "different" or "same".
    """

    batch_size: int
    randomness: str


def holds_examples(args: Any) -> bool:
    """Whether arguments are those of one example of a ``vmap`` that is under way."""
    return bool(mappings()) and any(
        examples_of(x, every=True) for x in pytree.tree_leaves(args)
    )


def of_examples(function: Any, own: Any, args: Any, options: Any) -> Any:
    """The value of a ``Function`` for all examples.

    Args:
        function: its class.
        own: what computes it for all examples at once, if the class says that.
        args: its arguments, of one example.
        options: those that are named.
    """
    name = function.__name__
    if own is not None and function.generate_vmap_rule:
        raise EagerError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True "
            f"and an overriden vmap staticmethod. Please set generate_vmap_rule=False "
            f"or delete the overriden vmap staticmethod."
        )
    leaves, form = pytree.tree_flatten(args)
    levels = [e for x in leaves for e in examples_of(x, every=True)]
    examples = max(levels, key=attrgetter("depth"))
    if own is None or options or _is_inside(leaves, examples):
        return for_each_example(function.apply, args, options)
    (mapped,) = (m for m in mappings() if m.examples is examples)
    own_leaves, places = zip(*(_outside(x, examples) for x in leaves), strict=True)
    in_dims = pytree.tree_unflatten(places, form)
    outer = tuple(m for m in mappings() if m.examples is not examples)
    with Setting(mapping, outer):
        info = VmapInfo(examples.size, mapped.randomness)
        found = own(info, in_dims, *pytree.tree_unflatten(own_leaves, form))
    return _entered(name, found, examples)


def _is_inside(leaves: Any, examples: Examples) -> bool:
    """Whether a derivative inside the ``vmap`` tracks a value."""
    return any(isinstance(x, Tensor) and x.level.depth > examples.depth for x in leaves)


def _outside(x: Any, examples: Examples) -> tuple[Any, int | None]:
    """A value of all examples, and the axis that counts them."""
    array = numpy_face(x) if isinstance(x, Tensor) else x
    if not examples.owns(array):
        return x, None
    return torch_face(array.stacked), 0 if array.mapped else None


def _entered(name: str, found: Any, examples: Examples) -> Any:
    """What ``Function.vmap`` returns as values of one example."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise EagerError(
            f"Expected the {name}.vmap staticmethod to have two returns, got "
            f"{len(found) if isinstance(found, tuple) else 1}: the result, and the "
            f"axes that count its examples."
        )
    leaves, form = pytree.tree_flatten(found[0])
    places = pytree.broadcast_to_and_flatten(found[1], form)
    if places is None:
        raise EagerError(
            f"{name}.vmap returned an incompatible (output, out_dims) tuple: out_dims "
            f"has structure {pytree.tree_structure(found[1])}, and output has "
            f"structure {form}."
        )
    pairs = zip(leaves, places, strict=True)
    results = [x if a is None else _mapped(x, a, examples) for x, a in pairs]
    return pytree.tree_unflatten(results, form)


def _mapped(x: Tensor, axis: int, examples: Examples) -> Any:
    array = numpy_face(x)
    return torch_face(Batched(moveaxis(array, axis, 0) if axis else array, examples))


def each_way_back(step: Callable[..., Any], context: Any, z_bars: Any) -> Any:
    """A backward step, of one example after another where it cannot take all at once.

    In ``jacrev`` the examples are the rows.
    """
    try:
        return step(context, *z_bars)
    except BatchedValueError:
        return for_each_example(step, (context, *z_bars), {})

"""Random numbers inside a ``vmap``: other ones for each example, the same, or none."""

from functools import partial
from typing import Any

from lantern.core.tree import tree_leaves, tree_map
from lantern.errors import EagerError
from lantern.tensor.ops.concat_stack import stack
from lantern.torch.tensor.batches import Mapping
from lantern.vectorizing.apart import apart
from lantern.vectorizing.batched import Batched

__all__ = ["Draws"]

# What take a shape first, and draw for all examples at once.
_BY_SHAPE = frozenset({"random", "standard_exponential", "standard_normal"})


class Draws:
    """A generator of NumPy's as the functions of one example find it.

    Args:
        random: the generator outside the ``vmap``.
        mapped: the ``vmap``.
    """

    def __init__(self, random: Any, mapped: Mapping) -> None:
        self.random_outside, self.mapped = random, mapped

    def __getattr__(self, name: str) -> Any:
        return partial(self.drawn, name)

    def drawn(self, name: str, *args: Any, **options: Any) -> Any:
        """What a method of the generator draws."""
        (examples, randomness), draw = self.mapped, getattr(self.random_outside, name)
        if randomness == "error":
            raise EagerError(
                "vmap: called random operation while in randomness error mode. Please "
                "either use the 'same' or 'different' randomness flags on vmap or "
                "perform the randomness operation out of vmap"
            )
        leaves = tree_leaves([args, options])
        batched = any(examples.owns(x) and x.mapped for x in leaves)
        if randomness != "different":
            if batched or randomness == "same among examples":
                raise EagerError(
                    "vmap: Vmap does not currently support same randomness with a "
                    "batched tensor input. Please use randomness='different'."
                )
            return draw(*args, **options)
        if args and name in _BY_SHAPE and not batched:
            shape = args[0] if hasattr(args[0], "__iter__") else (args[0],)
            z = draw((examples.size, *shape), *args[1:], **options)
        else:
            z = stack(
                [draw(*self._own(args, i), **self._own(options, i)) for i in self.count]
            )
        return Batched(z, examples)

    @property
    def count(self) -> range:
        """The numbers of the examples."""
        return range(self.mapped.examples.size)

    def _own(self, tree: Any, i: int) -> Any:
        """The arguments of one example."""
        examples = self.mapped.examples
        return tree_map(lambda x: apart(x, examples)[i], tree)

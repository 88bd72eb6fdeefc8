"""Tensors that hold one example's array for all examples of a ``vmap`` at once.

Such a tensor has the level of the examples, unless a derivative inside it has a higher
one; what it holds is ``Batched``. What functions ask of memory, where elements lie and
whether all are in bounds, is asked here of the first example and of all.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves
from lantern.core.value import UNTRACKED, Value, base
from lantern.errors import EagerError, SingleValueError
from lantern.vectorizing.batched import Batched, Examples

__all__ = [
    "Mapping",
    "beside",
    "check_examples",
    "examples_of",
    "first_example",
    "for_each",
    "is_followed",
    "mapping",
    "mappings",
    "no_single_value",
    "of_all_examples",
    "remember_outside",
]


class Mapping(NamedTuple):
    """One ``vmap`` that is under way.

    Attributes:
        examples: its level.
        randomness: "error", "different" or "same": what random numbers are to be.
    """

    examples: Examples
    randomness: str


# Those under way, the innermost last.
mapping: ContextVar[tuple[Mapping, ...]] = ContextVar("lantern.mapping", default=())
mappings = mapping.get


def examples_of(x: Any, every: bool = False) -> list[Examples]:
    """The levels that have another array of a value for each example, outermost first.

    Args:
        x: a value of either face; anything else has none.
        every: whether to name those, too, whose examples have the array in common.
    """
    found: list[Examples] = []
    while isinstance(x, Value):
        if type(x) is Batched:
            if x.mapped or every:
                found.insert(0, x.level)
            x = x.stacked
        else:
            x = x.primal
    return found


def is_followed(x: Any) -> bool:
    """Whether a derivative, inside the ``vmap`` or outside, tracks a value."""
    while isinstance(x, Value):
        if x.level is not UNTRACKED and x.level.is_derivative:
            return True
        x = x.inside
    return False


def beside(x: Any, statics: Any) -> Any:
    """An operand beside arguments that differ between examples, under NumPy's names.

    An operation is found by its operands, and must be found among those examples.
    """
    for part in tree_leaves(statics):
        if type(part) is Batched:
            x = part.join(x)
    return x


def first_example(array: Any) -> Any:
    """The plain array that shows the memory of the first example."""
    if type(array) is not Batched:
        return array
    stacked = first_example(base(array.stacked))
    if not array.mapped:
        return stacked
    return stacked[0] if len(stacked) else np.empty(array.shape, array.dtype)


def of_all_examples(array: Any) -> Any:
    """The plain array of all examples, with an axis for each ``vmap`` in front."""
    while type(array) is Batched:
        array = base(array.stacked)
    return array


def for_each(array: Any, like: Any) -> Any:
    """A new array, for each example one of its own, where another array has that.

    What is written to it may then differ between examples.
    """
    levels = examples_of(like)
    if not levels:
        return array
    if examples_of(array):
        return array + for_each(np.zeros(array.shape, array.dtype), like)
    plain = of_all_examples(array)
    shape = (*(examples.size for examples in levels), *plain.shape)
    found = namespace(plain).broadcast_to(plain, shape).copy()
    for examples in levels:
        found = Batched(found, examples)
    return found


def no_single_value(what: str) -> SingleValueError:
    """The error where one number is asked for, and there is one for each example."""
    if what == "bool":
        return SingleValueError(
            "vmap: It looks like you're attempting to use a Tensor in some "
            "data-dependent control flow: there is another truth for each example. "
            "Use torch.where(condition, x, y)."
        )
    return SingleValueError(
        f"vmap: It looks like you're calling .{what}() on a Tensor: there is another "
        f"number for each example. Compute with the tensor itself."
    )


def remember_outside(x: Any, outside: Any, axis: int) -> None:
    """Remember whose memory a tensor of one example shows: what is written is seen.

    Args:
        x: the tensor that the mapped function gets.
        outside: the tensor whose axis counts the examples.
        axis: that axis.
    """
    x.__dict__["outside"] = outside, axis, x.level


def check_examples(x: Any, z: Any) -> None:
    """Raise if values of single examples would be written to what they have in common.

    Args:
        x: the tensor that is written to.
        z: its new value.
    """
    if set(examples_of(z)) - set(examples_of(x)):
        raise EagerError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there "
            "exists a Tensor `other` in extra_args that has more elements than `self`. "
            "This happened due to `other` being vmapped over but `self` not being "
            "vmapped over. Please try to use out-of-place operators instead of inplace "
            "arithmetic, or make `self` of a tensor that is mapped: "
            "torch.zeros_like(other), other.new_zeros(shape)."
        )

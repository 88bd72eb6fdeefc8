"""Tensors copied and pickled: what goes with them, and what is left."""

import copy
from typing import Any

import numpy as np

from lantern.core.value import UNTRACKED, Value, base
from lantern.eager.versions import owner
from lantern.errors import EagerError
from lantern.torch.tensor.devices import address
from lantern.torch.tensor.subclasses import joined
from lantern.torch.tensor.tensor import NOBODY, Tensor, make

__all__ = ["METHODS", "attributes"]


def attributes(x: Tensor) -> dict[str, Any]:
    """What a program has put on a tensor."""
    return {name: value for name, value in x.__dict__.items() if name != "grad"}


def rebuilt(cls: Any, array: Any, requires_grad: bool, rest: dict[str, Any]) -> Any:
    """A leaf of a class, from its array and its attributes."""
    joined(cls)
    x = object.__new__(cls)
    x.primal, x.level, x.receiver = array, UNTRACKED, NOBODY
    x.viewed = x.sharers = None
    for name, value in rest.items():
        setattr(x, name, value)
    return x.requires_grad_(requires_grad)


def reduced(self: Tensor) -> Any:
    """What is pickled: class, array and attributes, without the gradient.

    A result comes back as a leaf.
    """
    return rebuilt, (type(self), base(self), self.requires_grad, attributes(self))


def copied(self: Tensor) -> Any:
    """A leaf with the same memory and attributes, without the gradient."""
    if isinstance(self.primal, Value):  # inside a transform
        return make(self.primal, self.level, self.receiver)
    return rebuilt(type(self), self.primal, self.requires_grad, attributes(self))


def deep_copied(self: Tensor, memo: dict[int, Any]) -> Any:
    """A leaf with copies of all that it has; of a parameter, without the gradient."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise EagerError(
            "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment. Use detach() first."
        )
    plain = type(self) is Tensor
    array = copied_array(base(self), memo if plain else {})
    found = memo[id(self)] = rebuilt(type(self), array, self.requires_grad, {})
    for name, value in attributes(self).items():
        setattr(found, name, copy.deepcopy(value, memo))
    if plain and self.grad is not None:
        found.grad = copy.deepcopy(self.grad, memo)
    return found


def copied_array(array: Any, memo: Any) -> Any:
    """The copy of an array; what shares memory shares it afterwards, too."""
    if type(array) is not np.ndarray:
        return array.copy()
    whole = owner(array)
    twin = memo.get(id(whole))
    if twin is None:
        twin = memo[id(whole)] = whole.copy(order="K")
        memo.setdefault(id(memo), []).append(whole)  # whose identity is taken
    if whole.strides != twin.strides:
        return array.copy(order="K")
    if whole is array:
        return twin
    start = address(array) - address(whole)
    found = np.ndarray(array.shape, array.dtype, twin, start, array.strides)
    found.flags.writeable = array.flags.writeable
    return found


METHODS = {"__copy__": copied, "__deepcopy__": deep_copied, "__reduce__": reduced}

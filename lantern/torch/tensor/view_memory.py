"""Who shows the memory of a tensor, and where in it the elements of a view are."""

from typing import Any
from weakref import ref

import numpy as np

from lantern.core.value import base
from lantern.eager.versions import owner
from lantern.errors import EagerError
from lantern.torch.tensor.batches import first_example
from lantern.torch.tensor.devices import address, as_array, beside
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "detached",
    "is_shown_elsewhere",
    "moved_away",
    "place",
    "positions",
    "share",
    "sharers_of",
]

# By the identity of a view that shows its base's memory no longer (``replacing``): a
# weak reference to it, and where its elements lie.
_places: dict[int, tuple[Any, Any]] = {}


def moved_away(view: Tensor, where: Any) -> None:
    """Remember where a view lies, before it gets memory of its own."""
    key = id(view)
    _places[key] = ref(view, lambda _: _places.pop(key, None)), where


def detached(x: Tensor) -> bool:
    """Whether a tensor is a view that shows its base's memory no longer."""
    return bool(_places) and id(x) in _places


# Without the class's ``__getattr__``, which looks for the nearest name.
_sharers: Any = Tensor.__dict__["sharers"].__get__


def share(z: Tensor, x: Tensor) -> Tensor:
    """Note that a tensor shows the memory of another, and is no view of it."""
    whole = x.viewed if isinstance(x.viewed, Tensor) else x
    try:
        found = _sharers(whole)
    except AttributeError:
        found = whole.sharers = [ref(whole)]
    n = len(found)  # what other threads append meanwhile stays
    if n >= 8 and n & (n - 1) == 0:
        found[:n] = [weak for weak in found[:n] if weak() is not None]
    found.append(ref(z))
    z.sharers = found
    return z


def is_shown_elsewhere(x: Tensor) -> bool:
    """Whether there are tensors that show a base's memory and are no views of it."""
    return len(sharers_of(x)) > 1


def sharers_of(x: Tensor) -> list[Tensor]:
    """A base and the tensors that show its memory and are no views of it."""
    try:
        found = _sharers(x)
    except AttributeError:
        return [x]
    others = [z for z in (weak() for weak in found) if z is not None and z is not x]
    return [x, *(z for z in others if _sharers(z) is found)]


def place(view: Tensor, whole: Tensor) -> Any:
    """Where the elements of a view are in another tensor, counted in a row."""
    if detached(view):
        return _places[id(view)][1]
    if base(view).dtype != base(whole).dtype:
        raise EagerError(
            "a tensor and a view of it as another type share memory: what is written "
            "to one has no derivative by the other. clone() the view."
        )
    return positions(*(as_array(first_example(base(x))) for x in (view, whole)))


def positions(view: Any, whole: Any) -> Any:
    """Where the elements of a view are among those of an array, counted in a row."""
    memory = owner(whole)
    if isinstance(memory, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(memory)
    else:
        low = address(memory)
        high = low + memory.nbytes
    size = whole.itemsize
    numbers = np.empty((high - low) // size, np.int64)

    def shown(array: Any) -> Any:
        return np.lib.stride_tricks.as_strided(
            numbers[(address(array) - low) // size :],
            array.shape,
            [stride * 8 // size for stride in array.strides],
        )

    shown(whole)[...] = np.arange(whole.size).reshape(whole.shape)
    return beside(shown(view).reshape(-1).copy(), view)

"""Who shows the memory of a tensor, and where in it the elements of a view are."""

import gc
import sys
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from lantern.core.value import base
from lantern.eager.versions import owner
from lantern.errors import EagerError
from lantern.torch.tensor.batches import first_example
from lantern.torch.tensor.devices import address, as_array, beside
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "ALL",
    "HELD_ONCE",
    "Window",
    "detached",
    "is_shown_elsewhere",
    "lies",
    "moved_away",
    "place",
    "positions",
    "share",
    "sharers_of",
    "shows_all",
    "window",
]

# By the identity of a view that shows its base's memory no longer (``replacing``): a
# weak reference to it, and where its elements lie.
_places: dict[int, tuple[Any, Any]] = {}


def _held_once() -> int:
    """What ``getrefcount`` says of what one thing holds, and no name.

    Which names and arguments count depends on Python's version: from 3.14 on, most do
    not. So what is counted has no name, and what is said of it is measured.
    """
    row, table, view = (object(),), {0: object()}, np.empty(2)[:1]
    counts = sys.getrefcount(row[0]), sys.getrefcount(table[0])
    return min(*counts, sys.getrefcount(view.base))


HELD_ONCE = _held_once()


def moved_away(view: Tensor, where: Any) -> None:
    """Remember where a view lies, before it gets memory of its own."""
    key = id(view)
    _places[key] = ref(view, lambda _: _places.pop(key, None)), where


def detached(x: Tensor) -> bool:
    """Whether a tensor is a view that shows its base's memory no longer."""
    return bool(_places) and id(x) in _places


def share(z: Tensor, x: Tensor) -> Tensor:
    """Note that a tensor shows the memory of another, and is no view of it.

    They hold the same object, which so is held as often as there are such tensors.
    """
    whole = x.viewed if isinstance(x.viewed, Tensor) else x
    if whole.sharers is None:
        whole.sharers = object()
    z.sharers = whole.sharers
    return z


def is_shown_elsewhere(x: Tensor) -> bool:
    """Whether there are tensors that show a base's memory and are no views of it."""
    return x.sharers is not None and sys.getrefcount(x.sharers) > HELD_ONCE


def sharers_of(x: Tensor) -> list[Tensor]:
    """A base and the tensors that show its memory and are no views of it."""
    if not is_shown_elsewhere(x):
        return [x]
    found = gc.get_referrers(x.sharers)
    return [x, *(z for z in found if isinstance(z, Tensor) and z is not x)]


def shows_all(view: Tensor, whole: Tensor) -> bool:
    """Whether a view has all elements of its base, in their order, in its memory."""
    a, b = (as_array(first_example(base(x))) for x in (view, whole))
    if type(b) is not np.ndarray or (a.size, a.dtype) != (b.size, b.dtype):
        return False
    try:
        again = b.reshape(a.shape, copy=False)
    except ValueError:
        return False
    return a.strides == again.strides and address(a) == address(again)


class Window(NamedTuple):
    """Where a view that is a part along axes lies in its base.

    Attributes:
        parts: for each axis of the base, the part of it.
        order: the axes of the base in the view's order; those of length 1 come last.
        shape: the part's shape in that order.
    """

    parts: tuple[slice, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]


def window(view: Tensor, whole: Tensor) -> Window | None:
    """A view as a part of its base along axes; None if it is none.

    Strides are taken apart, and then it is tried whether the part is the view.
    """
    a, b = (as_array(first_example(base(x))) for x in (view, whole))
    if type(b) is not np.ndarray or a.dtype != b.dtype or not a.size:
        return None
    steps = {i: b.strides[i] for i in range(b.ndim) if b.shape[i] > 1}
    if min(steps.values(), default=1) <= 0:
        return None
    largest_first = sorted(steps, key=lambda i: -steps[i])
    rest, parts = address(a) - address(b), dict.fromkeys(range(b.ndim), slice(0, 1))
    for i in largest_first:
        start, rest = divmod(rest, steps[i])
        parts[i] = slice(start, start + 1)
    order = []
    for n, stride in zip(a.shape, a.strides, strict=True):
        if n > 1:
            fits = [i for i in largest_first if i not in order and stride >= steps[i]]
            if not fits:
                return None
            i = fits[0]
            start, step = parts[i].start, stride // steps[i]
            order.append(i)
            parts[i] = slice(start, start + (n - 1) * step + 1, step)
    order += [i for i in range(b.ndim) if i not in order]
    part = b[tuple(parts.values())].transpose(order)
    try:
        again = part.reshape(a.shape, copy=False)
    except ValueError:
        return None
    long = [i for i in range(a.ndim) if a.shape[i] > 1]
    same = all(a.strides[i] == again.strides[i] for i in long)
    if not same or address(again) != address(a):
        return None
    return Window(tuple(parts.values()), tuple(order), part.shape)


ALL = object()  # all of a base, in its order


def lies(view: Tensor, whole: Tensor) -> Any:
    """How a view lies in its base: ``ALL``, a ``Window``, or else by ``place``."""
    if shows_all(view, whole):
        return ALL
    return window(view, whole) or place(view, whole)


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

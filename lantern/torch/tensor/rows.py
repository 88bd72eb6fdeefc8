"""Results laid in rows once they are viewed so, with all tensors that show them.

PyTorch's functions have most results in rows; NumPy's have them in the order of their
operands. The tensors that show a result's memory are known, and so are the arrays that
rules have saved; if anything else holds it, it stays where it is.
"""

import gc
import sys
from collections import Counter
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.eager.recorder import AMBIENT, Recorder
from lantern.eager.versions import owner, shown_by
from lantern.engines.arrays import steps_of
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.operators import tracked_views, views_of
from lantern.torch.tensor.tensor import UNSEEN, Tensor
from lantern.torch.tensor.view_memory import HELD_ONCE, detached, place, sharers_of
from lantern.torch.tensor.views import strided

__all__ = ["laid_in_rows"]


def laid_in_rows(x: Tensor) -> bool:
    """Lay a result in rows, and all that shows its memory; False if others see it."""
    whole = x if x.viewed is None else x.viewed
    if whole is UNSEEN or not _dense(whole.primal):
        return False
    found = _seers(whole)
    if id(x) not in found or _seen(found):
        return False
    del found[id(whole)]
    steps = {key: _steps(z, whole) for key, z in found.items()}
    if None in steps.values():
        return False
    whole.primal = rows = namespace(whole.primal).ascontiguousarray(whole.primal)
    for key, z in found.items():
        start, strides = steps[key]
        z.primal = strided(rows.reshape(-1)[start:], z.primal.shape, strides)
        if z.level is AMBIENT and getattr(z.receiver, "memory", None):
            z.receiver.memory = id(owner(rows))
    return True


def _dense(array: Any) -> bool:
    """Whether an array is all of some memory, in an order that is not that of rows."""
    memory = owner(array)
    if array.flags.c_contiguous or memory.base is not None:
        return False
    return 0 < array.nbytes == memory.nbytes and steps_of(array) is not None


def _seers(whole: Tensor) -> dict[int, Tensor]:
    """The tensors that show the memory of a base, by their identities."""
    found: dict[int, Tensor] = {}
    for z in sharers_of(whole):
        views = [weak() for weak in list(views_of(z).values())]
        seers = [z, *views, *tracked_views(z)]
        found.update((id(v), v) for v in seers if v is not None)
    return {key: z for key, z in found.items() if not detached(z)}


def _steps(z: Tensor, whole: Tensor) -> Any:
    """Where a tensor starts in its base, laid in rows, and its strides; or None."""
    array = z.primal
    if array.dtype != whole.primal.dtype or owner(array) is not owner(whole.primal):
        return None
    if not array.size:
        return 0, array.strides
    places = as_array(place(z, whole)).reshape(array.shape)
    start = places.flat[0]
    found = [
        int(places.take(1, axis).flat[0] - start) if n > 1 else 0
        for axis, n in enumerate(places.shape)
    ]
    along = [s * np.arange(n) for s, n in zip(found, places.shape, strict=True)]
    if (sum(np.ix_(*along), start) != places).any():
        return None
    return int(start), [s * array.itemsize for s in found]


def _seen(found: dict[int, Tensor]) -> bool:
    """Whether anything but some tensors and suspended rules holds their memory."""
    held = Counter(id(z.primal) for z in found.values())
    arrays = {id(z.primal): z.primal for z in found.values()}
    if not _held_otherwise(arrays, held):
        return False
    _add_saved(arrays, held)
    return _held_otherwise(arrays, held)


def _add_saved(arrays: dict[int, Any], held: Counter[int]) -> None:
    """Add arrays that suspended rules hold: their elements, not their place, matter."""
    memory = owner(next(iter(arrays.values())))
    for receiver in gc.get_objects():
        if type(receiver) is Recorder:
            for items in (receiver.saved, gc.get_referents(receiver.suspended)):
                for item in items:
                    if type(item) is type(memory) and owner(item) is memory:
                        held[id(item)] += 1
                        arrays[id(item)] = item


def _held_otherwise(arrays: dict[int, Any], held: Counter[int]) -> bool:
    """Whether arrays, or those that they show, are held more often than is known."""
    shows: Counter[int] = Counter()
    for array in list(arrays.values()):
        while (memory := shown_by(array)) is not None:
            shows[id(memory)] += 1
            if id(memory) in arrays:
                break
            arrays[id(memory)] = array = memory
    array = memory = None
    return any(
        sys.getrefcount(arrays[key]) - HELD_ONCE > held[key] + shows[key]
        for key in arrays
    )

"""Reading and writing parts of arrays for all examples at once.

An index that all examples have in common gets a slice in front. One of their own gets
the number of the example in front, and NumPy puts the axes that integer arrays name
together; where they belong is found by indexing an array without elements.
"""

from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.errors import BatchedValueError
from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.ops.shape import moveaxis
from lantern.vectorizing.batching_rules import BatchedCall, aligned, one_by_one

__all__ = ["read", "write"]


class Place(NamedTuple):
    """Where an index leads.

    Attributes:
        parts: the index of arrays whose first axis counts the examples.
        ndim: how many axes the part of one example has.
        moves: from where to where axes of what such an index reads are to be moved,
            for the axis of the examples to be the first and the rest in order.
    """

    parts: tuple[Any, ...]
    ndim: int
    moves: tuple[list[int], list[int]]


def _arrays(parts: Any) -> list[Any]:
    return [part for part in parts if hasattr(part, "dtype")]


def place(call: BatchedCall, shape: tuple[int, ...], own_axis: bool) -> Place | None:
    """Where the index of a call leads in arrays of this shape.

    Args:
        call: with the static argument ``index``.
        shape: that of one example.
        own_axis: whether each example has an array of its own.

    Returns:
        None where an array without elements cannot tell.
    """
    index, owns = call.statics["index"], call.examples.owns
    parts = index if isinstance(index, tuple) else (index,)
    batched = [part for part in parts if owns(part) and part.mapped]
    if any(part.dtype.kind == "b" for part in batched):
        raise BatchedValueError(
            "x[mask]: inside vmap a mask selects another number of elements for each "
            "example. Use lantern.where(mask, x, 0)."
        )
    if any(type(part) is bool for part in parts):
        return None
    parts = tuple(p.stacked if owns(p) and not p.mapped else p for p in parts)
    if not batched:
        return _common(parts, shape)
    arrays = _arrays(parts)
    masks = [p for p in arrays if not owns(p) and p.dtype.kind == "b"]
    if masks:
        parts = _without_masks(parts, owns)
        arrays = _arrays(parts)
    width = max(len(part.shape) for part in arrays)
    few = _dummy(shape, [_own(p, width, 0) if owns(p) else p for p in parts])
    if few.count(0) != 1:
        return None
    start, size = few.index(0), call.examples.size
    whole = tuple(_own(p, width, size) if owns(p) else p for p in parts)
    if not own_axis:
        return Place(whole, len(few) - 1, ([start], [0]))
    number = numpy_namespace.arange(size).reshape((size,) + (1,) * width)
    moved = list(range(1, width + 1)), [start + 1 + i for i in range(width)]
    return Place((number, *whole), len(few) - 1, moved)


def _own(part: Any, width: int, size: int) -> Any:
    """Batched integers, of the first examples, with this number of axes."""
    return aligned(part.stacked[:size], True, width)


def _without_masks(parts: tuple[Any, ...], owns: Any) -> tuple[Any, ...]:
    """An index with the positions that a mask names in place of the mask."""
    found: list[Any] = []
    for part in parts:
        mask = hasattr(part, "dtype") and not owns(part) and part.dtype.kind == "b"
        found += part.nonzero() if mask else (part,)
    return tuple(found)


def _common(parts: tuple[Any, ...], shape: tuple[int, ...]) -> Place | None:
    """Where an index leads that all examples have in common."""
    whole = (slice(None), *parts)
    if not _arrays(parts):
        return Place(whole, len(_dummy(shape, parts)), ([], []))
    found = _dummy((0, *shape), whole)
    if found.count(0) != 1:
        return None
    start = found.index(0)
    return Place(whole, len(found) - 1, ([start], [0]) if start else ([], []))


def _dummy(shape: tuple[int, ...], parts: Any) -> tuple[int, ...]:
    """The shape of what an index reads from an array.

    Of an index that differs between the examples of a ``vmap`` outside, or lies on a
    device, the shape is all that counts.
    """
    xp = numpy_namespace
    known = [not hasattr(p, "dtype") or namespace(p) is xp for p in parts]
    pairs = zip(parts, known, strict=True)
    plain = [p if k else xp.zeros(p.shape, p.dtype) for p, k in pairs]
    nothing = xp.broadcast_to(xp.zeros((), bool), shape)
    found: tuple[int, ...] = nothing[tuple(plain)].shape
    return found


def read(call: BatchedCall) -> Any:
    """``x[index]`` for all examples."""
    (x,), (mapped,) = call.operands, call.mapped
    found = place(call, x.shape[1:] if mapped else x.shape, mapped)
    if found is None:
        return one_by_one(call)
    z = call.run(x, index=found.parts)
    return moveaxis(z, *found.moves) if found.moves[0] else z


def write(call: BatchedCall) -> Any:
    """An array with values put or added at an index, for all examples."""
    *arrays, _ = range(len(call.operands))
    operands = [call.spread(i) for i in arrays]
    shape = operands[0].shape[1:] if operands else call.statics["shape"]
    found = place(call, shape, own_axis=True)
    if found is None:
        return one_by_one(call)
    v = aligned(call.spread(len(arrays)), True, found.ndim)
    v = moveaxis(v, *found.moves[::-1]) if found.moves[0] else v
    changed = {} if operands else {"shape": (call.examples.size, *shape)}
    return call.run(*operands, v, index=found.parts, **changed)

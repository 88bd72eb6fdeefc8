"""How elements are written down that are taken from places, put there, or in order."""

from typing import Any

import numpy as np

import lantern.torch as torch
from lantern.core.value import base
from lantern.onnx.export.basic import Tensors, first, refuse
from lantern.onnx.export.table import translation
from lantern.torch.tensor.tensor import Tensor, fresh

__all__: list[str] = []


def _moved(g: Any, x: Any, move: Any) -> str:
    """What moves elements and computes nothing: each is taken from a known place."""
    size, shape = base(x).size, base(x).shape
    places = base(move(fresh(np.arange(size).reshape(shape))))
    return g.emit("Gather", g.reshaped(x, [-1]), g.constant(places), axis=0)


_MOVES: dict[Any, Any] = {
    torch.flip: lambda x, a: torch.flip(x, _axes(a, "axes")),
    torch.roll: lambda x, a: torch.roll(x, a["shifts"], a["dims"]),
    torch.rot90: lambda x, a: torch.rot90(x, a["k"], a["dims"]),
    torch.diagonal: lambda x, a: x.diagonal(a["offset"], a["dim1"], a["dim2"]),
    Tensors.unfold: lambda x, a: x.unfold(a["dimension"], a["size"], a["step"]),
}
for _function, _move in _MOVES.items():

    @translation(_function)
    def _rearranged(g: Any, a: dict[str, Any], z: Any, move: Any = _move) -> Any:
        return _moved(g, first(a), lambda x: move(x, a))


def _axes(a: dict[str, Any], several: str) -> Any:
    """Axes or counts, given one by one or in a sequence."""
    return a[several] if a["dims"] is None else a["dims"]


# --- indices --------------------------------------------------------------------------


@translation(Tensors.__getitem__)
def _item(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, index = first(a), a["index"]
    if _is_known(g, index):
        return _known_item(g, x, index, z)
    index = _whole(index, base(x).shape)
    named = {k: i for k, i in enumerate(index) if isinstance(i, Tensor)}
    if any(base(i).dtype.kind not in "iu" for i in named.values()):
        raise refuse("an index that is a mask")
    if any(not isinstance(i, int | slice | Tensor) for i in index):
        raise refuse("an index of lists beside tensors")
    if any(isinstance(i, int) for i in index) and len(named) > 1:
        raise refuse("an index of numbers beside several tensors")
    slices = [slice(None) if k in named else i for k, i in enumerate(index)]
    name = _sliced(g, g.name(x), slices, base(x).shape)
    axes = list(named)
    if len(axes) == 1:
        made = g.emit("Gather", name, named[axes[0]], axis=axes[0])
        return g.reshaped(made, base(z).shape)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise refuse("an index of tensors with slices between them")
    return _by_several(g, name, len(index), named, z)


def _by_several(g: Any, name: str, ndim: int, named: Any, z: Any) -> str:
    """The elements at indices of several axes, side by side."""
    axes, start = list(named), min(named)
    order = [*axes, *(k for k in range(ndim) if k not in axes)]
    name = g.emit("Transpose", name, perm=order)
    shape = np.broadcast_shapes(*(base(i).shape for i in named.values()))
    parts = [
        g.reshaped(g.emit("Expand", g.cast(i, np.dtype(np.int64)), g.ints(shape)),
                   (*shape, 1))
        for i in named.values()
    ]  # fmt: skip
    made = g.emit("GatherND", name, g.emit("Concat", *parts, axis=-1))
    rest, found = ndim - len(axes), len(shape)
    turn = [*range(found, found + start), *range(found),
            *range(found + start, found + rest)]  # fmt: skip
    return g.reshaped(g.emit("Transpose", made, perm=turn), base(z).shape)


def _is_known(g: Any, index: Any) -> bool:
    """Whether an index depends on nothing that goes in."""
    parts = index if isinstance(index, tuple | list) else (index,)
    return not any(isinstance(i, Tensor) and g.depends(i) for i in parts)


def _known_item(g: Any, x: Any, index: Any, z: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(i, int | slice | None | type(...)) for i in parts):
        return _moved(g, x, lambda places: places[index])
    whole = _whole(index, base(x).shape)
    return g.reshaped(_sliced(g, g.name(x), whole, base(x).shape), base(z).shape)


def _whole(index: Any, shape: Any) -> Any:
    """An index with a part for each axis, and no new ones."""
    index = index if isinstance(index, tuple) else (index,)
    count = sum(i is not None and i is not Ellipsis for i in index)
    rest = (slice(None),) * (len(shape) - count)
    at = [k for k, i in enumerate(index) if i is Ellipsis] or [len(index)]
    index = (*index[: at[0]], *rest, *index[at[0] + 1 :])
    return [i for i in index if i is not None]


def _sliced(g: Any, name: str, slices: Any, shape: Any) -> str:
    """Slices of axes; of a number, the slice that it is alone in."""
    whole = [slice(i, i + 1 or None) if isinstance(i, int) else i for i in slices]
    limits = [
        (axis, *i.indices(shape[axis]))
        for axis, i in enumerate(whole)
        if i != slice(None)
    ]
    if not limits:
        return name
    axes, starts, ends, steps = map(g.ints, zip(*limits, strict=True))
    return str(g.emit("Slice", name, starts, ends, axes, steps))


@translation(torch.narrow)
def _narrow(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, axis, start = first(a), int(a["dim"]), int(a["start"])
    ends = g.ints([start + base(z).shape[axis]])
    return g.emit("Slice", x, g.ints([start]), ends, g.ints([axis]))


@translation(torch.select)
def _select(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Gather", first(a), np.array(int(a["index"])), axis=int(a["dim"]))


@translation(torch.index_select)
def _index_select(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Gather", first(a), a["index"], axis=int(a["dim"]))


@translation(torch.repeat_interleave)
def _repeat_interleave(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, repeats, axis = first(a), a["repeats"], a["dim"]
    if repeats is None or (isinstance(repeats, Tensor) and g.depends(repeats)):
        raise refuse("repeat_interleave by what goes in")
    name = g.reshaped(x, [-1]) if axis is None else g.name(x)
    n = base(x).size if axis is None else base(x).shape[axis]
    places = np.repeat(np.arange(n), base(repeats))
    return g.emit("Gather", name, g.constant(places), axis=int(axis or 0))


@translation(torch.gather)
def _gather(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("GatherElements", first(a), a["index"], axis=int(a["dim"]))


@translation(torch.take_along_dim)
def _take_along_dim(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, index, axis = first(a), a["indices"], a["dim"]
    if axis is None:
        flat = g.reshaped(x, [-1]), g.reshaped(index, [-1])
        return g.emit("GatherElements", *flat, axis=0)
    axis = int(axis) % base(x).ndim
    shapes = [list(base(t).shape) for t in (x, index)]
    for shape in shapes:
        shape[axis] = 1
    both = [list(np.broadcast_shapes(*shapes)) for _ in shapes]
    for shape, t in zip(both, (x, index), strict=True):
        shape[axis] = base(t).shape[axis]
    given = [
        g.emit("Expand", t, g.ints(s)) for t, s in zip((x, index), both, strict=True)
    ]
    return g.emit("GatherElements", *given, axis=axis)


# --- puts -----------------------------------------------------------------------------

# PyTorch's names of what happens to elements that meet, and the format's.
_MEETING = {
    None: "none", "add": "add", "multiply": "mul", "sum": "add", "prod": "mul",
    "amax": "max", "amin": "min",
}  # fmt: skip


@translation(torch.scatter, torch.scatter_add, torch.scatter_reduce)
def _scatter(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, index, src = first(a), a["index"], a["src"]
    how = a.get("reduce", "add")
    if how not in _MEETING or not a.get("include_self", True):
        raise refuse(f"scatter_reduce({how!r}), or without what is there,")
    shape = base(index).shape
    if isinstance(src, Tensor) and base(src).shape:
        slices = [slice(n) for n in shape]
        part = _sliced(g, g.cast(src, base(x).dtype), slices, base(src).shape)
    else:
        part = _filled(g, a.get("value") if src is None else src, x, shape)
    axis = int(a["dim"])
    return g.emit("ScatterElements", x, index, part, axis=axis, reduction=_MEETING[how])


def _filled(g: Any, value: Any, x: Any, shape: Any) -> str:
    """A number, in the type of a tensor, as often as a shape has elements."""
    return str(g.emit("Expand", g.cast(value, base(x).dtype), g.ints(shape)))


@translation(torch.index_add, torch.index_copy, torch.index_fill)
def _index_put(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, axis = first(a), int(a["dim"]) % max(base(z).ndim, 1)
    shape = list(base(x).shape)
    shape[axis] = base(a["index"]).size
    row = [1] * len(shape)
    row[axis] = -1
    index = g.emit("Expand", g.reshaped(a["index"], row), g.ints(shape))
    value = a["source"] if "source" in a else a["value"]
    part = _filled(g, value, x, shape)
    if a.get("alpha", 1) != 1:
        part = g.emit("Mul", part, g.cast(a["alpha"], base(x).dtype))
    how = "add" if "alpha" in a else "none"
    return g.emit("ScatterElements", x, index, part, axis=axis, reduction=how)


def _put(g: Any, a: dict[str, Any], z: Any) -> Any:
    """``x[index] = value``: by the places that the index names."""
    x, index = a["self"], a["index"]
    if not _is_known(g, index):
        raise refuse("x[i] = v where i goes in")
    shape = base(x).shape
    places = base(fresh(np.arange(base(x).size).reshape(shape))[index])
    value = _filled(g, _plain(a["value"]), x, places.shape)
    flat = g.reshaped(x, [-1]), g.ints(places.reshape(-1)), g.reshaped(value, [-1])
    made = g.reshaped(g.emit("ScatterElements", *flat, axis=0), shape)
    g.bind(x, made)


def _plain(value: Any) -> Any:
    return value if isinstance(value, Tensor) else np.asarray(value)


translation(Tensors.__setitem__, writes=True)(_put)


@translation(Tensors.fill_, Tensors.zero_)
def _fill(g: Any, a: dict[str, Any], z: Any) -> Any:
    return _filled(g, a.get("value", 0), z, base(z).shape)


# --- orders ---------------------------------------------------------------------------


def _top(g: Any, x: Any, k: int, axis: int, largest: Any) -> Any:
    length = g.ints([k])
    return g.emit("TopK", x, length, outputs=2, axis=axis, largest=int(bool(largest)))


@translation(torch.topk)
def _topk(g: Any, a: dict[str, Any], z: Any) -> Any:
    return _top(g, first(a), a["k"], int(a["dim"]), a["largest"])


@translation(torch.sort)
def _sort(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, axis = first(a), int(a["dim"])
    return _top(g, x, base(x).shape[axis], axis, a["descending"])


@translation(torch.argsort)
def _argsort(g: Any, a: dict[str, Any], z: Any) -> Any:
    return _sort(g, a, z)[1]


@translation(torch.median, torch.kthvalue)
def _one_of_order(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, axis, parts = first(a), a["dim"], z
    if axis is None:
        n, axis, parts = base(x).size, 0, [z]
        x = g.reshaped(x, [-1])
    else:
        n = base(x).shape[int(axis)]
    k = a["k"] if "k" in a else (n + 1) // 2
    last = [g.emit("Gather", made, np.array(k - 1), axis=int(axis))
            for made in _top(g, x, k, int(axis), False)]  # fmt: skip
    made = [g.reshaped(m, base(p).shape) for m, p in zip(last, parts, strict=False)]
    return made if len(parts) > 1 else made[0]

"""Arrays with more around them, or with less."""

from collections.abc import Callable
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Rule, Value, base, is_tracked
from lantern.errors import MissingRuleError, ShapeError
from lantern.op import linear
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.indexing import getitem, take
from lantern.tensor.ops.shape import as_array, axis_of, broadcast_to

__all__ = ["pad", "trim_zeros"]

Pair = tuple[Any, Any]


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """An array with more around it: constants, or what its edges suggest.

    Args:
        pad_width: how much before and after each axis: a number, a pair, a pair for
            each axis, or a dict from axes to these.
        mode: "constant" (with ``constant_values``, tracked or not), "edge", "reflect",
            "symmetric" (both with ``reflect_type``), "wrap", "linear_ramp" (with
            ``end_values``), "mean", "maximum", "minimum", "median" (with
            ``stat_length``).

    Shapes:
        array: (n, ...); result: (before + n + after, ...)

    Raises:
        MissingRuleError: for mode "empty" or a function.

    Example:
        >>> import numpy as np
        >>> pad(np.array([1.0, 2.0, 3.0]), (1, 2), "reflect")
        array([2., 1., 2., 3., 2., 1.])
    """
    leaves = tree_leaves([array, kwargs])
    if not any(isinstance(x, Value) for x in leaves):
        return array_namespace(array).pad(array, pad_width, mode, **kwargs)
    if mode == "empty" or callable(mode):
        raise MissingRuleError(
            f"pad: no rule for mode {mode!r}. Choose a mode that says which values to "
            f"take, or use concat."
        )
    x, plain = as_array(array), tree_map(base, kwargs)
    ndim = len(x.shape)
    numpy_namespace.pad(numpy_namespace.zeros((1,) * ndim), 0, mode, **plain)  # raises
    widths = _widths(tree_map(base, pad_width), ndim)
    if mode == "constant" and not _any_nonzero(kwargs):
        return _pad(x, widths=widths)
    options = {
        name: [value] * ndim if name == "reflect_type" else _pairs(value, ndim)
        for name, value in kwargs.items()
    }
    for axis, width in enumerate(widths):
        own = {name: values[axis] for name, values in options.items()}
        if width != (0, 0):
            x = _extend(x, axis, width, mode, own)
    return x


def _any_nonzero(kwargs: Any) -> bool:
    """Whether constants are given that are not plainly 0."""
    values = tree_leaves(kwargs)
    return any(is_tracked(v) or numpy_namespace.any(base(v)) for v in values)


@linear
def _pad(x: Any, /, widths: Any) -> Rule:
    """An array with zeros around it.

    Shapes:
        x: (n, ...); result: (before + n + after, ...)

    Rule:
        x_bar = the middle of z_bar
    """
    middle = [slice(b, b + n) for (b, _), n in zip(widths, x.shape, strict=True)]
    z_bar = yield (namespace(x).pad(x, widths), x := None)[0]
    yield z_bar[tuple(middle)]


def _widths(pad_width: Any, ndim: int) -> list[Pair]:
    """How much to add before and after each axis."""
    pairs = [(0, 0)] * ndim
    if isinstance(pad_width, dict):
        for axis, width in pad_width.items():
            pairs[axis_of(axis, ndim)] = _pairs(width, 1)[0]
    else:
        pairs = _pairs(pad_width, ndim)
    for width in sum(pairs, ()):
        if not hasattr(width, "__index__") or width < 0:
            raise ShapeError(
                f"pad: got the width {width!r}. Give integers that are not negative."
            )
    return [(int(before), int(after)) for before, after in pairs]


def _pairs(option: Any, ndim: int) -> list[Pair]:
    """An option for before and after each axis: given once, for both, or for each."""
    leaves: list[Any] = []

    def place(part: Any) -> Any:
        if isinstance(part, list | tuple) or getattr(part, "shape", None):
            return [place(p) for p in part]
        leaves.append(part)
        return len(leaves) - 1

    places = numpy_namespace.array(place(option))
    if places.size == 2 and places.shape != (2, 1):
        places = places.reshape(-1)
    places = numpy_namespace.broadcast_to(places, (ndim, 2)).tolist()
    return [(leaves[before], leaves[after]) for before, after in places]


def _extend(x: Any, axis: int, width: Pair, mode: str, options: Any) -> Any:
    """An array with more before and behind one axis."""
    if x.shape[axis] == 0 and mode != "constant":
        raise ShapeError(
            f"pad: axis {axis} is empty, and mode {mode!r} needs an element to go by. "
            f"Use mode 'constant'."
        )
    sides = _SIDES.get(mode, _gathered)(x, axis, width, mode, **options)
    around = [
        [_filled((*x.shape[:axis], n, *x.shape[axis + 1 :]), side, x)] if n else []
        for side, n in zip(sides, width, strict=True)
    ]
    dtype = x.dtype if x.dtype.kind not in "iub" else None
    return concat([*around[0], x, *around[1]], axis, dtype=dtype)


def _filled(shape: tuple[int, ...], side: Any, x: Any) -> Any:
    """What is added on one side, in its full shape; plain numbers beside x."""
    if not hasattr(side, "shape") and not isinstance(side, Value):
        return namespace(base(x)).full(shape, side)
    return broadcast_to(side, shape)


def _near(x: Any, axis: int, part: slice) -> Any:
    """A part of x along an axis."""
    return getitem(x, (slice(None),) * axis + (part,))


def _gathered(
    x: Any, axis: int, width: Pair, mode: str, reflect_type: str = "even"
) -> Pair:
    """What is added in modes that repeat elements.

    Where reflections are odd, ``2 * edge - reflection``, each element is a combination
    of one element and both edges, whose weights add up to 1.
    """
    xp, n, before = namespace(base(x)), x.shape[axis], width[0]
    parts = slice(before), slice(before + n, None)
    places = xp.pad(xp.arange(n), width, mode)
    if reflect_type == "even":
        return take(x, places[parts[0]], axis), take(x, places[parts[1]], axis)
    edges = [(xp.arange(n) == i).astype(base(x).real.dtype) for i in (0, n - 1)]
    first, last = (xp.pad(e, width, mode, reflect_type="odd") for e in edges)
    last = last * (n > 1)

    def side(part: slice) -> Any:
        z = take(x, places[part], axis) * _along(axis, x, (1 - first - last)[part])
        z = z + _near(x, axis, slice(0, 1)) * _along(axis, x, first[part])
        return z + _near(x, axis, slice(n - 1, n)) * _along(axis, x, last[part])

    return side(parts[0]), side(parts[1])


def _along(axis: int, x: Any, weights: Any) -> Any:
    """Weights in a shape that broadcasts along an axis of x."""
    return weights.reshape((-1,) + (1,) * (len(x.shape) - 1 - axis))


def _constant(x: Any, axis: int, width: Pair, mode: str, constant_values: Pair) -> Pair:
    """What is added in mode "constant"."""
    return constant_values


def _ramp(x: Any, axis: int, width: Pair, mode: str, end_values: Pair = (0, 0)) -> Pair:
    """What is added in mode "linear_ramp": from the end value up to the edge."""
    xp, n, (before, after) = namespace(base(x)), x.shape[axis], width
    first, last = _near(x, axis, slice(0, 1)), _near(x, axis, slice(n - 1, n))

    def ramp(edge: Any, end: Any, steps: Any) -> Any:
        return end + (edge - end) * _along(axis, x, steps)

    return (
        ramp(first, end_values[0], xp.arange(before) / max(before, 1)),
        ramp(last, end_values[1], xp.arange(after)[::-1] / max(after, 1)),
    )


_STATISTICS = {"maximum": "max", "minimum": "min", "mean": "mean", "median": "median"}


def _statistic(
    x: Any, axis: int, width: Pair, mode: str, stat_length: Pair = (None, None)
) -> Pair:
    """What is added in modes that summarise the elements near the edge."""
    n, function = x.shape[axis], getattr(namespace(x), _STATISTICS[mode], None)
    if function is None:
        raise MissingRuleError(f"pad: no rule for mode {mode!r}. Use mode 'mean'.")
    first, last = (n if k is None else min(int(k), n) for k in stat_length)
    sides = _near(x, axis, slice(first)), _near(x, axis, slice(n - last, n))
    return tuple(function(side, axis=axis, keepdims=True) for side in sides)


_SIDES: dict[str, Callable[..., Pair]] = {
    "constant": _constant,
    "linear_ramp": _ramp,
    **dict.fromkeys(_STATISTICS, _statistic),
}


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """An array without the zeros at its ends.

    Args:
        trim: where to trim: "f" for the front, "b" for the back, "fb" for both.
        axis: along which axes; None for all.

    Shapes:
        filt: (n, ...); result: (m, ...)

    Example:
        >>> import numpy as np
        >>> trim_zeros(np.array([0.0, 1.0, 0.0, 2.0, 0.0]))
        array([1., 0., 2.])
    """
    filt = as_array(filt)
    plain, ndim = base(filt), len(filt.shape)
    if trim.lower() not in ("f", "b", "fb", "bf"):
        raise ShapeError(f"trim_zeros: trim={trim!r}. Choose 'f', 'b' or 'fb'.")
    normalize = numpy_namespace.lib.array_utils.normalize_axis_tuple
    axes = range(ndim) if axis is None else normalize(axis, ndim)
    index = []
    for i, places in enumerate(plain.nonzero()):
        if i not in axes:
            index.append(slice(None))
        elif not places.size:
            index.append(slice(0, 0))
        else:
            start = int(places.min()) if "f" in trim.lower() else 0
            stop = int(places.max()) + 1 if "b" in trim.lower() else None
            index.append(slice(start, stop))
    return getitem(filt, tuple(index))

"""Convolution as matrix products of windows; three rules, each other's transposes.

With y = correlate(x, w), linear in x and in w: the transpose in x is ``spread(y, w)``,
the transpose in w is ``match(x, y)``. All contributions of the three are among the
three, and so derivatives of any order are.
"""

import math
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.engines import convolution as engine
from lantern.op import op
from lantern.torch.nn.products import times
from lantern.torch.nn.rules import over_rows, plain
from lantern.torch.nn.starting import fused

__all__ = ["Form", "correlate", "inner", "spread", "with_padding"]


# Elements of windows that are worked on at a time. A core's cache holds 2 ** 18, whose
# products are small for BLAS: these take 0.4 to 1.1 of the time, in one thread or two.
_BLOCK = 1 << 21

_WIDE = 256  # of at least so many windows an example is a product by itself


class Form(NamedTuple):
    """How windows lie on an array.

    Attributes:
        lengths: of the array's axes that windows move along.
        size: of the windows.
        stride: from one window to the next.
        padding: before and behind, for each axis.
        dilation: from one element in a window to the next.
        groups: of channels that do not meet.
    """

    lengths: tuple[int, ...]
    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def padded(self) -> tuple[int, ...]:
        """The lengths with padding."""
        return tuple(
            n + a + b for n, (a, b) in zip(self.lengths, self.padding, strict=True)
        )

    @property
    def steps(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        return _steps(self)

    def places(self) -> Any:
        """For each element of a window, its number and where it is in all windows."""
        for place in product(*map(range, self.size)):
            starts = [i * d for i, d in zip(place, self.dilation, strict=True)]
            parts = tuple(
                slice(a, a + (n - 1) * s + 1, s)
                for a, n, s in zip(starts, self.steps, self.stride, strict=True)
            )
            yield place, (..., *parts)


@lru_cache(4096)
def _steps(form: Form) -> tuple[int, ...]:
    parts = zip(form.padded, form.dilation, form.size, form.stride, strict=True)
    return tuple((n - d * (k - 1) - 1) // s + 1 for n, d, k, s in parts)


def with_padding(x: Any, form: Form, value: float = 0) -> Any:
    """An array with a value around it."""
    if not any(map(any, form.padding)):
        return x
    xp = namespace(x)
    lead = x.ndim - len(form.lengths)
    out = xp.full((*x.shape[:lead], *form.padded), value, dtype=x.dtype)
    out[inner(form)] = x
    return out


def inner(form: Form) -> Any:
    """Where an array is in what has padding around it."""
    parts = zip(form.lengths, form.padding, strict=True)
    return (..., *(slice(a, a + n) for n, (a, _) in parts))


def _plain(form: Form) -> bool:
    """Whether each element is a window."""
    ones = (1,) * len(form.size)
    return form.size == form.stride == ones and not any(map(any, form.padding))


def _is_wide(form: Form) -> bool:
    """Whether an example's columns are the example itself, and many."""
    return _plain(form) and math.prod(form.steps) >= _WIDE


def _is_product(form: Form) -> bool:
    """Whether the weights are a matrix by which each example is multiplied."""
    return form.groups == 1 and _is_wide(form)


def _turned(form: Form) -> Form | None:
    """The transpose as a convolution of results, by weights that are turned round.

    Without more channels to copy it takes 0.2 to 0.8 of the time of adding up windows.
    None with strides, groups, or padding wider than what a window reaches.
    """
    if form.groups != 1 or any(step != 1 for step in form.stride):
        return None
    widths = [d * (k - 1) for d, k in zip(form.dilation, form.size, strict=True)]
    pairs = zip(widths, form.padding, strict=True)
    padding = tuple((n - a, n - b) for n, (a, b) in pairs)
    if any(min(pair) < 0 for pair in padding):
        return None
    return form._replace(lengths=form.steps, padding=padding)


def _columns(x: Any, form: Form) -> Any:
    """All windows of x as columns: (groups, channels * size, examples * steps)."""
    examples, channels = x.shape[:2]
    if examples == 1 and _plain(form):
        return x.reshape(form.groups, channels // form.groups, math.prod(x.shape[2:]))
    x = with_padding(x, form).swapaxes(0, 1)
    xp = namespace(x)
    out = xp.empty((channels, *form.size, examples, *form.steps), dtype=x.dtype)
    for place, part in form.places():
        out[(slice(None), *place)] = x[part]
    each = channels // form.groups * math.prod(form.size)
    return out.reshape(form.groups, each, examples * math.prod(form.steps))


def _flat(z: Any, form: Form) -> Any:
    """Results (examples, channels, steps) as (groups, channels, examples * steps)."""
    examples, channels = z.shape[:2]
    count = math.prod(z.shape[2:])
    z = z.reshape(examples, channels, count).swapaxes(0, 1)
    return z.reshape(form.groups, channels // form.groups, examples * count)


def _rows(w: Any, form: Form) -> Any:
    """Weights as (groups, channels, elements of a window)."""
    each = w.shape[0] // form.groups
    return w.reshape(form.groups, each, math.prod(w.shape[1:]))


def _parts(x: Any, form: Form, channels: int) -> Any:
    """Parts of the examples, by how many elements the windows of each have."""
    examples = x.shape[0]
    if not isinstance(x, np.ndarray):  # a GPU takes all of them at once
        return [slice(0, examples)]
    each = channels * math.prod(form.size) * math.prod(form.steps)
    step = max(1, _BLOCK // max(1, each))
    if _is_wide(form):
        step = 1
    return (slice(i, i + step) for i in range(0, examples, step))


def _correlated(x: Any, w: Any, form: Form, bias: Any = None) -> Any:
    z = engine.correlate(x, w, form, bias)
    if z is not None:
        return z
    if _is_product(form):
        z = _rows(w, form)[0] @ x.reshape(*x.shape[:2], -1)
        z = z.reshape(len(x), -1, *form.steps)
    else:
        z = _gathered(x, w, form)
    return z if bias is None else z + _beside(bias, form)


def _gathered(x: Any, w: Any, form: Form) -> Any:
    """The products of weights with windows that are copied side by side."""
    rows, dtype = _rows(w, form), np.result_type(x, w)
    z = namespace(x).empty((x.shape[0], w.shape[0], *form.steps), dtype=dtype)
    for part in _parts(x, form, x.shape[1]):
        made = _products(rows, _columns(x[part], form))
        made = made.reshape(w.shape[0], len(x[part]), *form.steps)
        z[part] = made.swapaxes(0, 1)
    return z


def _products(rows: Any, columns: Any) -> Any:
    """The products of each group's matrices."""
    return times(rows[0], columns[0])[None] if len(rows) == 1 else rows @ columns


def _beside(bias: Any, form: Form) -> Any:
    """A number for each channel, as it is added to results."""
    return bias.reshape(-1, *[1] * len(form.size))


def _spread_out(z: Any, w: Any, form: Form) -> Any:
    x = engine.spread(z, w, form)
    if x is not None:
        return x
    rows, xp = _rows(w, form).swapaxes(1, 2), namespace(z)
    if _is_product(form):
        x = rows[0] @ z.reshape(*z.shape[:2], -1)
        return x.reshape(len(z), -1, *form.lengths)
    if len(w) <= w.shape[1] and (back := _turned(form)) is not None:
        turned = w.swapaxes(0, 1)[(..., *[slice(None, None, -1)] * len(form.size))]
        return engine.channels_last(_gathered(z, turned, back), form)
    channels, dtype = w.shape[1] * form.groups, np.result_type(z, w)
    out = xp.empty((z.shape[0], channels, *form.lengths), dtype=dtype)
    for part in _parts(z, form, channels):
        columns = _products(rows, _flat(z[part], form))
        count = len(z[part])
        columns = columns.reshape(channels, *form.size, count, *form.steps)
        whole = xp.zeros((channels, count, *form.padded), dtype=dtype)
        for place, where in form.places():
            whole[where] += columns[(slice(None), *place)]
        out[part] = whole[inner(form)].swapaxes(0, 1)
    return engine.channels_last(out, form)


def _matched(x: Any, z: Any, form: Form) -> Any:
    w = engine.match(x, z, form)
    if w is not None:
        return w
    k, c = z.shape[1] // form.groups, x.shape[1] // form.groups
    shape, dtype = (form.groups, k, c * math.prod(form.size)), np.result_type(x, z)
    total = namespace(x).zeros(shape, dtype=dtype)
    for part in _parts(x, form, x.shape[1]):
        columns = _columns(x[part], form).swapaxes(1, 2)
        total += _products(_flat(z[part], form), columns)
    return total.reshape(z.shape[1], c, *form.size)


@op
def _correlate(x: Any, w: Any, bias: Any = None, /, *, form: Form) -> Rule:
    """The products of weights with each window of an array, and a bias.

    Shapes:
        x: (n, c, ...); w: (k, c / groups, ...); bias: (k,) or None;
        result: (n, k, ...)

    Rule:
        x_bar = spread(z_bar, w); w_bar = match(x, z_bar);
        bias_bar = z_bar, summed over all axes but that of the channels
    """
    x = engine.channels_last(x, form)
    if plain(x, w) and plain(bias):
        z = _correlated(x, w, form, bias)
    else:
        z = _start(_correlated, correlate_any, x, w, form)
        z = z if bias is None else z + _beside(bias, form)
    del bias
    z_bar = yield (z, z := None)[0]
    z_bar = engine.channels_last(z_bar, form)
    yield lambda: spread_any(z_bar, w, form=form)
    yield lambda: match_any(x, z_bar, form=form)
    yield lambda: _per_channel(z_bar)


def _per_channel(z_bar: Any) -> Any:
    """The sum over all axes but the second: of plain channels that lie last, fast."""
    axes = (0, *range(2, z_bar.ndim))
    rows = z_bar.transpose(*axes, 1)
    if isinstance(z_bar, np.ndarray) and rows.flags.c_contiguous:
        return over_rows(rows.reshape(-1, z_bar.shape[1]))
    return z_bar.sum(axis=axes)


@op
def _spread(z: Any, w: Any, /, form: Form) -> Rule:
    """The transpose of ``correlate`` in its array.

    Shapes:
        z: (n, k, ...); w: (k, c / groups, ...); result: (n, c, ...)

    Rule:
        z_bar = correlate(x_bar, w); w_bar = match(x_bar, z)
    """
    x_bar = yield _start(_spread_out, spread_any, z, w, form)
    yield lambda: correlate_any(x_bar, w, form=form)
    yield lambda: match_any(x_bar, z, form=form)


@op
def _match(x: Any, z: Any, /, form: Form) -> Rule:
    """The transpose of ``correlate`` in its weights.

    Shapes:
        x: (n, c, ...); z: (n, k, ...); result: (k, c / groups, ...)

    Rule:
        x_bar = spread(z, w_bar); z_bar = correlate(x, w_bar)
    """
    w_bar = yield _start(_matched, match_any, x, z, form)
    yield lambda: spread_any(z, w_bar, form=form)
    yield lambda: correlate_any(x, w_bar, form=form)


def _start(direct: Any, again: Any, x: Any, y: Any, form: Form) -> Any:
    """Compute at once on plain arrays; on tracked ones, as an operation of theirs."""
    if plain(x, y):
        return direct(x, y, form)
    return again(x, y, form=form)


correlate_any: Any
correlate_any, spread_any, match_any = _correlate, _spread, _match
correlate, spread = fused(_correlate), fused(_spread)

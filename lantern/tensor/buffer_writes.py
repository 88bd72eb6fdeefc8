"""Contents of a buffer: an array, and the writes to it that are not yet carried out.

A tracked array never changes, for rules have saved it. So writes of tracked values are
collected, and carried out by one operation, ``overwritten``, as soon as a read needs
them: n writes and a read cost what one write of everything costs. A part that is read
as it was written is that value itself, and costs nothing.
"""

from collections.abc import Sequence
from typing import Any

from lantern.core.namespace import common_namespace, namespace
from lantern.core.residuals import copied
from lantern.core.value import Rule, Value, base
from lantern.errors import ShapeError
from lantern.op import linear
from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.ops.at import fitting
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.shape import as_array, astype, broadcast_to, reshape
from lantern.tensor.tensor import Tensor

__all__ = ["Storage", "Window", "narrowed", "overwritten"]

# A window is narrow if it shows no more than this part of the array.
_NARROW = 100
# A rectangular part of an array: for each axis a position, or a range of them.
Window = tuple[Any, ...]


def narrowed(window: Window, index: Any) -> Window | None:
    """The part of a window that an index names; None if it names no window."""
    given = list(index) if type(index) is tuple else [index]
    axes = [axis for axis, part in enumerate(window) if type(part) is range]
    dots = [i for i, part in enumerate(given) if part is ...]
    if dots:
        missing = len(axes) - len(given) + 1
        given[dots[0] : dots[0] + 1] = [slice(None)] * missing
    if len(given) > len(axes):
        return None
    found = list(window)
    for axis, part in zip(axes, given, strict=False):
        if type(part) is not slice and type(part) is not int:
            if not isinstance(part, numpy_namespace.integer):
                return None
            part = int(part)
        try:
            found[axis] = window[axis][part]
        except IndexError:  # NumPy says it better
            return None
    return tuple(found)


def shape_of(window: Window) -> tuple[int, ...]:
    """The shape of what a window shows."""
    return tuple([len(part) for part in window if type(part) is range])


def as_index(window: Window) -> tuple[Any, ...]:
    """The index that a window stands for."""
    return tuple([_as_slice(p) if type(p) is range else p for p in window])


def _as_slice(part: range) -> slice:
    stop = part.stop if part.stop >= 0 else None  # of a range that counts down to 0
    return slice(part.start, stop, part.step)


class Storage:
    """The memory behind a buffer and its windows.

    Args:
        array: what it starts with: a tracked tensor, or a plain array of its own.

    Attributes:
        version: counts the writes.
        whole: the window that shows everything.
        writes: the values that were written, by their windows, oldest first.
        axes: the axes along which all of these windows are one element wide, if along
            all others they are whole, so that no two overlap; else None.
        lent: whether someone reads the memory of the plain array.
    """

    __slots__ = ("array", "axes", "lent", "version", "whole", "writes")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.version = 0
        self.whole: Window = tuple(map(range, array.shape))
        self.writes: dict[Window, Any] = {}
        self.axes: tuple[int, ...] | None = None
        self.lent = False

    @property
    def is_plain(self) -> bool:
        """Whether nothing tracked is in it."""
        return not self.writes and not isinstance(self.array, Value)

    def own(self) -> Any:
        """The plain array, to be written to."""
        self.version += 1
        if self.lent:
            self.array, self.lent = copied(self.array), False
        return self.array

    def write(self, window: Window, v: Any) -> None:
        """Put a value, tracked or not, into a window."""
        if self.is_plain and not isinstance(v, Value):
            self.own()[as_index(window)] = v
            return
        v = fitting(v if isinstance(v, Value) else copied(v), base(self.array))
        self._check_shape(shape_of(window), v)
        self.version += 1
        if window == self.whole:
            self.writes.clear()
            self.array, self.lent = self._fitted(window, v), False
            return
        axes = self._narrow_axes(window)
        self.axes = axes if not self.writes or axes == self.axes else None
        self.writes.pop(window, None)
        self.writes[window] = v

    def _narrow_axes(self, window: Window) -> tuple[int, ...] | None:
        """The axes of which a window shows one element, if it shows all of others."""
        axes = [i for i, part in enumerate(window) if type(part) is int]
        whole = all(
            part is all_ or type(part) is int or part == all_
            for part, all_ in zip(window, self.whole, strict=True)
        )
        return tuple(axes) if whole else None

    def _check_shape(self, shape: tuple[int, ...], v: Any) -> None:
        given = getattr(v, "shape", ())
        inner = given[max(len(given) - len(shape), 0) :]
        ones = given[: len(given) - len(inner)]
        fits = all(
            n in (1, m) for n, m in zip(reversed(inner), reversed(shape), strict=False)
        )
        if not fits or any(n != 1 for n in ones):
            raise ShapeError(
                f"b[i] = v: a value of shape {given} does not fit into a part of "
                f"shape {shape}. Give one that broadcasts to it."
            )

    def _fitted(self, window: Window, v: Any) -> Any:
        """A value that was written to a window, as it is read there."""
        shape, dtype = shape_of(window), base(self.array).dtype
        v = as_array(v, base(self.array))
        if v.dtype != dtype:
            v = astype(v, dtype)
        if v.shape != shape:
            v = broadcast_to(reshape(v, v.shape[max(v.ndim - len(shape), 0) :]), shape)
        return v if isinstance(v, Value) else copied(v)

    def read(self, window: Window) -> Any:
        """What a window shows, as a tensor that no later write changes."""
        found = self._written(window) if self.writes else None
        if found is None and isinstance(self.array, Value):
            array: Any = self.array
            return array if window == self.whole else array[as_index(window)]
        if isinstance(found, Value):
            return found
        plain = self.array[as_index(window)] if found is None else found
        on_host = namespace(plain) is numpy_namespace
        if found is None and window == self.whole and window and on_host:
            plain, self.lent = plain.view(), True
        else:
            plain = copied(plain)
        if window and on_host and plain.shape:
            plain.setflags(write=False)
        return Tensor(plain)

    def _written(self, window: Window) -> Any:
        """What a window shows, if that was written in one piece.

        Otherwise None; the array itself then has what the window shows.
        """
        last = next(reversed(self.writes))
        if window == last:
            return self._fitted(last, self.writes[last])
        if self.axes is None or any(type(window[axis]) is range for axis in self.axes):
            if self._is_narrow(window):
                return self._gathered(window)
            self.settle()
            return None
        key = list(self.whole)
        for axis in self.axes:
            key[axis] = window[axis]
        found = tuple(key)
        if found not in self.writes:
            return None
        v = self._fitted(found, self.writes[found])
        rest = [part for i, part in enumerate(window) if i not in self.axes]
        return v if found == window else v[as_index(tuple(rest))]

    def _is_narrow(self, window: Window) -> bool:
        """Whether a window shows so few writes that it is best put together of them."""
        if self.axes is None or len(self.axes) != 1:
            return False
        axis = self.axes[0]
        return 0 < _NARROW * len(window[axis]) <= len(self.whole[axis])

    def _gathered(self, window: Window) -> Any:
        """What a window shows, put together of single writes."""
        (axis,) = self.axes or ()
        parts = [
            self.read((*window[:axis], i, *window[axis + 1 :])) for i in window[axis]
        ]
        return stack(parts, axis=sum(type(p) is range for p in window[:axis]))

    def settle(self) -> None:
        """Carry out the writes that wait."""
        windows = tuple(self.writes)
        self.array = overwritten(self.array, *self.writes.values(), windows=windows)
        self.lent = False
        self.writes = {}


@linear
def overwritten(*operands: Any, windows: Sequence[Window]) -> Rule:
    """An array with values written into it, one after the other.

    Shapes:
        operands: the array x, (...); values v_i that broadcast to ``x[windows[i]]``;
        result: (...)

    Rule:
        v_bar_i = z_bar[windows[i]], and then 0 there, from the last to the first;
        x_bar = what is left of z_bar

    Example:
        >>> import numpy as np
        >>> overwritten(np.zeros(3), 5.0, np.ones(2), windows=((0,), (range(1, 3),)))
        array([5., 1., 1.])
    """
    if any(isinstance(x, Value) for x in operands):
        z = overwritten(*operands, windows=windows)
    else:
        z = common_namespace(*operands).array(operands[0])
        for window, v in zip(windows, operands[1:], strict=True):
            z[as_index(window)] = v
    z_bar = yield (z, operands := (), z := None)[0]
    if isinstance(z_bar, Value):
        left, parts = _taken_apart(z_bar, windows)
    else:
        left, parts = copied(z_bar), []
        for window in reversed(windows):
            parts.append(copied(left[as_index(window)]))
            left[as_index(window)] = 0
    yield left
    while parts:
        yield parts.pop()


def _taken_apart(z_bar: Any, windows: Sequence[Window]) -> tuple[Any, list[Any]]:
    """A tracked cotangent in a storage, out of which windows are taken, last first."""
    left, parts = Storage(z_bar), []
    for window in reversed(windows):
        parts.append(left.read(window))
        left.write(window, 0)
    return left.read(left.whole), parts

"""What has come for parts of an array, such as a split makes, waits for the others.

The invariant: the parts lie side by side along one axis, each once. Asked for, they
are written into one array, where sums would begin with zeros.
"""

from collections import deque
from typing import Any

from lantern import engines
from lantern.core.namespace import namespace

__all__ = ["LEAST", "Parts"]

LEAST = 1 << 13
"""Elements. A part with fewer is added at once."""

_EVERYTHING = slice(None)


class Parts:
    """The cotangents of parts of an array, which nobody has looked at yet.

    Attributes:
        shape: of the array.
        axis: along which the parts lie.
        start, stop: where the first of them begins and the last one ends.
        arrays: the cotangents, in the order of the axis.
    """

    __slots__ = ("arrays", "axis", "shape", "start", "stop")

    def __init__(self, shape: tuple[int, ...], axis: int, start: int) -> None:
        self.shape, self.axis, self.start, self.stop = shape, axis, start, start
        self.arrays: deque[Any] = deque()

    def take(self, axis: int, start: int, stop: int, z_bar: Any) -> bool:
        """Let one more wait; False if it does not lie beside the others."""
        if axis != self.axis or (start != self.stop and stop != self.start):
            return False
        if z_bar.ndim < len(self.shape):
            z_bar = namespace(z_bar).expand_dims(z_bar, axis=axis)
        if start == self.stop:
            self.arrays.append(z_bar)
            self.stop = stop
        else:
            self.arrays.appendleft(z_bar)
            self.start = start
        return True

    def whole(self) -> Any:
        """The cotangent of the array: nothing where nothing came."""
        before, after = self.start, self.shape[self.axis] - self.stop
        arrays = [*self._nothing(before), *self.arrays, *self._nothing(after)]
        z = engines.copies.joined(arrays, self.axis)
        return namespace(arrays[0]).concat(arrays, self.axis) if z is None else z

    def _nothing(self, length: int) -> list[Any]:
        if not length:
            return []
        first, axis = self.arrays[0], self.axis
        shape = *self.shape[:axis], length, *self.shape[axis + 1 :]
        xp = namespace(first)
        return [xp.broadcast_to(xp.zeros((), first.dtype), shape)]

    def __add__(self, x: Any) -> Any:
        """The cotangent, and something else that has come for all of it."""
        return self.whole() + x


def place(index: Any, shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """The axis along which an index takes a part, where that begins and ends.

    None where it takes a part along several axes, or steps over elements.

    Example:
        >>> place((slice(None), slice(2, 4)), (3, 5))
        (1, 2, 4)
        >>> place((..., -1), (3, 5)), place((0, 0), (3, 5))
        ((1, 4, 5), None)
    """
    parts = index if type(index) is tuple else (index,)
    found = None
    axis = 0
    for part in parts:
        if part is ...:
            axis += len(shape) - len(parts) + 1
        elif part is None:
            return None
        else:
            if type(part) is int:
                start = part + shape[axis] if part < 0 else part
                stop, step = start + 1, 1
            else:
                start, stop, step = part.indices(shape[axis])
            if (start, stop, step) != (0, shape[axis], 1) or type(part) is int:
                if found is not None or step != 1 or stop <= start:
                    return None
                found = axis, start, stop
            axis += 1
    return found

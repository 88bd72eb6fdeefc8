"""Cotangents of parts of an array, such as a split makes, are written side by side.

The invariant: what has come covers one piece of the array along one axis, each element
once, and what lies outside it is not yet written. Sums would begin with zeros.
"""

from typing import Any

__all__ = ["LEAST", "Parts", "place"]

LEAST = 1 << 13
"""Elements. A part with fewer is added at once."""


class Parts:
    """The cotangent of an array of which parts have come.

    Attributes:
        total: the array, of which the rest has no values yet.
        axis: along which the parts lie.
        start, stop: where the first of them begins and the last one ends.
    """

    __slots__ = ("axis", "start", "stop", "total")

    def __init__(self, total: Any, axis: int, start: int) -> None:
        self.total, self.axis, self.start, self.stop = total, axis, start, start

    def take(self, index: Any, axis: int, start: int, stop: int, z_bar: Any) -> bool:
        """Write one more; False if it does not lie beside the others."""
        if axis != self.axis or (start != self.stop and stop != self.start):
            return False
        self.total[index] = z_bar
        self.start, self.stop = min(start, self.start), max(stop, self.stop)
        return True

    def whole(self) -> Any:
        """The array: nothing where nothing came."""
        total, before = self.total, (slice(None),) * self.axis
        for rest in (slice(self.start), slice(self.stop, None)):
            total[*before, rest] = 0
        return total

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
    found, axis = None, 0
    parts = index if type(index) is tuple else (index,)
    for part in parts:
        if part is None:
            return None
        if part is ...:
            axis += len(shape) - len(parts) + 1
            continue
        n = shape[axis]
        if type(part) is int:
            part = slice(part % n, part % n + 1)
        start, stop, step = part.indices(n)
        if (start, stop, step) != (0, n, 1):
            if found is not None or step != 1 or stop <= start:
                return None
            found = axis, start, stop
        axis += 1
    return found

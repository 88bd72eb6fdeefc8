"""What rules save, as a program would rather keep it.

A rule's frame holds its operands. In a block of hooks the frame is dropped: what the
program makes of each saved array is kept instead, and on the way back the rule is
started again with what the program makes of that.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from lantern.eager.versions import writes
from lantern.errors import EagerError
from lantern.tensor.backend.numpy_namespace import buffers

__all__ = ["Packed", "ever", "hooks", "packed", "unpacked"]

# How arrays are packed and unpacked where this runs, and what there was around it;
# None for as they are.
hooks: ContextVar[tuple[Callable[[Any], Any], Callable[[Any], Any], Any] | None]
hooks = ContextVar("lantern.saved_tensors_hooks", default=None)
# Holds something once a program has made hooks. Gain of asking this before the context,
# at each operation: 0.05 microseconds of 1.6.
ever: set[str] = set()


class Packed:
    """A saved array as it is kept.

    Args:
        array: what is saved.
        pair: of functions, what is kept for an array, and the array again.
    """

    __slots__ = ("kept", "unpack")

    def __init__(self, array: Any, pair: Any) -> None:
        ever.add("hooks")
        pack, self.unpack = pair[:2]
        before = writes(array) if type(array) in buffers else 0
        self.kept = pack(array)
        if before != (writes(array) if type(array) in buffers else 0):
            raise EagerError(
                "A saved tensor pack hook is modifying its input in place. Tensors "
                "provided as input to pack hook can not be modified by in-place "
                "operations as this can lead to unexpected side-effects. Write to a "
                "clone of it."
            )

    def array(self) -> Any:
        """The array again."""
        return self.unpack(self.kept)


def packed(saved: Any, pair: Any) -> tuple[Any, ...]:
    """What a rule has saved, the arrays as a program keeps them."""
    return tuple([Packed(x, pair) if _is_array(x) else x for x in saved])


def _is_array(x: Any) -> bool:
    """Whether x is an array, or an element of one."""
    return hasattr(x, "dtype") and type(getattr(x, "shape", None)) is tuple


def unpacked(saved: Any) -> list[Any]:
    """What a rule has saved, as it was."""
    return [x.array() if type(x) is Packed else x for x in saved]

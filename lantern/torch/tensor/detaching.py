"""Losses of a derivative in a tensor's plain memory; the only words about them.

Lantern's transforms track numbers and arrays that are no tensors. Where a function
reads memory, or an option as a plain number, they would be constants in silence.
"""

from typing import Any

from lantern.core.value import UNTRACKED, Value, Wrapper, is_tracked
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT
from lantern.errors import DetachError
from lantern.vectorizing.batched import Batched, without_derivative

__all__ = [
    "array_of_tensor",
    "has_transform",
    "in_transform",
    "is_differentiated",
    "is_recorded",
    "lost",
    "lost_in_memory",
    "plain_number",
]


def in_transform(*operands: Any) -> bool:
    """Whether a derivative that has an end, as ``lantern.grad``'s, tracks a value."""
    for x in operands:  # in no generator, which takes longer than what it looks at
        if isinstance(x, Value):
            level = x.level
            if level is not UNTRACKED and level is not AMBIENT:
                return True
    return False


# What to do instead of a write to memory that others show as well.
_CLONE = "Write to x itself, or to a clone(), when nothing else shows its memory"
_TENSOR = "Make it a tensor, torch.as_tensor(x), and compute or write with that"


def lost(what: str, remedy: str = _TENSOR) -> DetachError:
    """The error of a tracked value that would become plain memory: the only one."""
    return DetachError(
        f"{what}: a value that lantern.grad or another transform tracks would become a "
        f"constant in a tensor's plain memory. {remedy}; or use "
        f"lantern.stop_gradient(x)."
    )


def lost_in_memory() -> DetachError:
    """The error of a write of a tracked value to memory that others show, too."""
    return lost("x.data, x.detach()", _CLONE)


def has_transform(x: Any) -> bool:
    """As ``in_transform``, of one value, which may hold that of all examples."""
    return isinstance(x, Value) and in_transform(_of_examples(x))


def plain_number(what: str, x: Any) -> Any:
    """An option that a function reads as a plain number, and has no derivative by."""
    if isinstance(x, Value) and has_transform(x):
        raise lost(what)
    return x


def _of_examples(x: Any) -> Any:
    """What a value holds for all examples, where that is all there is to it."""
    while isinstance(x, Value) and type(x.primal) is Batched:
        if x.level.is_derivative:
            return x
        x = x.primal.stacked
    return x


def array_of_tensor(x: Any) -> Any:
    """The plain array in a tensor; what is no tensor, as it is, unless it is tracked.

    Raises:
        DetachError: for a tracked value of Lantern's other face, which would be lost.
    """
    if isinstance(x, Value):
        if not x.is_face and type(x) is not Batched and is_tracked(x):
            raise lost(f"torch: a {type(x).__name__} where memory is read")
        x = x.primal
        if isinstance(x, Value):
            while isinstance(x, Wrapper):
                x = x.primal
            if type(x) is Batched:
                return without_derivative(x)
    return x


def is_recorded(*operands: Any) -> bool:
    """Whether an operation on these operands keeps its rule."""
    if is_enabled():
        for x in operands:
            if isinstance(x, Value) and x.level is not UNTRACKED:
                return True
    return False


def is_differentiated(*operands: Any) -> bool:
    """Whether any derivative, of either face, goes through some operands."""
    return in_transform(*operands) or is_recorded(*operands)

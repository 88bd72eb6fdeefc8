"""The only file that lets a derivative that is being taken keep nothing for a while.

A block of ``keep_nothing`` replaces the ``suspend`` of the levels that it is given, and
only there: other derivatives do not know of it. Whether an operation is inside such a
block is a matter of its context, so threads and tasks do not disturb one another.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from lantern.blocks import Setting, from_the_start, mutex
from lantern.core.tree import tree_leaves
from lantern.core.unwrap import levels_of
from lantern.core.value import Level, Receiver
from lantern.errors import ArgumentError

__all__ = ["no_grad"]

_quiet: ContextVar[frozenset[Level]] = ContextVar("lantern.quiet", default=frozenset())
replacing = mutex()  # for the ``suspend`` of levels; a finaliser may come in


class Gate:
    """The ``suspend`` of a level that is quiet in some contexts.

    Attributes:
        count: how many blocks are open.
    """

    __slots__ = ("count", "level", "suspend")

    def __init__(self, level: Level, suspend: Callable[[Receiver], object]) -> None:
        self.level, self.suspend, self.count = level, suspend, 0

    def __call__(self, receiver: Receiver) -> None:
        """Let a new value's rule wait, unless it is made in a quiet context."""
        if self.level in _quiet.get():
            self.level.drop(receiver)
        else:
            self.suspend(receiver)


def _gate(level: Level) -> Gate | None:
    """The gate of a level, if a block is open, also where ``debug`` looks first."""
    suspend = getattr(level.suspend, "inner", level.suspend)
    return suspend if isinstance(suspend, Gate) else None


def holder(level: Level) -> Any:
    """Whose ``suspend`` is the level's own: its gate's, or that of the level itself."""
    return _gate(level) or level


quiet_levels = _quiet.get  # the levels that keep nothing of what is done here


def keeps_nothing(level: Level) -> bool:
    """Whether a level keeps nothing of what is done here."""
    return level in _quiet.get()


class keep_nothing(Setting):  # noqa: N801 (a context manager: used like a verb)
    """A block in which the levels keep nothing: its results have derivative zero."""

    __slots__ = ("opened",)

    def __init__(self, *levels: Level) -> None:
        super().__init__(_quiet, frozenset(levels))
        self.opened: list[Level] = []

    def within(self, before: frozenset[Level]) -> frozenset[Level]:
        """The levels that keep nothing in the block; their gates are open."""
        for level in self.value:
            _open(level)
            self.opened.append(level)
        return before | self.value

    @from_the_start
    def __exit__(self, *exception: object) -> None:
        try:
            opened = self.opened
        finally:  # the variable first: a gate that stays open lets everything through
            Setting.__exit__(self)
        while opened:
            _close(opened.pop())


def _open(level: Level) -> None:
    with replacing:
        gate = _gate(level)
        if gate is None:
            level.suspend = gate = Gate(level, level.suspend)
        gate.count += 1


def _close(level: Level) -> None:
    with replacing:
        gate = _gate(level)
        if gate is not None:  # otherwise the derivative is over
            gate.count -= 1
            if not gate.count:
                level.suspend = gate.suspend


def no_grad(*operands: Any) -> keep_nothing:
    """A block whose results are constants to the derivatives of some values.

    There is no switch to turn off: without a derivative nothing is tracked, so an
    evaluation or a parameter update needs no such block. Inside a derivative say whose:
    the block acts on every derivative, of either mode, that tracks one of the operands.
    Threads that are begun inside are not part of it. Give values of all derivatives
    that are meant: an inner one that is not, and whose operation meets an operand, will
    read that operand on its way back, when the block is over.

    Args:
        operands: values, or structures of them.

    Raises:
        ArgumentError: if there are no operands, or one belongs to ``lantern.torch``,
            which has a ``no_grad`` of its own.

    Example:
        >>> import lantern
        >>> def f(x):
        ...     with no_grad(x):
        ...         scale = x * x
        ...     return scale * x
        >>> lantern.grad(f)(3.0), lantern.jvp(f, (3.0,), (1.0,))
        (9.0, (27.0, 9.0))
    """
    if not operands:
        raise ArgumentError(
            "no_grad: no values given. Write `with no_grad(x):` for the derivatives "
            "that track x; outside of grad nothing is tracked, and no block is needed."
        )
    found = {level for x in tree_leaves(operands) for level in levels_of(x)}
    if any(getattr(level, "is_ambient", False) for level in found):
        raise ArgumentError(
            "no_grad: a tensor of lantern.torch owns its history, which no block for "
            "other derivatives can keep from it. Write `with torch.no_grad():`."
        )
    return keep_nothing(*found)

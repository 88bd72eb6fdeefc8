"""Deferred contributions: from another thread they go outside later, in order.

A ``Ledger`` stands between such a part of the pass and each receiver outside it. When
the pass comes to the place of that part, the notes are booked: every sum is made in one
thread, and in the order of the sequential program.
"""

from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import Any

from lantern.control.bracket import Answered, Moment
from lantern.core.contribution import Contribution
from lantern.core.value import Receiver, Replayable
from lantern.rules.multiple_results import SeveralReceiver
from lantern.rules.number import ManyOperandNumber, Number
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.accumulate.deferred_products import Collector

__all__ = [
    "Ledger",
    "book_outside",
    "goes_back_anywhere",
    "hands_on_alone",
    "targets",
]

_VALUES = {Number, ManyOperandNumber, Accumulator, Collector, SeveralReceiver}
_KNOWN = {*_VALUES, Moment, Answered}
_RULES = {GeneratorType, Replayable}


def goes_back_anywhere(z: Receiver) -> bool:
    """Whether an entry only touches itself and its operands, and these only themselves.

    A receiver of another kind may hand on at once what a ledger would keep until later.
    """
    rule = z.suspended
    if type(z) not in _KNOWN or not (rule is None or type(rule) in _RULES):
        return False
    return all(x is None or type(x) in _KNOWN for x in z.operands())


def hands_on_alone(z: Receiver) -> bool:
    """Whether an entry does nothing on the way back but to contribute to operands."""
    return type(z) in _VALUES and goes_back_anywhere(z)


def targets(entries: Iterable[Receiver]) -> Iterator[int]:
    """The ids of all operands."""
    return (id(x) for z in entries for x in z.operands())


class Ledger(Receiver):
    """What a part contributes to a receiver outside, until it is booked.

    Args:
        target: the receiver.
    """

    __slots__ = ("entries", "mask", "owned", "target")

    def __init__(self, target: Receiver) -> None:
        self.target = target
        self.entries: list[Any] = []

    @property  # arrays read and set it without a call
    def cotangent(self) -> Any:
        """Nothing, so that each contribution comes as it is."""
        return None

    @cotangent.setter
    def cotangent(self, contribution: Any) -> None:
        """Note a contribution."""
        self.entries.append((self.target.accumulate, contribution))

    def accumulate(self, contribution: Any) -> None:
        """Note a contribution; one that is yet to be computed is, in this thread."""
        contribution = contribution() if callable(contribution) else contribution
        if isinstance(contribution, Contribution):
            contribution = contribution.ready(self.target)
        self.entries.append((self.target.accumulate, contribution))

    add = accumulate

    def fail(self, error: Exception) -> bool:
        """Note that a backward step has failed."""
        self.entries.append((self.target.fail, error))
        return True

    def holds_complex(self) -> bool:
        """Whether the receiver's value is complex."""
        return self.target.holds_complex()

    def book(self) -> None:
        """Hand on what was noted, in order."""
        entries, self.entries = self.entries, []
        for take, noted in entries:
            if take(noted) is False:
                raise noted  # an exception that nobody outside can catch

    def forget(self) -> None:
        """Forget what was noted."""
        self.entries.clear()


def book_outside(rules: list[Receiver]) -> list[Ledger]:
    """Put a ledger between those who wait in a part and each receiver outside it."""
    own = set(map(id, rules))
    ledgers: dict[int, Ledger] = {}

    def replace(x: Any) -> Any:
        if x is None or id(x) in own:
            return x
        if id(x) not in ledgers:
            ledgers[id(x)] = Ledger(x)
        return ledgers[id(x)]

    for z in rules:
        if type(z.left) is tuple:
            z.left = tuple(map(replace, z.left))
        else:
            z.left, z.right = replace(z.left), replace(z.right)
    return list(ledgers.values())

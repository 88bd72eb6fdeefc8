"""Products for one matrix wait, to be settled as one: few large ones beat many small.

A weight of a recurrent or recursive model receives ``x.mT @ z_bar`` once for each use,
each as large as the weight itself. Instead the factors wait at its accumulator, as rows
of two matrices, until someone looks at the cotangent, or until they take more memory
than the weight and than ``LITTLE``. The first product is computed: it may be the only
one (of a large weight of ``lantern.torch`` it ``stays``). Accumulators for which
nothing waits know nothing of it: the second product makes one a ``Collector``, a look
makes it an ``Accumulator`` again.
"""

from typing import Any

from lantern.core.contribution import Contribution
from lantern.core.namespace import namespace
from lantern.core.value import Receiver
from lantern.tensor.accumulate.accumulator import Accumulator

__all__ = ["Collector", "DeferredSum", "patient"]

_total: Any = Receiver.__dict__["cotangent"]  # the slot that Collector hides


# So many bytes may wait for any array, however small it is.
LITTLE = 1 << 19


class DeferredSum:
    """What an accumulator has received while contributions wait for it.

    Attributes:
        total: the sum of all else; None for nothing.
        owned: whether nobody else holds that sum.
        shape: of the sum.
        contributions: which are joined to one of each kind before they are added.
        size: the bytes that they take.
        room: those that they may take.
    """

    __slots__ = ("contributions", "owned", "room", "shape", "size", "total")

    def __init__(self, total: Any, owned: bool, shape: tuple[int, ...]) -> None:
        self.total, self.owned, self.shape, self.size = total, owned, shape, 0
        self.contributions: list[Any] = []

    def take(self, contribution: Any, size: int, room: float) -> None:
        """Let one more wait; settle them all if they take too many bytes."""
        self.contributions.append(contribution)
        self.size, self.room = self.size + size, room
        if self.size > max(room, LITTLE):
            self.settle()

    def settle(self) -> Any:
        """Add what waits, joined; the sum of all."""
        waiting, self.contributions, self.size = self.contributions, [], 0
        if self.total is None and len(waiting) == 1:  # the commonest case
            self.total, self.owned = waiting[0].dense(self.shape), True
            return self.total
        while waiting:
            kind = type(waiting[0])
            alike = [x for x in waiting if type(x) is kind]
            waiting = [x for x in waiting if type(x) is not kind]
            joined = kind.joined(alike, self.shape) if len(alike) > 1 else alike[0]
            if self.total is None:
                self.total = joined.dense(self.shape)
            elif self.owned:
                joined.add_to(self.total)
            else:
                self.total = self.total + joined.dense(self.shape)
            self.owned = True
        return self.total

    def settle_into(self, target: Any, factor: Any) -> None:
        """Write a multiple of the sum into an array, and keep nothing of it.

        Contributions of one kind alone may be computed there.
        """
        waiting = self.contributions
        kinds: list[Any] = [*{*map(type, waiting)}]
        if self.total is not None or len(kinds) > 1:
            total, self.total = self.settle(), None
            namespace(target).multiply(total, factor, out=target)
            return
        joined = kinds[0].joined(waiting, self.shape) if waiting[1:] else waiting[0]
        joined.write_to(target, factor)
        self.contributions, self.size = [], 0

    def arrays(self) -> list[Any]:
        """The arrays of what waits."""
        found = (
            getattr(x, k, None) for x in self.contributions for k in ("x", "z_bar")
        )
        return [array for array in found if array is not None]

    def alone(self) -> Any:
        """All that was received as one contribution, with arrays that nobody else has.

        None where there is more than that, or where it is not little.
        """
        if self.total is not None:
            return None
        first, *rest = self.contributions
        if not (rest or first.scatters) and first.own:  # ``collect`` asked if it stays
            return first
        kind: Any
        kind, *others = {*map(type, self.contributions)}
        if others or not first.stays(self.size, self.room):
            return None
        return kind.joined(self.contributions, self.shape)

    def __iadd__(self, x: Any) -> "DeferredSum":
        """Add something else to the sum."""
        if self.total is None:
            self.total = x
        elif self.owned:
            self.total += x
        else:
            self.total, self.owned = self.total + x, True
        return self

    def __add__(self, x: Any) -> Any:
        """The sum of all, and of something that nobody owns."""
        return self.settle() + x


class Collector(Accumulator):
    """An accumulator for which products wait.

    Attributes:
        share: they are settled when they take more memory than this many times the
            array's own; 0 for no waiting at all.
    """

    __slots__ = ()
    share = 1.0

    @staticmethod
    def begin(accumulator: Accumulator) -> None:
        """Let products wait at an accumulator."""
        waiting = DeferredSum(
            accumulator.cotangent, accumulator.owned, accumulator.shape
        )
        accumulator.__class__ = Collector
        _total.__set__(accumulator, waiting)
        accumulator.mask = None

    def collect(self, product: Contribution, size: int, room: float) -> None:
        """Let one more product wait."""
        _total.__get__(self).take(product, size, room)

    @property
    def cotangent(self) -> Any:
        """The sum of all that was received; nothing waits any longer."""
        waiting = _total.__get__(self)
        self.cotangent = waiting.settle()
        self.owned = waiting.owned
        return waiting.total

    @cotangent.setter
    def cotangent(self, total: Any) -> None:
        """Take another sum for all that was received."""
        self.__class__ = Accumulator  # type: ignore[assignment]
        self.cotangent = total


# Receivers at which products may wait.
patient: set[type] = {Accumulator, Collector}

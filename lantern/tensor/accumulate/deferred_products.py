"""Products for one matrix wait, to be settled as one: few large ones beat many small.

A weight of a recurrent or recursive model receives ``x.mT @ z_bar`` once for each use,
each as large as the weight itself. Instead the factors wait at its accumulator, as rows
of two matrices, until someone looks at the cotangent, or until they take more memory
than the weight and than ``LITTLE``. The first product is computed: it may be the only
one (of a large weight of ``lantern.torch`` it ``stays``). Accumulators for which
nothing waits know nothing of it: the second product makes one a ``Collector``, a look
makes it an ``Accumulator`` again.
"""

import math
from collections.abc import Callable
from operator import iadd
from typing import Any, ClassVar

from lantern.core.contribution import Call, Contribution
from lantern.core.namespace import namespace
from lantern.core.value import Receiver, Value
from lantern.tensor.accumulate.accumulator import LARGE, Accumulator
from lantern.tensor.backend.blas import adding_product
from lantern.tensor.backend.numpy_namespace import buffers, numpy_namespace

__all__ = ["Collector", "DeferredSum", "Product", "patient"]

_total: Any = Receiver.__dict__["cotangent"]  # the slot that Collector hides


class Product(Contribution):
    """The cotangent ``x.mT @ z_bar`` of a matrix y in ``x @ y``, not yet computed.

    A rule may yield it for a weight that is used many times.

    Args:
        x: (..., n, k).
        z_bar: (..., n, m).
        own: whether nobody else holds these arrays.
    """

    __slots__ = ("own", "x")
    scatters: ClassVar[bool] = False

    def __init__(self, x: Any, z_bar: Any, own: bool = False) -> None:
        self.x, self.z_bar, self.own = x, z_bar, own

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The product; for one matrix of a whole batch, as one."""
        if len(shape) > 2:
            x, z_bar = self.x, self.z_bar
            return x.mT * z_bar if x.shape[-2] == 1 else x.mT @ z_bar
        x, z_bar = self.factors(shape)
        if type(x) is type(z_bar) in buffers:
            return self.multiplied(x, z_bar)
        if x.shape[0] == 1 and type(x) not in buffers:
            return x.T * z_bar  # in a ``vmap`` a row for each example
        return namespace(x, z_bar).dot(x.T, z_bar)

    @staticmethod
    def multiplied(x: Any, z_bar: Any, out: Any = None) -> Any:
        """``x.T @ z_bar`` of two matrices; ``@`` takes 20 times as long for one row."""
        return x.T.dot(z_bar, out=out)

    def factors(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Both factors, as matrices of the same number of rows."""
        x, z_bar = self.x, self.z_bar
        if len(x.shape) == 2:
            return x, z_bar
        rows = math.prod(x.shape[:-1])
        return x.reshape(rows, shape[0]), z_bar.reshape(rows, shape[1])

    def stays(self, size: int, room: float) -> bool:
        """As ``Contribution.stays``; for small weights that takes longer."""
        large = room >= max(2 * size, LARGE * self.x.itemsize)
        return large and type(self.x) is numpy_namespace.ndarray

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """As ``Contribution.additions``, without a matrix for the product."""
        if len(buffer.shape) > 2:
            return [(iadd, buffer, factor * self.dense(buffer.shape))]
        return [self.adding(buffer, *self.factors(buffer.shape), factor)]

    # A call that does ``buffer += factor * x.T @ z_bar``.
    adding = staticmethod(adding_product)

    @classmethod
    def joined(cls, products: list[Any], shape: tuple[int, ...]) -> "Product":
        """The sum of several products, as one, in arrays of its own."""
        if len(products) == 1:
            product: Product = products[0]
            if product.own:
                return product
            x, z_bar = product.factors(shape)
            return cls(x.copy(), z_bar.copy(), True)
        xs, z_bars = zip(*(p.factors(shape) for p in products), strict=True)
        xp = namespace(xs[0])
        return cls(xp.concatenate(xs), xp.concatenate(z_bars), True)

    def each(self, function: Callable[[Any], Any]) -> Any:
        """The contribution, a function applied to both factors."""
        self.x = function(self.x)
        return super().each(function)

    def ready(self, receiver: Any) -> Any:
        """Itself, if it may wait at a receiver; otherwise the product, computed now."""
        return self if self._room(receiver) else self.dense(receiver.shape)

    def _room(self, receiver: Any) -> float:
        """How many bytes may wait at a receiver; 0 if this product may not."""
        x, z_bar, shape = self.x, self.z_bar, receiver.shape
        if not (
            type(x) in buffers
            and type(z_bar) in buffers
            and x.dtype is z_bar.dtype is receiver.dtype
            and type(receiver) in patient
            and len(shape) == 2
        ):
            return 0
        room = Collector.share * x.itemsize * shape[0] * shape[1]
        return room if x.nbytes + z_bar.nbytes <= room else 0

    def wait_at(self, receiver: Any) -> bool:
        """Wait, if it may; the first one is computed instead."""
        kind, shape = type(receiver), receiver.shape
        little = kind is not Collector and math.prod(shape) < LARGE  # never stays
        if (kind is Accumulator or little) and receiver.cotangent is None:
            product = self.dense(shape)
            receiver.accumulate(product)
            receiver.owned = receiver.cotangent is product and type(product) in buffers
            return True
        room = self._room(receiver)
        if not room:
            return False
        if kind is Accumulator:
            if isinstance(receiver.cotangent, Value):
                return False
            Collector.begin(receiver)
        receiver.collect(self, self.x.nbytes + self.z_bar.nbytes, room)
        return True


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

        Products alone are computed there.
        """
        waiting = self.contributions
        kinds: list[Any] = [*{*map(type, waiting)}]
        if self.total is not None or [issubclass(k, Product) for k in kinds] != [True]:
            total, self.total = self.settle(), None
            namespace(target).multiply(total, factor, out=target)
            return
        kind = kinds[0]
        joined = kind.joined(waiting, self.shape) if waiting[1:] else waiting[0]
        x, z_bar = joined.factors(self.shape)
        kind.multiplied(x, z_bar * factor, target)
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
        kind: Any
        kind, *others = {*map(type, self.contributions)}
        if others or not self.contributions[0].stays(self.size, self.room):
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

    def collect(self, product: Product, size: int, room: float) -> None:
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

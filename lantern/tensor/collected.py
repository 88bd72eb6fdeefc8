"""Products for one matrix wait, to be settled as one: few large ones beat many small.

A weight of a recurrent or recursive model receives ``x.mT @ z_bar`` once for each use,
each as large as the weight itself. Instead the factors wait at its accumulator, as rows
of two matrices, until someone looks at the cotangent, or until they take more memory
than the weight. Accumulators for which nothing waits know nothing of it: the first
product makes one a ``Collector``, a look makes it an ``Accumulator`` again.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

from lantern.contribution import Contribution
from lantern.namespace import namespace
from lantern.tensor.accumulator import Accumulator
from lantern.tensor.namespace import buffers
from lantern.value import Receiver, Value

__all__ = ["Collector", "Product"]

_total: Any = Receiver.__dict__["cotangent"]  # the slot that Collector hides


class Product(Contribution):
    """The cotangent ``x.mT @ z_bar`` of a matrix y in ``x @ y``, not yet computed.

    A rule may yield it for a weight that is used many times.

    Args:
        x: (..., n, k).
        z_bar: (..., n, m).
    """

    __slots__ = ("x",)
    scatters: ClassVar[bool] = False

    def __init__(self, x: Any, z_bar: Any) -> None:
        self.x, self.z_bar = x, z_bar

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The product; for one matrix of a whole batch, as one."""
        if len(shape) > 2:
            return self.x.mT @ self.z_bar
        return _product(*self.factors(shape))

    def factors(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Both factors, as matrices of the same number of rows."""
        x, z_bar = self.x, self.z_bar
        if len(x.shape) == 2:
            return x, z_bar
        rows = math.prod(x.shape[:-1])
        return x.reshape(rows, shape[0]), z_bar.reshape(rows, shape[1])

    def each(self, function: Callable[[Any], Any]) -> Any:
        """The contribution, a function applied to both factors."""
        self.x = function(self.x)
        return super().each(function)

    def ready(self, receiver: Any) -> Any:
        """Itself, if it may wait at a receiver; otherwise the product, computed now."""
        size, limit = self._size_and_limit(receiver)
        return self if size <= limit else self.dense(receiver.shape)

    def _size_and_limit(self, receiver: Any) -> tuple[float, float]:
        """The factors' bytes, and how many may wait at a receiver: less than 0 if none.

        They may at an array's that is no smaller than they are.
        """
        x, z_bar = self.x, self.z_bar
        if (
            type(receiver) in _PATIENT
            and type(x) in buffers
            and type(z_bar) in buffers
            and x.dtype is z_bar.dtype is receiver.dtype
            and len(receiver.shape) == 2
        ):
            n, m = receiver.shape
            return x.nbytes + z_bar.nbytes, Collector.share * x.itemsize * n * m
        return 0, -1

    def wait_at(self, receiver: Any) -> bool:
        """Wait, if it may."""
        size, limit = self._size_and_limit(receiver)
        if size > limit:
            return False
        if type(receiver) is Accumulator:
            if isinstance(receiver.cotangent, Value):
                return False
            Collector.begin(receiver)
        receiver.collect(self.factors(receiver.shape), size, limit)
        return True


def _product(x: Any, z_bar: Any) -> Any:
    """``x.T @ z_bar``: of single rows, NumPy's ``@`` takes twenty times as long."""
    return namespace(x).dot(x.T, z_bar)


class Waiting:
    """What an accumulator has received while products wait for it.

    Attributes:
        total: the sum of all else; None for nothing.
        factors: the products, as pairs of matrices.
        size: the bytes that they take.
    """

    __slots__ = ("factors", "size", "total")

    def __init__(self, total: Any) -> None:
        self.total, self.size = total, 0
        self.factors: list[tuple[Any, Any]] = []


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
        waiting = Waiting(accumulator.cotangent)
        accumulator.__class__ = Collector
        _total.__set__(accumulator, waiting)
        accumulator.mask = None

    def collect(self, factors: tuple[Any, Any], size: int, limit: float) -> None:
        """Let one more product wait; settle them all if they are too many."""
        waiting = _total.__get__(self)
        waiting.factors.append(factors)
        waiting.size += size
        if waiting.size > limit:
            self._settle(waiting)

    def _settle(self, waiting: Waiting) -> None:
        """Compute the products that wait, as one."""
        if len(waiting.factors) > 1:
            xs, z_bars = zip(*waiting.factors, strict=True)
            xp = namespace(xs[0])
            x, z_bar = xp.concatenate(xs), xp.concatenate(z_bars)
        else:
            x, z_bar = waiting.factors[0]
        waiting.factors, waiting.size = [], 0
        product = _product(x, z_bar)
        if waiting.total is None:
            waiting.total = product
        elif self.owned:
            waiting.total += product
        else:
            waiting.total = waiting.total + product
        self.owned = True

    @property
    def cotangent(self) -> Any:
        """The sum of all that was received; nothing waits any longer."""
        waiting = _total.__get__(self)
        if waiting.factors:
            self._settle(waiting)
        self.cotangent = waiting.total
        return waiting.total

    @cotangent.setter
    def cotangent(self, total: Any) -> None:
        """Take another sum for all that was received."""
        self.__class__ = Accumulator  # type: ignore[assignment]
        self.cotangent = total


# The receivers at which products may wait.
_PATIENT = frozenset({Accumulator, Collector})

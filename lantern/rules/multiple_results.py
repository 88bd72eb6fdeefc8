"""Operations with several results: one rule, which gets all the cotangents at once.

The results are parts of one tracked tuple. Each part is an operation of its own, whose
backward step leaves its cotangent with the tuple's receiver; when all that came after
is over, the rule that made the tuple is resumed with them, zeros where nothing came.
"""

from typing import Any, ClassVar

from lantern.core.contribution import Contribution, WithMask
from lantern.core.dispatch import begin, register_class, value_class
from lantern.core.namespace import namespace
from lantern.core.value import Level, Receiver, Rule, Wrapper, is_complex, zeros_like
from lantern.op import linear

__all__: list[str] = []


class Part(Contribution):
    """The cotangent of one of several results."""

    __slots__ = ("index",)

    def __init__(self, index: int, z_bar: Any) -> None:
        self.index, self.z_bar = index, z_bar


class Cotangents(list[Any]):
    """Those of several results, as their rule is resumed with them.

    Attributes:
        missing: the places where nothing came, and zeros stand.
    """

    missing: tuple[int, ...] = ()


class SeveralReceiver(Receiver):
    """Who waits for the cotangents of several results.

    Attributes:
        primals: the results.
        hooks: what a program wants called around the backward step; None for nothing.
    """

    __slots__ = ("__weakref__", "hooks", "primals")

    def __init__(self, primals: Any, rule: Any, left: Any, right: Any) -> None:
        self.primals, self.suspended = primals, rule
        self.left, self.right, self.hooks = left, right, None
        self.cotangent: list[Any] | None = None

    def twin(self) -> "SeveralReceiver":
        """As ``Receiver.twin``."""
        return SeveralReceiver(self.primals, self.suspended, self.left, self.right)

    def release(self) -> None:
        """Let go of the rule and its operands, and of the results themselves."""
        super().release()
        self.primals = ()

    def holds_complex(self) -> bool:
        """Whether any of the results is complex."""
        return any(map(is_complex, self.primals))

    def accumulate(self, contribution: Any) -> None:
        """Take the cotangent of one result."""
        if isinstance(contribution, WithMask):  # the parts' masks end here
            contribution = contribution.z_bar
            z_bar = contribution.z_bar
            contribution.z_bar = namespace(z_bar).real(z_bar)
        if self.cotangent is None:
            self.cotangent = [None] * len(self.primals)
        self.cotangent[contribution.index] = contribution.z_bar

    def settle(self, rule: Any, z_bar: Any, operands: Any) -> None:
        """As ``Receiver.settle``, with zeros where nothing came."""
        missing = tuple(i for i, x in enumerate(z_bar) if x is None)
        if missing:
            pairs = zip(z_bar, self.primals, strict=True)
            z_bar = Cotangents(zeros_like(p) if x is None else x for x, p in pairs)
            z_bar.missing = missing
        super().settle(rule, z_bar, operands)

    def fail(self, error: Exception) -> bool:
        """As ``Receiver.fail``, with a cotangent for each result."""
        if self.cotangent is None:
            self.cotangent = [None] * len(self.primals)
        return super().fail(error)

    def fit(self, contribution: Any) -> Any:
        """The results' tangents, as they are."""
        return contribution


class Several(Wrapper):
    """A tracked tuple of results."""

    __slots__ = ("level", "primal", "receiver")
    receiver: Any
    rank: ClassVar[float] = -1  # a part of it is of the part's own class

    @classmethod
    def emerge(
        cls,
        primal: Any,
        level: Level,
        rule: Any,
        left: Any,
        right: Receiver | None = None,
        elementwise: int = 0,
    ) -> Any:
        """A tuple of new values, whose common rule is suspended."""
        if not level.is_derivative:
            return primal
        whole = cls()
        whole.primal, whole.level = primal, level
        whole.receiver = SeveralReceiver(primal, rule, left, right)
        level.suspend(whole.receiver)
        return tuple(part(whole, i) for i in range(len(primal)))


def part(whole: Several, index: int) -> Any:
    """One of several results, as a value of its own."""
    rule: Any = _part.rule  # type: ignore[attr-defined]  # given by lantern.op
    started = begin(whole.level, rule, (whole.primal,), {"index": index})
    primal = next(started)
    receivers = (whole.receiver,)  # a tuple: a number hands on no bare contribution
    return value_class(primal).emerge(primal, whole.level, started, receivers)


@linear
def _part(x: Any, /, index: int) -> Rule:
    """One of several results.

    Shapes:
        x: a tuple; result: as its entry

    Rule:
        x_bar = z_bar at the index
    """
    z_bar = yield (x[index], x := None)[0]
    yield Part(index, z_bar)


register_class(tuple, Several)

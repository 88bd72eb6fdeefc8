"""Tracked values, and who waits for their cotangents.

A ``Value`` is what a program computes with: a primal and the derivative it belongs to.
Its ``Receiver`` is what the derivative keeps: the suspended rule that made the value,
and the cotangent that the rest of the program leaves for it. A receiver is an entry of
a delimiter's list of waiting handlers (``lantern.cps``): to be resumed means to send
the cotangent into the rule, and to hand on what the rule yields to its operands.
"""

import numbers
from collections.abc import Callable, Generator, Sequence
from itertools import count
from typing import Any, ClassVar

from lantern.core import residuals
from lantern.core.conjugation import conj, is_adjoint
from lantern.core.error_propagation import Failed, fail, note
from lantern.core.namespace import is_scalar, namespace, tables
from lantern.core.replay import Replayable
from lantern.cps import Prompt
from lantern.errors import DetachError, EscapedError, RuleError

__all__ = [
    "UNTRACKED",
    "Level",
    "Receiver",
    "Replayable",
    "Rule",
    "Value",
    "Wrapper",
    "base",
    "escaped",
    "is_complex",
    "is_container",
    "is_tracked",
    "too_few_contributions",
    "unwrapped",
    "zeros_like",
]

Rule = Generator[Any, Any, None]
levels = count(1)


class Level(Prompt):
    """The delimiter of one derivative that is being taken.

    Levels count up and never repeat. A derivative taken inside another has the higher
    level; an operation belongs to the highest level among its operands, and operands
    of lower levels are constants to it.

    Attributes:
        depth: its place in that order.
        suspend: gets the receiver of each new value. What it does is the whole
            difference between the modes: reverse lets it wait (``list.append``),
            forward resumes it at once, a finished derivative raises.
        begin: how a rule is started: None for a plain call, or ``Replayable`` where the
            rule may be needed more than once.
        is_derivative: False for a level of examples (``lantern.vectorizing.batched``).
        latest: the large array left of the latest operator. It stays in memory for one
            operation longer than the program needs it: or else the next result, which
            a rule may keep, takes its place in the cache (lantern/tensor/README.md).
        keep: what becomes of a constant that its owner may change (``saving``).
        kept: by the ids of large constants weak references to them, and to the copies
            that rules keep of them.
    """

    __slots__ = ("_kept", "begin", "depth", "latest", "suspend")
    is_derivative: ClassVar[bool] = True
    keep = residuals.keep

    waiting: list[Any]  # of a reverse-mode derivative: who waits, newest last
    suspend: Callable[["Receiver"], object]
    begin: "type[Replayable] | None"

    def __init__(self, name: str, driver: str = "in place") -> None:
        super().__init__(name, driver=driver)
        self.depth = next(levels)
        self.begin = None

    @property
    def kept(self) -> dict[int, tuple[Any, Any]]:
        """Weak references to large constants, and to the copies that rules keep."""
        known: dict[int, tuple[Any, Any]] | None = getattr(self, "_kept", None)
        if known is None:  # made when it is needed: most derivatives have none
            self._kept = known = {}
        return known

    def drop(self, receiver: "Receiver") -> None:
        """In place of ``suspend``: keep nothing, so that the derivative is zero."""
        receiver.release()

    @property
    def is_over(self) -> bool:
        """Whether its values can only be read any more."""
        return self.suspend is escaped

    def close(self) -> None:
        """End this derivative: its values can be read, but not computed with."""
        self.suspend, self.latest = escaped, None


class _Untracked(Level):
    """The level of values that no derivative tracks: their rules wait for nothing."""

    __slots__ = ()
    keep = residuals.keep_as_it_is

    def __init__(self) -> None:
        super().__init__("untracked")
        self.depth = 0
        self.suspend = self.drop


UNTRACKED = _Untracked()


def escaped(receiver: "Receiver") -> None:
    """What ``suspend`` does when a derivative is over."""
    raise EscapedError(
        "grad: a tracked value was used after the derivative that it belongs to was "
        "over. Return what you need (has_aux=True), or use lantern.stop_gradient."
    )


class Receiver:
    """The suspended rule of a value, and the cotangent received so far.

    Attributes:
        suspended: the rule that made the value, a generator; None for an input.
        left, right: who receives the rule's contributions, None for nobody; if there
            are more than two, left is a tuple of them all.
        cotangent: None for nothing.
        tangent: set by forward mode instead.
    """

    __slots__ = ("cotangent", "left", "right", "suspended", "tangent")
    catches: ClassVar[bool] = False
    form: Any = None  # see Accumulator
    order: Any = None  # see lantern.eager

    suspended: Any
    left: Any
    right: Any
    cotangent: Any
    tangent: Any

    def accumulate(self, contribution: Any) -> None:
        """Add one contribution to the cotangent."""
        raise NotImplementedError

    def fit(self, contribution: Any) -> Any:
        """A contribution in the value's shape and type."""
        raise NotImplementedError

    def operands(self) -> "tuple[Receiver | None, ...]":
        """For each operand of the rule, who receives its contribution; None: nobody."""
        left, right = self.left, self.right
        if right is not None:
            return left, right
        return left if type(left) is tuple else (left,)

    def release(self) -> None:
        """Let go of the rule and its operands, and so of what the rule has saved."""
        self.suspended = self.left = self.right = None

    def holds_complex(self) -> bool:
        """Whether the value is complex."""
        raise NotImplementedError

    def resume(self, answer: Any) -> Any:
        """Run the backward step of the rule that made this value.

        A value that received nothing has nothing to hand on.
        """
        z_bar, self.cotangent = self.cotangent, None
        if z_bar is not None:
            self.settle(self.suspended, z_bar, self.operands())
        self.release()
        return answer

    def replay(self) -> None:
        """As ``resume``, with a fresh rule: the value may receive a cotangent again."""
        z_bar = self.cotangent
        if z_bar is not None:
            self.cotangent = None
            rule = self.suspended.again()
            next(rule)
            self.settle(rule, z_bar, self.operands())

    def twin(self) -> "Receiver | None":
        """A receiver like this one that nothing has come to, with the same rule.

        None where there can be only one: what is done here has effects elsewhere.
        """
        return None

    def forget(self) -> None:
        """Forget what a backward pass that did not come to its end has left here."""
        self.cotangent = None
        if type(self.suspended) is Failed:
            self.suspended.error = None

    def settle(self, rule: Any, z_bar: Any, operands: Sequence[Any]) -> None:
        """Send a cotangent into a suspended rule; hand what it yields to the operands.

        This is the backward step; ``resume`` of numbers and of arrays are short ways.

        Rules are written as plain transposes. For complex values the gradient
        (``df/dx + i df/dy``) needs the adjoint: conjugate on the way in and out.
        """
        complex_ = self.holds_complex() and not is_adjoint(rule)
        if complex_:
            z_bar = conj(z_bar)
        try:
            for x in operands:
                x_bar = rule.send(z_bar)
                if x is not None and x_bar is not None:
                    x.accumulate(conj(x_bar) if complex_ else x_bar)
        except StopIteration:
            raise too_few_contributions(rule) from None
        except Exception as error:
            if not fail(operands, error):
                raise

    def fail(self, error: Exception) -> bool:
        """Receive the exception of a backward step that failed, and no cotangent.

        Returns:
            Whether there is a rule here that may catch it: an input has none.
        """
        if self.suspended is None:
            return False
        if type(self.suspended) is not Failed:
            self.suspended = Failed(self.suspended, error)
        elif self.suspended.error is None:
            self.suspended.error = error
        if self.cotangent is None:
            self.cotangent = 0  # so that the rule is resumed
        return True

    def close(self) -> None:
        """Drop the suspended rule, running what it has in ``finally``."""
        if self.suspended is not None:
            self.suspended.close()


def too_few_contributions(rule: Any) -> RuleError:
    """The error of a rule that ended before all its operands had something."""
    name = getattr(getattr(rule, "rule", rule), "__name__", "op")
    return RuleError(
        f"{name}: the rule yielded too few values. Yield the result, and then one "
        f"contribution for each differentiable operand, in their order."
    )


class Value:
    """A number or an array that a derivative tracks.

    Attributes:
        primal: the value itself; of an outer derivative's class when nested.
        level: the derivative (``Level``) that it belongs to.
        receiver: who waits for its cotangent.
        rank: which class the result has when classes meet: the higher one.
        changes: whether it can be written to.
        is_face: whether it has other names than NumPy's; what is made of it has them.
    """

    __slots__ = ()
    rank: ClassVar[float] = 0
    changes: ClassVar[bool] = False
    # Above that of any class of pandas, which leave an operation to us.
    __pandas_priority__: ClassVar[int] = 10_000
    is_face: ClassVar[bool] = False

    primal: Any
    level: Level

    @property
    def receiver(self) -> Any:
        """Who waits for this value's cotangent."""
        raise NotImplementedError

    @property
    def inside(self) -> Any:
        """The value without its own level: of the levels outside, or plain."""
        return self.primal

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
        """A new value, whose rule is suspended where its derivative wants it.

        Args:
            primal: what the rule has yielded.
            level: the derivative.
            rule: the started rule.
            left: who receives the rule's first contribution; None for nobody. If there
                are more than two, a tuple of them all.
            right: who receives the second one.
            elementwise: how many operands the rule has, if its contributions have the
                result's shape; 0 for any other rule.
        """
        raise NotImplementedError

    def through(self, rule: Any) -> Any:
        """What an elementwise rule of the library, of this one operand, makes of it."""
        level, x = self.level, self.primal
        begin = level.begin
        started = rule(x) if begin is None else begin(rule, (x,), {})
        try:
            primal = next(started)
        except (ArithmeticError, ValueError) as error:
            note(error, rule, (base(x),))
            raise
        return self.emerge(primal, level, started, self.receiver, None, 1)

    def gradient(self) -> Any:
        """What an input has received, in the input's own type; zero for nothing."""
        raise NotImplementedError

    def one(self) -> Any:
        """The cotangent of a result with respect to itself."""
        raise NotImplementedError

    def numpy_face(self) -> Any:
        """The value as rules take it: under NumPy's names; plain, if untracked."""
        return self.primal if self.level is UNTRACKED else self

    def shown(self) -> Any:
        """The value as a program gets it from a transform."""
        return self

    def like_this(self, z: Any) -> Any:
        """What a transform gives for this value, under the names that it has."""
        return z

    def join(self, x: Any) -> Any:
        """x as a value of this one's level: only among the examples of a ``vmap``."""
        raise NotImplementedError

    def frozen(self) -> Any:
        """The value as it is now, and stays; itself, unless it can be written to."""
        return self

    def __copy__(self) -> Any:
        return self  # a value never changes

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise DetachError(
            "pickle: a tracked value would become a constant. Return what you need "
            "from the differentiated function, or use lantern.stop_gradient."
        )

    def takes(self, other: Any) -> bool:
        """Whether ``other`` can stand beside this value in an arithmetic operation."""
        return (
            isinstance(other, Value | numbers.Number)
            or (not is_container(other) and hasattr(other, "dtype"))
            or (type(other) in (list, tuple) and hasattr(base(self), "dtype"))
            or isinstance(other, type(base(self)))
            or isinstance(base(self), type(other))
        )


class Wrapper(Value):
    """A value around another one, which ``base`` looks through.

    A batched value (``lantern.vectorizing.batched``) is none: to what is inside it is
    an array.
    """

    __slots__ = ()


def is_container(x: Any) -> bool:
    """Whether x holds an array and takes over NumPy's functions, as xarray's do.

    What it holds may be tracked, so that an operation with it is its own business.
    """
    if getattr(type(x), "__array_ufunc__", None) is None or isinstance(x, Value):
        return False
    functions = namespace(x)
    if functions is tables:
        raise tables.refusal(type(x).__name__)
    return is_scalar(functions)


def is_tracked(x: Any) -> bool:
    """Whether a derivative tracks a value, at whatever depth."""
    while isinstance(x, Value):
        if x.level is not UNTRACKED:
            return True
        x = x.primal
    return False


def unwrapped(x: Any) -> Any:
    """An untracked value's plain value; else a value under NumPy's names."""
    return x.numpy_face() if isinstance(x, Value) else x


def base(x: Any) -> Any:
    """The plain value inside a tracked one, through every derivative around it."""
    while isinstance(x, Wrapper):
        x = x.primal
    return x


def is_complex(x: Any) -> bool:
    """Whether a value, tracked or not, is of a complex type."""
    x = base(x)
    if isinstance(x, float):
        return False
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return getattr(dtype, "kind", "") == "c"
    return isinstance(x, complex) or type(x).__name__ == "mpc"


def zeros_like(x: Any) -> Any:
    """A plain zero of the shape and type of a value, tracked or not."""
    x = base(x)
    return namespace(x).zeros_like(x)

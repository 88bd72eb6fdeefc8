"""Numbers of classes that the library does not know, whose product may not commute.

With w the cotangent of z, every rule of the library is a plain transpose: the change of
the result is ``w * dz``. Where ``x * y`` is not ``y * x``, as for quaternions, that is
to be read as the real part (the trace) of ``w * dz``, in which factors may be rotated
but not swapped. Then ``z = x * y`` gives ``y * w`` to x and ``w * x`` to y. Only sums,
products, quotients and whole powers are known to be right for such numbers.
"""

from typing import Any, ClassVar, NoReturn

from lantern.core.dispatch import register_class, register_rule, start
from lantern.core.operation import Function
from lantern.core.value import Receiver, Replayable, Rule, Value, base, zeros_like
from lantern.errors import DetachError, MissingRuleError
from lantern.rules import arithmetic
from lantern.rules.number import Number
from lantern.rules.operators import install

__all__ = ["register_commutative"]


class OwnNumber(Number):
    """A tracked number of a class of the user's own."""

    __slots__ = ()
    rank: ClassVar[float] = 0.5  # its results stay in this class
    commutes: ClassVar[bool] = False

    through = Value.through
    resume = Receiver.resume

    @classmethod
    def emerge(
        cls,
        primal: Any,
        level: Any,
        rule: Any,
        left: Any,
        right: Any = None,
        elementwise: int = 0,
    ) -> Any:
        """A new number; rules that take the product to commute are refused."""
        if elementwise and not cls.commutes:
            _check(rule, primal)
        z = cls(primal, level, rule, left, right)
        level.suspend(z)
        return z

    def gradient(self) -> Any:
        """The cotangent, at least a zero, in the number's own class."""
        zero = zeros_like(self)
        if self.cotangent is None:
            return zero
        gradient = super().gradient()
        if isinstance(gradient, Value | type(zero)):
            return gradient
        return zero + gradient

    def one(self) -> Any:
        """1, which every class of numbers can be multiplied by."""
        return 1


def _check(rule: Any, primal: Any) -> None:
    """Refuse a rule that takes the product to commute."""
    started = rule.started if isinstance(rule, Replayable) else rule
    if started.gi_code not in _SUMS:
        raise MissingRuleError(
            f"{started.__name__}: products of {type(base(primal)).__name__} "
            f"may not commute, and only +, -, *, / and whole powers are right "
            f"for those. If they do, say lantern.register_commutative(cls)."
        )


def product(x: Any, y: Any) -> Any:
    """``x * y``, also for a class whose ``*`` does not leave others their turn."""
    if isinstance(y, Value) and not isinstance(x, Value):
        return y.__rmul__(x)  # type: ignore[attr-defined]  # operators are installed
    return x * y


def _multiply(x: Any, y: Any, /) -> Rule:
    z_bar = yield x * y
    yield product(y, z_bar)
    yield product(z_bar, x)


def _divide(x: Any, y: Any, /) -> Rule:
    z = x / y
    z_bar = yield z
    x_bar = product(_reciprocal(y), z_bar)
    yield x_bar
    yield product(-1, product(x_bar, z))


def _reciprocal(y: Any) -> Any:
    """``1 / y``, also for a class that divides nothing but its own."""
    try:
        return 1 / y
    except TypeError:
        return y / y / y


def _ordered(rule: Any) -> Function:
    register_rule(rule, "general")
    return lambda x, y: start(rule, (x, y), (), {})


multiply, divide = _ordered(_multiply), _ordered(_divide)


def pow(x: Any, n: Any) -> Any:
    """x to a whole power, as a product."""
    if type(n) is not int:
        return arithmetic.pow(x, n)  # which is refused
    if n < 0:
        return 1 / pow(x, -n)
    power = x if n else 0 * x + 1
    for _ in range(n - 1):
        power = power * x
    return power


def _operator(function: Function) -> tuple[Function, Function]:
    def operate(x: Any, y: Any) -> Any:
        return function(x, y) if x.takes(y) else NotImplemented

    def operate_reflected(x: Any, y: Any) -> Any:
        return function(y, x) if x.takes(y) else NotImplemented

    return operate, operate_reflected


_SUMS = {
    function.rule.__code__  # type: ignore[union-attr]  # given by lantern.op
    for function in (
        arithmetic.add,
        arithmetic.subtract,
        arithmetic.negative,
        arithmetic.positive,
    )
}


class IntervalNumber(OwnNumber):
    """A tracked interval of mpmath.

    An interval raises at operands that it does not know, and leaves them no turn. But
    where the class on the right is derived from that on the left, Python asks it first.
    """

    __slots__ = ()
    commutes: ClassVar[bool] = True

    def __init__(self, primal: Any, level: Any = None, *rule: Any) -> None:
        if level is None:  # iv.mpf(x) finds that x is one already, and starts it anew
            raise _detached()
        super().__init__(primal, level, *rule)

    @property
    def _mpi_(self) -> NoReturn:
        raise _detached()


def _detached() -> DetachError:
    return DetachError(
        "mpmath: a tracked interval would become a constant. Use lantern's functions "
        "(lantern.sin), or lantern.stop_gradient to detach it."
    )


def _tracking(interval: type) -> type[Value]:
    """The class of tracked intervals that is derived from that of the plain ones."""
    own = {"__slots__": (), "__new__": lambda cls, *_: object.__new__(cls)}
    return type("IntervalNumber", (IntervalNumber, interval), own)


def register_commutative(cls: type) -> None:
    """Promise that products of a class commute: all rules are then right for it.

    Python's own numbers, those of NumPy and mpmath and of the ``uncertainties`` package
    are known to.

    Args:
        cls: a class of numbers with operators; its subclasses are included.

    Example:
        >>> import lantern
        >>> class Metres(float):
        ...     pass
        >>> register_commutative(Metres)
        >>> lantern.grad(lambda x: x**0.5)(Metres(4.0))
        0.25
    """
    register_class(cls, Number)


install(IntervalNumber, _operator)
install(OwnNumber, _operator, {"mul": multiply, "truediv": divide, "pow": pow})
register_class(object, OwnNumber)
for _known in (float, int, complex):
    register_class(_known, Number)
for _package in ("fractions", "decimal", "mpmath", "uncertainties", "sympy", "gmpy2"):
    register_class(_package, Number)
register_class("mpmath.ctx_iv", _tracking)

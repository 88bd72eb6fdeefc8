"""The operators of Python and of NumPy on a tracked value, number or tensor alike.

Comparisons look at the primal: they decide where the program goes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lantern.core.error_propagation import plainly
from lantern.core.numpy_protocols import ArrayProtocols
from lantern.core.operation import Function
from lantern.core.value import UNTRACKED, Value, base
from lantern.rules import arithmetic, selection

__all__ = ["OperatorValue", "install"]


BINARY = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "mod": arithmetic.remainder,
    "pow": arithmetic.pow,
}


def install(
    cls: type,
    operator: Callable[[Function], tuple[Function, Function]],
    further: Mapping[str, Function] | None = None,
) -> None:
    """Give a class its binary operators.

    Args:
        cls: the class.
        operator: makes the methods ``x op y`` and ``y op x`` from an operation, in the
            form that is fast for the class.
        further: more operations, by the name of their method.
    """
    for name, function in {**BINARY, **(further or {})}.items():
        method, reflected = operator(function)
        setattr(cls, f"__{name}__", method)
        setattr(cls, f"__r{name}__", reflected)


class OperatorValue(ArrayProtocols, Value):
    """A value with arithmetic operators and comparisons."""

    __slots__ = ()

    def __floordiv__(self, other: Any) -> Any:
        return arithmetic.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return arithmetic.floor_divide(other, self)

    def __divmod__(self, other: Any) -> Any:
        return _divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divmod(other, self)

    def __neg__(self) -> Any:
        return arithmetic.negative(self)

    def __pos__(self) -> Any:
        return arithmetic.positive(self)

    def __abs__(self) -> Any:
        return selection.abs(self)

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return arithmetic.conj(self)

    conj = conjugate  # NumPy's scalars and arrays have both

    @property
    def real(self) -> Any:
        """The real part."""
        return arithmetic.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return arithmetic.imag(self)

    def __eq__(self, other: object) -> Any:
        return base(self) == base(other)

    def __ne__(self, other: object) -> Any:
        return base(self) != base(other)

    def __lt__(self, other: Any) -> Any:
        return base(self) < base(other)

    def __le__(self, other: Any) -> Any:
        return base(self) <= base(other)

    def __gt__(self, other: Any) -> Any:
        return base(self) > base(other)

    def __ge__(self, other: Any) -> Any:
        return base(self) >= base(other)

    __hash__ = None  # type: ignore[assignment]  # as for arrays; numbers define it

    def __bool__(self) -> bool:
        return bool(base(self))

    def __int__(self) -> int:
        return plainly(int, base(self))

    def __format__(self, spec: str) -> str:
        return format(base(self), spec)

    def __repr__(self) -> str:
        owner = "" if self.level is UNTRACKED else f", {self.level.name}"
        return f"{type(self).__name__}({self.primal!r}{owner})"


def _divmod(a: Any, b: Any) -> Any:
    """Quotient and remainder; without one, what Python says of both together."""
    try:
        return a // b, a % b
    except ZeroDivisionError as error:
        failed = error
    plainly(divmod, base(a), base(b))
    raise failed

"""Operations: each is one generator, registered here, started on any operands.

A rule prepares its value, yields it to the rest of the program, gets the value's
cotangent back, and yields what each operand receives, in the operands' order::

    @elementwise
    def mul(x, y, /):
        z_bar = yield x * y
        yield z_bar * y
        yield z_bar * x

A frame keeps its variables until the rule is resumed, so a rule forgets what it does
not need on the way back: ``del x``, or, where not even the value is needed,
``z_bar = yield (x + y, x := None, y := None)[0]``.

Positional-only parameters are the differentiable operands, all others are static.
Operands arrive as primals. A contribution that costs much is best yielded as a thunk
(``yield lambda: ...``): it is called only if the operand is tracked.
"""

from collections.abc import Callable, Generator
from inspect import CO_VARARGS, isgeneratorfunction
from typing import Any, ParamSpec

from lantern.core.dispatch import registered
from lantern.core.operation import Op, registry
from lantern.errors import RuleError

__all__ = [
    "Op",
    "additive",
    "adjoint",
    "bilinear",
    "constant",
    "elementwise",
    "linear",
    "op",
    "registry",
]

P = ParamSpec("P")
Rule = Callable[P, Generator[Any, Any, Any]]


def op(rule: Rule[P]) -> Callable[P, Any]:
    """Make a generator function a differentiable operation.

    Args:
        rule: a generator function, as the docstring of this module describes it.

    Returns:
        A function of the same parameters, for plain and for tracked values.

    Raises:
        RuleError: if ``rule`` is no generator function or has no operand, or reads an
            array that it closes over, or a global one, and that is not read-only.

    Example:
        >>> import lantern
        >>> @op
        ... def cube(x, /):
        ...     z_bar = yield x * x * x
        ...     yield z_bar * 3 * x * x
        >>> cube(2.0), lantern.grad(cube)(2.0)
        (8.0, 12.0)
    """
    return _operation(rule, "general")


def elementwise(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``op``, for a rule whose backward step multiplies by partial derivatives.

    Forward mode resumes it with 1.

    Example:
        >>> import lantern
        >>> @elementwise
        ... def cubed(x, /):
        ...     z_bar = yield x * x * x
        ...     yield z_bar * 3 * x * x
        >>> lantern.jvp(cubed, (2.0,), (1.0,))
        (8.0, 12.0)
    """
    return _operation(rule, "elementwise")


def additive(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``elementwise``, for a sum of the operands, which the rule does not keep.

    They may be multiplied by finite numbers: where the cotangent is 0, so is what each
    operand receives, and nobody looks after that again.

    Example:
        >>> import lantern
        >>> @additive
        ... def total(x, y, /):
        ...     z_bar = yield x + y
        ...     yield z_bar
        ...     yield z_bar
        >>> lantern.grad(lambda x: total(x, x))(2.0)
        2.0
    """
    return _operation(rule, "elementwise", additive=True)


def linear(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``op``, for a rule that is linear in its operands, taken together.

    Forward mode applies it to the tangents.

    Example:
        >>> import lantern
        >>> @linear
        ... def doubled(x, /):
        ...     z_bar = yield 2 * x
        ...     yield 2 * z_bar
        >>> lantern.jvp(doubled, (3.0,), (1.0,))
        (6.0, 2.0)
    """
    return _operation(rule, "linear")


def bilinear(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``op``, for a rule that is linear in each of its operands by itself.

    Forward mode applies it to the tangent of one operand and the other operands.

    Example:
        >>> import lantern
        >>> @bilinear
        ... def product(x, y, /):
        ...     z_bar = yield x * y
        ...     yield z_bar * y
        ...     yield z_bar * x
        >>> lantern.jvp(product, (2.0, 5.0), (1.0, 0.0))
        (10.0, 5.0)
    """
    return _operation(rule, "bilinear")


def adjoint(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``op``, for a rule that is not holomorphic in complex operands.

    Its backward step is written as the adjoint with respect to the real inner product
    ``real(sum(conj(a) * b))``; it sees the cotangent as it is, no conjugates added.

    Example:
        >>> import lantern
        >>> @adjoint
        ... def conjugated(x, /):
        ...     z_bar = yield x.conjugate()
        ...     yield z_bar.conjugate()
        >>> lantern.vjp(conjugated, 1.0 + 2.0j)[1](1.0j)
        (-1j,)
    """
    return _operation(rule, "general", adjoint=True)


def constant(rule: Rule[P]) -> Callable[P, Any]:
    """Like ``op``, for a rule with zero derivative, which yields once.

    Its result is a plain value.

    Example:
        >>> import lantern
        >>> @constant
        ... def tens(x, /):
        ...     yield 10 * (x // 10)
        >>> lantern.grad(lambda x: x * tens(x))(25.0)
        20.0
    """
    return _operation(rule, "constant")


def _operation(rule: Rule[P], kind: str, **known: bool) -> Callable[P, Any]:
    """The operation that a rule makes, once it has been looked at."""
    if not isgeneratorfunction(rule):
        raise RuleError(
            f"{rule.__name__}: a rule is a generator function. Yield the value to the "
            f"rest of the program, then one contribution for each operand."
        )
    own = rule.__module__.startswith("lantern.")
    if not own:
        _refuse_arrays(rule)
    code = rule.__code__
    if not (code.co_flags & CO_VARARGS or code.co_posonlyargcount):
        raise RuleError(
            f"{rule.__name__}: the rule has no differentiable operand. Put '/' behind "
            f"the parameters that it differentiates: def {rule.__name__}(x, /)."
        )
    rule.__annotations__["return"] = Any  # help() shows what the operation gives
    return registered(rule, kind, own, **known)


def _refuse_arrays(rule: Rule[P]) -> None:
    """Refuse a user's rule that reads arrays which may change: nobody would notice."""
    from lantern.guards.captured import (
        writable,  # few programs write rules of their own
    )

    reading = writable(rule)
    if reading is not None:
        raise RuleError(
            f"{rule.__name__}: the rule reads the array {reading}, which may be "
            f"written to before its backward step. Make it an operand or an option; "
            f"mark it with {reading}.setflags(write=False), if it never changes; or "
            f"use lantern.custom_rule, which looks whether it has changed."
        )

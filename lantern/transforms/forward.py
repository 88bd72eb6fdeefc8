"""Forward mode: every rule is resumed at once, and tells how its result moves."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from lantern.core import residuals
from lantern.core.conjugation import is_adjoint
from lantern.core.dispatch import kind_of, operand_count, value_class
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import frozen, like_original, strip
from lantern.core.value import (
    Level,
    Receiver,
    Replayable,
    Value,
    base,
    is_complex,
    too_few_contributions,
    unwrapped,
    zeros_like,
)
from lantern.errors import ArgumentError
from lantern.replaced import restore
from lantern.rules.number import in_kind_of
from lantern.transforms.arguments import check_function, check_like, check_result, pair
from lantern.transforms.reverse import Reverse, track

__all__ = ["jvp"]

R = TypeVar("R")


class Forward(Level):
    """One forward-mode derivative."""

    __slots__ = ()
    keep = residuals.keep_as_it_is

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.suspend, self.begin = advance, Replayable

    def drop(self, receiver: Receiver) -> None:
        """In place of ``suspend``: the value does not move."""
        stand_still(receiver)


def advance(z: Receiver) -> None:
    """Give a new value its tangent, from its rule and its operands' tangents."""
    with namespace(
        base(z.suspended.value)
    ).ignore_fp_warnings():  # a derivative may be infinite
        z.tangent = z.fit(way(z.suspended)(z))
    z.release()


def stand_still(z: Receiver) -> None:
    """Give a new value the tangent zero."""
    z.tangent = tree_map(zeros_like, z.suspended.value)
    z.release()


def way(rule: Replayable) -> Callable[[Receiver], Any]:
    """How a rule moves tangents."""
    kind = kind_of(rule)
    if kind == "linear":
        return by_itself
    if kind == "bilinear":
        return by_products
    if kind == "stated":
        return by_statement
    if kind in ("elementwise", "partials") or not _has_array(rule):
        return by_partials
    return by_transposition


def _has_array(rule: Replayable) -> bool:
    """Whether a rule's result or one of its operands is no number."""
    if value_class(rule.value).rank:
        return True
    return any(getattr(base(x), "shape", ()) for x in rule.operands)


def contribution(rule: Replayable, z_bar: Any) -> Any:
    """The next contribution of a rule."""
    try:
        return rule.send(z_bar)
    except StopIteration:
        raise too_few_contributions(rule.started) from None


def by_partials(z: Receiver) -> Any:
    """The tangent of an elementwise result: partial derivatives times tangents."""
    return combined(z, partials(z))


def partials(z: Receiver) -> list[Any]:
    """What a rule that is resumed with 1 yields: its partial derivatives.

    Where the result is an array the 1 is one as well: divided by 0, it is infinite.
    """
    dtype = getattr(z.suspended.value, "dtype", None)
    one = 1 if dtype is None else dtype.type(1)
    return [contribution(z.suspended, one) for _ in z.operands()]


def combined(z: Receiver, partials: list[Any]) -> Any:
    """The sum of partial derivatives times tangents.

    The real result of a complex operand is no holomorphic function: only the real part
    counts.
    """
    total = None
    for x, partial in zip(z.operands(), partials, strict=True):
        if x is None or partial is None:
            continue
        if callable(partial):
            partial = partial()
        if x.holds_complex() and not z.holds_complex():
            xp = namespace(partial)
            term = xp.real(xp.conj(partial) * x.tangent)
        else:
            term = partial * x.tangent
        total = term if total is None else total + term
    value = z.suspended.value
    if total is None:
        return zeros_like(value)
    whole = getattr(total, "shape", ()) == getattr(value, "shape", ())
    return total if whole and hasattr(total, "dtype") else total + zeros_like(value)


def by_statement(z: Receiver) -> Any:
    """The tangent that a rule states itself, by the function ``tangent``."""
    rule, operands = z.suspended, z.operands()
    tangents = [None if x is None else x.tangent for x in operands]
    tangents += [None] * (len(rule.operands) - len(tangents))
    return rule.statics["tangent"](rule.operands, tangents)


def by_itself(z: Receiver) -> Any:
    """The tangent of a linear operation's result: the operation of the tangents."""
    count, operands = operand_count(z.suspended), z.operands()

    def tangent(i: int, argument: Any) -> Any:
        if i >= count:
            return argument
        x = operands[i] if i < len(operands) else None
        return zeros_like(argument) if x is None else x.tangent

    return next(z.suspended.again(tangent))


def by_products(z: Receiver) -> Any:
    """The tangent of a product: for each operand its tangent in its place."""
    total: Any = None
    for i, x in enumerate(z.operands()):
        if x is not None:
            again = z.suspended.again
            term = next(again(lambda j, y, i=i, x=x: x.tangent if j == i else y))
            total = term if total is None else total + term
    return total


def by_transposition(z: Receiver) -> Any:
    """The tangent of any result: the transpose of the rule's backward step.

    The backward step is linear in the cotangent. Its own reverse-mode derivative, with
    the operands' tangents as seeds, applies its transpose, and that is the forward
    derivative: so every rule has both modes.
    """
    level = Reverse("jvp")
    z_bar = track("jvp", tree_map(zeros_like, z.suspended.value), level)
    conj: Callable[[Any], Any] = _same if is_adjoint(z.suspended.started) else _conj

    def backward_step() -> None:
        for x in z.operands():
            x_bar = contribution(z.suspended, z_bar)
            if x is None or x_bar is None:
                continue
            x_bar = x.fit(x_bar)
            if isinstance(x_bar, Value) and x_bar.level is level:
                x_bar.receiver.accumulate(conj(x.tangent))

    level.run(backward_step)
    return tree_map(lambda leaf: conj(leaf.gradient()), z_bar)


def _same(x: Any) -> Any:
    return x


def _conj(x: Any) -> Any:
    return namespace(x).conj(x) if is_complex(x) else x


@overload
def jvp(
    f: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[Any, Any, Any]: ...
@overload
def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
) -> tuple[Any, ...]: ...
def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of f and its derivative in a direction, by forward mode.

    Args:
        f: takes and returns any structures of numbers and arrays.
        primals: the arguments, as a tuple or list.
        tangents: the direction: for each argument, the same structure and shapes.
        has_aux: whether f returns ``(value, aux)``.

    Returns:
        ``(value, tangent)``, or ``(value, tangent, aux)``.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        ShapeError: if the tangents do not have the primals' structure and shapes.

    Example:
        >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
        (6.0, 3.0)

    References:
        Griewank and Walther (2008), section 3.1; Wang et al. (2019), section 2.5.
    """
    check_function("jvp", f)
    for name, argument in (("primals", primals), ("tangents", tangents)):
        if not isinstance(argument, tuple | list):
            raise ArgumentError(
                f"jvp: {name} must be a tuple or list with one entry for each argument "
                f"of f, got {type(argument).__name__}. Write jvp(f, (x,), (x_dot,))."
            )
    level = Forward("jvp")
    inputs = track("jvp", tuple(primals), level)
    check_like("jvp", tuple(primals), tuple(tangents))
    tree_map(give_tangent, inputs, tuple(tangents))
    try:
        y = frozen(f(*inputs))
    except (RuntimeError, ValueError) as error:
        restore(error)
        raise
    finally:
        level.close()
    y, *aux = pair("jvp", y) if has_aux else (y,)
    check_result("jvp", y, level)

    taken = set(map(id, tree_leaves(tangents)))

    def tangent(leaf: Any) -> Any:
        own = isinstance(leaf, Value) and leaf.level is level
        found = (
            residuals.owned(leaf.receiver.tangent, taken) if own else zeros_like(leaf)
        )
        return like_original(leaf, found)

    return strip(y, level), tree_map(tangent, y), *strip(aux, level)


def give_tangent(x: Value, tangent: Any) -> None:
    """Let an input of a derivative move."""
    tangent = unwrapped(tangent)
    if not getattr(tangent, "shape", ()):
        tangent = in_kind_of(x, tangent)
    x.receiver.tangent = x.receiver.fit(tangent)

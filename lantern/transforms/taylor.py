"""Derivatives of high order along a curve: Taylor series pushed through a program.

Every value carries the coefficients of its series in one variable t. For products,
quotients and linear rules the result's are known directly. Any other rule has a
derivative, by forward mode, and that derivative is a program on series which are
shorter by one term: its integral is the result's series. So n derivatives cost a power
of n, where forward mode nested n times costs a power of 2.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from lantern.core.dispatch import kind_of, operand_count, start, value_class
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import like_original, strip
from lantern.core.value import (
    Level,
    Receiver,
    Replayable,
    Value,
    base,
    zeros_like,
)
from lantern.errors import ArgumentError, ShapeError, counted
from lantern.rules import arithmetic
from lantern.rules.noncommutative import product
from lantern.rules.number import in_kind_of
from lantern.transforms.arguments import check_function, check_like, check_result
from lantern.transforms.forward import by_itself, jvp
from lantern.transforms.reverse import track

__all__ = ["jet", "taylor"]

Function = Callable[..., Any]
Terms = tuple[Any, ...]


class Jet(Level):
    """One pass of Taylor series; a receiver's ``tangent`` holds the terms after t**0.

    Attributes:
        known: the terms that were found for a rule and its operands, which are kept.
        shorter: a value's series without its last term, by receiver and length.
    """

    __slots__ = ("known", "shorter")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.begin, self.suspend = Replayable, self.advance
        self.known: dict[Any, tuple[Terms, Any]] = {}
        self.shorter: dict[tuple[int, int], tuple[Value, Receiver]] = {}

    def close(self) -> None:
        """End the pass, and forget what it has found."""
        super().close()
        self.known, self.shorter = {}, {}

    def value(self, primal: Any, terms: Sequence[Any]) -> Value:
        """A value with a series."""
        cls: Any = value_class(primal)
        x: Value = cls(primal, self)
        x.receiver.tangent = tuple(terms)
        return x

    def shortened(self, x: Receiver, primal: Any) -> Value:
        """An operand without its last term; the same object for the same operand."""
        key = id(x), len(x.tangent)
        if key not in self.shorter:
            self.shorter[key] = self.value(primal, x.tangent[:-1]), x
        return self.shorter[key][0]

    def advance(self, z: Receiver) -> None:
        """Give a new value its series, from its rule and its operands' series."""
        rule: Replayable = z.suspended
        order = min(len(x.tangent) for x in z.operands() if x is not None)
        with namespace(
            base(rule.value)
        ).ignore_fp_warnings():  # a derivative may be infinite
            terms = self.terms(z, rule, order) if order else ()
        z.tangent = tuple(z.fit(term) for term in terms)
        z.release()

    def drop(self, receiver: Receiver) -> None:
        """In place of ``suspend``: the value does not move."""
        order = min(len(x.tangent) for x in receiver.operands() if x is not None)
        zero = tree_map(zeros_like, receiver.suspended.value)
        receiver.tangent = (zero,) * order
        receiver.release()

    def terms(self, z: Receiver, rule: Replayable, order: int) -> Terms:
        """The terms 1 to order of a result's series."""
        if rule.rule in DIRECT:
            x, y = (_full(x, c, order) for x, c in _both(z.operands(), rule.operands))
            return DIRECT[rule.rule](x, y, rule.value)
        if rule.rule in _SUMS or kind_of(rule) == "linear":
            return _term_by_term(z, order)
        key = _key(z, rule, order)
        if key is None or key not in self.known:
            found = self.integral(z, rule, order)
            if key is None:
                return found
            self.known[key] = found, (z.operands(), rule.operands)
        return self.known[key][0]

    def integral(self, z: Receiver, rule: Replayable, order: int) -> Terms:
        """The terms from the derivative of the rule, which is a series of its own."""
        count = operand_count(rule)
        moving = {i: x for i, x in enumerate(z.operands()) if x is not None}
        points, speeds = [], []
        for i, receiver in moving.items():
            x, *later = receiver.tangent[:order]
            points.append(self.shortened(receiver, rule.operands[i]))
            speeds.append(self.value(x, [k * c for k, c in enumerate(later, start=2)]))

        def again(*some: Any) -> Any:
            full = list(rule.operands)
            for i, x in zip(moving, some, strict=True):
                full[i] = x
            return start(rule.rule, full[:count], full[count:], rule.statics)

        _, speed = jvp(again, points, speeds)
        parts = [_full_of(leaf, self, order - 1) for leaf in tree_leaves(speed)]
        terms = [[c / k for k, c in enumerate(part, start=1)] for part in parts]
        return tuple(zip(*terms, strict=True) if len(parts) > 1 else terms[0])


def _both(receivers: Any, operands: Any) -> list[tuple[Any, Any]]:
    """Two operands, each with its receiver or None."""
    return [(receivers[i] if i < len(receivers) else None, operands[i]) for i in (0, 1)]


def _full(x: Receiver | None, primal: Any, order: int) -> Terms:
    """An operand's series from the term of t**0; of a constant that term alone."""
    return (primal,) if x is None else (primal, *x.tangent[:order])


def _full_of(x: Any, level: Level, order: int) -> Terms:
    """A value's series from the term of t**0, filled up with zeros."""
    if isinstance(x, Value) and x.level is level:
        return (x.primal, *x.receiver.tangent)
    return (x, *[zeros_like(x)] * order)


def _product(x: Terms, y: Terms, z: Any) -> Terms:
    """The terms of ``x * y``."""
    order = max(len(x), len(y)) - 1
    return tuple(_convolved(x, y, k, 0) for k in range(1, order + 1))


def _quotient(x: Terms, y: Terms, z: Any) -> Terms:
    """The terms of ``z = x / y``, from ``z * y = x``."""
    terms = [z]
    for k in range(1, max(len(x), len(y))):
        rest = _convolved(y, tuple(terms), k, 1)
        of_x = x[k] if k < len(x) else None
        if rest is not None:
            of_x = -rest if of_x is None else -rest + of_x
        terms.append(namespace(of_x, y[0]).ieee_divide(of_x, y[0]))
    return tuple(terms[1:])


def _convolved(x: Terms, y: Terms, k: int, first: int) -> Any:
    """The sum of ``x[i] * y[k - i]`` from the first i on; None for no terms."""
    total = None
    for i in range(max(first, k - len(y) + 1), min(k + 1, len(x))):
        term = product(x[i], y[k - i])
        total = term if total is None else total + term
    return total


def _term_by_term(z: Receiver, order: int) -> Terms:
    """The terms of a linear rule's result: the rule of the operands' terms."""
    operands = [x for x in z.operands() if x is not None]
    series = [x.tangent for x in operands]
    terms = []
    for k in range(order):
        for x, whole in zip(operands, series, strict=True):
            x.tangent = whole[k]
        terms.append(by_itself(z))
    for x, whole in zip(operands, series, strict=True):
        x.tangent = whole
    return tuple(terms)


def _key(z: Receiver, rule: Replayable, order: int) -> Any:
    """What tells this use of a rule from others; None if nothing can."""
    receivers = [None if x is None else id(x) for x in z.operands()]
    constants = [
        (type(c), c if isinstance(c, float | int | complex) else id(c))
        for c in rule.operands
    ]
    key = rule.rule, order, *receivers, *constants, *sorted(rule.statics.items())
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _rule(function: Any) -> Any:
    return function.rule


DIRECT = {
    _rule(arithmetic.multiply): _product,
    _rule(arithmetic.divide): _quotient,
    _rule(arithmetic.ieee_divide): _quotient,
}
_SUMS = set(
    map(
        _rule,
        (
            arithmetic.add,
            arithmetic.subtract,
            arithmetic.negative,
            arithmetic.positive,
        ),
    )
)


def jet(
    f: Function, primals: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[Any, Any]:
    """The value of f and its derivatives of high order along a curve.

    Args:
        f: takes and returns any structures of numbers and arrays.
        primals: the point x(0) of the curve, a tuple with an entry for each argument.
        series: for each argument the curve's derivatives by t at 0, from the first one
            on; as many for each.

    Returns:
        ``(value, derivatives)``: as many derivatives of f(x(t)) by t at 0, in a list;
        for a structure of results a list in the place of each leaf.

    Raises:
        ArgumentError: if f is no plain function, or primals and series are no tuples or
            lists.
        ShapeError: if the terms do not have the primals' structure and shapes.

    Example:
        >>> jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
        (8.0, [12.0, 12.0, 6.0])

    References:
        Griewank and Walther (2008), chapter 13; Bettencourt, Johnson and Duvenaud
        (2019), "Taylor-mode automatic differentiation for higher-order derivatives".
    """
    check_function("jet", f)
    for name, argument in (("primals", primals), ("series", series)):
        if not isinstance(argument, tuple | list):
            raise ArgumentError(
                f"jet: {name} must be a tuple or list with one entry for each argument "
                f"of f, got {type(argument).__name__}. Write jet(f, (x,), ([1.0],))."
            )
    if not all(isinstance(terms, tuple | list) for terms in series):
        raise ArgumentError(
            f"jet: the series of an argument must be a tuple or list of its terms, got "
            f"{series!r}. Write jet(f, (x,), ([1.0],))."
        )
    lengths = {len(terms) for terms in series}
    if len(series) != len(primals) or len(lengths) > 1:
        raise ShapeError(
            f"jet: {counted(len(primals), 'primal')} with series of "
            f"{[len(s) for s in series]} "
            f"terms. Give each argument a series, all of one length."
        )
    order = lengths.pop() if lengths else 0
    for k in range(order):
        check_like("jet", tuple(primals), tuple(terms[k] for terms in series))
    scaled = [
        tree_map(lambda c, k=k: c / math.factorial(k), tuple(s[k - 1] for s in series))
        for k in range(1, order + 1)
    ]
    value, coefficients = _pushed("jet", f, tuple(primals), scaled)

    def derivatives(_: Any, *terms: Any) -> list[Any]:
        return [math.factorial(k) * c for k, c in enumerate(terms, start=1)]

    return value, tree_map(derivatives, value, *coefficients)


def taylor(f: Function, x: Any, order: int) -> tuple[Any, ...]:
    """The Taylor coefficients of f at x, ``f(x + t) = c[0] + c[1] t + c[2] t**2 ...``.

    Args:
        f: takes one number or array, elementwise; returns any structure.
        x: the point; of an array, all elements move by the same t.
        order: the highest power of t.

    Returns:
        The tuple of the coefficients ``c[0], ..., c[order]``, each like f's result; the
        derivative of order k is ``factorial(k) * c[k]``.

    Raises:
        ArgumentError: if order is no integer from 0 on, or f is no plain function.

    Example:
        >>> import lantern
        >>> taylor(lambda x: 1 / (1 - x), 0.0, 4)
        (1.0, 1.0, 1.0, 1.0, 1.0)
        >>> taylor(lantern.exp, 0.0, 3)
        (1.0, 1.0, 0.5, 0.16666666666666666)

    References:
        Griewank and Walther (2008), chapter 13.
    """
    check_function("taylor", f)
    if type(order) is not int or order < 0:
        raise ArgumentError(
            f"taylor: order must be an integer from 0 on, got {order!r}. It is the "
            f"highest power of t."
        )
    zero = tree_map(zeros_like, x)
    one = tree_map(lambda leaf: leaf + 1, zero)
    directions = [one, *[zero] * (order - 1)][:order]
    value, coefficients = _pushed("taylor", f, (x,), [(d,) for d in directions])
    return value, *coefficients


def _pushed(where: str, f: Function, primals: Any, terms: Any) -> tuple[Any, Any]:
    """The value of f, and structures like it of its terms from t**1 on."""
    level = Jet(where)
    inputs = track(where, primals, level)

    def carry(x: Value, *terms: Any) -> None:
        x.receiver.tangent = tuple(
            x.receiver.fit(in_kind_of(x, term)) for term in terms
        )

    tree_map(carry, inputs, *terms)
    try:
        y = f(*inputs)
    finally:
        level.close()
    check_result(where, y, level)

    def term(leaf: Any, k: int) -> Any:
        own = isinstance(leaf, Value) and leaf.level is level
        return like_original(
            leaf, leaf.receiver.tangent[k] if own else zeros_like(leaf)
        )

    order = len(terms)
    return strip(y, level), [
        tree_map(lambda leaf, k=k: term(leaf, k), y) for k in range(order)
    ]

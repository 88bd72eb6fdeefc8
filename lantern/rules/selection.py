"""Functions that choose, round or cut: the derivative goes to what was chosen.

Where a derivative does not exist it takes the symmetric value: half each at a tie, 0
for the absolute value at 0.
"""

from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import common_namespace, namespace
from lantern.core.value import Rule, Value, base, is_complex
from lantern.op import constant, elementwise, linear

__all__ = [
    "abs",
    "ceil",
    "clip",
    "floor",
    "maximum",
    "minimum",
    "sign",
    "where",
]


@elementwise
def abs(x: Any, /) -> Rule:
    """The absolute value of x; of complex x, the modulus.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * x / abs(x), 0 at 0

    Example:
        >>> abs(-3.0)
        3.0
    """
    xp = namespace(x)
    z = xp.abs(x)
    z_bar = yield z
    yield z_bar * (x / xp.where(z == 0, 1, z) if is_complex(x) else xp.sign(x))


def sign(x: Any, /) -> Any:
    """-1, 0 or 1, with derivative zero; of complex x, ``x / abs(x)``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> sign(-3.0)
        -1.0
    """
    if not is_complex(x):
        return _sign(x)
    z = abs(x)
    return where(base(z) == 0, 0, x) / where(base(z) == 0, 1, z)


@constant
def _sign(x: Any, /) -> Rule:
    """-1, 0 or 1; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant
    """
    yield namespace(x).sign(x)


@constant
def floor(x: Any, /) -> Rule:
    """The largest integer not above x; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> floor(2.5)
        2.0
    """
    yield namespace(x).floor(x)


@constant
def ceil(x: Any, /) -> Rule:
    """The smallest integer not below x; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> ceil(2.5)
        3.0
    """
    yield namespace(x).ceil(x)


@elementwise
def maximum(x: Any, y: Any, /) -> Rule:
    """The larger of x and y; at a tie each gets half of the derivative.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar where x > y, half of it where x == y
        y_bar = z_bar - x_bar

    Example:
        >>> maximum(2.0, 3.0)
        3.0
    """
    z_bar = yield namespace(x, y).maximum(x, y)
    x_bar = z_bar * (x > y) + z_bar / 2 * (x == y)
    yield x_bar
    yield z_bar - x_bar


@elementwise
def minimum(x: Any, y: Any, /) -> Rule:
    """The smaller of x and y; at a tie each gets half of the derivative.

    Shapes:
        x, y: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar where x < y, half of it where x == y
        y_bar = z_bar - x_bar

    Example:
        >>> minimum(2.0, 3.0)
        2.0
    """
    z_bar = yield namespace(x, y).minimum(x, y)
    x_bar = z_bar * (x < y) + z_bar / 2 * (x == y)
    yield x_bar
    yield z_bar - x_bar


def where(condition: Any, /, *branches: Any) -> Any:
    """x where the condition holds, else y; without x and y, where it holds.

    The branch not taken receives exactly zero, and a nan there stays there.

    Shapes:
        condition, x, y: (...), broadcast; result: (...)

    Example:
        >>> where(True, 2.0, 3.0)
        2.0
    """
    condition = base(from_lists(condition))
    if not branches:
        return namespace(condition).nonzero(condition)
    if isinstance(condition, Value):  # one for each example of a vmap
        branches = tuple(map(condition.join, branches))
    return _where(*branches, condition)  # type: ignore[call-arg]  # of two branches


@linear
def _where(x: Any, y: Any, /, condition: Any) -> Rule:
    """x where the condition holds, else y; its operands first.

    Shapes:
        x, y, condition: (...), broadcast; result: (...)

    Rule:
        x_bar = z_bar where the condition holds, nothing elsewhere; y_bar likewise
    """
    xp = common_namespace(condition, x, y)
    z_bar = yield (xp.where(condition, x, y), x := None, y := None)[0]
    xp = namespace(condition)
    if getattr(getattr(condition, "dtype", None), "kind", "b") != "b":  # as truths
        condition = xp.logical_not(xp.logical_not(condition))
    yield xp.select(condition, z_bar)
    yield xp.select(xp.logical_not(condition), z_bar)


plain_where = _where  # its operands first, and checked


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x limited to the interval from min to max; None is no limit.

    Inside and on a bound the derivative is 1; beyond it belongs to the bound.

    Shapes:
        x, min, max: (...), broadcast; result: (...)

    Example:
        >>> clip(5.0, 0.0, 3.0)
        3.0
    """
    x, min, max = map(from_lists, (x, min, max))
    if min is not None:
        x = where(base(x) < base(min), min, x)
    if max is not None:
        x = where(base(x) > base(max), max, x)
    return x

"""Functions with derivative zero: what compares, counts, rounds or says where.

Their results are plain values.
"""

from typing import Any

from lantern.namespace import namespace
from lantern.op import Function, constant
from lantern.tensor.namespace import array_namespace
from lantern.tree import tree_map
from lantern.value import Rule, base

__all__ = [
    "all",
    "allclose",
    "any",
    "argmax",
    "argmin",
    "around",
    "array_equal",
    "array_equiv",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "count_nonzero",
    "digitize",
    "equal",
    "fix",
    "greater",
    "greater_equal",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "nanargmax",
    "nanargmin",
    "not_equal",
    "rint",
    "round",
    "signbit",
    "spacing",
    "trunc",
]


def _plain(name: str) -> Function:
    """The array library's function of a name, on the plain values of its arguments."""

    def function(*args: Any, **options: Any) -> Any:
        args = tree_map(base, args)
        return getattr(array_namespace(*args), name)(*args, **tree_map(base, options))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``numpy.{name}``, on plain values; its derivative is zero."""
    return function


equal = _plain("equal")
not_equal = _plain("not_equal")
less = _plain("less")
less_equal = _plain("less_equal")
greater = _plain("greater")
greater_equal = _plain("greater_equal")

logical_and = _plain("logical_and")
logical_or = _plain("logical_or")
logical_xor = _plain("logical_xor")
logical_not = _plain("logical_not")

bitwise_and = _plain("bitwise_and")
bitwise_or = _plain("bitwise_or")
bitwise_xor = _plain("bitwise_xor")
bitwise_invert = _plain("bitwise_invert")
bitwise_left_shift = _plain("bitwise_left_shift")
bitwise_right_shift = _plain("bitwise_right_shift")

isfinite = _plain("isfinite")
isinf = _plain("isinf")
isnan = _plain("isnan")
isneginf = _plain("isneginf")
isposinf = _plain("isposinf")
isreal = _plain("isreal")
iscomplex = _plain("iscomplex")
isrealobj = _plain("isrealobj")
iscomplexobj = _plain("iscomplexobj")

isclose = _plain("isclose")
allclose = _plain("allclose")
array_equal = _plain("array_equal")
array_equiv = _plain("array_equiv")
isin = _plain("isin")
signbit = _plain("signbit")
spacing = _plain("spacing")

all = _plain("all")
any = _plain("any")
count_nonzero = _plain("count_nonzero")
argmax = _plain("argmax")
argmin = _plain("argmin")
nanargmax = _plain("nanargmax")
nanargmin = _plain("nanargmin")

digitize = _plain("digitize")


@constant
def rint(x: Any, /) -> Rule:
    """The integer nearest to x, the even one of two; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> rint(2.5)
        2.0
    """
    yield namespace(x).rint(x)


@constant
def trunc(x: Any, /) -> Rule:
    """x without its fraction; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> trunc(-2.5)
        -2.0
    """
    yield namespace(x).trunc(x)


@constant
def round(x: Any, /, decimals: int = 0) -> Rule:
    """x rounded to a number of decimals; its derivative is zero.

    Shapes:
        x: (...); result: (...)

    Rule:
        none: the result is a constant

    Example:
        >>> round(2.567, 1)
        2.6
    """
    yield namespace(x).round(x, decimals)


fix, around = trunc, round

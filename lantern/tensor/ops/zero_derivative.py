"""Functions with derivative zero: what compares, counts, rounds or says where.

Their results are plain values.
"""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.operation import Function
from lantern.core.tree import tree_map
from lantern.core.value import Rule, Value, base
from lantern.errors import MutationError
from lantern.op import constant
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.constants import told

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


# Each function's meaning, with an example: three lines for one.
_MEANINGS = """
equal: Where x and y are equal.
>>> equal([1.0, 2.0], [1.0, 3.0])
array([ True, False])
not_equal: Where x and y differ.
>>> not_equal([1.0, 2.0], [1.0, 3.0])
array([False,  True])
less: Where x is below y.
>>> less([1.0, 2.0], 2.0)
array([ True, False])
less_equal: Where x is no more than y.
>>> less_equal([1.0, 2.0], 1.0)
array([ True, False])
greater: Where x is above y.
>>> greater([1.0, 2.0], 1.0)
array([False,  True])
greater_equal: Where x is no less than y.
>>> greater_equal([1.0, 2.0], 2.0)
array([False,  True])
logical_and: Where neither x nor y is zero.
>>> logical_and([True, True, False], [True, False, False])
array([ True, False, False])
logical_or: Where x or y is not zero.
>>> logical_or([True, True, False], [True, False, False])
array([ True,  True, False])
logical_xor: Where one of x and y is not zero, and the other is.
>>> logical_xor([True, True, False], [True, False, False])
array([False,  True, False])
logical_not: Where x is zero.
>>> logical_not([0.0, 2.0])
array([ True, False])
bitwise_and: The bits that both x and y have.
>>> bitwise_and(6, 3)
np.int64(2)
bitwise_or: The bits that x or y has.
>>> bitwise_or(6, 3)
np.int64(7)
bitwise_xor: The bits that one of x and y has.
>>> bitwise_xor(6, 3)
np.int64(5)
bitwise_invert: The bits that x does not have.
>>> bitwise_invert(6)
np.int64(-7)
bitwise_left_shift: The bits of x, y places higher.
>>> bitwise_left_shift(3, 2)
np.int64(12)
bitwise_right_shift: The bits of x, y places lower.
>>> bitwise_right_shift(12, 2)
np.int64(3)
isfinite: Where x is neither infinite nor nan.
>>> isfinite([1.0, float("inf"), float("nan")])
array([ True, False, False])
isinf: Where x is infinite.
>>> isinf([1.0, float("inf"), float("nan")])
array([False,  True, False])
isnan: Where x is not a number.
>>> isnan([1.0, float("inf"), float("nan")])
array([False, False,  True])
isneginf: Where x is minus infinity.
>>> isneginf([1.0, float("-inf"), float("inf")])
array([False,  True, False])
isposinf: Where x is plus infinity.
>>> isposinf([1.0, float("-inf"), float("inf")])
array([False, False,  True])
isreal: Where x has no imaginary part.
>>> isreal([1.0 + 0.0j, 2.0j])
array([ True, False])
iscomplex: Where x has an imaginary part.
>>> iscomplex([1.0 + 0.0j, 2.0j])
array([False,  True])
isrealobj: Whether x is of a real type.
>>> isrealobj(1.0 + 0.0j)
False
iscomplexobj: Whether x is of a complex type.
>>> iscomplexobj(1.0 + 0.0j)
True
isclose: Where x and y are equal within a tolerance.
>>> isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
array([ True, False])
allclose: Whether x and y are equal everywhere within a tolerance.
>>> allclose([1.0, 2.0], [1.0 + 1e-9, 2.0])
True
array_equal: Whether x and y have the same shape and the same elements.
>>> array_equal([1.0, 2.0], [1.0, 2.0])
True
array_equiv: Whether x and y are equal when they are broadcast.
>>> array_equiv([1.0, 1.0], 1.0)
True
isin: Which elements of x occur in y.
>>> isin([1.0, 2.0, 3.0], [3.0, 1.0])
array([ True, False,  True])
signbit: Where the sign of x is a minus, that of zero included.
>>> signbit([-0.0, 0.0, -1.0])
array([ True, False,  True])
spacing: How far the next number is from x.
>>> spacing(1.0)
np.float64(2.220446049250313e-16)
all: Whether no element is zero, at all or along axes.
>>> all([[True, False], [True, True]], axis=1)
array([False,  True])
any: Whether some element is not zero, at all or along axes.
>>> any([[True, False], [False, False]], axis=1)
array([ True, False])
count_nonzero: How many elements are not zero, at all or along axes.
>>> count_nonzero([1.0, 0.0, 2.0])
np.int64(2)
argmax: Where the largest element stands, at all or along an axis.
>>> argmax([1.0, 3.0, 2.0])
np.int64(1)
argmin: Where the smallest element stands, at all or along an axis.
>>> argmin([1.0, 3.0, 2.0])
np.int64(0)
nanargmax: Where the largest element stands that is a number.
>>> nanargmax([float("nan"), 3.0, 2.0])
np.int64(1)
nanargmin: Where the smallest element stands that is a number.
>>> nanargmin([float("nan"), 3.0, 2.0])
np.int64(2)
digitize: Between which bounds each element lies: how many are no larger than it.
>>> digitize([0.5, 2.5], [0.0, 1.0, 2.0])
array([1, 3])
"""


def check_out(name: str, args: Any, options: Any, mapped: bool = False) -> None:
    """Refuse to write into a tracked value, or anything for all examples at once."""
    first = _OUT.get(name, getattr(numpy_namespace.module, name, None))
    place = first if type(first) is int else getattr(first, "nin", len(args))
    out = options.get("out")
    for x in (*args[place:], *(out if type(out) is tuple else (out,))):
        if isinstance(x, Value) or (mapped and x is not None):
            raise MutationError(
                f"{name}: out= cannot be a tracked value, which never changes, nor "
                "hold the results of all examples of a vmap. Use the function's result."
            )


# Behind how many arguments these, which are no universal functions, take an array to
# write to.
_OUT = dict.fromkeys(("isneginf", "isposinf"), 1) | dict.fromkeys(
    ("all", "any", "argmax", "argmin", "nanargmax", "nanargmin"), 2
)


def _plain(name: str) -> Function:
    """The array library's function of a name, on the plain values of its arguments."""

    def function(*args: Any, **options: Any) -> Any:
        check_out(name, args, options)
        args = tree_map(base, args)
        return getattr(array_namespace(*args), name)(*args, **tree_map(base, options))

    more = ", on plain values; its derivative is zero"
    return told(_MEANINGS, function, name, more)


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

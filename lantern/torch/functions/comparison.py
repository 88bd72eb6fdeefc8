"""Functions of each element that compare, ask or round: derivative zero."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, zeros_like
from lantern.errors import ArgumentError, EagerError
from lantern.op import elementwise
from lantern.torch.tables import documented
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.error_messages import again, check_together, refuse_type
from lantern.torch.tensor.operators import as_tensor, promote, refuse_numbers, unary
from lantern.torch.tensor.tensor import Tensor, fresh


def _signs(array: Any) -> Any:
    """1, 0 or -1; 0 for nan, as PyTorch has it."""
    z = np.sign(array)
    if z.dtype.kind not in dtypes.FLOATING:
        return z
    return np.where(array == array, z, z.dtype.type(0))


# Zero derivative: what rounds is tracked in PyTorch, with a gradient of zeros.
_ROUNDING = {
    "ceil": (
        np.ceil,
        """The least integer that is not below; derivative zero.

        >>> x = torch.tensor([-1.5, 1.2])
        >>> torch.ceil(x)
        tensor([-1.,  2.])
        """,
    ),
    "floor": (
        np.floor,
        """The greatest integer that is not above; derivative zero.

        >>> x = torch.tensor([-1.5, 1.2])
        >>> torch.floor(x)
        tensor([-2.,  1.])
        """,
    ),
    "sign": (
        _signs,
        """-1 for negative elements, 1 for positive ones, 0 for 0; derivative zero.

        >>> x = torch.tensor([-3, 0, 5])
        >>> torch.sign(x)
        tensor([-1,  0,  1])
        """,
    ),
    "trunc": (
        np.trunc,
        """The integer part, without what follows the decimal point; derivative zero.

        >>> x = torch.tensor([-1.5, 1.5])
        >>> torch.trunc(x)
        tensor([-1.,  1.])
        """,
    ),
    "fix": (
        np.trunc,
        """The integer part, without what follows the decimal point; derivative zero.

        >>> x = torch.tensor([-1.5, 1.5])
        >>> torch.fix(x)
        tensor([-1.,  1.])
        """,
    ),
}
_ASKING = {
    "bitwise_not": (
        np.invert,
        """The bits turned over, ``-input - 1``; of booleans, the opposite.

        >>> x = torch.tensor([0, 5])
        >>> torch.bitwise_not(x)
        tensor([-1, -6])
        """,
    ),
    "isfinite": (
        np.isfinite,
        """Where the elements are numbers, neither infinite nor nan.

        >>> torch.isfinite(torch.tensor([1.0, torch.inf, torch.nan]))
        tensor([ True, False, False])
        """,
    ),
    "isinf": (
        np.isinf,
        """Where the elements are infinite.

        >>> torch.isinf(torch.tensor([1.0, torch.inf, torch.nan]))
        tensor([False,  True, False])
        """,
    ),
    "isnan": (
        np.isnan,
        """Where the elements are nan.

        >>> torch.isnan(torch.tensor([1.0, torch.inf, torch.nan]))
        tensor([False, False,  True])
        """,
    ),
    "isneginf": (
        np.isneginf,
        """Where the elements are minus infinity.

        >>> torch.isneginf(torch.tensor([-torch.inf, torch.inf]))
        tensor([ True, False])
        """,
    ),
    "isposinf": (
        np.isposinf,
        """Where the elements are plus infinity.

        >>> torch.isposinf(torch.tensor([-torch.inf, torch.inf]))
        tensor([False,  True])
        """,
    ),
    "isreal": (
        np.isreal,
        """Where the elements are real: all but complex ones with an imaginary part.

        >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
        tensor([ True, False])
        """,
    ),
    "logical_not": (
        np.logical_not,
        """Where the elements are 0, or False.

        >>> torch.logical_not(torch.tensor([0, 1, 2]))
        tensor([ True, False, False])
        """,
    ),
    "signbit": (
        np.signbit,
        """Where the elements have a minus sign, -0.0 among them.

        >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
        tensor([ True,  True, False])
        """,
    ),
}


@elementwise
def _independent(x: Any, /, value: Any) -> Rule:
    """A value that stands for a function of x whose derivative is 0.

    Shapes:
        x: (...); value: (...); result: (...)

    Rule:
        x_bar = 0
    """
    shape = x.shape
    del x
    if value.shape != shape:  # inside ``vmap``, one of them is that of all examples
        whole = np.broadcast_shapes(value.shape, shape)
        value = namespace(value).broadcast_to(value, whole)
    z_bar = yield value
    yield zeros_like(z_bar)


_tracked = unary(_independent)


def tracked_like(z: Tensor, *operands: Any) -> Tensor:
    """A plain result as a tracked one with derivative 0, if an operand is tracked.

    To add 0 times the operand would make nothing of infinities.
    """
    value = base(z)
    for x in operands:
        if isinstance(x, Tensor) and x.requires_grad:
            part = _tracked(x.expand(base(z).shape), value=value)
            z = z + part if z.requires_grad else part
            value = np.zeros_like(value)
    return z


def _rounding(function: Any) -> Any:
    def operate(input: Any) -> Any:
        array = base(input)
        if array.dtype.kind in "iub":
            signs = function is _signs and array.dtype.kind != "b"
            return fresh(function(array) if signs else array.copy())
        if array.dtype.kind == "c" and function is not _signs:
            raise EagerError(f"{operate.__name__} is not supported for complex inputs")
        return tracked_like(fresh(function(array)), input)

    return operate


def _asking(function: Any) -> Any:
    def operate(input: Tensor) -> Tensor:
        return fresh(function(base(input)))

    return operate


functions = {
    **{name: documented(_rounding(f), text) for name, (f, text) in _ROUNDING.items()},
    **{name: documented(_asking(f), text) for name, (f, text) in _ASKING.items()},
}


_KNOWN = {np.ndarray, bool, int, float, complex}


def _comparing(name: str, function: Any, numbers: str = "") -> Any:
    """A comparison, or another function with a plain result."""
    ordered = name in ("ge", "gt", "le", "lt")

    def operate(input: Any, other: Any) -> Any:
        a, b = base(input), base(other)
        if type(b) not in _KNOWN and as_tensor(other) is None:
            return NotImplemented
        refuse_numbers(name, input, other, numbers)
        if ordered and a.dtype.kind == "c":
            raise refuse_type(name, input)
        try:
            if getattr(a, "dtype", None) is getattr(b, "dtype", None):
                return fresh(function(a, b))
            if isinstance(input, Tensor) and isinstance(other, Tensor):
                a, b = map(base, promote(input, other))
            return fresh(function(a, _beside(a, b)))
        except (ValueError, TypeError, OverflowError) as error:
            return again(operate, function, error, input, other)

    return operate


def _beside(a: Any, b: Any) -> Any:
    """A number next to an array: Python's stay as they are."""
    if isinstance(b, float) and getattr(a, "dtype", None) in (dtypes.F32,):
        return a.dtype.type(b)
    return b


COMPARISONS = {
    "eq": (
        np.equal,
        """Where the elements are equal.

        >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
        tensor([ True, False])
        """,
    ),
    "ge": (
        np.greater_equal,
        """Where the elements of the first are greater or equal.

        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
        """,
    ),
    "gt": (
        np.greater,
        """Where the elements of the first are greater.

        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
        """,
    ),
    "le": (
        np.less_equal,
        """Where the elements of the first are less or equal.

        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
        """,
    ),
    "lt": (
        np.less,
        """Where the elements of the first are less.

        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
        """,
    ),
    "ne": (
        np.not_equal,
        """Where the elements differ.

        >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
        tensor([False,  True])
        """,
    ),
}
_LOGICAL = {
    "bitwise_and": (
        np.bitwise_and,
        """The bits that both have; of booleans, whether both hold.

        >>> x = torch.tensor([3, 6])
        >>> torch.bitwise_and(x, torch.tensor([1, 12]))
        tensor([1, 4])
        """,
    ),
    "bitwise_left_shift": (
        np.left_shift,
        """The bits of each integer, moved to the left: times ``2**other``.

        >>> x = torch.tensor([1, 3])
        >>> torch.bitwise_left_shift(x, torch.tensor([4, 1]))
        tensor([16,  6])
        """,
    ),
    "bitwise_or": (
        np.bitwise_or,
        """The bits that one or both have; of booleans, whether one holds.

        >>> x = torch.tensor([3, 6])
        >>> torch.bitwise_or(x, torch.tensor([1, 12]))
        tensor([ 3, 14])
        """,
    ),
    "bitwise_right_shift": (
        np.right_shift,
        """The bits of each integer, moved to the right: ``// 2**other``.

        >>> x = torch.tensor([16, 7])
        >>> torch.bitwise_right_shift(x, torch.tensor([4, 1]))
        tensor([1, 3])
        """,
    ),
    "bitwise_xor": (
        np.bitwise_xor,
        """The bits that one of both has; of booleans, whether they differ.

        >>> x = torch.tensor([3, 6])
        >>> torch.bitwise_xor(x, torch.tensor([1, 12]))
        tensor([ 2, 10])
        """,
    ),
    "gcd": (
        np.gcd,
        """The greatest common divisors of integers.

        >>> x = torch.tensor([12, 7])
        >>> torch.gcd(x, torch.tensor([18, 3]))
        tensor([6, 1])
        """,
    ),
    "lcm": (
        np.lcm,
        """The least common multiples of integers.

        >>> x = torch.tensor([4, 3])
        >>> torch.lcm(x, torch.tensor([6, 5]))
        tensor([12, 15])
        """,
    ),
    "logical_and": (
        np.logical_and,
        """Where both hold; what is not 0 holds.

        >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([False, False,  True])
        """,
    ),
    "logical_or": (
        np.logical_or,
        """Where one holds, or both; what is not 0 holds.

        >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([1, 0, 0]))
        tensor([ True,  True, False])
        """,
    ),
    "logical_xor": (
        np.logical_xor,
        """Where one holds, but not both; what is not 0 holds.

        >>> torch.logical_xor(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([ True,  True, False])
        """,
    ),
}
functions |= {
    name: documented(_comparing(name, f, "second"), text)
    for name, (f, text) in COMPARISONS.items()
}
functions |= {
    name: documented(_comparing(name, f, "either" if "bitwise" in name else ""), text)
    for name, (f, text) in _LOGICAL.items()
}
functions |= {
    "greater": functions["gt"],
    "greater_equal": functions["ge"],
    "less": functions["lt"],
    "less_equal": functions["le"],
    "not_equal": functions["ne"],
}


def isclose(
    input: Any,
    other: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Any:
    """Where the elements are close: ``|input - other| <= atol + rtol * |other|``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.000001, 2.1]))
        tensor([ True, False])
    """
    refuse_numbers("isclose", input, other)
    rtol, atol = (_bound(name, x) for name, x in (("rtol", rtol), ("atol", atol)))
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise EagerError(
                f"{name} must be greater than or equal to zero, but got {bound}"
            )
    a, b = base(input), base(other)
    if a.dtype != b.dtype:
        raise EagerError(f"{input.dtype} did not match {other.dtype}")
    if type(a) is not type(b):
        check_together(input, other)  # a GPU's library would move one of them
    return fresh(as_array(np.isclose(a, b, rtol, atol, equal_nan)))


def _bound(name: str, x: Any) -> Any:
    """A tolerance as a number."""
    if isinstance(x, Tensor) and x.requires_grad:
        raise ArgumentError(f"isclose(): argument '{name}' must be a number")
    return x.item() if isinstance(x, Tensor) else x


def allclose(
    input: Any,
    other: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close: ``|input - other| <= atol + rtol * |other|``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
        True
    """
    return bool(fresh(base(isclose(input, other, rtol, atol, equal_nan)).all()))


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have one shape and the same elements.

    Example:
        >>> import lantern.torch as torch
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
    """
    a, b = base(input), base(other)
    return a.shape == b.shape and bool(fresh((a == b).all()))


functions |= {"allclose": allclose, "equal": equal, "isclose": isclose}

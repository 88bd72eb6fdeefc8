"""Error messages about the operands of an operation, in PyTorch's words."""

import warnings
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from lantern.core.value import base
from lantern.errors import (
    ArgumentError,
    EagerError,
    MissingRuleError,
    PositionError,
)
from lantern.tensor.ops import products
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "again",
    "around",
    "check_together",
    "mismatch",
    "misuse",
    "refuse_numbers",
    "refuse_type",
    "refuse_zero",
    "together",
]


def mismatch(function: Any, x: Any, y: Any, error: Exception) -> EagerError:
    """The error of shapes that do not fit together, in PyTorch's words."""
    a, b = list(np.shape(base(x))), list(np.shape(base(y)))
    if function is products.matmul:
        if len(a) == len(b) == 1:
            return EagerError(
                f"inconsistent tensor size, expected tensor {a} and src {b} to have "
                f"the same number of elements, but got {a[0]} and {b[0]} elements "
                f"respectively"
            )
        if len(a) == 2 and len(b) == 1:
            return EagerError(
                f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})"
            )
        if len(a) == len(b) == 3 and a[0] == b[0]:
            return EagerError(
                f"Expected size for first two dimensions of batch2 tensor to be: "
                f"{[a[0], a[2]]} but got: {b[:2]}."
            )
        return EagerError(
            f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a))} and "
            f"{'x'.join(map(str, b))})"
        )
    for i in range(-1, -1 - min(len(a), len(b)), -1):
        if a[i] != b[i] and 1 not in (a[i], b[i]):
            return EagerError(
                f"The size of tensor a ({a[i]}) must match the size of tensor b "
                f"({b[i]}) at non-singleton dimension {max(len(a), len(b)) + i}"
            )
    return EagerError(str(error))


def refuse_type(name: str, x: Tensor) -> MissingRuleError:
    """The error of a function that is not meant for elements of a type."""
    return MissingRuleError(
        f"\"{name}\" not implemented for '{dtypes.type_name(base(x).dtype)}'"
    )


def of_old(signature: str) -> None:
    """Say that the arguments are in an order that they had once."""
    warnings.warn(
        f"This overload of {signature.partition('(')[0]} is deprecated:\n\t{signature}"
        "\nGive the number by its name.",
        stacklevel=4,
    )


def refuse_zero(x: Any, y: Any) -> None:
    """Raise if whole numbers are divided by 0."""
    kinds = [getattr(v, "dtype", np.dtype(type(v))).kind for v in (x, y)]
    empty = not getattr(x, "size", 1)
    if all(kind in "iub" for kind in kinds) and not (
        empty or np.all(of_all_examples(y))
    ):
        raise EagerError("ZeroDivisionError")


def together(error: Exception, *operands: Any) -> list[Any]:
    """The operands of what failed, on one device: those without axes follow others.

    Raises:
        RuntimeError: if others lie on several devices, in PyTorch's words; else the
            error itself.
    """
    tensors = [x for x in operands if isinstance(x, Tensor)]
    places = {str(x.device) for x in tensors}
    whole = {str(x.device) for x in tensors if x.ndim} or places - {"cpu"}
    if len(places) < 2:
        raise error
    if len(whole) > 1 or "cpu" in whole:
        both = " and ".join(sorted(places, reverse=True)[:2])
        raise EagerError(
            f"Expected all tensors to be on the same device, but found at least two "
            f"devices, {both}!"
        ) from None
    place = whole.pop()
    return [x.to(place) if isinstance(x, Tensor) else x for x in operands]


def again(operate: Any, function: Any, error: Exception, *operands: Any) -> Any:
    """An operation that failed, where all its operands lie on one device.

    Args:
        operate: what is called again.
        function: the operation of Lantern's that it is of, for its words.
        error: what it failed with.
        operands: what it was given.
    """
    if isinstance(error, OverflowError):  # a number that the type does not have
        return operate(*(around(x, operands) for x in operands))
    if "not supported for the input types" in str(error):
        first = next(x for x in operands if isinstance(x, Tensor))
        raise refuse_type(function.__name__, first) from None
    if "negative integer powers" in str(error) and isinstance(operands[-1], Tensor):
        return operate(*_of_whole_powers(*operands))
    if isinstance(error, ValueError):
        x, y = operands[-2:]
        raise mismatch(function, x, y, error) from None
    return operate(*together(error, *operands))


def around(x: Any, operands: Any) -> Any:
    """A whole number as one of the tensors' type, counted around its ends."""
    kind = next(base(t).dtype for t in operands if isinstance(t, Tensor))
    if isinstance(x, Tensor) or kind.kind not in "iu":
        return x
    return fresh(np.array(x & (1 << 64) - 1, np.uint64).astype(kind))


def _of_whole_powers(x: Any, y: Tensor) -> Any:
    """Whole numbers and exponents with the powers that PyTorch cuts off to integers.

    To a negative exponent only 1 and -1 are not 0.
    """
    a, b = np.broadcast_arrays(base(x), base(y))
    kind = np.result_type(a.dtype if isinstance(x, Tensor) else b.dtype, b.dtype)
    unit = (a == 1) | (a == -1)
    a = np.where((b >= 0) | unit, a, 0).astype(kind)
    b = np.where(b >= 0, b, np.where(unit, b % 2, 1)).astype(kind)
    return fresh(a), fresh(b)


def check_together(*tensors: Any) -> None:
    """Raise, in PyTorch's words, if tensors lie on several devices."""
    if len({str(x.device) for x in tensors}) > 1:
        together(EagerError(), *tensors)


_NUMBERS = (bool, int, float, complex)


def refuse_numbers(name: str, x: Any, y: Any, allowed: str = "") -> None:
    """Raise where PyTorch takes a tensor only.

    Args:
        name: the function that was called.
        x: its first operand.
        y: its second one.
        allowed: what may be a number: "" for neither, "second", or "either", not both.
    """
    first, second = isinstance(x, _NUMBERS), isinstance(y, _NUMBERS)
    if (first and (second or allowed != "either")) or (second and not allowed):
        place, wrong = ("input", x) if first else ("other", y)
        raise ArgumentError(
            f"{name}(): argument '{place}' must be Tensor, not {type(wrong).__name__}"
        )


def misuse(name: str, input: Any, error: Exception) -> Exception:
    """The error of an argument that is no tensor, or of an axis that it lacks."""
    if isinstance(error, AxisError):
        n = max(base(input).ndim, 1)
        return PositionError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
            f"got {error.axis})"
        )
    if isinstance(input, Tensor):
        return error
    kind = type(input)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return ArgumentError(
        f"{name}(): argument 'input' (position 1) must be Tensor, not "
        f"{module}{kind.__qualname__}"
    )


def several_axes(index: Any) -> tuple[Any, ...]:
    """An index that is no tuple as one; a list of parts, with a word about it."""
    kinds = (slice, Tensor, list, tuple)
    if not isinstance(index, list) or not any(
        p is None or p is ... or isinstance(p, kinds) for p in index
    ):
        return (index,)
    warnings.warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated and "
        "will be changed; use x[tuple(seq)] or x[torch.tensor(seq)] for it.",
        stacklevel=4,
    )
    return tuple(index)

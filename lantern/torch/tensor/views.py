"""Results that show the memory of an operand, and results that must not."""

import math
from collections.abc import Callable
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, Value, base
from lantern.op import linear
from lantern.tensor.ops.indexing import scatter
from lantern.torch.tensor.batches import first_example
from lantern.torch.tensor.operators import as_view, in_memory, unary
from lantern.torch.tensor.tensor import NOBODY, Tensor

__all__ = [
    "alone",
    "in_place_of",
    "is_shared",
    "repeated",
    "shown",
    "strided",
    "view_if_shared",
]


@linear
def _shown(x: Any, /, show: Callable[[Any], Any]) -> Rule:
    """Elements of an array, chosen and arranged by a function that sees any array.

    Shapes:
        x: (...); result: as the function has it

    Rule:
        x_bar is zeros, with z_bar added where its elements are shown
    """
    shape = x.shape
    z = _shown(x, show=show) if isinstance(x, Value) else show(x)
    z_bar = yield (z, x := None, z := None)[0]
    size = math.prod(shape)
    places = show(namespace(base(z_bar)).arange(size).reshape(shape))
    yield scatter(z_bar, places, (size,)).reshape(shape)


@linear
def _expanded(x: Any, /, shape: Any) -> Rule:
    """x repeated along axes, as a view also where a copy would take less time.

    Shapes:
        x: (...); result: shape

    Rule:
        x_bar = z_bar, summed over what was repeated
    """
    if isinstance(x, Value):
        z = _expanded(x, shape=shape)
    else:
        z = namespace(x).module.broadcast_to(x, shape)
    z_bar = yield (z, x := None, z := None)[0]
    yield z_bar


_show, repeated = unary(_shown), unary(_expanded)


def shown(input: Tensor, show: Callable[[Any], Any]) -> Any:
    """A view: what a function of arrays shows of a tensor's memory."""
    in_memory(input)
    return as_view(_show(input, show=show), input)


def strided(array: Any, shape: Any, strides: Any) -> Any:
    """A part of an array's memory, at steps that are counted in bytes."""
    return namespace(array).lib.stride_tricks.as_strided(array, shape, strides)


def view_if_shared(z: Any, input: Tensor) -> Any:
    """A result, marked as a view if that is what it is."""
    if not is_shared(z, input):
        return z
    if z.receiver is input.receiver is not NOBODY:
        return shown(input, _all)  # it had nothing to do
    flags = getattr(z.primal, "flags", None)
    if not getattr(flags, "writeable", True):  # as NumPy has a diagonal
        z.primal.flags.writeable = base(input).flags.writeable
    return as_view(z, input)


def _all(a: Any) -> Any:
    return a[...]


def in_place_of(z: Any, array: Any, input: Tensor) -> Any:
    """A result whose elements are found in its operand's memory, as another type."""
    z.primal = array
    return as_view(z, input)


def alone(z: Any, input: Tensor) -> Any:
    """A result in memory of its own."""
    return z.clone() if is_shared(z, input) else z


def is_shared(z: Any, input: Tensor) -> bool:
    """Whether a result shows memory that its operand shows."""
    a, b = first_example(base(z)), first_example(base(input))
    return type(a) is type(b) and bool(namespace(a).may_share_memory(a, b))

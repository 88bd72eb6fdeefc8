"""Anomalies of one operation: a nan, an infinity, a type or a shape."""

from typing import Any, NamedTuple

from lantern.core.contribution import Contribution, Masked
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves
from lantern.core.unwrap import plain
from lantern.core.value import Receiver, base
from lantern.debugging.source_line import Line

__all__ = [
    "Finding",
    "new_dtype",
    "new_infinity",
    "new_shape",
    "unusual",
    "wrong_dtype",
    "wrong_shape",
]


class Finding(NamedTuple):
    """Something that looks wrong, and where it first appeared.

    Attributes:
        kind: "nan", "inf", "dtype" or "shape".
        phase: "forward" or "backward".
        operation: the operation's name.
        line: where the user called it.
        detail: what it was like.
    """

    kind: str
    phase: str
    operation: str
    line: Line
    detail: str

    def __str__(self) -> str:
        step = f"the {self.phase} step of {self.operation}"
        return f"debug: {step} {self.detail}, at {self.line}"


def unusual(x: Any, mask: Any = None) -> tuple[bool, bool]:
    """Whether there are nans, and whether there are infinities.

    Args:
        x: an array, a number, a contribution in any form, or a structure of them.
        mask: outside of it an array does not count.
    """
    if isinstance(x, Masked):
        x = x.dense(())
    elif isinstance(x, Contribution):
        x = x.z_bar
    if isinstance(x, list | tuple | dict):
        found = [unusual(leaf) for leaf in tree_leaves(x)]
        return any(nan for nan, _ in found), any(inf for _, inf in found)
    x, mask = plain(x), plain(mask)
    if type(x) is float:
        return x != x, abs(x) == float("inf")
    if getattr(getattr(x, "dtype", None), "kind", "") not in ("f", "c"):
        return False, False
    if mask is not None and mask.shape == x.shape:
        x = x[mask]
    xp = namespace(x)
    return bool(xp.any(xp.isnan(x))), bool(xp.any(xp.isinf(x)))


def new_infinity(found: tuple[bool, bool], *earlier: tuple[bool, bool]) -> str | None:
    """What is here and was not in what this came from: "nan", "inf" or None."""
    nan, inf = found
    if nan and not any(was_nan for was_nan, _ in earlier):
        return "nan"
    return "inf" if inf and not any(map(any, earlier)) else None


def new_dtype(receiver: Any, operands: tuple[Receiver | None, ...]) -> str | None:
    """How a result's type differs from that of every array it is differentiated in."""
    found = _floating(receiver)
    before = {_floating(x) for x in operands} - {None}
    if found is None or not before or found in before:
        return None
    return f"made {found} of {' and '.join(sorted(filter(None, before)))}"


def wrong_dtype(x_bar: Any, z_bar: Any, receiver: Receiver | None) -> str | None:
    """How a contribution's type differs from that of the array that receives it.

    Only if it is not the type of the cotangent that it was made of.
    """
    found, wanted = _floating(base(x_bar)), _floating(receiver)
    if found is None or wanted is None or found == wanted:
        return None
    return None if found == _floating(base(z_bar)) else f"gave {found} to {wanted}"


def wrong_shape(
    x_bar: Any, z_bar: Any, receiver: Receiver | None, kind: str
) -> str | None:
    """How a contribution, in no form of its own, only broadcasts to its operand.

    One of an elementwise or linear rule may have the result's shape.
    """
    if x_bar is None or receiver is None or isinstance(x_bar, Contribution):
        return None
    found, wanted, result = map(_shape, (x_bar, receiver, z_bar))
    if found == wanted or (kind in _BROADCASTING and found == result):
        return None
    return f"gave shape {found} to {wanted}"


_BROADCASTING = ("elementwise", "partials", "linear")


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def _floating(x: Any) -> str | None:
    """The type of an array's numbers, or of their real and imaginary parts."""
    dtype = getattr(x, "dtype", None)
    parts = {"f": 1, "c": 2}.get(getattr(dtype, "kind", ""))
    return f"float{dtype.itemsize * 8 // parts}" if dtype and parts else None


def new_shape(value: Any, operands: Any) -> str | None:
    """How broadcasting has made an array larger than both of two operands."""
    shapes = [shape for shape in map(_shape, map(base, operands)) if shape]
    result = _shape(base(value))
    if len(shapes) < 2 or result in shapes:
        return None
    return f"made shape {result} of {' and '.join(map(str, shapes))}"

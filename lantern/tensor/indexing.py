"""Reading parts of an array; the derivative of a read is a scatter, collected."""

from typing import Any

from lantern.contribution import Contribution
from lantern.namespace import namespace
from lantern.op import linear
from lantern.tree import tree_map
from lantern.value import Rule, base

__all__ = ["getitem", "scatter"]


class Scatter(Contribution):
    """The cotangent of a read: added where it was read from, nothing elsewhere."""

    __slots__ = ("index",)

    def __init__(self, index: Any, z_bar: Any) -> None:
        self.index, self.z_bar = index, z_bar

    def dense(self, shape: tuple[int, ...]) -> Any:
        """An array of zeros with the cotangent added where it was read from."""
        return scatter(self.z_bar, self.index, shape)

    def add_to(self, buffer: Any) -> None:
        """Add the cotangent in place, once for each time that it was read."""
        if is_basic(self.index):
            buffer[self.index] += self.z_bar
        else:
            namespace(buffer).add.at(buffer, self.index, self.z_bar)


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis alone.

    Such an index reads no element twice.
    """
    parts = index if type(index) is tuple else (index,)
    return all(
        part is None or part is ... or type(part) in (int, slice) for part in parts
    )


def getitem(x: Any, index: Any) -> Any:
    """The part ``x[index]`` of an array; tracked numbers in an index are read off.

    Shapes:
        x: (...); result: as NumPy's

    Example:
        >>> import numpy as np
        >>> getitem(np.array([1.0, 2.0, 3.0]), slice(1, None))
        array([2., 3.])
    """
    return _getitem(x, tree_map(base, index) if type(index) is tuple else base(index))


@linear
def _getitem(x: Any, /, index: Any) -> Rule:
    """The part ``x[index]`` of an array.

    Shapes:
        x: (...); result: as NumPy's

    Rule:
        x_bar[index] += z_bar, once for each time that an element is read
    """
    z_bar = yield (x[index], x := None)[0]
    yield Scatter(index, z_bar)


@linear
def scatter(x: Any, /, index: Any, shape: tuple[int, ...]) -> Rule:
    """An array of zeros with x added at an index, once for each time it is named.

    Shapes:
        x: as ``zeros(shape)[index]``; result: shape

    Rule:
        x_bar = z_bar[index]

    Example:
        >>> import numpy as np
        >>> scatter(np.array([1.0, 2.0]), np.array([0, 0]), (3,))
        array([3., 0., 0.])
    """
    plain = base(x)
    z = namespace(plain).zeros(shape, dtype=plain.dtype)
    if plain is x:
        Scatter(index, x).add_to(z)
    else:
        z = scatter(x, index, shape)
    z_bar = yield z
    yield z_bar[index]

"""Values that are None on some way of the program, numbers or rows of them on others.

Such a value knows whether it is None. Whatever else is asked of it is asked of the
number; the program is left if there is none.
"""

import operator
from typing import Any

from lantern.core.tree import register_tree, tree_children
from lantern.errors import StagingError
from lantern.staging.control import IF, StoppedError, filler, joinable
from lantern.staging.staged import Staged, is_staged, node_of, staged
from lantern.staging.structure import containers_of, leaves_of, unflatten
from lantern.staging.trees import StagedTree

__all__ = ["Optional", "aligned", "definite", "settled", "widened"]


class Optional:
    """None or something else, which it is known when the program runs.

    Attributes:
        is_none: whether it is None.
        value: a number or a tuple of numbers; any such if it is None.
    """

    __slots__ = ("is_none", "value")
    __array_ufunc__ = None

    def __init__(self, is_none: Any, value: Any) -> None:
        self.is_none, self.value = is_none, value

    def definite(self) -> Any:
        """The value; the program is left if it is None."""
        IF(self.is_none, _stop, int)
        return self.value

    def _refuse(self, *others: Any) -> Any:
        raise StagingError(
            "a value that is None on one way and a number on another. Ask for None, "
            "and give the number another name."
        )

    __bool__ = __hash__ = __str__ = __repr__ = __format__ = _refuse
    __index__ = __int__ = __float__ = __len__ = _refuse


def _stop() -> int:
    raise StoppedError


def _install() -> None:
    """Give such values the operators of what they are if they are not None."""

    def forward(f: Any) -> Any:
        return lambda x, *others: f(x.definite(), *others)

    def reflected(f: Any) -> Any:
        return lambda x, y: f(y, x.definite())

    arithmetic = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift"
    for name in arithmetic.split():
        f = getattr(operator, name)
        setattr(Optional, f"__{name.strip('_')}__", forward(f))
        setattr(Optional, f"__r{name.strip('_')}__", reflected(f))
    Optional.__iter__ = forward(iter)  # type: ignore[attr-defined]  # as all these
    for name in "lt le gt ge eq ne neg pos abs invert getitem".split():
        setattr(Optional, f"__{name}__", forward(getattr(operator, name)))


_install()
register_tree(
    Optional,
    lambda x: (("is_none", x.is_none), ("value", x.value)),
    lambda x, parts: Optional(*parts),
)


def aligned(x: Any, y: Any) -> tuple[Any, Any]:
    """Two values in one structure, if one is None where the other has numbers."""
    if type(x) is Staged is type(y) or joinable(x, y):
        return x, y
    if type(x) is tuple is type(y) and len(x) == len(y):
        pairs = [aligned(*pair) for pair in zip(x, y, strict=True)]
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    new = widened(x, y), widened(y, x)
    return new if joinable(*new) else (x, y)


def widened(x: Any, other: Any) -> Any:
    """A value in the structure of what is the other one somewhere else."""
    like = other.value if type(other) is Optional else other
    if x is None and _has_numbers(like):
        blank = [staged(filler(node_of(leaf).type)) for leaf in leaves_of(like)]
        return Optional(True, unflatten(like, blank))
    if (other is None or type(other) is Optional) and _has_numbers(x):
        return Optional(False, x)
    return x


def _has_numbers(x: Any) -> bool:
    """Whether a value is a number, or tuples of numbers."""
    if not all(isinstance(y, tuple) for y in containers_of(x)):
        return False
    return all(map(_is_number, leaves_of(x)))


def _is_number(x: Any) -> bool:
    if isinstance(x, StagedTree):
        return False
    return x.node.type.is_number if is_staged(x) else type(x) in (float, int, bool)


def definite(x: Any) -> Any:
    """A value as it is; of one that may be None, what else it is."""
    return x.definite() if type(x) is Optional else x


def settled(x: Any) -> Any:
    """A result in which nothing may be None; the program is left where it is."""
    kind = type(x)
    if kind is Optional:
        return x.definite()
    if kind is Staged or not any(type(y) is Optional for y in containers_of(x)):
        return x
    if kind is tuple:
        return tuple(map(settled, x))
    if kind is not list and kind is not dict:
        raise StagingError(f"return: a {kind.__name__} of None and numbers.")
    for key, part in tree_children(x) or ():
        x[key] = settled(part)
    return x

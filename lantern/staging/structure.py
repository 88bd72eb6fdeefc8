"""Structures of staged values: taken apart into leaves, and put together again."""

from types import BuiltinMethodType, MethodType, MethodWrapperType
from typing import Any

from lantern.core.tree import is_leaf, tree_leaves, tree_map, tree_structure
from lantern.errors import StagingError

__all__ = ["UNDEFINED", "describe", "leaves_of", "same", "unflatten"]


class Undefined:
    """What a variable holds before anything is assigned to it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        raise StagingError(
            "if: a variable is used that is not assigned to on every way. Assign it "
            "first."
        )


UNDEFINED = Undefined()
_PLAIN = (bool, int, float, complex, str, bytes)
_BOUND = MethodType, BuiltinMethodType, MethodWrapperType  # made anew at each access


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of any structure of Python's containers."""
    return list(tree_leaves(tree))


def describe(tree: Any) -> str:
    """The containers of a structure, with their classes and keys, as a text."""
    if tree is None:
        return "None"
    if is_leaf(tree):
        return "."
    kind = type(tree)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(tree, dict):
        inside = [f"{key!r}: {describe(x)}" for key, x in tree.items()]
    elif isinstance(tree, list | tuple):
        inside = [describe(x) for x in tree]
    else:
        return f"{name}{tree_structure(tree_map(lambda leaf: 0, tree))!r}"
    return f"{name}({', '.join(inside)})"


def unflatten(like: Any, leaves: list[Any]) -> Any:
    """A structure like another one, with other leaves."""
    rest = iter(leaves)
    return tree_map(lambda leaf: next(rest), like)


def same(x: Any, y: Any) -> bool:
    """Whether two leaves are one and the same: a number to the sign of its zero."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, _PLAIN):
        return repr(x) == repr(y)
    return isinstance(x, _BOUND) and bool(x == y)

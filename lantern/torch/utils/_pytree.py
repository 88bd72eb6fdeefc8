"""Nested lists, tuples and dictionaries: taken apart, put together, mapped."""

from collections.abc import Callable
from typing import Any

from lantern.core.tree import tree_leaves as tree_leaves
from lantern.core.tree import tree_map as _tree_map

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """The same structure, with a function of each leaf.

    Example:
        >>> tree_map(abs, {"a": [-1, 2]})
        {'a': [1, 2]}
    """
    return _tree_map(func, tree, *rests)


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and what ``tree_unflatten`` needs to put them back.

    Example:
        >>> leaves, spec = tree_flatten((1, [2]))
        >>> tree_unflatten([x + 1 for x in leaves], spec)
        (2, [3])
    """
    return list(tree_leaves(tree)), tree


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The structure that leaves came from.

    Example:
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
        >>> tree_unflatten([10 * leaf for leaf in leaves], spec)
        {'a': 10, 'b': (20, 30)}
    """
    row = iter(leaves)
    return _tree_map(lambda _: next(row), treespec)

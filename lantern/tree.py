"""Structures of values: tuples, lists, dicts, dataclasses and None, nested.

The only file that knows what a structure is. Everything else is a leaf.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from lantern.errors import ShapeError

__all__ = ["register_tree", "tree_leaves", "tree_map", "tree_paths", "tree_structure"]


class Container(NamedTuple):
    """How one class of containers is taken apart and put together.

    Attributes:
        children: gives the (key, child) pairs of a container.
        rebuild: makes a container like the given one around other children.
    """

    children: Callable[[Any], Iterable[tuple[Any, Any]]]
    rebuild: Callable[[Any, list[Any]], Any]


def _rebuild_dict(tree: Any, children: list[Any]) -> Any:
    rebuilt = tree.copy()  # keeps what a subclass carries, as a default factory
    rebuilt.update(zip(tree, children, strict=True))
    return rebuilt


def _field_names(tree: Any) -> list[str]:
    return [f.name for f in fields(tree) if f.init]


_NONE = Container(lambda tree: (), lambda tree, children: None)
_DICT = Container(dict.items, _rebuild_dict)
_SEQUENCE = Container(enumerate, lambda tree, children: type(tree)(children))
_NAMED_TUPLE = Container(enumerate, lambda tree, children: type(tree)(*children))
_DATACLASS = Container(
    lambda tree: [(name, getattr(tree, name)) for name in _field_names(tree)],
    lambda tree, children: replace(
        tree, **dict(zip(_field_names(tree), children, strict=True))
    ),
)
_containers: dict[type, Container | None] = {type(None): _NONE}


def register_tree(
    cls: type,
    children: Callable[[Any], Iterable[tuple[Any, Any]]],
    rebuild: Callable[[Any, list[Any]], Any],
) -> None:
    """Treat the objects of a class as containers.

    Args:
        cls: the class itself; its subclasses are not included.
        children: gives the (key, child) pairs of a container.
        rebuild: makes a container like the given one around other children.

    Example:
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> register_tree(
        ...     Pair,
        ...     lambda pair: vars(pair).items(),
        ...     lambda pair, children: Pair(*children),
        ... )
        >>> list(tree_leaves([Pair(1, 2), 3]))
        [1, 2, 3]
    """
    _containers[cls] = Container(children, rebuild)


def _container(tree: Any) -> Container | None:
    """How to take a tree apart; None for a leaf. Decided once for each class."""
    cls = type(tree)
    if cls not in _containers:
        found = None
        if issubclass(cls, dict):
            found = _DICT
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            found = _NAMED_TUPLE
        elif issubclass(cls, list | tuple):
            found = _SEQUENCE
        elif is_dataclass(cls):
            found = _DATACLASS
        _containers[cls] = found
    return _containers[cls]


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A structure like ``tree`` whose leaves are ``function`` of the leaves.

    Args:
        function: takes one leaf of each tree.
        tree: the structure to follow.
        others: trees of the same structure.

    Raises:
        ShapeError: if the structures differ.

    Example:
        >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)})
        {'a': 5, 'b': (7, 9)}
    """
    container = _container(tree)
    if container is None:
        return function(tree, *others)
    children = list(container.children(tree))
    parts = [_matching(tree, other, children) for other in others]
    return container.rebuild(
        tree,
        [
            tree_map(function, child, *(part[key] for part in parts))
            for key, child in children
        ],
    )


def _matching(tree: Any, other: Any, children: list[Any]) -> dict[Any, Any]:
    """The children of another tree by key, if they have the same keys."""
    container = _container(other)
    part = dict(container.children(other)) if container else {}
    if container is not _container(tree) or part.keys() != dict(children).keys():
        raise ShapeError(
            f"tree_map: the structures {tree_structure(tree)} and "
            f"{tree_structure(other)} differ. Give trees of one structure."
        )
    return part


def tree_leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a structure, in order.

    Example:
        >>> list(tree_leaves({"a": 1, "b": (2, [3])}))
        [1, 2, 3]
    """
    container = _container(tree)
    if container is None:
        yield tree
    else:
        for _, child in container.children(tree):
            yield from tree_leaves(child)


def tree_paths(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of a structure, each with the keys that lead to it.

    Example:
        >>> list(tree_paths({"a": 1, "b": (2, [3])}))
        [(('a',), 1), (('b', 0), 2), (('b', 1, 0), 3)]
    """
    container = _container(tree)
    if container is None:
        yield (), tree
    else:
        for key, child in container.children(tree):
            yield from (((key, *path), leaf) for path, leaf in tree_paths(child))


def tree_structure(tree: Any) -> Any:
    """The structure with its leaves replaced by the names of their types.

    Example:
        >>> tree_structure({"a": 1.5, "b": (2, None)})
        {'a': 'float', 'b': ('int', None)}
    """
    return tree_map(lambda leaf: type(leaf).__name__, tree)

"""Structures of values: containers, dataclasses, attrs classes and None, nested.

The only file that knows what a structure is. Everything else is a leaf.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import is_
from types import SimpleNamespace
from typing import Any

from lantern.errors import ArgumentError, ShapeError

__all__ = [
    "is_leaf",
    "register_tree",
    "tree_leaves",
    "tree_map",
    "tree_paths",
    "tree_structure",
]


class Container:
    """How one class of containers is taken apart and put together.

    Attributes:
        children: gives the (key, child) pairs of a container.
        rebuild: makes a container like the given one around other children.
    """

    __slots__ = ("children", "rebuild")

    def __init__(
        self,
        children: Callable[[Any], Iterable[tuple[Any, Any]]],
        rebuild: Callable[[Any, list[Any]], Any],
    ) -> None:
        self.children, self.rebuild = children, rebuild


def _rebuild_dict(tree: Any, children: list[Any]) -> Any:
    if type(tree) is dict:
        return dict(zip(tree, children, strict=True))
    from copy import copy  # which takes its time to import

    rebuilt = copy(tree)  # keeps what a subclass carries, as a default factory
    dict.update(rebuilt, zip(tree, children, strict=True))  # a Counter's adds
    return rebuilt


@cache
def _names(cls: Any) -> list[str]:
    from dataclasses import fields  # few programs need it

    return [f.name for f in fields(cls) if f.init]


def _field_names(tree: Any) -> list[str]:
    return _names(tree.__class__)


def _attributes(tree: Any) -> list[Any]:
    """What the class of an attrs object is initialised with."""
    return [a for a in tree.__attrs_attrs__ if a.init]


def _of_optree(cls: type) -> Container | None:
    """How optree takes a class apart, if it is loaded and knows the class."""
    optree = sys.modules.get("optree")
    entry = optree and optree.register_pytree_node.get(cls)
    if not entry or entry.kind.name != "CUSTOM":
        return None

    def children(tree: Any) -> Iterable[tuple[Any, Any]]:
        return enumerate(entry.flatten_func(tree)[0])

    def rebuild(tree: Any, children: list[Any]) -> Any:
        return entry.unflatten_func(entry.flatten_func(tree)[1], children)

    return Container(children, rebuild)


def _rebuild_dataclass(tree: Any, children: list[Any]) -> Any:
    from dataclasses import replace

    return replace(tree, **dict(zip(_field_names(tree), children, strict=True)))


_NONE = Container(lambda tree: (), lambda tree, children: None)
_DICT = Container(dict.items, _rebuild_dict)
_SEQUENCE = Container(enumerate, lambda tree, children: type(tree)(children))
_NAMED_TUPLE = Container(enumerate, lambda tree, children: type(tree)(*children))
_DATACLASS = Container(
    lambda tree: [(name, getattr(tree, name)) for name in _field_names(tree)],
    _rebuild_dataclass,
)
_DEQUE = Container(enumerate, lambda tree, children: type(tree)(children, tree.maxlen))
_NAMESPACE = Container(
    lambda tree: vars(tree).items(),
    lambda tree, children: type(tree)(**dict(zip(vars(tree), children, strict=True))),
)
_ATTRS = Container(
    lambda tree: [(a.alias, getattr(tree, a.name)) for a in _attributes(tree)],
    lambda tree, children: type(tree)(
        **dict(zip((a.alias for a in _attributes(tree)), children, strict=True))
    ),
)
_containers: dict[type, Container | None] = {type(None): _NONE}


def register_tree(
    cls: type,
    children: Callable[[Any], Iterable[tuple[Any, Any]]],
    rebuild: Callable[[Any, list[Any]], Any],
) -> None:
    """Treat the objects of a class as containers.

    Needless for lists, tuples, named tuples, dicts, deques, namespaces, dataclasses,
    attrs classes, their subclasses, and what ``optree`` has registered globally.

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
        elif issubclass(cls, deque):
            found = _DEQUE
        elif issubclass(cls, SimpleNamespace):
            found = _NAMESPACE
        elif hasattr(cls, "__dataclass_fields__"):
            found = _DATACLASS
        elif hasattr(cls, "__attrs_attrs__"):
            found = _ATTRS
        found = _of_optree(cls) or found
        _containers[cls] = found
    return _containers[cls]


def is_leaf(tree: Any) -> bool:
    """Whether a structure is a single leaf.

    Example:
        >>> is_leaf(2.0), is_leaf([2.0])
        (True, False)
    """
    cls = type(tree)
    return (_containers[cls] if cls in _containers else _container(tree)) is None


def tree_children(tree: Any) -> list[tuple[Any, Any]] | None:
    """The keys and the parts of a container; None for a leaf.

    Example:
        >>> tree_children({"a": 1, "b": [2]}), tree_children(2.0)
        ([('a', 1), ('b', [2])], None)
    """
    container = _container(tree)
    return None if container is None else list(container.children(tree))


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
    try:
        if not others:
            return _mapped(function, tree)
        return _mapped_together(function, tree, *others)
    except RecursionError:
        _refuse_cycles(tree, *others)
        raise


def _mapped(function: Callable[..., Any], tree: Any) -> Any:
    """As ``tree_map``, of one tree, with a short way for Python's own containers."""
    cls = type(tree)
    if cls is dict:
        return {key: _mapped(function, child) for key, child in tree.items()}
    if cls is list:
        return [_mapped(function, child) for child in tree]
    if cls is tuple:
        return tuple([_mapped(function, child) for child in tree])
    container = _containers[cls] if cls in _containers else _container(tree)
    if container is None:
        return function(tree)
    children = [_mapped(function, child) for _, child in container.children(tree)]
    return container.rebuild(tree, children)


def _mapped_together(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """As ``tree_map``, of several trees."""
    cls = type(tree)
    container = _containers[cls] if cls in _containers else _container(tree)
    if container is None:
        return function(tree, *others)
    if (cls is list or cls is tuple) and all(
        type(other) is cls and len(other) == len(tree) for other in others
    ):
        together = zip(tree, *others, strict=True)
        return cls([_mapped_together(function, *each) for each in together])
    if cls is dict and all(
        type(other) is dict and other.keys() == tree.keys() for other in others
    ):
        return {
            key: _mapped_together(function, child, *[other[key] for other in others])
            for key, child in tree.items()
        }
    children = list(container.children(tree))
    parts = [_matching(tree, other, children) for other in others]
    mapped = [
        _mapped_together(function, child, *[part[key] for part in parts])
        for key, child in children
    ]
    return container.rebuild(tree, mapped)


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


def tree_replace(
    function: Callable[[Any], Any],
    tree: Any,
    known: dict[int, tuple[Any, Any]] | None = None,
) -> Any:
    """As ``tree_map``; but containers in which nothing changes stay the same objects.

    Args:
        function: takes a leaf.
        tree: any structure.
        known: containers and what has become of them, by identity, so that one that
            occurs several times is gone through once; gets more of them.

    Example:
        >>> tree = [[1, 2], [3]]
        >>> new = tree_replace(lambda x: x if x < 3 else -x, tree)
        >>> new, new[0] is tree[0]
        ([[1, 2], [-3]], True)
    """
    try:
        return _replaced(function, tree, {} if known is None else known)
    except RecursionError:
        _refuse_cycles(tree)
        raise


def _replaced(
    function: Callable[[Any], Any], tree: Any, known: dict[int, tuple[Any, Any]]
) -> Any:
    container = _container(tree)
    if container is None:
        return function(tree)
    if id(tree) in known:
        return known[id(tree)][1]
    old = [child for _, child in container.children(tree)]
    new = [_replaced(function, child, known) for child in old]
    same = all(map(is_, old, new))
    replaced = tree if same else container.rebuild(tree, new)
    known[id(tree)] = tree, replaced
    return replaced


def tree_leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a structure, in order.

    Example:
        >>> list(tree_leaves({"a": 1, "b": (2, [3])}))
        [1, 2, 3]
    """
    leaves: list[Any] = []
    try:
        _collect(tree, leaves)
    except RecursionError:
        _refuse_cycles(tree)
        raise
    return iter(leaves)


def _collect(tree: Any, leaves: list[Any]) -> None:
    cls = type(tree)
    container = _containers[cls] if cls in _containers else _container(tree)
    if container is None:
        leaves.append(tree)
    elif cls is list or cls is tuple:
        for child in tree:
            _collect(child, leaves)
    else:
        for _, child in container.children(tree):
            _collect(child, leaves)


def tree_paths(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of a structure, each with the keys that lead to it.

    Example:
        >>> list(tree_paths({"a": 1, "b": (2, [3])}))
        [(('a',), 1), (('b', 0), 2), (('b', 1, 0), 3)]
    """
    try:
        yield from _paths(tree)
    except RecursionError:
        _refuse_cycles(tree)
        raise


def _paths(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    container = _container(tree)
    if container is None:
        yield (), tree
    else:
        for key, child in container.children(tree):
            yield from (((key, *path), leaf) for path, leaf in _paths(child))


def leaf_path(tree: Any, leaf: Any) -> str:
    """How Python would reach a leaf, the same object, from a structure.

    Example:
        >>> leaf_path([1.0, {"w": "text"}], "text")
        "[1]['w']"
    """
    container = _container(tree)
    if container is None:
        return ""
    attributes = container in (_DATACLASS, _NAMESPACE, _ATTRS)
    for key, child in container.children(tree):
        step = f".{key}" if attributes else f"[{key!r}]"
        if child is leaf:
            return step
        rest = leaf_path(child, leaf)
        if rest:
            return step + rest
    return ""


def _refuse_cycles(*trees: Any) -> None:
    """Say so if a structure was too deep because it holds itself."""
    for tree in trees:
        path: list[Any] = []
        inside: set[int] = set()  # the containers on the way to the present one
        todo: list[tuple[Any, Any]] = [("", tree)]
        while todo:
            step, part = todo.pop()
            if step is None:  # all of a container has been seen
                inside.discard(part)
                path.pop()
                continue
            if id(part) in inside:
                where = "".join([*path, step])
                raise ArgumentError(
                    f"structures: this {type(part).__name__} holds itself, at "
                    f"x{where}, so it has no end. Give structures without circles."
                )
            container = _container(part)
            if container is not None:
                inside.add(id(part))
                path.append(step)
                todo.append((None, id(part)))
                todo += [(f"[{k!r}]", child) for k, child in container.children(part)]


def tree_structure(tree: Any) -> Any:
    """The structure with its leaves replaced by the names of their types.

    Example:
        >>> tree_structure({"a": 1.5, "b": (2, None)})
        {'a': 'float', 'b': ('int', None)}
    """
    return tree_map(lambda leaf: type(leaf).__name__, tree)

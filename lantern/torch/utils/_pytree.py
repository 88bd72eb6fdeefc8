"""Nested lists, tuples and dictionaries: taken apart, put together, mapped.

Classes of one's own are part of a structure once they are registered.
"""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lantern.errors import OptionError

__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_any",
    "tree_flatten", "tree_iter", "tree_leaves", "tree_map", "tree_map_",
    "tree_map_only", "tree_structure", "tree_unflatten",
]  # fmt: skip

PyTree = Context = FlattenFn = UnflattenFn = KeyEntry = KeyPath = Any


class NodeDef(NamedTuple):
    """How a container is taken apart, and put together again."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Any = None


class MappingKey(NamedTuple):
    """A key on the way to a leaf."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, tree: Any) -> Any:
        """What stands there."""
        return tree[self.key]


class SequenceKey(NamedTuple):
    """A position on the way to a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, tree: Any) -> Any:
        """What stands there."""
        return tree[self.idx]


class GetAttrKey(NamedTuple):
    """A name on the way to a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, tree: Any) -> Any:
        """What it names."""
        return getattr(tree, self.name)


def _list_flatten(d: list[Any]) -> tuple[list[Any], Any]:
    return d, None


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[Any], Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Any]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _mapping(kind: Any) -> NodeDef:
    def unflatten(values: Any, keys: Any) -> Any:
        return kind(zip(keys, values, strict=True))

    return NodeDef(kind, _dict_flatten, unflatten, _dict_flatten_with_keys)


def _default(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), (d.default_factory, list(d))


def _made_default(values: Any, context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


SUPPORTED_NODES: dict[Any, NodeDef] = {
    list: NodeDef(list, _list_flatten, _list_unflatten),
    tuple: NodeDef(tuple, _tuple_flatten, _tuple_unflatten),
    dict: _mapping(dict),
    OrderedDict: _mapping(OrderedDict),
    defaultdict: NodeDef(defaultdict, _default, _made_default),
    deque: NodeDef(deque, lambda x: (list(x), x.maxlen), deque),
}
# Classes with names for their parts.
_NAMED = NodeDef(tuple, lambda x: (list(x), type(x)), lambda parts, kind: kind(*parts))
SUPPORTED_NODES[namedtuple] = _NAMED


def register_pytree_node(
    cls: Any, flatten_fn: Any, unflatten_fn: Any, **options: Any
) -> None:
    """Let objects of a class be taken apart.

    Args:
        cls: the class, exactly.
        flatten_fn: gives an object's parts, and what is needed besides.
        unflatten_fn: makes an object of both.
        **options: names for files, which have no effect; ``flatten_with_keys_fn``.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> register_pytree_node(
        ...     Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts)
        ... )
        >>> tree_leaves([1, Pair(2, 3)])
        [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise OptionError(f"{cls} is already registered as pytree node.")
    keys = options.get("flatten_with_keys_fn")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, keys)


_register_pytree_node = register_pytree_node


def _node(tree: Any) -> NodeDef | None:
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return SUPPORTED_NODES[kind]
    return _NAMED if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


def _get_node_type(tree: Any) -> Any:
    """The class by which something is taken apart."""
    node = _node(tree)
    return namedtuple if node is _NAMED else type(tree)


class TreeSpec:
    """A structure without its leaves.

    Args:
        type: the class of its outermost container; None for a leaf.
        context: what is needed to make one.
        children_specs: the structures inside.

    Example:
        >>> tree_structure([1, (2, 3)]).num_leaves
        3
    """

    def __init__(self, type: Any, context: Any, children_specs: Any = ()) -> None:
        self.type, self.context = type, context
        self.children_specs = list(children_specs)
        self.num_leaves = sum(c.num_leaves for c in self.children_specs)
        self.num_nodes = 1 + sum(c.num_nodes for c in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is nothing but a leaf."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine = self.type, self.context, self.children_specs
        return mine == (other.type, other.context, other.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_children))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        inner = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def unflatten(self, leaves: Any) -> Any:
        """The structure with leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in a tree where this structure has leaves."""
        if self.type is None:
            return [tree]
        node = _node(tree)
        parts = None if node is None else node.flatten_fn(tree)[0]
        if parts is None or len(parts) != self.num_children:
            raise OptionError(f"Node type mismatch; expected {self}, but got {tree!r}.")
        rows = zip(self.children_specs, parts, strict=True)
        return [leaf for spec, part in rows for leaf in spec.flatten_up_to(part)]


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self.num_leaves = 1


_LEAF = LeafSpec()


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[list[Any], Any]:
    """The leaves, and what ``tree_unflatten`` needs to put them back.

    Example:
        >>> leaves, spec = tree_flatten((1, [2]))
        >>> tree_unflatten([x + 1 for x in leaves], spec)
        (2, [3])
    """
    leaves: list[Any] = []
    spec = _taken(tree, is_leaf, leaves)
    return leaves, spec


# Recursion by closures would leave reference cycles, which hold the leaves.
def _taken(tree: Any, is_leaf: Any, leaves: list[Any]) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else _node(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF
    parts, context = node.flatten_fn(tree)
    return TreeSpec(type(tree), context, [_taken(x, is_leaf, leaves) for x in parts])


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The structure that leaves came from.

    Example:
        >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
        >>> tree_unflatten([10 * leaf for leaf in leaves], spec)
        {'a': 10, 'b': (20, 30)}
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise OptionError(
            f"tree_unflatten: {len(leaves)} leaves, but {treespec.num_leaves} expected."
        )
    return _put(treespec, iter(leaves))


def _put(spec: TreeSpec, row: Iterator[Any]) -> Any:
    if spec.type is None:
        return next(row)
    node = SUPPORTED_NODES.get(spec.type, _NAMED)
    parts = [_put(child, row) for child in spec.children_specs]
    return node.unflatten_fn(parts, spec.context)


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """The leaves, one after another.

    Example:
        >>> list(tree_iter([1, (2, 3)]))
        [1, 2, 3]
    """
    node = None if is_leaf is not None and is_leaf(tree) else _node(tree)
    if node is None:
        yield tree
    else:
        for part in node.flatten_fn(tree)[0]:
            yield from tree_iter(part, is_leaf)


def tree_leaves(tree: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves.

    Example:
        >>> tree_leaves({"a": 1, "b": [2]})
        [1, 2]
    """
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """The structure without its leaves.

    Example:
        >>> tree_structure([1, 2]) == tree_structure([3, 4])
        True
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """The same structure, with a function of each leaf.

    Example:
        >>> tree_map(abs, {"a": [-1, 2]})
        {'a': [1, 2]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    rows = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return tree_unflatten(list(map(func, *rows)), spec)


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """The tree itself, after a function was called with each leaf.

    Example:
        >>> tree_map_(print, [1, (2,)])
        1
        2
        [1, (2,)]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types_or_pred: Any, func: Any = None, tree: Any = None, is_leaf: Any = None
) -> Any:
    """The same structure, with a function of those leaves that are of some classes.

    Example:
        >>> tree_map_only(int, abs, [-1, -2.0])
        [1, -2.0]
    """
    chosen = _chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def _chosen(what: Any) -> Callable[[Any], bool]:
    if isinstance(what, type | tuple) or hasattr(what, "__args__"):
        return lambda x: isinstance(x, what)
    return what


def broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Any = None
) -> list[Any] | None:
    """For each leaf of a structure what stands for it in a tree; None for a misfit.

    A leaf of the tree stands for all leaves of a part.
    """
    node = None if is_leaf is not None and is_leaf(tree) else _node(tree)
    if node is None:
        return [tree] * treespec.num_leaves
    children, context = node.flatten_fn(tree)
    kinds = _get_node_type(tree), getattr(treespec, "type", None)
    if kinds[0] is namedtuple and kinds[1] is type(tree):
        kinds = kinds[1], kinds[1]
    if kinds[0] is not kinds[1] or context != treespec.context:
        return None
    if len(children) != treespec.num_children:
        return None
    rows = [
        broadcast_to_and_flatten(child, spec, is_leaf)
        for child, spec in zip(children, treespec.children_specs, strict=True)
    ]
    if any(row is None for row in rows):
        return None
    return [x for row in rows if row is not None for x in row]


_broadcast_to_and_flatten = broadcast_to_and_flatten  # as PyTorch names it


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds of all leaves.

    Example:
        >>> tree_all(bool, [1, (0,)])
        False
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds of any leaf.

    Example:
        >>> tree_any(bool, [1, (0,)])
        True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(types: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds of all leaves that are of some classes."""
    chosen = _chosen(types)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def tree_any_only(types: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether something holds of any leaf that is of some classes."""
    chosen = _chosen(types)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def tree_map_only_(types: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """The tree itself, after a function was called with leaves of some classes."""
    tree_map_only(types, func, tree, is_leaf)
    return tree


def tree_is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    """Whether something is not taken apart.

    Example:
        >>> tree_is_leaf(1), tree_is_leaf([1])
        (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _node(tree) is None


def _keyed(tree: Any, node: NodeDef) -> list[Any]:
    """The parts of a container, with their keys."""
    if node.flatten_with_keys_fn is not None:
        return list(node.flatten_with_keys_fn(tree)[0])
    parts = list(node.flatten_fn(tree)[0])
    if isinstance(tree, dict):
        return list(zip(map(MappingKey, tree), parts, strict=True))
    if node is _NAMED:
        return list(zip(map(GetAttrKey, tree._fields), parts, strict=True))
    return list(zip(map(SequenceKey, range(len(parts))), parts, strict=True))


def tree_leaves_with_path(tree: Any, is_leaf: Any = None) -> list[Any]:
    """The leaves, each behind the keys that lead to it.

    Example:
        >>> [(keystr(path), x) for path, x in tree_leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if tree_is_leaf(tree, is_leaf):
        return [((), tree)]
    node: Any = _node(tree)
    return [
        ((key, *path), leaf)
        for key, part in _keyed(tree, node)
        for path, leaf in tree_leaves_with_path(part, is_leaf)
    ]


def tree_flatten_with_path(tree: Any, is_leaf: Any = None) -> tuple[list[Any], Any]:
    """The leaves with their paths, and what puts them back."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None
) -> Any:
    """The same structure, with a function of each path and leaf.

    Example:
        >>> tree_map_with_path(lambda path, x: (len(path), x), [1, [2]])
        [(1, 1), [(2, 2)]]
    """
    rows, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [row[0] for row in rows], [row[1] for row in rows]
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten(list(map(func, paths, leaves, *others)), spec)


def keystr(kp: Any) -> str:
    """A path as it would be written.

    Example:
        >>> keystr((GetAttrKey("x"), SequenceKey(0)))
        '.x[0]'
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Any) -> Any:
    """What stands at the end of a path.

    Example:
        >>> key_get({"a": [1, 2]}, (MappingKey("a"), SequenceKey(1)))
        2
    """
    for key in kp:
        obj = key.get(obj)
    return obj


def is_namedtuple(obj: Any) -> bool:
    """Whether an object, or a class, is a tuple whose parts have names."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is of tuples whose parts have names."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a tuple whose parts have names."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is of PyTorch's named results: these are named tuples here."""
    return is_namedtuple_class(cls) and cls.__module__ == "torch.return_types"


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is one of PyTorch's named results."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object, or a class, is one of PyTorch's named results."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))

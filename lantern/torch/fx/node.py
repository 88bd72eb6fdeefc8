"""A step of a program that was written down."""

import builtins
from collections.abc import Callable
from typing import Any

__all__ = ["Argument", "Node", "Target", "map_aggregate", "map_arg"]

Argument = Target = Any  # for annotations


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """A structure of tuples, lists, dictionaries and slices, a function of its parts.

    Example:
        >>> map_aggregate((1, [2, {"x": 3}]), lambda x: 10 * x)
        (10, [20, {'x': 30}])
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(x, fn) for k, x in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[["Node"], Any]) -> Any:
    """As ``map_aggregate``, of the nodes in it alone."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One step: what is done, on which results of others.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or
            "output".
        target: the function itself, or the name of the method, module or attribute.
        args: the arguments, with nodes where results stand.
        kwargs: the same by name.
        users: the nodes that have this one among their arguments.
        meta: what a program notes about it.

    Example:
        >>> import lantern.torch as torch
        >>> node = torch.fx.symbolic_trace(lambda x: torch.relu(x)).graph.nodes[1]
        >>> node.op, node.name, node.args, list(node.users)
        ('call_function', 'relu', (x,), [output])
    """

    def __init__(
        self, graph: Any, name: str, op: str, target: Any, args: Any, kwargs: Any
    ) -> None:
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.type: Any = None
        self._args: Any = ()
        self._kwargs: Any = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        for node in self.all_input_nodes:
            node.users[self] = None

    @property
    def args(self) -> Any:
        """The arguments."""
        return self._args

    @args.setter
    def args(self, a: Any) -> None:
        """Other arguments."""
        self._set(tuple(a), self._kwargs)

    @property
    def kwargs(self) -> Any:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: Any) -> None:
        """Other arguments by name."""
        self._set(self._args, dict(k))

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, each once."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda n: found.setdefault(n))
        return list(found)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Give one argument another value."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Give an argument of a name another value."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Let another node stand where one is among the arguments."""
        both = (self.args, self.kwargs)
        self._set(*map_arg(both, lambda n: new_input if n is old_input else n))

    def replace_all_uses_with(self, replace_with: "Node", *args: Any) -> list["Node"]:
        """Let another node stand wherever this one is used; who has used it."""
        users = [user for user in self.users if user is not replace_with]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def _beside(self, step: int) -> Any:
        nodes = self.graph.list
        place = nodes.index(self) + step
        return nodes[place] if 0 <= place < len(nodes) else self.graph._root

    @property
    def next(self) -> Any:
        """The step behind it."""
        return self._beside(1)

    @property
    def prev(self) -> Any:
        """The step before it."""
        return self._beside(-1)

    def _take_beside(self, x: "Node", step: int) -> None:
        nodes = self.graph.list
        if x in nodes:
            nodes.remove(x)
        nodes.insert(nodes.index(self) + step, x)

    def prepend(self, x: "Node") -> None:
        """Move a node in front of this one."""
        self._take_beside(x, 0)

    def append(self, x: "Node") -> None:
        """Move a node behind this one."""
        self._take_beside(x, 1)

    def is_impure(self) -> bool:
        """Whether the step counts although nobody uses its result."""
        return self.op in ("placeholder", "output") or (
            isinstance(self.target, str)
            and self.op == "call_method"
            and self.target.endswith("_")
        )

    def format_node(self) -> str:
        """The step as a line.

        Example:
            >>> import lantern.torch as torch
            >>> graph = torch.fx.symbolic_trace(lambda x: x.sin()).graph
            >>> for node in graph.nodes:
            ...     print(node.format_node())
            %x : [num_users=1] = placeholder[target=x]
            %sin : [num_users=1] = call_method[target=sin](args = (%x,), kwargs = {})
            return sin
        """
        if self.op == "output":
            return f"return {self.args[0]}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
        head += f"[target={pretty(self.target)}]"
        if self.op in ("placeholder", "get_attr"):
            return head
        shown = map_arg((self.args, self.kwargs), lambda n: _Shown(f"%{n.name}"))
        return f"{head}(args = {shown[0]}, kwargs = {shown[1]})"

    def __repr__(self) -> str:
        return self.name


class _Shown(str):
    """A text that is printed without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def pretty(target: Any) -> str:
    """A target as it would be written in a program."""
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", repr(target))
    module = getattr(target, "__module__", None) or ""
    if getattr(builtins, name, None) is target:
        return name
    if module in ("_operator", "operator"):
        return f"operator.{name}"
    found = module.removeprefix("lantern.")
    if found.startswith("torch.nn.functional"):
        return f"torch.nn.functional.{name}"
    return f"torch.{name}" if found.startswith("torch") else f"{found}.{name}"

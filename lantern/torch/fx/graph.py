"""A program as a list of steps."""

import builtins
import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lantern.errors import EagerError
from lantern.torch.fx.node import Node, map_arg, pretty

__all__ = ["CodeGen", "Graph"]


class CodeGen:
    """How a graph is written as Python: in the plain way."""


class PythonCode:
    """A graph as Python.

    Attributes:
        src: the text.
        globals: what its names stand for.
    """

    def __init__(self, src: str, globals: dict[str, Any]) -> None:
        self.src, self.globals = src, globals


class Graph:
    """Steps in their order, of which each uses the results of earlier ones.

    Args:
        owning_module: the module whose names it has.
        tracer_cls: the class that has written it down.
        tracer_extras: of that class.

    Example:
        >>> import lantern.torch as torch
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.neg, (x,))
        >>> _ = graph.output(y)
        >>> print(torch.fx.GraphModule(torch.nn.Module(), graph).code, end="")
        def forward(self, x):
            neg = torch.neg(x)
            return neg
        >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.ones(2))
        tensor([-1., -1.])
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: Any = None,
    ) -> None:
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._tracer_extras = tracer_extras
        self.list: list[Node] = []
        self._names: set[str] = set()
        self._place: int | None = None  # where new steps come; None for the end
        self._root = Node(self, "", "root", "", (), {})
        self._codegen = CodeGen()

    @property
    def nodes(self) -> list[Node]:
        """The steps; a list of its own, so that steps may come and go meanwhile."""
        return list(self.list)

    def _name(self, wanted: Any) -> str:
        """A name that no other step has, nor Python itself."""
        word = re.sub(r"\W", "_", str(wanted)).strip("_").lower() or "_"
        word = f"_{word}" if word[0].isdigit() or keyword.iskeyword(word) else word
        name, count = word, 0
        while name in self._names or hasattr(builtins, name):
            count += 1
            name = f"{word}_{count}"
        self._names.add(name)
        return name

    def create_node(
        self,
        op: str,
        target: Any,
        args: Any = None,
        kwargs: Any = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new step, at the end or where ``inserting_before`` says."""
        word = name or (target if isinstance(target, str) else target.__name__)
        node = Node(self, self._name(word), op, target, args or (), kwargs or {})
        node.type = type_expr
        if self._place is None:
            self.list.append(node)
        else:
            self.list.insert(self._place, node)
            self._place += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, *default: Any) -> Node:
        """An argument of the program, perhaps with a default."""
        return self.create_node("placeholder", name, default, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, or another attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None
    ) -> Node:
        """A call of a module inside the module."""
        return self.create_node("call_module", module_name, args, kwargs)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """The program's result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def erase_node(self, to_erase: Node) -> None:
        """Take a step away that nobody uses."""
        if to_erase.users:
            raise EagerError(
                f"Tried to erase Node {to_erase} but it still had "
                f"{len(to_erase.users)} users in the graph: {list(to_erase.users)}!"
            )
        to_erase._set((), {})
        self.list.remove(to_erase)

    @contextmanager
    def _inserting(self, place: int) -> Iterator[None]:
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """A block in which new steps come before one; before all of them for none."""
        return self._inserting(0 if n is None else self.list.index(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """A block in which new steps come behind one."""
        return self._inserting(len(self.list) if n is None else self.list.index(n) + 1)

    def find_nodes(
        self, *, op: str, target: Any = None, sort: bool = True
    ) -> list[Node]:
        """The steps of a kind."""
        return [n for n in self.list if n.op == op and target in (None, n.target)]

    def node_copy(self, node: Node, arg_transform: Any = lambda x: x) -> Node:
        """A step like one of another graph, whose arguments are changed."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(
            node.op, node.target, args, kwargs, node.name, node.type
        )
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: "Graph", val_map: dict[Node, Any], *args: Any) -> Any:
        """The steps of another graph in this one; its result, as it is here."""
        for node in g.list:
            if node in val_map:
                continue
            if node.op == "output":
                return map_arg(node.args[0], val_map.__getitem__)
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: Any) -> "Graph":
        made = Graph(tracer_cls=self._tracer_cls)
        known: dict[Node, Node] = {}
        for node in self.list:
            known[node] = made.node_copy(node, known.__getitem__)
        return made

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Take away what nobody uses; whether there was any."""
        impure, before = is_impure_node or Node.is_impure, len(self.list)
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return len(self.list) < before

    def lint(self) -> None:
        """Raise unless each step uses earlier ones of this graph alone."""
        seen: set[Node] = set()
        for node in self.list:
            for x in node.all_input_nodes:
                if x not in seen:
                    raise EagerError(
                        f"Argument '{x}' of Node '{node}' was used before it has been "
                        "defined! Please check that Nodes in the graph are "
                        "topologically ordered."
                    )
            seen.add(node)

    def on_generate_code(self, make_transformer: Any) -> None:
        """No effect: code is text to read here, and what runs are the steps."""

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """The steps as a function in Python, to be read."""
        arguments, lines = [root_module], []
        for node in self.list:
            if node.op == "placeholder":
                rest = f" = {node.args[0]!r}" if node.args else ""
                arguments.append(f"{node.target}{rest}")
                if node.name != node.target.lstrip("*"):
                    lines.append(f"{node.name} = {node.target.lstrip('*')}")
            elif node.op == "output":
                lines.append(f"return {node.args[0]!r}")
            else:
                lines.append(f"{node.name} = {_call(node, root_module)}")
        head = f"def forward({', '.join(arguments)}):\n"
        return PythonCode(head + "".join(f"    {line}\n" for line in lines), {})

    def print_tabular(self) -> None:
        """Print the steps in a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [
            [n.op, n.name, pretty(n.target), repr(n.args), repr(n.kwargs)]
            for n in self.list
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(row, widths, strict=True)
            print("  ".join(f"{cell:<{w}}" for cell, w in cells).rstrip())

    def __str__(self) -> str:
        return "graph():\n" + "".join(f"    {n.format_node()}\n" for n in self.list)


def _call(node: Node, root: str) -> str:
    """A step as an expression."""
    if node.op == "get_attr":
        return f"{root}.{node.target}"
    args = [repr(x) for x in node.args]
    named = [f"{k} = {v!r}" for k, v in node.kwargs.items()]
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join(args[1:] + named)})"
    name = pretty(node.target)
    name = f"{root}.{name}" if node.op == "call_module" else name
    return f"{name}({', '.join(args + named)})"

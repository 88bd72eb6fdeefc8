"""Modules made of a program that was written down."""

import copy
import inspect
from typing import Any

from lantern.errors import ArgumentError
from lantern.torch.fx.graph import Graph
from lantern.torch.fx.interpreter import Interpreter
from lantern.torch.fx.tracing import Tracer
from lantern.torch.nn.module import Module

__all__ = ["GraphModule", "symbolic_trace"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
# The kinds of arguments, by the number of stars before their names.
_KINDS = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


class GraphModule(Module):
    """A module that runs a graph.

    Args:
        root: the module, or a dictionary by paths, whose modules and parameters the
            graph names; it takes those over that are named.
        graph: the program.
        class_name: the name of its class.

    Attributes:
        graph: the program.
        code: the program as Python, to be read.

    Example:
        >>> import lantern.torch as torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Tanh())
        >>> traced = torch.fx.symbolic_trace(net)
        >>> [node.name for node in traced.graph.nodes]
        ['input_1', '_0', '_1', 'output']
        >>> x = torch.ones(3, 2)
        >>> torch.equal(traced(x), net(x))
        True
    """

    def __init__(
        self, root: Any, graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        self.__class__ = type(class_name, (type(self),), {})
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.list:
            if node.op in ("call_module", "get_attr"):
                _copy_attr(root, self, node.target)
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The program."""
        found: Graph = self.__dict__["_graph"]
        return found

    @graph.setter
    def graph(self, g: Graph) -> None:
        """Another program."""
        self.__dict__["_graph"] = g
        g.owning_module = self

    @property
    def code(self) -> str:
        """The program as Python, to be read."""
        return self.graph.python_code().src

    def recompile(self) -> Any:
        """The program as Python; what runs are the steps, as they are."""
        return self.graph.python_code()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The program's result."""
        if not kwargs:
            return Interpreter(self).run(*args)
        try:
            bound = _signature(self.graph).bind(*args, **kwargs)
        except TypeError as e:
            raise ArgumentError(f"forward() {e}") from None
        bound.apply_defaults()
        return _Bound(self, bound.arguments).run()

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; whether there is room for it."""
        parent, _, last = target.rpartition(".")
        _copy_attr({target: m}, self, target)
        return isinstance(getattr(self.get_submodule(parent), last), Module)

    def delete_all_unused_submodules(self) -> None:
        """Take modules away that no step calls."""
        used = {
            n.target for n in self.graph.list if n.op in ("call_module", "get_attr")
        }
        for name, _ in list(self.named_modules()):
            needed = any(u == name or u.startswith(f"{name}.") for u in used)
            inside = any(name.startswith(f"{u}.") for u in used)
            if name and not needed and not inside:
                parent, _, last = name.rpartition(".")
                delattr(self.get_submodule(parent), last)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The program as Python, printed."""
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "".join(
            f"    {line}\n" for line in self.code.splitlines()
        )
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: Any) -> "GraphModule":
        """Another one, with parameters of its own."""
        made = GraphModule.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(
            {
                name: copy.deepcopy(value, memo)
                for name, value in self.__dict__.items()
                if name != "_graph"
            }
        )
        made.graph = copy.deepcopy(self.graph)
        return made


class _CodeOnlyModule(Module):
    """A module whose attributes are those of a dictionary."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(body)


class _Bound(Interpreter):
    """Runs a program on arguments that are known by its names for them."""

    def __init__(self, module: Any, known: dict[str, Any]) -> None:
        super().__init__(module)
        self.known = known

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """An argument of the program."""
        return self.known[target.lstrip("*")]


def _signature(graph: Graph) -> inspect.Signature:
    """What a program takes."""
    rows = []
    for node in graph.find_nodes(op="placeholder"):
        target = str(node.target)
        name = target.lstrip("*")
        default = node.args[0] if node.args else inspect.Parameter.empty
        rows.append(
            inspect.Parameter(name, _KINDS[len(target) - len(name)], default=default)
        )
    return inspect.Signature(rows)


def _copy_attr(from_module: Any, to_module: Module, target: str) -> None:
    """Put what a path leads to at the same path of another module."""
    *way, last = target.split(".")
    if isinstance(from_module, dict):
        found = from_module[target]
    else:
        found = from_module
        for word in (*way, last):
            found = getattr(found, word)
    place: Any = to_module
    for word in way:
        if not hasattr(place, word):
            setattr(place, word, Module())
        place = getattr(place, word)
    if not hasattr(place, last):
        setattr(place, last, found)


def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """A module that does what a module or a function does, written down as steps.

    Args:
        root: the module or function. What it decides by the values of its arguments
            cannot be written down.
        concrete_args: the values of some arguments, by name, which are taken as they
            are.

    Raises:
        TraceError: if it asks for a value that is not there.

    Example:
        >>> import lantern.torch as torch
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> print(traced.code, end="")
        def forward(self, x):
            relu = torch.relu(x)
            add = operator.add(relu, 1)
            return add
        >>> traced(torch.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)

"""Programs that were written down, run step by step."""

from typing import Any

from lantern.torch.fx.graph import Graph
from lantern.torch.fx.node import Node, map_arg
from lantern.torch.nn.module import Module

__all__ = ["Interpreter"]


class Interpreter:
    """Runs a graph; a subclass may say what becomes of each kind of step.

    Args:
        module: whose graph it is, and whose modules and parameters are meant.
        garbage_collect_values: whether results are forgotten after their last use.
        graph: another graph than the module's.

    Example:
        >>> import lantern.torch as torch
        >>> class Loud(torch.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         print(target.__name__)
        ...         return super().call_function(target, args, kwargs)
        >>> Loud(torch.fx.symbolic_trace(lambda x: torch.neg(x) * 2)).run(torch.ones(1))
        neg
        mul
        tensor([-2.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Any = None
    ) -> None:
        self.module = self.submodules = module
        self.graph: Graph = module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: Any = None, **options: Any) -> Any:
        """The program's result.

        Args:
            args: its arguments.
            initial_env: results of steps that are known already.
            options: have no effect.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        left = {node: len(node.users) for node in self.graph.list}
        for node in self.graph.list:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for used in node.all_input_nodes if self.garbage_collect_values else ():
                left[used] -= 1
                if not left[used]:
                    self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The result of one step."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of a step, with results in the place of nodes."""
        found: tuple[Any, Any] = map_arg((n.args, n.kwargs), self.env.__getitem__)
        return found

    def fetch_attr(self, target: str) -> Any:
        """A parameter or another attribute, by its path."""
        found: Any = self.module
        for word in target.split("."):
            found = getattr(found, word)
        return found

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """An argument of the program."""
        if target.startswith("*"):
            return {} if target.startswith("**") else list(self.args_iter)
        if args:
            return next(self.args_iter, args[0])
        return next(self.args_iter)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """A method's result."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A module's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        """The program's result."""
        return args[0]

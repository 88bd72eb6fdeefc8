"""Programs that were written down, written down anew."""

from typing import Any

from lantern.torch.fx.graph import Graph
from lantern.torch.fx.graph_module import GraphModule
from lantern.torch.fx.interpreter import Interpreter
from lantern.torch.fx.node import map_aggregate
from lantern.torch.fx.tracing import Proxy, Tracer

__all__ = ["Transformer"]


class Transformer(Interpreter):
    """Writes a graph down anew; a subclass may say what becomes of each kind of step.

    Args:
        module: whose graph it is.

    Example:
        >>> import lantern.torch as torch
        >>> class Doubling(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return 2 * super().call_function(target, args, kwargs)
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(x))
        >>> Doubling(traced).transform()(torch.tensor([3.0]))
        tensor([-6.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = Tracer()
        self.tracer.graph, self.tracer.root = self.new_graph, module

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """A stand-in for an argument."""
        return Proxy(self.new_graph.placeholder(target, None, *args), self.tracer)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """A stand-in for an attribute."""
        return Proxy(self.new_graph.get_attr(target), self.tracer)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A stand-in for a function's result."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """A stand-in for a method's result."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A stand-in for a module's result."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> Any:
        """A module with the new graph."""
        result = self.run(*([None] * len(self.graph.list)))
        made = map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
        self.new_graph.output(made)
        return GraphModule(self.module, self.new_graph)

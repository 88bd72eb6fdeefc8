"""Programs of tensors, written down as steps: ``torch.fx``.

Example:
    >>> import lantern.torch as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> print(traced.graph, end="")
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
        return _0
"""

from typing import Any

from lantern.torch.fx.graph import CodeGen as CodeGen
from lantern.torch.fx.graph import Graph as Graph
from lantern.torch.fx.graph_module import GraphModule as GraphModule
from lantern.torch.fx.graph_module import symbolic_trace as symbolic_trace
from lantern.torch.fx.interpreter import Interpreter as Interpreter
from lantern.torch.fx.node import Node as Node
from lantern.torch.fx.node import map_aggregate as map_aggregate
from lantern.torch.fx.node import map_arg as map_arg
from lantern.torch.fx.subgraph_rewriter import replace_pattern as replace_pattern
from lantern.torch.fx.tracing import Attribute as Attribute
from lantern.torch.fx.tracing import Proxy as Proxy
from lantern.torch.fx.tracing import TraceError as TraceError
from lantern.torch.fx.tracing import Tracer as Tracer
from lantern.torch.fx.tracing import wrap as wrap
from lantern.torch.fx.transformer import Transformer as Transformer
from lantern.torch.run.aliases import absent as _absent
from lantern.torch.run.aliases import lead as _lead

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
    "has_side_effect", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


def has_side_effect(fn: Any) -> Any:
    """A function as it is: steps are never left out by themselves.

    Example:
        >>> import lantern.torch as torch
        >>> torch.fx.has_side_effect(print) is print
        True
    """
    return fn


_lead(__name__, "proxy", "lantern.torch.fx.tracing")
_lead(__name__, "_symbolic_trace", "lantern.torch.fx.graph_module")
_WRITTEN = (
    "shapes are numbers here, and no program is written down in PyTorch's inner ones."
)
_absent(
    __name__,
    dict.fromkeys(
        [
            *("experimental", "experimental.proxy_tensor"),
            *("experimental.symbolic_shapes", "passes", "_pytree"),
        ],
        _WRITTEN,
    ),
    {"experimental.proxy_tensor": "ProxyTorchDispatchMode get_proxy_mode make_fx"},
)

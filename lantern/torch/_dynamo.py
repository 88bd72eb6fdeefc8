"""What libraries ask of PyTorch's compiler when they are imported: there is none."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from lantern.torch.compiler import allow_in_graph as allow_in_graph
from lantern.torch.compiler import disable as disable
from lantern.torch.compiler import is_compiling as is_compiling
from lantern.torch.compiler import reset as reset
from lantern.torch.run.aliases import lead, missing

__all__ = ["allow_in_graph", "disable", "is_compile_supported", "is_compiling", "reset"]

__path__: list[str] = []
# Options that programs set; nothing reads them.
config = SimpleNamespace(suppress_errors=False)
TransformGetItemToIndex = nullcontext


def is_compile_supported(device_type: Any) -> bool:
    """Whether programs are compiled for a device: no."""
    return False


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Has no effect: no lengths are taken to be constant."""


mark_static = maybe_mark_dynamic = mark_static_address = mark_dynamic
graph_break = mark_unbacked = mark_dynamic
OptimizedModule = type("OptimizedModule", (), {"__doc__": "What nothing is one of."})


def assume_constant_result(fn: Any) -> Any:
    """The function as it is: nothing is compiled."""
    return fn


def __getattr__(name: str) -> Any:
    """Say that nothing is compiled."""
    if name.startswith("__"):
        raise AttributeError(name)
    error = missing("module 'torch._dynamo'", name)
    raise AttributeError(f"{error}: nothing is compiled here.")


globals().update(
    lead(__name__, "_trace_wrapped_higher_order_op eval_frame external_utils utils")
)

"""What libraries say about ONNX when they are imported; nothing is exported here."""

from collections.abc import Callable
from typing import Any

from lantern.torch.run.aliases import lead, missing

__all__ = ["is_in_onnx_export", "register_custom_op_symbolic"]

__path__: list[str] = []


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Any, opset_version: int, custom_opsets: Any = None
) -> None:
    """Has no effect: what an operation is in a file that nobody writes."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def parse_args(*arg_descriptors: Any) -> Callable[[Any], Any]:
    """A decorator that leaves a function as it is."""
    return lambda function: function


def __getattr__(name: str) -> Any:
    """Say that there are no files."""
    if name.startswith("__"):
        raise AttributeError(name)
    error = missing("module 'torch.onnx'", name)
    raise AttributeError(f"{error}: there are no ONNX files here. Save a state_dict().")


globals().update(
    lead(__name__, "operators symbolic_helper symbolic_opset9 symbolic_opset11 utils")
)

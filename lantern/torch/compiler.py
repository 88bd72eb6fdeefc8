"""What programs tell PyTorch's compiler: there is none here."""

from contextlib import nullcontext
from typing import Any

__all__ = ["allow_in_graph", "disable", "is_compiling", "reset", "set_stance"]


def is_compiling() -> bool:
    """Whether a program is being compiled: no."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, **options: Any) -> Any:
    """A function as it is; or a decorator that leaves it so."""
    return (lambda function: function) if fn is None else fn


allow_in_graph = assume_constant_result = disable


def reset() -> None:
    """Has no effect: nothing was compiled."""


def cudagraph_mark_step_begin() -> None:
    """Has no effect."""


def set_stance(stance: str = "default", **options: Any) -> Any:
    """A block without effect."""
    return nullcontext()

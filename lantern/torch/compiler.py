"""Names of PyTorch's compiler: there is none here."""

from contextlib import nullcontext
from typing import Any

__all__ = ["allow_in_graph", "disable", "is_compiling", "reset", "set_stance"]


def is_compiling() -> bool:
    """Whether a program is being compiled: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.compiler.is_compiling()
        False
    """
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, **options: Any) -> Any:
    """A function as it is; or a decorator that leaves it so.

    Example:
        >>> import lantern.torch as torch
        >>> torch.compiler.disable(abs)(-1)
        1
    """
    return (lambda function: function) if fn is None else fn


allow_in_graph = assume_constant_result = _disable_dynamo = disable


def reset() -> None:
    """Has no effect: nothing was compiled.

    Example:
        >>> import lantern.torch as torch
        >>> torch.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """Has no effect."""


def set_stance(stance: str = "default", **options: Any) -> Any:
    """A block without effect.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.compiler.set_stance("force_eager"):
        ...     print("as always")
        as always
    """
    return nullcontext()

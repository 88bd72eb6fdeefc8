"""Mixed precision, as far as scripts ask for it: everything is computed in full.

``autocast`` changes no type, so results are at least as precise as was asked for. A
``GradScaler`` scales losses, as in PyTorch, and leaves out steps that are not finite.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from lantern.torch.amp.grad_scaler import GradScaler as GradScaler
from lantern.torch.tensor import dtypes

__all__ = ["GradScaler", "autocast"]


class autocast:
    """A block, or a decorator, in which types stay as they are.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``.
        dtype: the type that products were to be computed in.
        enabled: whether that was wanted.
        cache_enabled: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        torch.float32
    """

    def __init__(
        self,
        device_type: str = "cuda",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: Any = None,
    ) -> None:
        self.device, self.fast_dtype, self._enabled = device_type, dtype, enabled

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it is, in a wrapper."""

        @wraps(function)
        def inside(*args: Any, **options: Any) -> Any:
            return function(*args, **options)

        return inside


def is_autocast_available(device_type: str) -> bool:
    """Whether other types can be computed in by themselves: no."""
    return False


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether types change by themselves: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_autocast_enabled()
        False
    """
    return False


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The type that products are computed in, were there a choice.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_autocast_dtype("cpu")
        torch.float32
    """
    return dtypes.get_default_dtype()


def is_autocast_cpu_enabled() -> bool:
    """Whether types change by themselves: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_autocast_cpu_enabled()
        False
    """
    return False


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """As ``get_autocast_dtype("cpu")``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_autocast_cpu_dtype()
        torch.float32
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """As ``get_autocast_dtype("cuda")``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_autocast_gpu_dtype()
        torch.float32
    """
    return get_autocast_dtype("cuda")


def custom_fwd(fwd: Any = None, **options: Any) -> Any:
    """A forward step as it is."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, **options: Any) -> Any:
    """A backward step as it is."""
    return (lambda function: function) if bwd is None else bwd

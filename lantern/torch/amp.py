"""Mixed precision, as far as scripts ask for it: everything is computed in full.

``autocast`` changes no type, so results are at least as precise as was asked for, and a
``GradScaler`` scales only where half precision could make gradients vanish: nowhere.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

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


class GradScaler:
    """What scales a loss so that gradients of half precision do not vanish: by 1.

    Args:
        device: has no effect; as PyTorch has it.
        options: have no effect.

    Example:
        >>> import lantern.torch as torch
        >>> w = torch.nn.Parameter(torch.ones(1))
        >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler()
        >>> scaler.scale((w * w).sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.item()
        0.0
    """

    def __init__(self, device: str = "cuda", **options: Any) -> None:
        pass

    def scale(self, outputs: Any) -> Any:
        """The losses as they are."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing: gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **options: Any) -> Any:
        """A step of the optimiser."""
        return optimizer.step(*args, **options)

    def update(self, new_scale: Any = None) -> None:
        """Nothing: the scale stays 1."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled: no."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Nothing has to be kept."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing has to be set."""


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


def custom_fwd(fwd: Any = None, **options: Any) -> Any:
    """A forward step as it is."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, **options: Any) -> Any:
    """A backward step as it is."""
    return (lambda function: function) if bwd is None else bwd

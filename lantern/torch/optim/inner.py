"""The names of PyTorch's optimisers that optimisers of libraries are written with."""

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from lantern.eager.grad_mode import is_grad_enabled, set_grad_enabled
from lantern.torch.tensor.dtypes import dtype, float32, float64, get_default_dtype
from lantern.torch.tensor.tensor import Tensor

__all__ = ["ParamsT"]

ParamsT = params_t = Iterable[Any]  # for annotations
StateDict = dict[str, Any]
# What PyTorch's docstrings are put together from.
_params_doc = _foreach_doc = _fused_doc = _capturable_doc = ""
_differentiable_doc = _maximize_doc = _tensor_doc = ""


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is tracked only if the optimiser is to be differentiated."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **options: Any) -> Any:
        before = is_grad_enabled()
        set_grad_enabled(bool(self.defaults.get("differentiable")))
        try:
            return func(self, *args, **options)
        finally:
            set_grad_enabled(before)

    return step


def _default_to_fused_or_foreach(
    params: Any, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether one kernel, or lists of tensors, were faster: neither."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices on which steps could be written down."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices on which steps are one kernel: none."""
    return []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices on which lists of tensors are faster: none."""
    return []


def _get_value(x: Any) -> Any:
    """The number in a tensor; another thing as it is."""
    return x.item() if isinstance(x, Tensor) else x


_to_scalar = _get_value


def _stack_if_compiling(x: Any) -> Any:
    """The value as it is: nothing is compiled."""
    return x


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Any:
    """A decorator that leaves a function as it is."""
    return lambda function: function


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _get_scalar_dtype(is_fused: Any = None) -> dtype:
    """The type in which steps are counted."""
    return float64 if get_default_dtype() is float64 else float32


def _view_as_real(params: Any, *state_and_grads: list[Any]) -> None:
    """Put pairs of real numbers in the place of complex ones, in lists."""
    for i, p in enumerate(params):
        if p.is_complex():
            for row in (params, *state_and_grads):
                row[i] = row[i].view_as_real()

"""The few names of PyTorch's compiled part that libraries ask for."""

from contextlib import nullcontext
from typing import Any

from lantern.torch.methods.sampling import Generator as Generator
from lantern.torch.tensor.dtypes import Size as Size
from lantern.torch.tensor.dtypes import device as device
from lantern.torch.tensor.dtypes import dtype as dtype
from lantern.torch.tensor.tensor import Tensor as TensorBase

__all__ = ["Generator", "Size", "TensorBase", "device", "dtype"]

_TensorBase, _TensorMeta = TensorBase, type(TensorBase)
DisableTorchFunctionSubclass = DisableTorchFunction = nullcontext


def _disabled_torch_function_impl(
    func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """A function as for plain tensors."""
    return func(*args, **(kwargs or {}))


def _log_api_usage_once(name: str) -> None:
    """Nothing is counted."""


def _get_tracing_state() -> None:
    """None: no program is being written down."""


def _add_docstr(function: Any, text: str) -> Any:
    """A function with a docstring."""
    function.__doc__ = text
    return function


def _get_privateuse1_backend_name() -> str:
    """The name of a backend that there is not."""
    return "privateuseone"


def _len_torch_function_stack() -> int:
    """0: there are no modes that see each function."""
    return 0


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """Names of the ways that PyTorch computes an operation in."""


class DispatchKeySet:
    """Several such names.

    Args:
        key: the first one, or several.
    """

    def __init__(self, key: Any) -> None:
        self.keys = set(key) if isinstance(key, set) else {key}

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self.keys | other.keys)

    def has(self, key: str) -> bool:
        """Whether a name is among them."""
        return key in self.keys


def _ExcludeDispatchKeyGuard(keys: Any) -> Any:
    """A block without effect."""
    return nullcontext()


def _has_mkldnn() -> bool:
    """Whether oneDNN is behind it: no."""
    return False

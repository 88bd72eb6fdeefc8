"""PyTorch's paths of its layers: every one below leads to ``torch.nn``."""

from typing import Any

from lantern.errors import EagerError
from lantern.torch.nn import convolution, hooks, normalisation, state
from lantern.torch.nn.attention import (
    NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear,
)
from lantern.torch.nn.cells import _Cell
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.hooks import (
    register_module_backward_hook as register_module_backward_hook,
)
from lantern.torch.nn.hooks import (  # noqa: F401 - which programs look for here
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from lantern.torch.nn.hooks import (
    register_module_forward_hook as register_module_forward_hook,
)
from lantern.torch.nn.hooks import (
    register_module_forward_pre_hook as register_module_forward_pre_hook,
)
from lantern.torch.nn.hooks import (
    register_module_full_backward_hook as register_module_full_backward_hook,
)
from lantern.torch.nn.hooks import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from lantern.torch.nn.lazy import LazyModuleMixin as LazyModuleMixin
from lantern.torch.nn.simple import Loss, WeightedLoss
from lantern.torch.nn.state import _IncompatibleKeys as _IncompatibleKeys
from lantern.torch.run.aliases import lead

__all__ = ["paths"]

__path__: list[str] = []
_BatchNorm, _InstanceNorm = normalisation.BatchNorm, normalisation.InstanceNorm
_NormBase, _ConvNd = normalisation._Running, convolution._Convolution
RNNCellBase = _Cell
_Loss, _WeightedLoss = Loss, WeightedLoss
_EXTRA_STATE_KEY_SUFFIX = state._EXTRA
_global_parameter_registration_hooks = hooks._AT_REGISTRATION["_parameters"]
_global_buffer_registration_hooks = hooks._AT_REGISTRATION["_buffers"]
_global_module_registration_hooks = hooks._AT_REGISTRATION["_modules"]
_global_forward_hooks = hooks.EVERY._forward_hooks
_global_forward_pre_hooks = hooks.EVERY._forward_pre_hooks


def _ntuple(n: int, name: str = "parse") -> Any:
    """A function that repeats a number n times, and makes others a tuple."""
    return lambda x: each(x, n)


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _get_activation_fn(activation: str) -> Any:
    """The function of a layer of a transformer, by its name."""
    from lantern.torch.nn import functional

    if activation not in ("relu", "gelu"):
        raise EagerError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)


def __getattr__(name: str) -> Any:
    """A layer, wherever it stands."""
    from lantern.torch import nn

    return getattr(nn, name)


paths = lead(
    __name__,
    "activation batchnorm container conv distance dropout flatten fold instancenorm "
    "lazy linear loss module normalization padding pixelshuffle pooling rnn sparse "
    "transformer upsampling utils",
)
globals().update(paths)

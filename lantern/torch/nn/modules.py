"""PyTorch's paths of its layers: every one below leads to ``torch.nn``."""

from collections.abc import Iterable
from copy import deepcopy
from textwrap import indent
from typing import Any

from lantern.errors import EagerError
from lantern.torch.nn import convolution, hooks, normalisation, padding, simple, state
from lantern.torch.nn.attention import (
    NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear,
)
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
_ConvTransposeNd = convolution._Transposed
_Loss, _WeightedLoss = Loss, WeightedLoss
_ConstantPadNd, _CircularPadNd = padding._ConstantPad, padding._CircularPad
_ReflectionPadNd, _ReplicationPadNd = padding._ReflectionPad, padding._ReplicationPad
globals().update({name: simple.made(name) for name in simple.KINDS})
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


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Each part n times, the last one first: paddings of axes for ``F.pad``."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Any) -> Any:
    """Sizes, with those of the input in the place of None."""
    if isinstance(out_size, int | tuple):
        return out_size
    last = defaults[-len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, last, strict=True)]


def _addindent(s_: str, numSpaces: int) -> str:
    """Lines, moved to the right but for the first."""
    first, line, rest = s_.partition("\n")
    return first + line + indent(rest, " " * numSpaces, lambda _: True)


def _get_clones(module: Any, N: int) -> Any:
    """N copies of a module."""
    return __getattr__("ModuleList")([deepcopy(module) for _ in range(N)])


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """The parts along an axis in another order."""
    return tensor.index_select(dim, permutation)


def consume_prefix_in_state_dict_if_present(
    state_dict: dict[str, Any], prefix: str
) -> None:
    """Take a prefix, such as "module.", from the names of a state, in its order.

    Args:
        state_dict: the state; its versions of modules (``_metadata``) as well.
        prefix: what their names begin with.

    Example:
        >>> state = {"module.weight": 1, "step": 2}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'weight': 1, 'step': 2}
    """
    for table in (state_dict, getattr(state_dict, "_metadata", None) or {}):
        for name in list(table):
            value = table.pop(name)
            has_it = name.startswith(prefix) or (name and f"{name}." == prefix)
            table[name[len(prefix) :] if has_it else name] = value


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


# What stands at each path; libraries look through them for the layers that there are.
_STANDS = """
activation Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish
    Hardswish ELU CELU SELU GLU GELU Hardshrink LeakyReLU LogSigmoid Softplus Softshrink
    MultiheadAttention PReLU Softsign Tanhshrink Softmin Softmax Softmax2d LogSoftmax
adaptive AdaptiveLogSoftmaxWithLoss
batchnorm BatchNorm1d LazyBatchNorm1d BatchNorm2d LazyBatchNorm2d BatchNorm3d
    LazyBatchNorm3d SyncBatchNorm
channelshuffle ChannelShuffle
container Sequential ModuleList ModuleDict ParameterList ParameterDict
conv Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d
    LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
distance PairwiseDistance CosineSimilarity
dropout Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout
flatten Flatten Unflatten
fold Fold Unfold
instancenorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d
    LazyInstanceNorm2d LazyInstanceNorm3d
lazy LazyModuleMixin
linear Bilinear Identity LazyLinear Linear
loss L1Loss NLLLoss PoissonNLLLoss GaussianNLLLoss KLDivLoss MSELoss BCELoss
    BCEWithLogitsLoss HingeEmbeddingLoss MultiLabelMarginLoss SmoothL1Loss HuberLoss
    SoftMarginLoss CrossEntropyLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss
    MarginRankingLoss MultiMarginLoss TripletMarginLoss
    TripletMarginWithDistanceLoss CTCLoss
module Module
normalization LocalResponseNorm CrossMapLRN2d LayerNorm GroupNorm RMSNorm
padding CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d
    ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
    ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d
pixelshuffle PixelShuffle PixelUnshuffle
pooling MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d
    AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d
    LPPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AdaptiveAvgPool1d
    AdaptiveAvgPool2d AdaptiveAvgPool3d
rnn RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell
sparse Embedding EmbeddingBag
transformer Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer
    TransformerDecoderLayer
upsampling Upsample UpsamplingNearest2d UpsamplingBilinear2d
"""
_names: dict[str, list[str]] = {}
for _line in _STANDS.replace("\n    ", " ").split("\n"):
    for _path, *_layers in [_line.split()] if _line else []:
        _names[_path] = _layers
paths = lead(__name__, " ".join([*_names, "utils"]))
for _path, _layers in _names.items():
    _found = {n: globals()[n] if n in globals() else __getattr__(n) for n in _layers}
    vars(paths[_path]).update(_found, __all__=_layers)
    globals().update(_found)
globals().update(paths)

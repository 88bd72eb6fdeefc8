"""Functions of tensors that layers are made of, under PyTorch's names."""

from typing import Any as _Any

from lantern.torch.nn.functional.activation import *
from lantern.torch.nn.functional.alignment import *
from lantern.torch.nn.functional.attention import *
from lantern.torch.nn.functional.classes import *
from lantern.torch.nn.functional.convolution import *
from lantern.torch.nn.functional.fractional import *
from lantern.torch.nn.functional.linear import *
from lantern.torch.nn.functional.loss import *
from lantern.torch.nn.functional.margin import *
from lantern.torch.nn.functional.normalisation import *
from lantern.torch.nn.functional.pooling import *
from lantern.torch.nn.functional.sampling import *
from lantern.torch.nn.functional.shaping import *
from lantern.torch.nn.functional.shares import *
from lantern.torch.run.aliases import missing as _missing
from lantern.torch.tables import place as _place
from lantern.torch.tensor.halves import single as _single

_NORMALISING = (
    "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm"
).split()
_ADDING = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d "
    "avg_pool3d bilinear conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity fold gelu glu grid_sample "
    "interpolate kl_div lp_pool1d lp_pool2d lp_pool3d nll_loss normalize "
    "pairwise_distance pdist prelu scaled_dot_product_attention softplus softshrink "
    "tanhshrink upsample upsample_bilinear"
).split()
# Of whole numbers these would be rounded on the way, or wrap around.
_REAL = (
    "gaussian_nll_loss gelu grid_sample hardshrink huber_loss "
    "logsigmoid multilabel_soft_margin_loss nll_loss smooth_l1_loss soft_margin_loss"
).split()
globals().update(
    {name: _single(globals()[name], whole=name not in _REAL) for name in _ADDING}
    | {name: _single(globals()[name], whole=False) for name in _REAL}
    | {
        name: _single(globals()[name], True, name == "local_response_norm")
        for name in _NORMALISING
    }
)
_place(__name__, globals())


def __getattr__(name: str) -> _Any:
    """``nn.grad``, which is here as well; else say which name comes nearest."""
    if name == "grad":
        from lantern.torch.nn import grad  # which imports this module

        return grad
    raise _missing("module 'torch.nn.functional'", name, globals())

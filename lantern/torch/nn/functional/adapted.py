"""Functions of layers, as they are given out: types that they cannot do go round."""

from typing import Any

from lantern.torch.tables import place
from lantern.torch.tensor.halves import single

__all__ = ["adapt"]

_NORMALISING = frozenset(
    (
        "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm"
    ).split()
)
_ADDING = frozenset(
    (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d "
        "avg_pool2d avg_pool3d bilinear conv1d conv2d conv3d conv_tbc conv_transpose1d "
        "conv_transpose2d conv_transpose3d cosine_similarity fold gelu glu grid_sample "
        "interpolate kl_div lp_pool1d lp_pool2d lp_pool3d nll_loss normalize "
        "pairwise_distance pdist prelu scaled_dot_product_attention softplus "
        "softshrink tanhshrink upsample upsample_bilinear"
    ).split()
)
# Of whole numbers these would be rounded on the way, or wrap around.
_REAL = frozenset(
    (
        "gaussian_nll_loss gelu grid_sample hardshrink huber_loss "
        "logsigmoid multilabel_soft_margin_loss nll_loss smooth_l1_loss "
        "soft_margin_loss"
    ).split()
)


def adapt(names: dict[str, Any]) -> None:
    """Let functions add float16 in float32, and be found under PyTorch's path.

    Args:
        names: of the module that gives them out.
    """
    for name in (_NORMALISING | _ADDING | _REAL) & names.keys():
        mixed = name in _NORMALISING
        whole = name == "local_response_norm" if mixed else name not in _REAL
        names[name] = single(names[name], mixed, whole)
    place("lantern.torch.nn.functional", names)

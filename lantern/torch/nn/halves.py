"""Layers of bfloat16 whose products an engine computes as they are, rounded once."""

from typing import Any

from lantern.core.value import Rule
from lantern.engines import halves as engine
from lantern.op import op
from lantern.torch.nn.products import rounded, widened
from lantern.torch.nn.starting import fused
from lantern.torch.tensor.halves import in_single

__all__ = ["with_halves"]


@op
def _rounded_affine(x: Any, weight: Any, bias: Any, /) -> Rule:
    """``x @ weight.T + bias`` of halves, as one product, each result rounded once.

    Shapes:
        x: (..., n); weight: (m, n); bias: (m,) or None; result: (..., m)

    Rule:
        x_bar = z_bar @ weight; weight_bar = z_bar.T @ x; bias_bar = z_bar
    """
    lengths = x.shape
    flat = x.reshape(-1, lengths[-1])
    z = rounded(flat, weight.T, bias).reshape(*lengths[:-1], weight.shape[0])
    z_bar = yield (z, z := None, x := None, bias := None)[0]
    back = z_bar.reshape(-1, weight.shape[0])
    yield lambda: rounded(back, weight).reshape(lengths)
    yield lambda: rounded(back.T, flat)
    yield lambda: widened(back).sum(axis=0).astype(back.dtype)


_affine = fused(_rounded_affine, halves=None)


def with_halves(affine: Any) -> Any:
    """A layer's product for halves, from the one for other types."""

    def operate(x: Any, weight: Any, bias: Any, more: Any = None) -> Any:
        first = x.primal
        same = bias is None or bias.primal.dtype == first.dtype
        if more is None and same and engine.takes(first, weight.primal):
            return _affine(x, weight, bias)
        return in_single(affine, x, weight, bias, more)

    return operate

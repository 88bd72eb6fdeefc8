"""Attention by several heads."""

from contextlib import nullcontext
from enum import Enum
from typing import Any

from lantern.errors import OptionError, SizeError
from lantern.torch.nn import flex_attention as flex_attention
from lantern.torch.nn import functional as F
from lantern.torch.nn import init
from lantern.torch.nn.linear import Linear, weights
from lantern.torch.nn.module import Module
from lantern.torch.run.aliases import lead
from lantern.torch.tensor.tensor import Tensor

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """A linear map, under the name by which PyTorch prints it."""


class MultiheadAttention(Module):
    """Values averaged by how well keys fit queries, by several heads.

    Args:
        embed_dim: the length of a query.
        num_heads: how many heads share its features.
        dropout: what part of the weights is dropped.
        bias: whether there are biases.
        add_bias_kv: whether a learned key and value are added.
        add_zero_attn: whether a key and value of zeros are added.
        kdim: the length of a key.
        vdim: the length of a value.
        batch_first: whether the first axis is the batch, not time.
        device: where the parameters shall lie.
        dtype: their type.

    Example:
        >>> import lantern.torch as torch
        >>> attention = torch.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> x = torch.ones(4, 5, 8)
        >>> out, weights = attention(x, x, x)
        >>> out.shape, weights.shape
        (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))

    References:
        Vaswani et al. (2017), section 3.2.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise OptionError(
                f"embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise SizeError("embed_dim must be divisible by num_heads")
        options = {"dtype": dtype, "device": device}
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        alike = self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if alike:
            self.in_proj_weight = weights(3 * embed_dim, embed_dim, **options)
        for name, width in widths.items():
            own = None if alike else weights(embed_dim, width, **options)
            self.register_parameter(f"{name}_proj_weight", own)
        if not alike:
            self.register_parameter("in_proj_weight", None)
        made = weights(3 * embed_dim, **options) if bias else None
        self.register_parameter("in_proj_bias", made)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias, **options
        )
        for name in ("bias_k", "bias_v"):
            made = weights(1, 1, embed_dim, **options) if add_bias_kv else None
            self.register_parameter(name, made)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in", "q", "k", "v"):
            weight = self._parameters[f"{name}_proj_weight"]
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Any]:
        """The averages, and the weights, or None."""
        turn = self.batch_first and query.dim() == 3
        if turn:
            alike = key is query, value is key
            query = query.transpose(0, 1)
            key = query if alike[0] else key.transpose(0, 1)
            value = key if alike[1] else value.transpose(0, 1)
        out, shares = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if turn else out), shares


class SDPBackend(Enum):
    """Ways of computing attention, of which one is here: step by step."""

    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3


def sdpa_kernel(backends: Any, set_priority: bool = False) -> Any:
    """A block in which a way of computing attention is chosen: it has no effect."""
    return nullcontext()


# The path of attention whose scores a function changes.
__path__: list[str] = []
lead(__name__, "flex_attention", "lantern.torch.nn.flex_attention")

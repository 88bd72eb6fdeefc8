"""Values averaged by how well keys fit queries."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, SizeError
from lantern.torch.methods import table
from lantern.torch.nn.functional.linear import linear
from lantern.torch.nn.functional.shares import dropout
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.operators import cast
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

cat = table.FUNCTIONS["cat"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Values, averaged by the softmax of the products of queries and keys.

    Shapes:
        query: (..., t, n); key: (..., s, n); value: (..., s, m); result: (..., t, m)

    Example:
        >>> import lantern.torch as torch
        >>> q = torch.tensor([[[0.0, 0.0]]])
        >>> k = v = torch.tensor([[[1.0, 0.0], [3.0, 4.0]]])
        >>> torch.nn.functional.scaled_dot_product_attention(q, k, v)
        tensor([[[2., 2.]]])
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(times, -3) for x in (key, value))
    scores = query * scale @ key.transpose(-2, -1)
    if is_causal:
        plain, size = base(query), scores.shape[-2:]
        hidden = np.triu(namespace(plain).full(size, -np.inf, plain.dtype), 1)
        scores = scores + fresh(hidden)
    if attn_mask is not None:
        if base(attn_mask).dtype.kind == "b":
            scores = scores.masked_fill(~attn_mask, -np.inf)
        else:
            scores = scores + cast(attn_mask, base(scores).dtype)
    return dropout(scores.softmax(-1), dropout_p) @ value


def _heads(x: Tensor, count: int) -> Tensor:
    """(t, n, e) as (n, heads, t, e / heads)."""
    t, n, width = base(x).shape
    return x.reshape(t, n, count, width // count).permute(1, 2, 0, 3)


def _projected(query: Any, key: Any, value: Any, weights: Any, bias: Any) -> list[Any]:
    """Queries, keys and values through their weights."""
    if not isinstance(weights, tuple):
        if key is query and value is query:
            return list(linear(query, weights, bias).chunk(3, -1))
        weights = weights.chunk(3, 0)
    biases = (None,) * 3 if bias is None else bias.chunk(3, 0)
    return [
        linear(x, w, b)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]


def _added_mask(mask: Any, padding: Any, n: int, heads: int, kind: Any) -> Any:
    """What is added to the scores (n, heads, t, s); None for nothing."""

    def additive(x: Any) -> Any:
        if base(x).dtype.kind != "b":
            return cast(x, kind)
        zeros = namespace(base(x)).zeros(base(x).shape, dtype=kind)
        return fresh(zeros).masked_fill(x, -np.inf)

    if mask is not None:
        if base(mask).ndim == 3:
            if len(mask) != n * heads:
                raise EagerError(
                    f"The shape of the 3D attn_mask is {mask.shape}, but should start "
                    f"with {n * heads}."
                )
            mask = mask.unflatten(0, (n, heads))
        mask = additive(mask)
    if padding is not None:
        padding = additive(padding)[:, None, None, :]
        mask = padding if mask is None else mask + padding
    return mask


def _extended(
    k: Tensor, v: Tensor, mask: Any, bias_k: Any, bias_v: Any, zeros: bool
) -> tuple[Any, Any, Any]:
    """Keys, values and mask with learned ones, and with zeros, behind them."""
    n = k.shape[1]
    if bias_k is not None:
        k, v = (cat([x, b.expand(1, n, -1)]) for x, b in ((k, bias_k), (v, bias_v)))
    if zeros:
        k, v = (cat([x, x.new_zeros(1, n, x.shape[-1])]) for x in (k, v))
    more = (bias_k is not None) + bool(zeros)
    if mask is not None and more:
        mask = cat([mask, mask.new_zeros(*mask.shape[:-1], more)], -1)
    return k, v, mask


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Any, p: float) -> Any:
    """The averages of all heads side by side, and the weights."""
    scores = q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)
    scores = scores if mask is None else scores + mask
    shares = dropout(scores.softmax(-1), p)
    return (shares @ v).permute(2, 0, 1, 3).flatten(2), shares


def _check_width(wanted: int, found: int) -> None:
    if found != wanted:
        raise SizeError(
            f"was expecting embedding dimension of {wanted}, but got {found}"
        )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Any]:
    """Attention by several heads, each with its part of the features.

    Shapes:
        query: (t, n, e); key, value: (s, n, e), all without n if not in batches;
        result: (t, n, e) and the weights (n, t, s), or (n, heads, t, s)

    Example:
        >>> import lantern.torch as torch
        >>> x, one = torch.ones(3, 1, 2), torch.eye(2)
        >>> rest = 2, 1, torch.cat([one] * 3), None, None, None, False, 0.0, one, None
        >>> torch.nn.functional.multi_head_attention_forward(x, x, x, *rest)[1][0, 0]
        tensor([0.3333, 0.3333, 0.3333])
    """
    batched = base(query).ndim == 3
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    _check_width(embed_dim_to_check, query.shape[-1])
    weights = in_proj_weight
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    n, kind = query.shape[1], base(q).dtype
    mask = _added_mask(attn_mask, key_padding_mask, n, num_heads, kind)
    k, v, mask = _extended(k, v, mask, bias_k, bias_v, add_zero_attn)
    p = dropout_p if training else 0.0
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    out, shares = _attended(q, k, v, mask, p)
    out = linear(out, out_proj_weight, out_proj_bias)
    out = out if batched else out.squeeze(1)
    if not need_weights:
        return out, None
    shares = shares.mean(1) if average_attn_weights else shares
    return out, shares if batched else shares.squeeze(0)

"""Values averaged by how well keys fit queries."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, SizeError
from lantern.torch.methods import table
from lantern.torch.nn.functional.linear import linear
from lantern.torch.nn.functional.shares import dropout
from lantern.torch.nn.rules import rearranged
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
    if attn_mask is None:
        return dropout(scores.softmax(-1), dropout_p) @ value
    if is_causal:
        raise EagerError(
            "scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if base(attn_mask).dtype.kind == "b":
        scores, empty = scores.masked_fill(~attn_mask, -np.inf), ~base(attn_mask)
    else:
        scores = scores + cast(attn_mask, base(scores).dtype)
        empty = base(attn_mask) == -np.inf
    return dropout(_shares(scores, empty), dropout_p) @ value


def _shares(scores: Tensor, hidden: Any) -> Tensor:
    """The softmax of scores, of which a mask hides some: 0 where it hides a whole row.

    Without that, there would be no number in the row, and none in any gradient.
    """
    rows = hidden.all(axis=-1, keepdims=True)
    if not rows.any():
        return scores.softmax(-1)
    none = fresh(rows)
    return scores.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)


def _heads(x: Tensor, count: int, order: Any = (1, 2, 0, 3)) -> Any:
    """(t, n, e) as (n, heads, t, e / heads), or in another order than (1, 2, 0, 3)."""
    t, n, width = base(x).shape
    shape = t, n, count, width // count
    result = tuple([shape[i] for i in order])
    return rearranged(x, shape=shape, order=order, result=result)


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


def _added_mask(mask: Any, padding: Any, query: Any, heads: int) -> Any:
    """What is added to the scores (n, heads, t, s); None for nothing."""
    n, kind = query.shape[1], query.dtype

    def additive(x: Any) -> Any:
        if base(x).dtype.kind != "b":
            return cast(x, kind)
        zeros = namespace(base(x)).zeros(base(x).shape, dtype=kind)
        return fresh(zeros).masked_fill(x, -np.inf)

    if mask is not None:
        if base(mask).ndim == 3:
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


def _attended(qkv: Any, count: int, mask: Any, p: float, hidden: Any) -> Any:
    """The averages of all heads side by side, and the weights.

    Args:
        qkv: queries, keys and values.
        count: of heads.
        mask: is added to the scores, perhaps None.
        p: how likely a weight is dropped.
        hidden: what the mask hides, where no row may be without numbers.

    Shapes:
        queries: (t, n, e); keys, values: (s, n, e); results: (t, n, e),
        (n, heads, t, s)
    """
    q, v = _heads(qkv[0], count), _heads(qkv[2], count)
    n, _, t, d = shape = base(q).shape
    scores = q * d**-0.5 @ _heads(qkv[1], count, (1, 2, 3, 0))
    scores = scores if mask is None else scores + mask
    shares = scores.softmax(-1) if hidden is None else _shares(scores, hidden)
    shares = dropout(shares, p)
    out = rearranged(
        shares @ v, shape=shape, order=(2, 0, 1, 3), result=(t, n, count * d)
    )
    return out, shares


def _check_axes(
    query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int
) -> bool:
    """Whether there is a batch; raise unless all agree about it."""
    axes, others = base(query).ndim, (base(key).ndim, base(value).ndim)
    if axes not in (2, 3):
        raise SizeError(
            f"query should be unbatched 2D or batched 3D tensor but received {axes}-D "
            f"query tensor"
        )
    word = f"For {'batched' if axes == 3 else 'unbatched'} ({axes}-D) `query`, expected"
    if others != (axes, axes):
        raise SizeError(
            f"{word} `key` and `value` to be {axes}-D but found {others[0]}-D and "
            f"{others[1]}-D tensors respectively"
        )
    if padding is not None and base(padding).ndim != axes - 1:
        raise SizeError(
            f"{word} `key_padding_mask` to be `None` or {axes - 1}-D but found "
            f"{base(padding).ndim}-D tensor instead"
        )
    if mask is not None and base(mask).ndim not in (2, 3):
        raise SizeError(
            f"{word} `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{base(mask).ndim}-D tensor instead"
        )
    wanted = (heads, base(query).shape[0], base(key).shape[0])
    if axes == 2 and mask is not None and base(mask).ndim == 3:
        found = base(mask).shape
        if found != wanted:
            raise SizeError(
                f"Expected `attn_mask` shape to be {wanted} but got {found}"
            )
    return axes == 3


def _check_masks(mask: Any, padding: Any, query: Any, key: Any, heads: int) -> None:
    """Raise unless masks are of a type that is one, and fit."""
    (t, n), s = base(query).shape[:2], base(key).shape[0]
    for name, x in (("attn_mask", mask), ("key_padding_mask", padding)):
        if x is not None and base(x).dtype.kind in "iuc":
            raise SizeError(f"only bool and floating types of {name} are supported")
    if padding is not None and base(padding).shape != (n, s):
        raise SizeError(
            f"expecting key_padding_mask shape of {(n, s)}, but got {padding.shape}"
        )
    if mask is not None:
        axes = base(mask).ndim
        wanted = (t, s) if axes == 2 else (n * heads, t, s)
        if base(mask).shape != wanted:
            raise EagerError(
                f"The shape of the {axes}D attn_mask is {mask.shape}, but should be "
                f"{wanted}."
            )


def _check_numbers(wanted: int, found: int, is_causal: bool, mask: Any) -> None:
    """Raise unless there are as many features as were said, and a mask for a hint."""
    if found != wanted:
        raise SizeError(
            f"was expecting embedding dimension of {wanted}, but got {found}"
        )
    if is_causal and mask is None:
        raise EagerError(
            "Need attn_mask if specifying the is_causal hint. "
            "Transformer.generate_square_subsequent_mask makes one."
        )


def _check_pairs(key: Tensor, value: Tensor, separate: bool) -> None:
    """Raise unless there is a value for each key, as wide, if both have one weight."""
    if base(key).shape[:2] != base(value).shape[:2]:
        raise SizeError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's "
            f"{value.shape[:2]}"
        )
    if not separate and base(key).shape != base(value).shape:
        raise SizeError(
            f"key shape {key.shape} does not match value shape {value.shape}"
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
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Any]:
    """Attention by several heads, each with its part of the features.

    Shapes:
        query: (t, n, e); key, value: (s, n, e), or without n; static_k, static_v:
        (n * heads, s, d); result: (t, n, e), weights (n, t, s) or (n, heads, t, s)

    Example:
        >>> import lantern.torch as torch
        >>> x, one = torch.ones(3, 1, 2), torch.eye(2)
        >>> rest = 2, 1, torch.cat([one] * 3), None, None, None, False, 0.0, one, None
        >>> torch.nn.functional.multi_head_attention_forward(x, x, x, *rest)[1][0, 0]
        tensor([0.3333, 0.3333, 0.3333])
    """
    batched = _check_axes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = _of_one(key_padding_mask)
    _check_numbers(embed_dim_to_check, query.shape[-1], is_causal, attn_mask)
    _check_masks(attn_mask, key_padding_mask, query, key, num_heads)
    _check_pairs(key, value, use_separate_proj_weight)
    if use_separate_proj_weight:
        in_proj_weight = q_proj_weight, k_proj_weight, v_proj_weight
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    k, v = _static(k, v, static_k, static_v, num_heads, bias_k)
    mask = _added_mask(attn_mask, key_padding_mask, base(q), num_heads)
    k, v, mask = _extended(k, v, mask, bias_k, bias_v, add_zero_attn)
    # As in PyTorch, weights that are asked for are no numbers in an empty row.
    hidden = None if mask is None or need_weights else base(mask) == -np.inf
    p = dropout_p if training else 0.0
    out, shares = _attended((q, k, v), num_heads, mask, p, hidden)
    out = linear(out, out_proj_weight, out_proj_bias)
    shown = shares if need_weights else None
    return _as_asked(out, shown, average_attn_weights, batched)


def _of_one(mask: Any) -> Any:
    """The mask of one example, perhaps None, as that of several."""
    return None if mask is None else mask.unsqueeze(0)


def _static(
    k: Tensor, v: Tensor, static_k: Any, static_v: Any, heads: int, bias: Any
) -> Any:
    """Keys and values, or what was given in their place.

    Shapes:
        k, v, results: (s, n, heads * d); static_k, static_v: (n * heads, s, d) or None
    """
    found, (n, width) = [], base(k).shape[1:]
    for name, x, given in (("key", k, static_k), ("value", v, static_v)):
        if given is not None:
            if bias is not None:
                raise SizeError(f"bias cannot be added to static {name}.")
            wanted, (rows, _, d) = (n * heads, width // heads), base(given).shape
            if (rows, d) != wanted:
                raise SizeError(
                    f"expecting static_{name[0]} of sizes {wanted[0]} and {wanted[1]} "
                    f"along axes 0 and 2, but got {rows} and {d}"
                )
            x = given.view(n, heads, -1, d).permute(2, 0, 1, 3).reshape(-1, n, width)
        found.append(x)
    return found


def _as_asked(
    out: Tensor, shares: Any, average: bool, batched: bool
) -> tuple[Tensor, Any]:
    """The results: weights of all heads or their mean; of one example without its axis.

    Shapes:
        out: (t, n, e); shares: (n, heads, t, s), or None
    """
    if shares is not None and average:
        shares = shares.mean(1)
    if batched:
        return out, shares
    return out.squeeze(1), None if shares is None else shares.squeeze(0)

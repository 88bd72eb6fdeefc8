"""Attention whose scores a function changes: ``torch.nn.attention.flex_attention``.

The functions see all places at once, as tensors that broadcast; PyTorch compiles them.
"""

import math
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from lantern.torch.functions.creation import full
from lantern.torch.functions.elementwise import where
from lantern.torch.functions.ranges import arange
from lantern.torch.nn.functional.attention import scaled_dot_product_attention
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What is asked for besides the result.

    Attributes:
        lse: the logarithms of the sums of exponentials.
        max_scores: the largest scores.
    """

    lse: bool = False
    max_scores: bool = False


def noop_mask(batch: Any, head: Any, q_idx: Any, kv_idx: Any) -> Any:
    """Everything is seen."""
    return q_idx == q_idx


def and_masks(*mask_mods: Any) -> Any:
    """A mask of what all masks let through."""
    return lambda *where: reduce(and_, (m(*where) for m in mask_mods))


def or_masks(*mask_mods: Any) -> Any:
    """A mask of what any mask lets through."""
    return lambda *where: reduce(or_, (m(*where) for m in mask_mods))


def _places(B: Any, H: Any, Q: int, K: int, device: Any) -> list[Any]:
    """The numbers of batches, heads, questions and keys, along four axes."""
    sizes = (B or 1, H or 1, Q, K)
    return [
        arange(n, device=device).view([-1 if i == axis else 1 for i in range(4)])
        for axis, n in enumerate(sizes)
    ]


def create_mask(
    mod_fn: Callable[..., Any],
    B: Any,
    H: Any,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Any:
    """Which question sees which key, as a tensor.

    Args:
        mod_fn: of the numbers of batch, head, question and key; whether it is seen.
        B: how many batches; None if they do not matter.
        H: how many heads; None if they do not matter.
        Q_LEN: how many questions.
        KV_LEN: how many keys.
        device: where the tensor lies.

    Shapes:
        result: (B, H, Q_LEN, KV_LEN)

    Example:
        >>> from lantern.torch.nn.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    seen = mod_fn(*_places(B, H, Q_LEN, KV_LEN, device))
    return seen.expand(B or 1, H or 1, Q_LEN, KV_LEN)


class BlockMask:
    """Which question sees which key, as a function and as a tensor.

    Args:
        mask_mod: the function.
        mask: the tensor.
    """

    def __init__(self, mask_mod: Any, mask: Any) -> None:
        self.mask_mod, self.mask = mask_mod, mask

    @property
    def shape(self) -> Any:
        """Batches, heads, questions and keys."""
        return self.mask.shape

    def to_dense(self) -> Any:
        """The tensor."""
        return self.mask

    def to(self, device: Any) -> "BlockMask":
        """The same on a device."""
        return BlockMask(self.mask_mod, self.mask.to(device))


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: Any,
    H: Any,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Any = 128,
    _compile: bool = False,
) -> BlockMask:
    """As ``create_mask``, in the form that ``flex_attention`` takes.

    Example:
        >>> from lantern.torch.nn.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4).shape
        torch.Size([1, 1, 4, 4])
    """
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device))


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
) -> Any:
    """Attention whose scores a function changes.

    Args:
        query: what asks.
        key: what is compared with it.
        value: what is averaged.
        score_mod: of the scores and the numbers of batch, head, question and key.
        block_mask: which question sees which key.
        scale: what scores are multiplied by; 1 over the root of their length.
        enable_gqa: whether several heads of questions share one of keys.
        return_lse: whether the logarithms of the weights' sums are returned, too.
        kernel_options: has no effect.

    Shapes:
        query: (B, H, L, E); key: (B, H, S, E); value: (B, H, S, V);
        result: (B, H, L, V)

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.flex_attention import flex_attention
        >>> x = torch.ones(1, 1, 2, 3)
        >>> flex_attention(x, x, x, lambda s, b, h, q, k: s - (q - k).abs())
        tensor([[[[1., 1., 1.],
                  [1., 1., 1.]]]])
    """
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(times, -3) for x in (key, value))
    mask = None if block_mask is None else block_mask.mask
    if score_mod is None and not return_lse:
        return scaled_dot_product_attention(query, key, value, mask, scale=scale)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.mT) * scale
    if score_mod is not None:
        b, h, n, m = scores.shape
        scores = score_mod(scores, *_places(b, h, n, m, query.device))
    if mask is not None:
        scores = where(mask, scores, full((), -math.inf, dtype=scores.dtype))
    result = scores.softmax(-1) @ value
    return (result, scores.logsumexp(-1)) if return_lse else result

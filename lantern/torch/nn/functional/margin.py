"""Losses that ask for a distance between what is right and what is not."""

from typing import Any

import numpy as np

from lantern.torch import methods
from lantern.torch.nn.functional.activation import _softplus, logsigmoid
from lantern.torch.nn.functional.linear import cosine_similarity, pairwise_distance
from lantern.torch.nn.functional.loss import reduced
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "multi_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_F = methods.FUNCTIONS
where, clamp = _F["where"], _F["clamp"]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1; what it lacks to a margin where it is -1."""
    far = clamp(margin - input, min=0)
    losses = where(target == 1, input, 0.0) + where(target == -1, far, 0.0)
    return reduced(losses, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """1 less the cosine where the target is 1; the cosine beyond a margin at -1."""
    cosine = cosine_similarity(input1, input2, -1)
    apart = clamp(cosine - margin, min=0)
    losses = where(target == 1, 1 - cosine, 0.0) + where(target == -1, apart, 0.0)
    return reduced(losses, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """What the right order lacks to a margin."""
    return reduced(clamp(-target * (input1 - input2) + margin, min=0), reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``."""
    return reduced(_softplus(-target * input), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the cross entropies of yes and no."""
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(losses.mean(-1), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """What the right class lacks to a margin above each other."""
    own = input.gather(-1, target.unsqueeze(-1))
    losses = clamp(input - own + margin, min=0) ** p
    others = np.arange(input.shape[-1]) != base(target)[..., None]
    losses = losses * fresh(others.astype(base(input).dtype))
    if weight is not None:
        losses = losses * weight[target].unsqueeze(-1)
    return reduced(losses.sum(-1) / input.shape[-1], reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """What the distance to the negative lacks to a margin above the positive's."""

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """As ``triplet_margin_loss``, with a distance of one's own."""
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _F["minimum"](far, distance(positive, negative))
    return reduced(clamp(near - far + margin, min=0), reduction)

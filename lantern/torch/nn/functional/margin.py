"""Margin losses."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import EagerError, OptionError
from lantern.torch.methods import table
from lantern.torch.nn.functional.activation import _softplus, logsigmoid
from lantern.torch.nn.functional.linear import pairwise_distance
from lantern.torch.nn.functional.loss import chosen, reduced
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import type_name
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_F = table.FUNCTIONS
where, clamp = _F["where"], _F["clamp"]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1; what it lacks to a margin where it is -1.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.tensor([0.5, 0.2]), torch.tensor([1, -1])
        >>> torch.nn.functional.hinge_embedding_loss(x, y, reduction="none")
        tensor([0.5000, 0.8000])
    """
    far = clamp(margin - input, min=0)
    losses = where(target != -1, input, 0.0) + where(target != 1, far, 0.0)
    return reduced(losses, reduction, size_average, reduce)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """1 less the cosine where the target is 1; the cosine beyond a margin at -1.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> torch.nn.functional.cosine_embedding_loss(x, y, torch.tensor([1]))
        tensor(1.)
    """
    axes, wanted = base(target).ndim, base(target).ndim + 1
    if axes > 1:
        raise EagerError("0D or 1D target tensor expected, multi-target not supported")
    if base(input1).ndim != wanted or base(input2).ndim != wanted:
        raise EagerError(
            f"{axes}D target tensor expects {wanted}D input tensors, but found inputs "
            f"with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    dot = (input1 * input2).sum(-1)
    squares = [(x * x).sum(-1) + 1e-12 for x in (input1, input2)]
    cosine = dot / (squares[0] * squares[1]).sqrt()
    apart = clamp(cosine - margin, min=0)
    losses = where(target == 1, 1 - cosine, 0.0) + where(target == -1, apart, 0.0)
    return reduced(losses, reduction, size_average, reduce)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """What the right order lacks to a margin.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import margin_ranking_loss
        >>> x, y = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0])
        >>> margin_ranking_loss(x, y, torch.tensor([1, 1]), reduction="none")
        tensor([1., 0.])
    """
    return reduced(
        clamp(-target * (input1 - input2) + margin, min=0),
        reduction,
        size_average,
        reduce,
    )


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import soft_margin_loss
        >>> soft_margin_loss(torch.tensor([0.0, 9.0]), torch.tensor([1.0, 1.0]))
        tensor(0.3466)
    """
    return reduced(_softplus(-target * input), reduction, size_average, reduce)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the cross entropies of yes and no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.multilabel_soft_margin_loss(
        ...     torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 1.0]])
        ... )
        tensor(0.6931)
    """
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(losses.mean(-1), reduction, size_average, reduce)


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
    """What the right class lacks to a margin above each other.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import multi_margin_loss
        >>> multi_margin_loss(torch.tensor([[0.0, 0.5, 2.0]]), torch.tensor([1]))
        tensor(1.)
    """
    reduction = chosen(reduction, size_average, reduce)
    if p not in (1, 2):
        raise OptionError("only p == 1 and p == 2 supported")
    if weight is not None and base(weight).ndim != 1:
        raise OptionError("weight must be one-dimensional")
    single = base(input).ndim < 2
    x = input.reshape(1, -1) if single else input
    n, classes = base(x).shape
    index = base(target)
    if not classes:
        raise EagerError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(input.shape)}"
        )
    if index.size != n or index.ndim > 1:
        raise EagerError(
            f"multi_margin_loss: target tensor should be 1-D with size equal to the "
            f"number of input samples (batch size). Expected target size [{n}], but "
            f"got {list(index.shape)}"
        )
    if weight is not None and base(weight).shape != (classes,):
        raise EagerError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    if index.dtype != np.int64:
        raise EagerError(
            f"expected scalar type Long but found {type_name(index.dtype)}"
        )
    target = target.reshape(-1)
    losses = clamp(x - x.gather(1, target.unsqueeze(1)) + margin, min=0) ** p
    others = namespace(index).arange(classes) != base(target)[:, None]
    losses = losses * fresh(others.astype(base(input).dtype))
    if weight is not None:
        losses = losses * weight[target].unsqueeze(-1)
    losses = losses.squeeze(0) if single else losses
    return reduced(losses.sum(-1) / classes, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """What each class of a set lacks to a margin of 1 above each that is not in it.

    Args:
        input: what the classes have got.
        target: the numbers of the classes of the set, ended by -1.
        size_average: with ``reduce``, an older form of the reduction.
        reduce: see above.
        reduction: "mean", "sum" or "none".

    Shapes:
        input, target: (n, classes) or (classes,)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    reduction = chosen(reduction, size_average, reduce)
    index, shape = base(target), base(input).shape
    if len(shape) > 2 or 0 in shape[-1:]:
        raise EagerError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(shape)}"
        )
    if index.dtype != np.int64:
        raise EagerError(
            f"expected scalar type Long but found {type_name(index.dtype)}"
        )
    if index.shape != base(input).shape or index.ndim > 2:
        raise EagerError(
            f"inconsistent target size: {list(index.shape)} for input of size: "
            f"{list(input.shape)}"
        )
    classes = shape[-1] if shape else 1
    x = input.reshape(base(input).size // classes, classes)
    index = index.reshape(base(x).shape)
    listed = namespace(index).cummin(index >= 0, 1)
    inside = np.zeros_like(listed)
    rows, columns = np.nonzero(listed)
    inside[rows, index[rows, columns]] = True
    own = x.gather(1, fresh(np.where(listed, index, 0))).unsqueeze(2)
    pairs = fresh(listed[:, :, None] & ~inside[:, None, :])
    losses = where(pairs, clamp(1 - own + x.unsqueeze(1), min=0), 0.0)
    losses = losses.sum((1, 2)) / classes
    losses = losses if base(input).ndim == 2 else losses.squeeze(0)
    return reduced(losses, reduction)


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
    """What the distance to the negative lacks to a margin above the positive's.

    Example:
        >>> import lantern.torch as torch
        >>> anchor = near = torch.zeros(1, 2)
        >>> far = torch.tensor([[0.3, 0.4]])
        >>> torch.nn.functional.triplet_margin_loss(anchor, near, far)
        tensor(0.5000)
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=distance,
        margin=margin,
        swap=swap,
        reduction=chosen(reduction, size_average, reduce),
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
    """As ``triplet_margin_loss``, with a distance of one's own.

    Example:
        >>> import lantern.torch as torch
        >>> anchor = near = torch.zeros(1, 2)
        >>> far = torch.tensor([[0.3, 0.4]])
        >>> torch.nn.functional.triplet_margin_with_distance_loss(
        ...     anchor, near, far, distance_function=lambda x, y: (x - y).abs().sum(-1)
        ... )
        tensor(0.3000)
    """
    if margin <= 0:
        raise OptionError(f"margin must be greater than 0, got {margin}")
    axes = [base(x).ndim for x in (anchor, positive, negative)]
    if len(set(axes)) > 1:
        raise EagerError(
            f"The anchor, positive, and negative tensors are expected to have the same "
            f"number of dimensions, but got: anchor {axes[0]}D, positive {axes[1]}D, "
            f"and negative {axes[2]}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _F["minimum"](far, distance(positive, negative))
    return reduced(clamp(near - far + margin, min=0), reduction)

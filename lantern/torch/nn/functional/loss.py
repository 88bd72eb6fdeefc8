"""What is made small: how far results are from what they should be."""

import math
import warnings
from typing import Any

import numpy as np

from lantern.errors import EagerError, OptionError, PositionError
from lantern.torch import methods
from lantern.torch.nn import rules
from lantern.torch.nn.functional.activation import _softplus, logsigmoid
from lantern.torch.nn.starting import inside
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy",
    "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss", "nll_loss",
    "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip

_F = methods.FUNCTIONS
where = _F["where"]


def chosen(reduction: str, size_average: Any, reduce: Any) -> str:
    """A reduction, checked, which older programs name by two truths."""
    if size_average is None and reduce is None:
        if reduction not in ("mean", "sum", "none"):
            raise OptionError(f"{reduction} is not a valid value for reduction")
        return reduction
    name = "none"
    if reduce is None or reduce:
        name = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use "
        f"reduction={name!r} instead.",
        stacklevel=4,
    )
    return name


def reduced(
    losses: Tensor, reduction: str, size_average: Any = None, reduce: Any = None
) -> Tensor:
    """The mean or the sum of losses, or they themselves."""
    reduction = chosen(reduction, size_average, reduce)
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    return losses


def _same_size(name: str, input: Tensor, target: Tensor) -> None:
    """Warn, as PyTorch does, if the two will be broadcast."""
    if base(input).shape != base(target).shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input "
            f"size ({input.size()}). This will likely lead to incorrect results due to "
            f"broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """The squares of the differences."""
    _same_size("mse_loss", input, target)
    difference = input - target
    losses = difference * difference
    return reduced(
        losses if weight is None else losses * weight, reduction, size_average, reduce
    )


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The absolute differences."""
    _same_size("l1_loss", input, target)
    return reduced((input - target).abs(), reduction, size_average, reduce)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute differences, squares where they are below beta."""
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    _same_size("smooth_l1_loss", input, target)
    d = (input - target).abs()
    return reduced(
        where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta),
        reduction,
        size_average,
        reduce,
    )


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Any = None,
) -> Tensor:
    """Half the squares of the differences, straight beyond delta."""
    if delta <= 0:
        raise EagerError("huber_loss does not support non-positive values for delta.")
    _same_size("huber_loss", input, target)
    d = (input - target).abs()
    losses = where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the chance of what was to be, yes or no."""
    if base(input).shape != base(target).shape:
        raise OptionError(
            f"Using a target size ({target.size()}) that is different to the input "
            f"size ({input.size()}) is deprecated. Please ensure they have the same "
            f"size."
        )
    x = base(input)
    if x.size and not (x.min() >= 0 and x.max() <= 1):
        raise EagerError("all elements of input should be between 0 and 1")
    tiny = 1e-12
    # A logarithm no lower than -100; its derivative is that at the smallest chance.
    yes = _bounded_log(input, tiny)
    no = _bounded_log(1 - input, tiny)
    losses = -(target * yes + (1 - target) * no)
    return reduced(
        losses if weight is None else losses * weight, reduction, size_average, reduce
    )


def _bounded_log(x: Tensor, tiny: float) -> Tensor:
    low = base(x) < tiny
    if not low.any():
        return x.log()
    with np.errstate(divide="ignore"):
        floor = np.maximum(np.log(base(x)), -100.0).astype(base(x).dtype)
    straight = fresh(floor) + (x - x.detach()) / tiny
    return where(fresh(low), straight, where(fresh(low), 1.0, x).log())


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """As ``binary_cross_entropy`` of the sigmoid, for any logits."""
    if base(input).shape != base(target).shape:
        raise OptionError(
            f"Target size ({target.size()}) must be the same as input size "
            f"({input.size()})"
        )
    if pos_weight is None:
        losses = _softplus(input) - input * target
    else:
        factor = (pos_weight - 1) * target + 1
        losses = (1 - target) * input - factor * logsigmoid(input)
    return reduced(
        losses if weight is None else losses * weight, reduction, size_average, reduce
    )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``."""
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = _F["xlogy"](target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / (input.shape[0] if base(input).ndim else 1)
    return reduced(losses, reduction, size_average, reduce)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithms of chances, at the classes that were to be.

    Shapes:
        input: (classes,), (n, classes) or (n, classes, ...); target: (), (n,), (n, ...)
    """
    reduction = chosen(reduction, size_average, reduce)
    x, index, kept, scales = _classes(input, target, weight, ignore_index)
    picked = x.gather(-1, fresh(np.where(kept, index, 0)[..., None])).squeeze(-1)
    losses = where(fresh(kept), -picked * fresh(scales), 0.0)
    if reduction == "mean":
        return losses.sum() / fresh(scales.sum()) if scales.size else losses.mean()
    return reduced(losses, reduction)


def _classes(
    input: Tensor, target: Tensor, weight: Any, ignore_index: int
) -> tuple[Any, Any, Any, Any]:
    """The input with classes last, their numbers; which count, and how much."""
    shape, index = base(input).shape, base(target)
    if index.dtype.kind not in "iu":
        raise EagerError("expected scalar type Long but found Float")
    if len(shape) > 1 and shape[0] != (index.shape or (0,))[0]:
        raise OptionError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({(index.shape or (0,))[0]})."
        )
    x = input.movedim(1, -1) if len(shape) > 2 else input
    n = base(x).shape[-1]
    kept = index != ignore_index
    bad = index[kept & ((index < 0) | (index >= n))]
    if bad.size:
        raise PositionError(f"Target {int(bad.flat[0])} is out of bounds.")
    scales = kept.astype(base(input).dtype)
    if weight is not None:
        scales = scales * base(weight)[np.where(kept, index, 0)]
    return x, index, np.asarray(kept), np.asarray(scales)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``nll_loss`` of the logarithm of the softmax; or against shares of all classes.

    Args:
        input: logits; the classes are axis 1.
        target: numbers of classes, or shares in the shape of the logits.
        weight: one for each class.
        size_average: with ``reduce``, an older form of the reduction.
        ignore_index: a number whose loss does not count.
        reduce: see above.
        reduction: "mean" over the weights that count, "sum" or "none".
        label_smoothing: what part of the target is shared by all classes.
    """
    reduction = chosen(reduction, size_average, reduce)
    kind = base(target).dtype.kind
    if kind == "f":
        return _against_shares(input, target, weight, reduction, label_smoothing)
    if label_smoothing:
        return _smoothed(
            input, target, weight, ignore_index, reduction, label_smoothing
        )
    if reduction == "none":
        logs = input.log_softmax(min(1, base(input).ndim - 1))
        return nll_loss(logs, target, weight, None, ignore_index, None, reduction)
    usual = weight is None and ignore_index < 0 and reduction in ("mean", "sum")
    shape = input.primal.shape
    if usual and len(shape) == 2:
        index = target.primal
        if len(index) == shape[0] > 0 and kind in "iu" and inside(index, shape[1]):
            scale = 1 / len(index) if reduction == "mean" else 1.0
            return rules.entropy(input, targets=np.array(index), scales=scale)
    x, index, kept, scales = _classes(input, target, weight, ignore_index)
    n = base(x).shape[-1]
    x = x if base(x).ndim == 2 else x.reshape(-1, n)
    index, scales = index.reshape(-1), scales.reshape(-1)
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            scales = scales / scales.sum()
    index = np.where(kept.reshape(-1), index, 0)
    return rules.entropy(x, targets=index, scales=scales)


def _against_shares(
    input: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float
) -> Tensor:
    axis = min(1, base(input).ndim - 1)
    n = base(input).shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / n
    logs = input.log_softmax(axis)
    if weight is not None:
        logs = logs * weight.reshape(-1, *[1] * (base(input).ndim - axis - 1))
    losses = -(logs * target).sum(axis)
    if reduction == "mean":
        return losses.sum() / max(1, base(input).size // n)
    return reduced(losses, reduction)


def _smoothed(
    input: Tensor,
    target: Tensor,
    weight: Any,
    ignore: int,
    reduction: str,
    share: float,
) -> Tensor:
    axis = min(1, base(input).ndim - 1)
    logs = input.log_softmax(axis)
    x, _, kept, scales = _classes(logs, target, weight, ignore)
    own = nll_loss(logs, target, weight, None, ignore, None, "none")
    each = -(x if weight is None else x * weight).sum(-1)
    each = where(fresh(kept), each, 0.0)
    losses = own * (1 - share) + each * (share / base(x).shape[-1])
    if reduction == "mean":
        return losses.sum() / fresh(scales.sum())
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the density of normal draws."""
    if not isinstance(var, Tensor):
        var = input * 0 + var
    if base(var).shape != base(input).shape:
        if base(var).shape == base(input).shape[:-1]:
            var = var.unsqueeze(-1)
        elif base(var).shape != (*base(input).shape[:-1], 1):
            raise OptionError("var is of incorrect size")
    if (base(var) < 0).any():
        raise OptionError("var has negative entry/entries")
    low = fresh(np.maximum(base(var), eps) - base(var))
    var = var + low
    losses = (var.log() + (input - target) ** 2 / var) * 0.5
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the chance of counts."""
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        rest = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        losses = losses + where(target > 1, rest, 0.0)
    return reduced(losses, reduction, size_average, reduce)

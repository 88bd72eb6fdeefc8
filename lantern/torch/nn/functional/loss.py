"""Losses, which are made small: how far results are from what they should be."""

import math
import warnings
from typing import Any

import numpy as np

from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.methods import table
from lantern.torch.nn.functional.activation import _softplus, logsigmoid
from lantern.torch.nn.rules import huber
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_differentiated, plain_number
from lantern.torch.tensor.dtypes import type_name
from lantern.torch.tensor.operators import as_kind
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss",
    "huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip

_F = table.FUNCTIONS
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


def _weighed(
    losses: Tensor,
    weight: Any,
    reduction: str,
    size_average: Any = None,
    reduce: Any = None,
) -> Tensor:
    """As ``reduced``, of losses with weights: their mean is over the weights."""
    if weight is None:
        return reduced(losses, reduction, size_average, reduce)
    if base(weight).shape != base(losses).shape:
        raise OptionError("Weights and input must have the same size.")
    reduction = chosen(reduction, size_average, reduce)
    losses = losses * weight
    return (
        losses.sum() / weight.sum()
        if reduction == "mean"
        else reduced(losses, reduction)
    )


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
    """The squares of the differences.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import mse_loss
        >>> mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    _same_size("mse_loss", input, target)
    difference = input - target
    losses = difference * difference
    return _weighed(losses, weight, reduction, size_average, reduce)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """The absolute differences.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import l1_loss
        >>> l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]), reduction="sum")
        tensor(2.)
    """
    _same_size("l1_loss", input, target)
    losses = (input - target).abs()
    return _weighed(losses, weight, reduction, size_average, reduce)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute differences, squares where they are below beta.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import smooth_l1_loss
        >>> smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    if beta < 0:
        raise EagerError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    _same_size("smooth_l1_loss", input, target)
    losses = _bent(input - target, beta)
    losses = losses if beta == 1 else losses * (1 / beta)
    return reduced(losses, reduction, size_average, reduce)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Any = None,
) -> Tensor:
    """Half the squares of the differences, straight beyond delta.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.tensor([0.5, 3.0]), torch.zeros(2)
        >>> torch.nn.functional.huber_loss(x, y, reduction="none", delta=2.0)
        tensor([0.1250, 4.0000])
    """
    if not isinstance(delta, int | float) and not is_differentiated(delta):
        raise ArgumentError(f"delta must be a float or int, got: {type(delta)}")
    if delta <= 0:
        raise EagerError("huber_loss does not support non-positive values for delta.")
    _same_size("huber_loss", input, target)
    return _weighed(_bent(input - target, delta), weight, reduction)


def _bent(d: Tensor, delta: Any) -> Tensor:
    """Half the squares, straight beyond delta."""
    if isinstance(delta, int | float):
        return huber(d, float(delta))
    d = d.abs()
    return where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the chance of what was to be, yes or no.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import binary_cross_entropy
        >>> binary_cross_entropy(torch.tensor([0.5, 0.9]), torch.tensor([1.0, 1.0]))
        tensor(0.3993)
    """
    if base(input).shape != base(target).shape:
        raise OptionError(
            f"Using a target size ({target.size()}) that is different to the input "
            f"size ({input.size()}) is deprecated. Please ensure they have the same "
            f"size."
        )
    x = base(input)
    if base(target).dtype != x.dtype:
        raise EagerError(
            f"Found dtype {type_name(base(target).dtype)} but expected "
            f"{type_name(x.dtype)}"
        )
    every = of_all_examples(x)
    if every.size and not (every.min() >= 0 and every.max() <= 1):
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
    if not of_all_examples(low).any():
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
    """As ``binary_cross_entropy`` of the sigmoid, for any logits.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([0.0, 1000.0])
        >>> torch.nn.functional.binary_cross_entropy_with_logits(
        ...     x, torch.tensor([1.0, 0.0]), reduction="none"
        ... )
        tensor([6.9315e-01, 1.0000e+03])
    """
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
    """``target * (log(target) - input)``.

    Example:
        >>> import lantern.torch as torch
        >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
        >>> torch.nn.functional.kl_div(q.log(), p, reduction="sum")
        tensor(0.1438)
    """
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = _F["xlogy"](target, target) - target * input
    if reduction == "batchmean":
        return losses.sum() / (input.shape[0] if base(input).ndim else 1)
    return reduced(losses, reduction, size_average, reduce)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of the density of normal draws.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.gaussian_nll_loss(
        ...     torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0])
        ... )
        tensor(1.1931)
    """
    if is_differentiated(var) and not getattr(var, "shape", ()):
        var = as_kind(var, base(input).dtype).expand(base(input).shape)
    elif not isinstance(var, Tensor):
        var = fresh(np.full_like(base(input), var))
    shape = base(input).shape
    if base(var).shape == shape[:-1] != shape:
        var = var.unsqueeze(-1)
    elif base(var).ndim != len(shape) or any(
        n not in (1, m) for n, m in zip(base(var).shape, shape, strict=True)
    ):
        raise OptionError("var is of incorrect size")
    if (of_all_examples(base(var)) < 0).any():
        raise OptionError("var has negative entry/entries")
    eps = plain_number("gaussian_nll_loss: eps", eps)
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
    """The negative logarithm of the chance of counts.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import poisson_nll_loss
        >>> poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
    """
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        rest = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        losses = losses + where(target > 1, rest, 0.0)
    return reduced(losses, reduction, size_average, reduce)

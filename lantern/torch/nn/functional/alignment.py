"""Connectionist temporal classification: labels whose positions are not known."""

from functools import partial
from typing import Any

import numpy as np

from lantern.torch import methods
from lantern.torch.places import beside, on_host
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = ["ctc_loss"]

_F = methods.FUNCTIONS
stack, cat, where = _F["stack"], _F["cat"], _F["where"]


def _between_blanks(targets: Any, lengths: Any, blank: int) -> Any:
    """For each example, its labels with a blank before, between and behind."""
    width = max([*lengths, 0])
    labels = np.full((len(lengths), 2 * width + 1), blank)
    start = 0
    for i, n in enumerate(lengths):
        row = targets[i, :n] if targets.ndim == 2 else targets[start : start + n]
        labels[i, 1 : 2 * n : 2] = row
        start += n
    return labels


def _beside(x: Tensor, array: Any) -> Tensor:
    """A table of the host's as a tensor, where another one lies."""
    return fresh(beside(array, base(x)))


def _losses(logs: Tensor, targets: Any, times: Any, lengths: Any, blank: int) -> Tensor:
    """For each example, the negative logarithm of the chance of its labels."""
    there = partial(_beside, logs)
    labels = _between_blanks(targets, lengths.tolist(), blank)
    examples = np.arange(len(lengths))[:, None]
    low = np.full(labels.shape, -np.inf, base(logs).dtype)
    skips = np.zeros(labels.shape, bool)
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    nothing, may_skip = there(low), there(skips)
    where_to = there(np.broadcast_to(examples, labels.shape).copy()), there(labels)
    first = there(np.arange(labels.shape[1])[None] < 2)
    chance = where(first, logs[0][where_to], nothing)
    chances = [chance]
    for t in range(1, int(times.max())):
        ways = [chance]
        for step in (1, 2)[: max(0, labels.shape[1] - 1)]:
            moved = cat([nothing[:, :step], chance[:, :-step]], 1)
            ways.append(moved if step == 1 else where(may_skip, moved, nothing))
        chance = stack(ways).logsumexp(0) + logs[t][where_to]
        chances.append(chance)
    last = stack(chances)[there(times - 1), there(examples[:, 0])]
    ends = np.stack([2 * lengths, np.maximum(2 * lengths - 1, 0)], 1)
    both = last.gather(1, there(ends))
    alone = there((lengths == 0)[:, None] & (np.arange(2) == 1)[None])
    return -where(alone, -np.inf, both).logsumexp(1)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the chance of labels, at whatever times they come.

    Args:
        log_probs: logarithms of the chances of all labels at all times.
        targets: the labels of each example in a row, or of all in one row.
        input_lengths: how many times count, for each example.
        target_lengths: how many labels.
        blank: the label that says nothing.
        reduction: "mean" over examples of the loss per label, "sum" or "none".
        zero_infinity: whether the loss of what is impossible is 0.

    Shapes:
        log_probs: (t, n, classes) or (t, classes); targets: (n, s), (s,) or (sum,)

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import ctc_loss
        >>> logs = torch.zeros(3, 1, 2).log_softmax(2)  # 3 times, 1 example, 2 labels
        >>> ctc_loss(logs, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1]))
        tensor(0.2877)

    References:
        Graves et al. (2006), equations 5 to 8.
    """
    batched = base(log_probs).ndim == 3
    logs = log_probs if batched else log_probs.unsqueeze(1)
    rows = (on_host(base(x)) for x in (input_lengths, target_lengths))
    times, lengths = (np.atleast_1d(row).astype(int) for row in rows)
    losses = _losses(logs, on_host(base(targets)), times, lengths, blank)
    if zero_infinity:
        losses = where(losses == np.inf, 0.0, losses)
    if reduction == "mean":
        counts = np.maximum(lengths, 1).astype(base(logs).dtype)
        return (losses / _beside(logs, counts)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses if batched else losses.squeeze(0)

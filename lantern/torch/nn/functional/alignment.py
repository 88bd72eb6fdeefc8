"""Connectionist temporal classification: labels whose positions are not known."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.errors import EagerError, PositionError
from lantern.op import op
from lantern.torch.methods import table
from lantern.torch.nn.functional.loss import reduced
from lantern.torch.nn.rules import plain
from lantern.torch.nn.starting import fused
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["ctc_loss"]


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


def _skips(labels: Any, blank: int) -> Any:
    """Where the label before may be left out: a blank between two that differ."""
    skips = np.zeros(labels.shape, bool)
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return skips


def _step(xp: Any, x: Any, skips: Any) -> Any:
    """Logarithms of chances one time later: to stay, to go on, or to leave one out."""
    x = xp.concatenate([xp.full((len(x), 2), -xp.inf, dtype=x.dtype), x], axis=1)
    skipped = xp.where(skips, x[:, :-2], -xp.inf)
    return xp.logaddexp(xp.logaddexp(x[:, 2:], x[:, 1:-1]), skipped)


class Paths:
    """The ways through the labels of each example.

    Attributes:
        labels: (n, s), with blanks between them.
        times: (n,), how long each example is.
        ends: (n, 2), where a path may end: at the last label, or the blank behind it.
        counts: (n, 2), which of the two there are.
    """

    def __init__(self, logs: Any, labels: Any, lengths: Any, times: Any, blank: int):
        ends = np.stack([np.maximum(2 * lengths - 1, 0), 2 * lengths], 1)
        self.labels, self.times = beside(labels, logs), beside(times, logs)
        self.skips = beside(_skips(labels, blank), logs)
        self.skips_back = beside(_skips(labels[:, ::-1], blank), logs)
        self.ends = beside(ends, logs)
        self.counts = beside(np.stack([lengths > 0, lengths >= 0], 1), logs)
        self.examples = beside(np.arange(len(labels)), logs)

    def forward(self, logs: Any) -> tuple[Any, Any]:
        """Logarithms of the chances of beginnings, and minus those of the whole."""
        xp = namespace(logs)
        here = logs[:, self.examples[:, None], self.labels]
        begun = xp.full(here.shape, -xp.inf, dtype=logs.dtype)
        begun[0, :, :2] = here[0, :, :2]
        for t in range(1, len(logs)):
            begun[t] = _step(xp, begun[t - 1], self.skips) + here[t]
        last = begun[self.times - 1, self.examples]
        last = xp.take_along_axis(last, self.ends, axis=1)
        last = xp.where(self.counts, last, -xp.inf)
        # Where no time passes, only nothing can be said.
        nothing = xp.where(self.counts[:, 0], -xp.inf, 0.0).astype(logs.dtype)
        total = xp.logaddexp(last[:, 0], last[:, 1])
        return begun, -xp.where(self.times > 0, total, nothing)

    def chances(self, logs: Any, begun: Any, losses: Any) -> Any:
        """How likely each label is said at each time, if all labels are."""
        xp = namespace(logs)
        places = self.examples[:, None], self.labels
        here = logs[:, *places][:, :, ::-1]
        final = xp.full(self.labels.shape, -xp.inf, dtype=logs.dtype)
        final[places[0], self.ends] = 0
        rest, ends = xp.empty_like(begun), final[:, ::-1]
        for t in range(len(logs) - 1, -1, -1):
            after = -xp.inf
            if t + 1 < len(logs):
                after = _step(xp, rest[t + 1] + here[t + 1], self.skips_back)
            rest[t] = xp.where((self.times == t + 1)[:, None], ends, after)
        found = xp.zeros(logs.shape, dtype=logs.dtype)
        when = xp.arange(len(logs))[:, None, None]
        both = xp.exp(begun + rest[:, :, ::-1] + losses[:, None])
        xp.add.at(found, (when, *places), both)
        return found


@op
def _alignment(logs: Any, /, *, paths: Paths) -> Any:
    """Minus the logarithm of the chance of an example's labels.

    Shapes:
        logs: (t, n, classes); result: (n,)

    Rule:
        logs_bar = z_bar * (exp(logs) - chance of each label, if all labels are said)
    """
    begun, losses = paths.forward(base(logs))
    z_bar = yield losses if plain(logs) else _alignment(logs, paths=paths)
    yield _surprise(logs, z_bar, paths=paths, begun=begun, losses=losses)


@op
def _surprise(
    logs: Any, z_bar: Any, /, *, paths: Paths, begun: Any, losses: Any
) -> Any:
    """How much likelier a label is than it is if all labels are said.

    Shapes:
        logs: (t, n, classes); z_bar: (n,); result: (t, n, classes)

    Rule:
        none, as in PyTorch
    """
    plain_logs, weights = base(logs), base(z_bar)
    xp = namespace(plain_logs)
    chances = paths.chances(plain_logs, begun, losses)
    # Of what cannot be said there is no chance, unless nobody asks.
    chances = xp.where((losses == xp.inf)[:, None], xp.nan, chances)
    asked = xp.arange(len(chances))[:, None] < xp.where(weights == 0, 0, paths.times)
    z = (xp.exp(plain_logs) - chances) * weights[:, None]
    _ = yield xp.where(asked[..., None], z, 0)
    yield _refuse
    yield _refuse


def _refuse() -> Any:
    raise EagerError("derivative for ctc_loss's backward is not implemented")


alignment = fused(_alignment)


def _check(shape: Any, targets: Any, times: Any, lengths: Any, blank: int) -> None:
    """Raise, in PyTorch's words, if sizes do not belong together."""
    limit, examples, classes = shape
    if not limit:
        raise EagerError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise EagerError("blank must be in label range")
    for name, x, most in (("input", times, limit), ("target", lengths, np.inf)):
        if x.dtype.kind not in "iu":
            raise EagerError(f"{name}_lengths must be integral")
        if x.shape != (examples,):
            raise EagerError(f"{name}_lengths must be of size batch_size")
        for wrong, bound in ((x < 0, "least 0"), (x > most, f"most {most}")):
            if wrong.any():
                raise EagerError(
                    f"Expected {name}_lengths to have value at {bound}, but got value "
                    f"{x[wrong][0]}"
                )
    least = (examples, max(lengths)) if targets.ndim == 2 else (sum(lengths),)
    if targets.shape[0] != least[0] or targets.shape[-1] < least[-1]:
        raise EagerError(
            f"Expected targets to have size {' x '.join(map(str, least))}, but got "
            f"size {' x '.join(map(str, targets.shape))}"
        )


where = table.FUNCTIONS["where"]


@each_example
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

    As in PyTorch, the gradient is that by what a ``log_softmax`` makes ``log_probs``
    of: at each time, the chance of a label less its chance if all labels are said. A
    ``log_softmax`` makes the same of it as of the derivative by ``log_probs`` alone,
    which is without the first of the two. It cannot be differentiated again.

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
        >>> logs = torch.zeros(3, 1, 2).log_softmax(-1)
        >>> torch.nn.functional.ctc_loss(logs, torch.tensor([[1]]), [3], [1])
        tensor(0.2877)

    References:
        Graves et al. (2006), equations 5 to 8 and 16.
    """
    batched = base(log_probs).ndim == 3
    logs = log_probs if batched else log_probs.unsqueeze(1)
    rows = (on_host(base(x)) for x in (input_lengths, target_lengths))
    times, lengths = (np.atleast_1d(row) for row in rows)
    wanted = on_host(base(targets))
    _check(base(logs).shape, wanted, times, lengths, blank)
    labels = _between_blanks(wanted, lengths.tolist(), blank)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= logs.shape[-1]:
        raise PositionError(f"a target is out of the range of {logs.shape[-1]} labels")
    paths = Paths(base(logs), labels, lengths, times, blank)
    losses = alignment(logs, paths=paths)
    if zero_infinity:
        losses = where(losses == np.inf, 0.0, losses)
    if reduction == "mean":
        counts = np.maximum(lengths, 1).astype(base(logs).dtype)
        losses = losses / fresh(beside(counts, base(logs)))
    return reduced(losses if batched else losses.squeeze(0), reduction)

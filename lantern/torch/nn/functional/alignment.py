"""Connectionist temporal classification: labels whose positions are not known."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.errors import EagerError, PositionError
from lantern.op import op
from lantern.torch.methods import table
from lantern.torch.nn.functional.loss import reduced
from lantern.torch.nn.functional.paths import Paths, between_blanks
from lantern.torch.nn.rules import plain
from lantern.torch.nn.starting import fused
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["ctc_loss"]


@op
def _alignment(logs: Any, /, *, paths: Paths) -> Any:
    """Minus the logarithm of the chance of an example's labels.

    Shapes:
        logs: (t, n, classes); result: (n,)

    Rule:
        logs_bar = z_bar * (exp(logs) - chance of each label, if all labels are said)
    """
    chances, losses = paths.passed(base(logs))
    z_bar = yield losses if plain(logs) else _alignment(logs, paths=paths)
    yield _surprise(logs, z_bar, paths=paths, chances=chances, losses=losses)


@op
def _surprise(
    logs: Any, z_bar: Any, /, *, paths: Paths, chances: Any, losses: Any
) -> Any:
    """How much likelier a label is than it is if all labels are said.

    Shapes:
        logs: (t, n, classes); z_bar: (n,); result: (t, n, classes)

    Rule:
        none, as in PyTorch
    """
    plain_logs, weights = base(logs), base(z_bar)
    xp = namespace(plain_logs)
    chances = paths.of_labels(chances, plain_logs)
    # Of what cannot be said there is no chance, unless nobody asks.
    chances = xp.where((losses == xp.inf)[:, None], xp.nan, chances)
    asked = xp.arange(len(chances))[:, None] < xp.where(weights == 0, 0, paths.times)
    z = (xp.exp(plain_logs) - chances) * weights[:, None]
    del logs, z_bar
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
    labels = between_blanks(wanted, lengths.tolist(), blank)
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

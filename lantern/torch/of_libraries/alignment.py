"""Labels beside frames: the most likely path, and the loss of a transducer."""

from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch.functions.creation import from_numpy
from lantern.torch.tensor.tensor import Tensor

__all__ = ["OPERATIONS"]


def forced_align(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
) -> tuple[Tensor, Tensor]:
    """The most likely of all paths that give the labels (Graves et al. 2006).

    Shapes:
        log_probs: (1, time, classes); targets: (1, labels);
        results: (1, time), the classes on the path, and ``log_probs``
    """
    if len(log_probs) != 1:
        raise EagerError(
            f"forced_align: {len(log_probs)} sequences. Give one at a time."
        )
    rows, labels = log_probs.detach().numpy()[0], targets.numpy()[0]
    repeated = int((labels[1:] == labels[:-1]).sum())
    if len(rows) < len(labels) + repeated:
        raise EagerError(
            f"forced_align: {len(labels)} labels of which {repeated} repeat the one "
            f"before, and {len(rows)} frames. Give a frame for each, at least."
        )
    states = np.full(2 * len(labels) + 1, blank, labels.dtype)
    states[1::2] = labels
    skips = np.zeros(len(states), bool)  # over a blank to another label
    skips[3::2] = labels[1:] != labels[:-1]
    best = np.full(len(states), -np.inf, rows.dtype)
    best[:2] = rows[0, states[:2]]
    steps = np.zeros((len(rows), len(states)), int)
    for t in range(1, len(rows)):
        one, two = (np.r_[np.full(n, -np.inf), best][: len(best)] for n in (1, 2))
        ways = np.array([best, one, np.where(skips, two, -np.inf)])
        steps[t] = ways.argmax(0)
        best = ways.max(0) + rows[t, states]
    at = len(states) - (1 if best[-1] > best[-2] else 2)
    path = np.empty((1, len(rows)), labels.dtype)
    for t in reversed(range(len(rows))):
        path[0, t] = states[at]
        at -= steps[t, at]
    return from_numpy(path), log_probs


def _transduced(blanks: Any, labels: Any) -> tuple[Any, Any, Any]:
    """Log-probabilities up to each point, and from it on; and of all paths.

    Shapes:
        blanks, labels: (time, n + 1), the step to the next frame and to the next label
    """
    frames, n = blanks.shape
    forward, backward = (np.full((frames + 1, n + 1), -np.inf) for _ in range(2))
    forward[0, 0], backward[frames, n - 1] = 0.0, 0.0
    for t in range(frames):
        for u in range(n):
            if t or u:
                forward[t, u] = np.logaddexp(
                    forward[t - 1, u] + blanks[t - 1, u] if t else -np.inf,
                    forward[t, u - 1] + labels[t, u - 1] if u else -np.inf,
                )
    for t in reversed(range(frames)):
        for u in reversed(range(n)):
            backward[t, u] = np.logaddexp(
                backward[t + 1, u] + blanks[t, u], backward[t, u + 1] + labels[t, u]
            )
    return forward[:-1, :-1], backward, backward[0, 0]


def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool = True,
) -> tuple[Tensor, Tensor]:
    """What a transducer's labels cost, and the derivative (Graves 2012).

    Shapes:
        logits: (n, time, labels + 1, classes); targets: (n, labels);
        logit_lengths, target_lengths: (n,);
        results: (n,), as the logits
    """
    x = logits.detach().numpy()
    costs, gradient = np.empty(len(x), x.dtype), np.zeros_like(x)
    lengths = zip(logit_lengths.tolist(), target_lengths.tolist(), strict=True)
    for k, (frames, n) in enumerate(lengths):
        row = x[k, :frames, : n + 1].astype(float)
        top = row.max(-1, keepdims=True)
        norm = top + np.log(np.exp(row - top).sum(-1, keepdims=True))
        scores = row - norm if fused_log_softmax else row
        names = targets.numpy()[k, :n]
        labels = np.full((frames, n + 1), -np.inf)
        labels[:, :n] = np.take_along_axis(scores[:, :n], names[None, :, None], 2)[
            ..., 0
        ]
        before, after, total = _transduced(scores[..., blank], labels)
        costs[k] = -total
        g = np.zeros_like(row)
        g[..., blank] -= np.exp(before + scores[..., blank] + after[1:, :-1] - total)
        step = np.exp(before + labels + after[:-1, 1:] - total)
        g[:, np.arange(n), names] -= step[:, :n]
        if fused_log_softmax:
            g -= np.exp(scores) * g.sum(-1, keepdims=True)
        gradient[k, :frames, : n + 1] = g.clip(-clamp, clamp) if clamp > 0 else g
    return from_numpy(costs), from_numpy(gradient)


OPERATIONS = {f.__name__: f for f in (forced_align, rnnt_loss_forward)}

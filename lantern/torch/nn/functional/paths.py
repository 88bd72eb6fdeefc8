"""The ways through the labels of examples, and how likely they are said when.

Chances are products over all times, and many of them too small for any number. So each
time they are divided by their sum, in double precision; where even that may lose what
counts, their logarithms are computed instead, in three times the time.
"""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.torch.tensor.devices import beside, on_host

__all__ = ["Paths", "between_blanks"]

# What is lost beside it is below 1e-300.
_LEAST = 1e-200


def between_blanks(targets: Any, lengths: Any, blank: int) -> Any:
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
        self.on_host = labels, lengths, times, blank
        ends = np.stack([np.maximum(2 * lengths - 1, 0), 2 * lengths], 1)
        self.labels, self.times = beside(labels, logs), beside(times, logs)
        self.skips = beside(_skips(labels, blank), logs)
        self.skips_back = beside(_skips(labels[:, ::-1], blank), logs)
        self.ends = beside(ends, logs)
        self.counts = beside(np.stack([lengths > 0, lengths >= 0], 1), logs)
        self.examples = beside(np.arange(len(labels)), logs)

    def passed(self, logs: Any) -> tuple[Any, Any]:
        """How likely each label is said when, if all are; and the losses.

        Shapes:
            logs: (t, n, classes); results: (t, n, s), (n,)
        """
        here = logs[:, self.examples[:, None], self.labels]
        with np.errstate(all="ignore"):
            chances, losses, right = self._scaled(here)
        losses = losses.astype(logs.dtype)
        rest = (~on_host(right)).nonzero()[0]
        if len(rest):
            labels, lengths, times, blank = self.on_host
            few = Paths(logs, labels[rest], lengths[rest], times[rest], blank)
            rows = beside(rest, logs)
            chances[:, rows], losses[rows] = few.in_logarithms(here[:, rows])
        return chances, losses

    def _scaled(self, here: Any) -> tuple[Any, Any, Any]:
        """As ``passed``, and for which examples that is right."""
        xp, (limit, n, s) = namespace(here), here.shape
        final = xp.zeros((n, s))
        final[self.examples[:, None], self.ends] = 1
        chances = xp.exp(here, out=xp.empty(here.shape))
        chances *= xp.arange(s) <= self.ends[:, 1:]  # not those of longer rows
        reached, sums = self._both_ways(chances, final)
        last = self.times - 1, self.examples
        chances *= reached[:, :n]
        ends = chances[last] * final
        chances *= reached[::-1, n:, ::-1]
        whole = chances.sum(axis=2)
        chances /= whole[..., None]
        there, back = sums[:, :n], sums[::-1, n:]
        within = xp.arange(limit)[:, None] < self.times
        fine = (whole / there > _LEAST) & (there > _LEAST) & (back > _LEAST)
        right = (fine | ~within).all(axis=0) & (self.times > 0)
        logs = xp.log(xp.where(within, there, 1))
        logs[last] = xp.log(ends.sum(axis=1))
        return chances, -logs.sum(axis=0), right

    def _both_ways(self, factors: Any, final: Any) -> tuple[Any, Any]:
        """How beginnings come to each label, and reversed ends, and what is said there.

        Both are passed through at once: (t, 2 n, s) each, and (t, 2 n).
        """
        xp, (limit, n, s) = namespace(factors), factors.shape
        reached, sums = xp.empty((limit, 2 * n, s)), xp.empty((limit, 2 * n))
        ones, turned = xp.ones(s + 2), factors[::-1, :, ::-1]
        skips = xp.concatenate([self.skips, self.skips_back]).astype(ones.dtype)
        starts = limit - self.times
        new = set(on_host(starts).tolist())
        state, skipped = xp.zeros((2 * n, s + 2)), xp.empty((2 * n, s))
        stays, goes, leaves = state[:, 2:], state[:, 1:-1], state[:, :-2]
        for t in range(limit):
            here = reached[t]
            xp.add(stays, goes, out=here)
            here += xp.multiply(leaves, skips, out=skipped)
            if not t:
                here[:n, :2] = 1
            if t in new:
                here[n:] = xp.where((starts == t)[:, None], final[:, ::-1], here[n:])
            xp.multiply(here[:n], factors[t], out=stays[:n])
            xp.multiply(here[n:], turned[t], out=stays[n:])
            stays /= xp.dot(state, ones, out=sums[t])[:, None]
        return reached, sums

    def in_logarithms(self, here: Any) -> tuple[Any, Any]:
        """As ``passed``, for chances of any size, which are given for each label."""
        xp = namespace(here)
        begun = xp.full(here.shape, -xp.inf, dtype=here.dtype)
        begun[0, :, :2] = here[0, :, :2]
        for t in range(1, len(here)):
            begun[t] = _step(xp, begun[t - 1], self.skips) + here[t]
        last = begun[self.times - 1, self.examples]
        last = xp.take_along_axis(last, self.ends, axis=1)
        last = xp.where(self.counts, last, -xp.inf)
        # Where no time passes, only nothing can be said.
        nothing = xp.where(self.counts[:, 0], -xp.inf, 0.0).astype(here.dtype)
        total = xp.logaddexp(last[:, 0], last[:, 1])
        losses = -xp.where(self.times > 0, total, nothing)
        rest = self._ends_in_logarithms(here[:, :, ::-1])[:, :, ::-1]
        return xp.exp(begun + rest + losses[:, None]), losses

    def _ends_in_logarithms(self, here: Any) -> Any:
        """Logarithms of the chances of what comes after a time, labels reversed."""
        xp = namespace(here)
        final = xp.full(self.labels.shape, -xp.inf, dtype=here.dtype)
        final[self.examples[:, None], self.ends] = 0
        rest, ends = xp.empty(here.shape, dtype=here.dtype), final[:, ::-1]
        for t in range(len(here) - 1, -1, -1):
            after = -xp.inf
            if t + 1 < len(here):
                after = _step(xp, rest[t + 1] + here[t + 1], self.skips_back)
            rest[t] = xp.where((self.times == t + 1)[:, None], ends, after)
        return rest

    def of_labels(self, chances: Any, logs: Any) -> Any:
        """The sums of chances over all places of a label.

        Shapes:
            chances: (t, n, s); logs, result: (t, n, classes)
        """
        xp, (limit, n, classes) = namespace(logs), logs.shape
        found = xp.zeros(logs.size, dtype=chances.dtype)
        rows = xp.arange(limit * n).reshape(limit, n, 1) * classes
        xp.add.at(found, (rows + self.labels).reshape(-1), chances.reshape(-1))
        return found.reshape(logs.shape).astype(logs.dtype)

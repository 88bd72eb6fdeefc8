"""Programs that no two examples run through alike, batched as they are.

A recurrent network over texts of different lengths, without padding; expressions that
are evaluated recursively; a beam search; and a network that decides for itself how long
to think. In these the functions that are run for many examples at once are marked. The
last network once more, with nothing marked, in plain operations on one example: there
any operation may wait for others. Each is run as a plain loop over its examples and by
lantern.batch, with the same results and gradients:

    python examples/batching.py
"""

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import lantern

LETTERS = " abcdefghijklmnopqrstuvwxyz."
SIZE, HIDDEN = len(LETTERS), 24
Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def loop(f: Callable[[Any], Any], examples: Sequence[Any]) -> list[Any]:
    """One example after the other."""
    return [f(x) for x in examples]


def begin(seed: int = 0) -> dict[str, Any]:
    """Weights of an LSTM over letters, and of a network that stops by itself."""
    rng = np.random.default_rng(seed)
    shapes = {
        "letters": (SIZE, 4 * HIDDEN),
        "hidden": (HIDDEN, 4 * HIDDEN),
        "out": (HIDDEN, SIZE),
        "think": (HIDDEN, HIDDEN),
        "halt": (HIDDEN, 1),
    }
    return {name: 0.4 * rng.standard_normal(shape) for name, shape in shapes.items()}


# A recurrent network over texts.

TEXTS = [
    "the rain it falls.",
    "no.",
    "a small boat goes out to sea and comes home late.",
    "we sing.",
    "under the bridge the water is green and slow.",
]


@lantern.batched
def lstm(letter: Any, h: Any, c: Any, *, w: Any) -> Any:
    """A step: hidden and cell state, and the log-probabilities of the next letter."""
    z = w["letters"][letter] + h @ w["hidden"]
    i, f, o, u = (z[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
    c = lantern.sigmoid(f) * c + lantern.sigmoid(i) * lantern.tanh(u)
    h = lantern.sigmoid(o) * lantern.tanh(c)
    return h, c, lantern.log_softmax(h @ w["out"])


@lantern.batched
def surprise(log_p: Any, letter: Any) -> Any:
    """-log p of a letter. letter: (n,); result: (n,)."""
    return -log_p[np.arange(len(letter)), letter]


def text_loss(w: Any, run: Run) -> Any:
    """How much the network is surprised by texts, each as long as it is."""

    def read(text: str) -> Any:
        h = c = np.zeros(HIDDEN)
        total = 0.0
        for now, then in pairwise(text):
            h, c, log_p = lstm(LETTERS.index(now), h, c, w=w)
            total = total + surprise(log_p, LETTERS.index(then))
        return total

    return sum(run(read, TEXTS))


# Expressions.

EXPRESSIONS: list[Any] = [
    ("*", "x", ("+", "x", 1.0)),
    ("+", ("*", "x", "x"), ("*", ("*", "x", "x"), "x")),
    3.0,
    ("*", ("+", "x", ("*", 2.0, "x")), ("+", ("*", "x", 0.5), ("+", "x", "x"))),
]


@lantern.batched
def add(x: Any, y: Any) -> Any:
    """The sum."""
    return x + y


@lantern.batched
def multiply(x: Any, y: Any) -> Any:
    """The product."""
    return x * y


def expression_sum(x: Any, run: Run) -> Any:
    """The sum of the expressions' values; both sides of each are evaluated together."""

    def evaluate(expression: Any) -> Any:
        if expression == "x":
            return x
        if isinstance(expression, float):
            return expression + 0 * x
        operation, left, right = expression
        operands = lantern.fork(lambda: evaluate(left), lambda: evaluate(right))
        return {"+": add, "*": multiply}[operation](*operands)

    return sum(run(evaluate, EXPRESSIONS))


# A beam search.


def beam_search(w: Any, run: Run, width: int = 3, longest: int = 12) -> list[str]:
    """The likeliest continuations of some letters, each up to its full stop."""

    def search(start: str) -> str:
        zeros = np.zeros(HIDDEN)
        beam = [(0.0, start, zeros, zeros)]
        while any(not text.endswith(".") for _, text, _, _ in beam):
            ends = [entry for entry in beam if entry[1].endswith(".")]
            going = [entry for entry in beam if not entry[1].endswith(".")]
            steps = lantern.fork(
                *[
                    lambda e=e: lstm(LETTERS.index(e[1][-1]), e[2], e[3], w=w)
                    for e in going
                ]
            )
            candidates = list(ends)
            for (score, text, _, _), (h, c, log_p) in zip(going, steps, strict=True):
                plain = np.asarray(lantern.core.value.base(log_p))
                for k in np.argsort(-plain)[:width].tolist():
                    letter = "." if len(text) == longest else LETTERS[k]
                    candidates.append((score + float(plain[k]), text + letter, h, c))
            beam = sorted(candidates, key=lambda entry: -entry[0])[:width]
        return str(beam[0][1])

    return run(search, ["a", "th", "q", "we", "z"])


# A network that decides how long to think.


@lantern.batched
def think(h: Any, *, w: Any) -> Any:
    """One more step, and how sure it is to be done."""
    h = lantern.tanh(h @ w["think"])
    return h, lantern.sigmoid(h @ w["halt"])[:, 0]


def thought_loss(w: Any, run: Run) -> Any:
    """Each example thinks until it is sure; then its states are averaged."""

    def ponder(h: Any) -> Any:
        left, answer = 1.0, 0.0
        while left > 0.05:
            h, sure = think(h, w=w)
            answer = answer + left * sure * h
            left = left * (1 - sure)
        return (answer * answer).sum()

    rng = np.random.default_rng(1)
    return sum(run(ponder, [k * rng.standard_normal(HIDDEN) for k in range(6)]))


# The same with nothing marked: any operation on an example's own arrays may wait.

WIDE, MANY = 384, 60


def plain_loss(w: Any, run: Run) -> Any:
    """As ``thought_loss``, in plain operations on one example, and wider."""

    def ponder(h: Any) -> Any:
        left, answer = 1.0, 0.0
        while left > 0.05:
            h = lantern.tanh(w["think"] @ h)
            sure = lantern.sigmoid(w["halt"] @ h)
            answer = answer + left * sure * h
            left = left * (1 - sure)
        return (answer * answer).sum()

    rng = np.random.default_rng(1)
    return sum(run(ponder, [rng.standard_normal(WIDE) for _ in range(MANY)]))


def begin_wide(seed: int = 0) -> dict[str, Any]:
    """Weights for ``plain_loss``."""
    rng = np.random.default_rng(seed)
    shapes = {"think": (WIDE, WIDE), "halt": (WIDE,)}
    return {name: 0.1 * rng.standard_normal(shape) for name, shape in shapes.items()}


def main() -> None:
    """Run all both ways; say what was batched."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    w = begin()
    programs = {
        "a recurrent network over texts": (lantern.grad(text_loss), w),
        "expressions": (lantern.grad(expression_sum), 1.5),
        "a beam search": (beam_search, w),
        "a network that decides how long to think": (lantern.grad(thought_loss), w),
        "the same in plain operations": (lantern.grad(plain_loss), begin_wide()),
    }
    for title, (program, argument) in programs.items():
        reports: list[str] = []
        granularity = "op" if title.endswith("plain operations") else "function"

        def batch(
            f: Any,
            examples: Any,
            reports: Any = reports,
            granularity: str = granularity,
        ) -> Any:
            results = lantern.batch(f, examples, granularity=granularity)
            reports.append(results.report())
            return results

        begun = time.perf_counter()
        alone = program(argument, loop)
        between = time.perf_counter()
        together = program(argument, batch)
        seconds = between - begun, time.perf_counter() - between
        if alone != together if isinstance(alone, list) else not close(alone, together):
            raise SystemExit(f"batching.py: {title}: the results differ.")
        print(f"{title}: same results; {seconds[0] / seconds[1]:.1f} × as fast")
        print(reports[0] + "\n")


def close(x: Any, y: Any) -> bool:
    """Whether two structures of numbers agree to rounding."""
    pairs = zip(lantern.tree_leaves(x), lantern.tree_leaves(y), strict=True)
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs)


if __name__ == "__main__":
    main()

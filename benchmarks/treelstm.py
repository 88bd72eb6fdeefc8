"""Training a TreeLSTM (examples/treelstm.py): trees one by one, and 20 or 100 at once.

The same weights, trees, steps and precision for all; an epoch over the first trees of
LANTERN_TREES, a file as the example reads it; without it over its own small trees, over
and over. DyNet runs in an interpreter of its own, named by LANTERN_DYNET.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.entrant import Program
from benchmarks.environment import peer
from benchmarks.harness import LANTERN, race
from benchmarks.table import Row, Target

EXAMPLES = Path(__file__).parents[1] / "examples"
RATE = 0.05
SIZES = {0: 40, 20: 100, 100: 100}  # trees at once (0: one by one), and in all
QUICK = {0: 10, 20: 20}
TARGETS = {
    0: {"PyTorch": Target(2)},
    20: {"PyTorch, one by one": Target(10), "DyNet": Target(1)},
    100: {"DyNet": Target(1.2), "PyTorch by hand": Target(1)},
}


def example() -> Any:
    """The example's module."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module("treelstm")
    finally:
        sys.path.remove(str(EXAMPLES))


def data(count: int) -> tuple[Any, list[Any], Any, Any]:
    """The example, the trees, the training at its beginning, the words' vectors."""
    model = example()
    path = os.environ.get("LANTERN_TREES")
    trees, words = model.read_trees(Path(path or model.DATA).read_text("utf-8"))
    course, table = model.begin(len(words), 0)
    trees = [trees[k % len(trees)] for k in range(count)]
    return model, trees, course, table


def rows(quick: bool) -> list[Row]:
    """For one tree at a time, 20 and 100: one row per peer."""
    found: list[Row] = []
    path = os.environ.get("LANTERN_TREES")
    source = "" if path else ", small trees"
    for batch, count in (QUICK if quick else SIZES).items():
        nodes = sum(1 for tree in data(count)[1] for _ in tree.nodes())
        makers: dict[str, Callable[[], Program | None]] = {
            LANTERN: partial(_lantern, batch, count, "own"),
            "Lantern, plain operations": partial(_lantern, batch, count, "plain"),
            "DyNet": partial(_dynet, batch, count),
        }
        if batch:
            makers["PyTorch by hand"] = partial(_torch, batch, count, by_level=True)
        if batch == 20:
            makers["PyTorch, one by one"] = partial(_torch, 1, count, same=batch)
        elif not batch:
            makers["PyTorch"] = partial(_torch, 1, count)
        name = f"treelstm, {batch or 1} at once{source}"
        targets, turns = TARGETS[batch], 2 if quick else 3
        found += race(name, nodes, makers, targets, rtol=2e-2, turns=turns)
    return found


def _lantern(batch: int, count: int, cell: str) -> Program:
    model, trees, begun, table = data(count)

    def run() -> float:
        weights = {name: w.copy() for name, w in begun.weights.items()}
        squares = {name: np.zeros_like(w) for name, w in weights.items()}
        course = model.Course(weights, squares, [])
        model.train_epoch(course, table, trees, batch, RATE, cell)
        return float(course.losses[0])

    return run


def _torch(
    batch: int, count: int, by_level: bool = False, same: int = 0
) -> Program | None:
    """PyTorch eager; ``same``: takes its steps after so many trees, read one by one."""
    torch = peer("torch")
    if torch is None:
        return None
    model, trees, begun, table = data(count)
    table, step = torch.from_numpy(table.copy()), same or batch
    starts = range(0, count, step)
    parts = [trees[k : k + step] for k in starts]
    if by_level:
        prepared = [levels(torch, part) for part in parts]
        loss = partial(_loss_by_level, torch, table, model.HIDDEN)
    else:
        prepared = parts
        loss = partial(_loss_by_tree, torch, table, model.HIDDEN)

    def run() -> float:
        weights = {
            name: torch.tensor(w, requires_grad=True)
            for name, w in begun.weights.items()
        }
        squares = {name: torch.zeros_like(w) for name, w in weights.items()}
        total = 0.0
        for part in prepared:
            value = loss(weights, part)
            value.backward()
            total += value.item()
            with torch.no_grad():
                for name, w in weights.items():
                    if w.grad is not None:
                        squares[name].addcmul_(w.grad, w.grad)
                        w.addcdiv_(w.grad, (squares[name] + 1e-8).sqrt_(), value=-RATE)
                        w.grad = None
        return total / count

    return run


def _cell(torch: Any, z: Any, c_left: Any, c_right: Any) -> Any:
    """Hidden and cell state, from what goes into the gates."""
    n = z.shape[-1] // (3 if c_left is None else 5)
    gates = torch.sigmoid(z[..., n:])
    c = gates[..., :n] * torch.tanh(z[..., :n])
    if c_left is not None:
        c = c + gates[..., 2 * n : 3 * n] * c_left + gates[..., 3 * n :] * c_right
    return gates[..., n : 2 * n] * torch.tanh(c), c


def _with_bias(torch: Any, weights: Any, hidden: int) -> Any:
    bias = weights["bias"]
    return torch.cat([bias, bias[3 * hidden :]])


def _scores_loss(torch: Any, weights: Any, h: Any, scores: Any) -> Any:
    logits = h @ weights["out"] + weights["out_bias"]
    return torch.nn.functional.cross_entropy(logits, scores, reduction="sum")


def _loss_by_tree(
    torch: Any, table: Any, hidden: int, weights: Any, trees: Sequence[Any]
) -> Any:
    """The recursive program, node by node; the classes of a tree's nodes together."""
    bias, total = _with_bias(torch, weights, hidden), 0
    for tree in trees:
        states: list[Any] = []
        scores: list[int] = []

        def visit(
            tree: Any, states: list[Any] = states, scores: list[int] = scores
        ) -> Any:
            if tree.below is None:
                z = table[tree.word] @ weights["leaf"] + weights["leaf_bias"]
                state = _cell(torch, z, None, None)
            else:
                (h_l, c_l), (h_r, c_r) = (visit(t) for t in tree.below)
                z = h_l @ weights["left"] + h_r @ weights["right"] + bias
                state = _cell(torch, z, c_l, c_r)
            states.append(state[0])
            scores.append(tree.score)
            return state

        visit(tree)
        h, labels = torch.stack(states), torch.tensor(scores)
        total = total + _scores_loss(torch, weights, h, labels)
    return total


def levels(torch: Any, trees: Sequence[Any]) -> Any:
    """Words; for each level the places of both children; sentiments by place.

    Made once, before anything is timed: an expert would not make it in every epoch.
    """
    by_height: list[list[Any]] = []

    def height(tree: Any) -> int:
        h = 1 + max(map(height, tree.below)) if tree.below else 0
        while len(by_height) <= h:
            by_height.append([])
        by_height[h].append(tree)
        return h

    for tree in trees:
        height(tree)
    places: dict[int, int] = {}
    for tree in (tree for level in by_height for tree in level):
        places[id(tree)] = len(places)
    children = [
        torch.tensor([places[id(t.below[side])] for side in (0, 1) for t in level])
        for level in by_height[1:]
    ]
    words = torch.tensor([tree.word for tree in by_height[0]])
    scores = torch.tensor([tree.score for level in by_height for tree in level])
    return words, children, scores


def _loss_by_level(torch: Any, table: Any, hidden: int, weights: Any, part: Any) -> Any:
    """All nodes of one height together; h and c side by side, so one read is enough."""
    words, children, scores = part
    bias = _with_bias(torch, weights, hidden)
    both = torch.cat([weights["left"], weights["right"]])
    z = torch.addmm(weights["leaf_bias"], table[words], weights["leaf"])
    states = torch.cat(_cell(torch, z, None, None), 1)
    for places in children:
        left, right = states.index_select(0, places).chunk(2)
        h = torch.cat([left[:, :hidden], right[:, :hidden]], 1)
        z = torch.addmm(bias, h, both)
        state = _cell(torch, z, left[:, hidden:], right[:, hidden:])
        states = torch.cat([states, torch.cat(state, 1)])
    return _scores_loss(torch, weights, states[:, :hidden], scores)


class Remote:
    """A program in another interpreter, asked for its result and for its clock."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self) -> float:
        """The program's result."""
        return self._ask("run")

    def clock(self) -> float:
        """The processor time that it has taken so far."""
        return self._ask("clock")

    def _ask(self, what: str) -> float:
        pipe = self.process
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        pipe.stdin.write(what + "\n")
        pipe.stdin.flush()
        return float(pipe.stdout.readline())


def _dynet(batch: int, count: int) -> Program | None:
    """DyNet, with autobatching where there is a batch."""
    python = os.environ.get("LANTERN_DYNET")
    if not python:
        return None
    _, trees, begun, table = data(count)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "treelstm.npz"
        np.savez(file, table=table, trees=_flat(trees), **begun.weights)
        script = Path(__file__).with_name("treelstm_dynet.py")
        remote = Remote([python, str(script), str(file), str(batch), str(RATE)])
        remote.clock()  # it has read the file
    return remote


def _flat(trees: Sequence[Any]) -> Any:
    """All trees as rows of (score, word or -1), in the order root, left, right."""
    return np.array([(t.score, t.word) for tree in trees for t in tree.nodes()])


if __name__ == "__main__":
    start = time.process_time()
    print(_lantern(int(sys.argv[1]), 200, "own")(), time.process_time() - start)

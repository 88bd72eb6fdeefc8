"""Train a TreeLSTM, which reads a sentence along its tree, to feel what it says.

The model is a recursive function. `--batch 20` runs it on 20 trees at once: calls of a
cell are put down, and run together (lantern.batch); `--batch 0` runs the same on one
tree after the other. Every node of a tree has a sentiment from 0 (very negative) to 4
(very positive). It needs matplotlib and tqdm: pip install matplotlib tqdm.

The trees that come with it are few, and for trying out. The Stanford Sentiment Treebank
is read as well, in brackets or in rows of numbers: `--data dev.txt`.

References:
    Tai, Socher and Manning (2015); Wang et al. (2019), section 5.1.
"""

import argparse
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sentiment import CLASSES, Tree, draw_trees, read_trees

import lantern
from lantern.core.namespace import common_namespace, namespace
from lantern.op import op
from lantern.tensor.ops.products import Product

DATA = Path(__file__).with_name("trees.txt")
WORD_SIZE, HIDDEN = 300, 150
GATES = [slice(k * HIDDEN, (k + 1) * HIDDEN) for k in range(4)]

Array = NDArray[Any]
Weights = dict[str, Array]


# The model. Gates u, i, o of a leaf; u, i, o, f_left, f_right of an inner node. A state
# is a row of h and c, side by side.


@lantern.batched
def leaf(word: Any, *, weights: Any, table: Array) -> Any:
    """The states of words. word: (n,); result: (n, 2 * HIDDEN)."""
    z = table[word] @ weights["leaf"] + weights["leaf_bias"]
    update, gates = lantern.tanh(z[:, :HIDDEN]), lantern.sigmoid(z[:, HIDDEN:])
    c = gates[:, :HIDDEN] * update
    return lantern.concat([gates[:, HIDDEN:] * lantern.tanh(c), c], axis=1)


@lantern.batched
def node(left: Any, right: Any, *, weights: Any) -> Any:
    """The states of inner nodes, from those of the two below each."""
    one = lantern.ones((len(left), 1), dtype=left.dtype)  # for the bias, a row of node
    h = lantern.concat([left[:, :HIDDEN], right[:, :HIDDEN], one], axis=1)
    z = h @ weights["node"]
    update, gates = lantern.tanh(z[:, :HIDDEN]), lantern.sigmoid(z[:, HIDDEN:])
    i, o, f_left, f_right = [gates[:, gate] for gate in GATES]
    c = i * update + f_left * left[:, HIDDEN:] + f_right * right[:, HIDDEN:]
    return lantern.concat([o * lantern.tanh(c), c], axis=1)


# The same cells, each as one operation of its own: there, yield, and back again. Less
# is tracked, and it is faster; nothing else changes. Arrays that nobody else holds are
# changed in place, and those that the way back does not need are let go: both spare
# memory that is not in the cache.


def gates_of(z: Any, xp: Any) -> Any:
    """``sigmoid(z)``, to rounding of 1. NumPy's tanh takes half as long as its exp."""
    gates = xp.tanh(z * 0.5)
    gates *= 0.5
    gates += 0.5
    return gates


@op
def leaf_cell(weight: Any, bias: Any, /, x: Array) -> Any:
    """The states of words that stand for the vectors x."""
    xp = namespace(weight, bias)
    z = x @ weight + bias
    update, gates = xp.tanh(z[:, :HIDDEN]), gates_of(z[:, HIDDEN:], xp)
    i, o = gates[:, :HIDDEN], gates[:, HIDDEN:]
    del z
    c = i * update
    t = xp.tanh(c)
    state_bar = yield (xp.concat([o * t, c], axis=1), c := None)[0]
    h_bar = state_bar[:, :HIDDEN]
    c_bar = state_bar[:, HIDDEN:] + h_bar * o * (1 - t * t)
    gates_bar = xp.concat([c_bar * update, h_bar * t], axis=1)
    gates_bar *= gates
    gates_bar *= 1 - gates
    z_bar = xp.concat([c_bar * i * (1 - update * update), gates_bar], axis=1)
    yield Product(x, z_bar)
    yield z_bar


@op
def node_cell(left: Any, right: Any, weight: Any, /) -> Any:
    """The states of inner nodes."""
    xp = common_namespace(left, right, weight)
    one = xp.ones((left.shape[0], 1), dtype=left.dtype)  # for the bias, a row of weight
    h = xp.concat([left[:, :HIDDEN], right[:, :HIDDEN], one], axis=1)
    c_left, c_right = left[:, HIDDEN:], right[:, HIDDEN:]
    z = h @ weight
    update, gates = xp.tanh(z[:, :HIDDEN]), gates_of(z[:, HIDDEN:], xp)
    i, o, f_left, f_right = [gates[:, gate] for gate in GATES]
    del z
    c = i * update + f_left * c_left + f_right * c_right
    t = xp.tanh(c)
    state_bar = yield (xp.concat([o * t, c], axis=1), c := None)[0]
    h_bar = state_bar[:, :HIDDEN]
    c_bar = state_bar[:, HIDDEN:] + h_bar * o * (1 - t * t)
    gates_bar = [c_bar * update, h_bar * t, c_bar * c_left, c_bar * c_right]
    gates_bar = xp.concat(gates_bar, axis=1)
    gates_bar *= gates
    gates_bar *= 1 - gates
    z_bar = xp.concat([c_bar * i * (1 - update * update), gates_bar], axis=1)
    # z_bar @ weight[:-1].mT; for a few rows BLAS is twice as fast this way round.
    h_bar = (weight[:-1] @ z_bar.mT).mT
    yield xp.concat([h_bar[:, :HIDDEN], c_bar * f_left], axis=1)
    yield xp.concat([h_bar[:, HIDDEN:], c_bar * f_right], axis=1)
    yield Product(h, z_bar)


@lantern.batched
def own_leaf(word: Any, *, weights: Any, table: Array) -> Any:
    """As ``leaf``."""
    return leaf_cell(weights["leaf"], weights["leaf_bias"], x=table[word])


@lantern.batched
def own_node(left: Any, right: Any, *, weights: Any) -> Any:
    """As ``node``."""
    return node_cell(left, right, weights["node"])


CELLS = {"plain": (leaf, node), "own": (own_leaf, own_node)}


def visit(
    tree: Tree, cells: Any, weights: Any, table: Array, seen: tuple[list[Any], ...]
) -> Any:
    """The state of a tree's root; all nodes and their states go to `seen`."""
    leaf, node = cells
    if tree.below is None:
        state = leaf(tree.word, weights=weights, table=table)
    else:
        first, second = tree.below
        left = visit(first, cells, weights, table, seen)
        right = visit(second, cells, weights, table, seen)
        state = node(left, right, weights=weights)
    nodes, states = seen
    nodes.append(tree)
    states.append(state)
    return state


def read_all(
    weights: Any, table: Array, trees: Sequence[Tree], batch: bool, cell: str
) -> Any:
    """All nodes of all trees, and the scores of the classes at each."""
    # One product for both children; one bias for the two forget gates, as in the paper.
    left, right, bias = weights["left"], weights["right"], weights["bias"]
    bias = lantern.concat([bias, bias[3 * HIDDEN :]])
    weights = weights | {"node": lantern.concat([left, right, bias[None]])}

    def read(tree: Tree) -> tuple[list[Any], ...]:
        seen: tuple[list[Any], ...] = [], []
        visit(tree, CELLS[cell], weights, table, seen)
        return seen

    results = lantern.batch(read, trees) if batch else map(read, trees)
    nodes, states = (list(chain(*lists)) for lists in zip(*results, strict=True))
    hidden = lantern.stack(states)[:, :HIDDEN]
    return nodes, hidden @ weights["out"] + weights["out_bias"]


def loss(
    weights: Any,
    table: Array,
    trees: Sequence[Tree],
    batch: bool = True,
    cell: str = "plain",
) -> Any:
    """The sum of -log p(sentiment) over all nodes of all trees."""
    nodes, scores = read_all(weights, table, trees, batch, cell)
    log_p = lantern.log_softmax(scores)
    scores = np.array([node.score for node in nodes])
    return -log_p[np.arange(len(nodes)), scores].sum()


# The training.


@dataclass
class Course:
    """A training so far: the weights, the squares that Adagrad has added, the losses.

    Attributes:
        losses: the mean loss of a tree in each epoch.
    """

    weights: Weights
    squares: Weights
    losses: list[float]


def begin(words: int, seed: int, dtype: Any = np.float32) -> tuple[Course, Array]:
    """The weights before any training, and a fixed random vector for each word."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((words, WORD_SIZE)).astype(dtype)
    table.setflags(write=False)  # a promise: so nobody looks whether it changes
    shapes = {
        "leaf": (WORD_SIZE, 3 * HIDDEN),
        "left": (HIDDEN, 5 * HIDDEN),
        "right": (HIDDEN, 5 * HIDDEN),
        "out": (HIDDEN, CLASSES),
    }
    weights = {
        name: rng.uniform(-0.005, 0.005, shape).astype(dtype)
        for name, shape in shapes.items()
    }
    biases = {"leaf_bias": 3 * HIDDEN, "bias": 4 * HIDDEN, "out_bias": CLASSES}
    weights |= {name: np.zeros(n, dtype) for name, n in biases.items()}
    squares = {name: np.zeros_like(w) for name, w in weights.items()}
    return Course(weights, squares, []), table


def adagrad(course: Course, gradient: Weights, lr: float) -> None:
    """One step, in place."""
    for name, g in gradient.items():
        root = g * g
        course.squares[name] += root
        np.add(course.squares[name], g.dtype.type(1e-8), out=root)
        g /= np.sqrt(root, out=root)
        g *= g.dtype.type(lr)
        course.weights[name] -= g


def train_epoch(
    course: Course,
    table: Array,
    trees: Sequence[Tree],
    batch: int,
    lr: float,
    cell: str = "plain",
    progress: Callable[[int, float], object] = lambda count, mean: None,
) -> None:
    """All trees once, in order; one step for each `batch` of them, or for each (0)."""
    total, count = 0.0, 0
    for start in range(0, len(trees), batch or 1):
        some = trees[start : start + (batch or 1)]
        value, gradient = lantern.value_and_grad(loss)(
            course.weights, table, some, batch > 0, cell
        )
        adagrad(course, gradient, lr)
        total, count = total + float(value), count + len(some)
        progress(len(some), total / count)
    course.losses.append(total / count)


def predict(course: Course, table: Array, tree: Tree) -> dict[int, int]:
    """The sentiment that is read at each node of a tree, by the node's identity."""
    nodes, scores = read_all(course.weights, table, [tree], True, "plain")
    return {id(n): int(k) for n, k in zip(nodes, scores.argmax(axis=1), strict=True)}


# The checkpoint: arrays and nothing else, so that a file from anywhere runs no code.


def save(course: Course, settings: Array, path: Path) -> None:
    """Write a checkpoint; the old one stays until the new one is complete."""
    arrays = {"losses": np.array(course.losses, float), "settings": settings}
    for name, w in course.weights.items():
        arrays[f"weights_{name}"], arrays[f"squares_{name}"] = w, course.squares[name]
    directory = path.resolve().parent
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        try:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def resume(course: Course, settings: Array, path: Path) -> None:
    """Go on from a checkpoint of the same settings."""
    shapes = {"settings": (settings.shape, settings.dtype)}
    for name, w in course.weights.items():
        shapes[f"weights_{name}"] = shapes[f"squares_{name}"] = (w.shape, w.dtype)
    limit = sum(np.empty(0, d).itemsize * int(np.prod(s)) for s, d in shapes.values())
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > limit + 1_000_000:
            raise ValueError("it is larger than a checkpoint of this model")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in (*shapes, "losses")}
    for name, (shape, dtype) in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise ValueError(f"{name} is of another model")
    if not np.array_equal(arrays["settings"], settings):
        raise ValueError("it was written with other options or other trees")
    if arrays["losses"].ndim != 1 or arrays["losses"].dtype != float:
        raise ValueError("its losses are no list of numbers")
    course.losses = arrays["losses"].tolist()
    for name in course.weights:
        course.weights[name] = arrays[f"weights_{name}"]
        course.squares[name] = arrays[f"squares_{name}"]


# The pictures.


def draw_losses(losses: Sequence[float], path: Path) -> None:
    """The mean loss of a tree, epoch by epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    epochs = range(1, len(losses) + 1)
    axes.fill_between(epochs, losses, color="#2166ac", alpha=0.08, linewidth=0)
    axes.plot(epochs, losses, marker="o", color="#2166ac", lw=2, clip_on=False)
    axes.annotate(
        f"{losses[-1]:.3g}",
        (len(losses), losses[-1]),
        xytext=(0, 10),
        textcoords="offset points",
        ha="center",
        color="#2166ac",
    )
    axes.set(xlabel="epoch", ylabel="mean loss of a tree", ylim=(0, None))
    axes.set_title("TreeLSTM", loc="left", fontweight="bold", fontsize=13)
    axes.set_title("the loss while it learns", loc="right", color="#555555")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    figure.savefig(path, dpi=150)


# The command.


def stop(message: str) -> NoReturn:
    """Say what is wrong and end with exit code 2."""
    print(f"treelstm.py: {message}", file=sys.stderr)
    sys.exit(2)


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="trees in brackets; default: those that ship here")
    add("--epochs", type=int, default=10, help="to train in all (default: 10)")
    add("--batch", type=int, default=20, help="trees at once; 0: one by one")
    add("--lr", type=float, default=0.05, help="of Adagrad (default: 0.05)")
    add("--seed", type=int, default=0, help="of the weights (default: 0)")
    add("--cell", choices=CELLS, default="plain", help="of plain operations, or own")
    add("--limit", type=int, help="read only so many trees")
    add("--checkpoint", type=Path, help="where to go on from, and to save to")
    add("--out", type=Path, default=Path("treelstm.png"), help="the loss curve")
    add("--tree", type=Path, default=Path("treelstm-tree.png"), help="the drawn tree")
    options = parser.parse_args()
    if options.epochs < 1 or options.batch < 0 or options.seed < 0 or options.lr <= 0:
        stop("--epochs and --lr are positive, --batch and --seed are not negative.")
    if options.limit is not None and options.limit < 1:
        stop("--limit is positive.")
    try:
        import matplotlib
        import tqdm  # noqa: F401 (only to see whether it is there)
    except ImportError as error:
        stop(f"no {error.name} here. Run: pip install matplotlib tqdm")
    matplotlib.use("Agg")
    return options


def load(options: argparse.Namespace) -> tuple[list[Tree], list[str]]:
    """The trees and the words; says it when they are the few that ship here."""
    path = options.data or DATA
    try:
        trees, words = read_trees(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        stop(f"cannot read trees from {path}: {error}")
    trees = trees[: options.limit]
    if not trees:
        stop(f"there are no trees in {path}.")
    if options.data is None:
        print(
            f"NOTE: no --data was given. These are the {len(trees)} small trees that "
            f"come with this example, not the Stanford Sentiment Treebank.",
            file=sys.stderr,
        )
    return trees, words


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    options = parse()
    from tqdm import tqdm

    trees, words = load(options)
    course, table = begin(len(words), options.seed)
    shown = max(trees[:100], key=lambda t: -abs(sum(1 for _ in t.nodes()) - 21))
    before = predict(course, table, shown)
    settings = np.array([options.seed, options.batch, options.lr, len(trees)], float)
    if options.checkpoint is not None and options.checkpoint.exists():
        try:
            resume(course, settings, options.checkpoint)
        except Exception as error:  # a damaged file can make NumPy raise anything
            stop(f"cannot go on from {options.checkpoint}: {error}")
        print(f"goes on after epoch {len(course.losses)}")
    start, nodes = time.perf_counter(), sum(1 for t in trees for _ in t.nodes())
    first = len(course.losses)
    for epoch in range(first, options.epochs):
        with tqdm(total=len(trees), desc=f"epoch {epoch + 1}", unit="tree") as bar:

            def progress(count: int, mean: float, bar: Any = bar) -> None:
                bar.update(count)
                bar.set_postfix(loss=f"{mean:.3f}")

            train_epoch(
                course, table, trees, options.batch, options.lr, options.cell, progress
            )
        if options.checkpoint is not None:
            save(course, settings, options.checkpoint)
    seconds = time.perf_counter() - start
    draw_losses(course.losses, options.out)
    after = predict(course, table, shown)
    last = f"after {len(course.losses)} epochs"
    draw_trees(shown, words, {"before training": before, last: after}, options.tree)
    trained = (len(course.losses) - first) * nodes
    speed = f", {seconds / trained * 1e6:.0f} µs for each node" if trained else ""
    print(
        f"mean loss of a tree {course.losses[-1]:.3f} {last}{speed}\n"
        f"pictures: {options.out}, {options.tree}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

"""Trees of sentiments for treelstm.py: read from files, and drawn.

The Stanford Sentiment Treebank comes as one tree in brackets on each line; or, for the
programs of the Lantern paper, as four rows of numbers for each tree: sentiments, words,
left and right children.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLASSES = 5
DEEPEST = 300


@dataclass(frozen=True, eq=False)
class Tree:
    """A node and all below it.

    Attributes:
        score: its sentiment.
        word: the number of a leaf's word; -1 inside.
        below: the two nodes below; None for a leaf.
    """

    score: int
    word: int
    below: "tuple[Tree, Tree] | None" = None

    def nodes(self) -> Iterator["Tree"]:
        """This node and all below it, from left to right, each before those below."""
        yield self
        for tree in self.below or ():
            yield from tree.nodes()


def read_trees(text: str) -> tuple[list[Tree], list[str]]:
    """Trees, and the words that they number."""
    if text[:1].isdecimal():
        return read_rows(text)
    numbers: dict[str, int] = {}
    trees = []
    for count, line in enumerate(text.splitlines(), 1):
        tokens = iter(re.findall(r"[()]|[^\s()]+", line))
        try:
            trees.append(read_tree(tokens, numbers))
            if next(tokens, None) is not None:
                raise ValueError("something follows the tree")
        except (ValueError, StopIteration, RecursionError) as error:
            why = str(error) or "it ends too early"
            raise ValueError(f"line {count} is no binary tree: {why}") from None
    return trees, list(numbers)


def read_tree(tokens: Iterator[str], numbers: dict[str, int], depth: int = 0) -> Tree:
    """One tree: (score word) or (score tree tree)."""
    if depth == 0 and next(tokens) != "(":
        raise ValueError("it begins with no bracket")
    if depth > DEEPEST:
        raise ValueError(f"it is more than {DEEPEST} deep")
    score, token = int(next(tokens)), next(tokens)
    if not 0 <= score < CLASSES or token == ")":
        raise ValueError("a node is a sentiment from 0 to 4, and a word or two nodes")
    if token == "(":
        left = read_tree(tokens, numbers, depth + 1)
        if next(tokens) != "(":
            raise ValueError("an inner node has two below it")
        tree = Tree(score, -1, (left, read_tree(tokens, numbers, depth + 1)))
    else:
        tree = Tree(score, numbers.setdefault(token, len(numbers)))
    if next(tokens) != ")":
        raise ValueError("a bracket is not closed")
    return tree


def read_rows(text: str) -> tuple[list[Tree], list[str]]:
    """Trees in rows of numbers. Their words are known by number only."""
    lines = iter(text.splitlines())
    first = next(lines)
    if not first.strip().isdecimal():
        raise ValueError(f"line 1 is neither a tree nor a number of trees: {first!r}")
    trees, most = [], -1
    for count in range(1, int(first) + 1):
        try:
            n = int(next(lines))
            rows = [[int(x) for x in next(lines).split()] for _ in range(4)]
            if n < 1 or any(len(row) != n for row in rows):
                raise ValueError(f"its rows do not have {n} numbers each")
            trees.append(tree_of_rows(rows, 0, 0))
        except (ValueError, IndexError, StopIteration) as error:
            raise ValueError(f"tree {count} is damaged: {error}") from None
        most = max(most, *rows[1])
    return trees, [f"word {i}" for i in range(most + 1)]


def tree_of_rows(rows: list[list[int]], i: int, depth: int) -> Tree:
    """The tree whose root has the number i. Children have higher numbers."""
    score, word, left, right = (row[i] for row in rows)
    if depth > DEEPEST or not 0 <= score < CLASSES or not -1 <= word < 10**6:
        raise ValueError(f"node {i} is too deep, or has sentiment {score}, word {word}")
    if left == right == -1 and word >= 0:
        return Tree(score, word)
    if not (i < left and i < right and word == -1):
        raise ValueError(f"node {i} is neither a word nor has two children")
    children = [tree_of_rows(rows, j, depth + 1) for j in (left, right)]
    return Tree(score, -1, (children[0], children[1]))


COLOURS = ("#b2182b", "#ef8a62", "#d9d9d9", "#67a9cf", "#2166ac")
FEELINGS = ("very negative", "negative", "neutral", "positive", "very positive")


def draw_trees(
    tree: Tree, words: list[str], read: dict[str, dict[int, int]], path: Path
) -> None:
    """A tree, once for each reading; a node's disc is what was read, its ring true."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    leaves = sum(t.below is None for t in tree.nodes())
    figure = Figure(figsize=(max(7, 0.7 * leaves + 1), 9), layout="constrained")
    for axes, (title, classes) in zip(
        figure.subplots(len(read), 1), read.items(), strict=True
    ):
        places = lay_out(tree)
        for t in tree.nodes():
            x, y = places[id(t)]
            for child in t.below or ():
                x_below, y_below = places[id(child)]
                # Level at the child, so that no line crosses a word.
                bend = [x, x_below, x_below], [y, y, y_below]
                axes.plot(*bend, color="#bbbbbb", lw=1.2, zorder=1)
            layers = (
                (300, COLOURS[t.score]),
                (190, "white"),
                (120, COLOURS[classes[id(t)]]),
            )
            for layer, (size, colour) in enumerate(layers, 2):
                axes.scatter(x, y, s=size, color=colour, linewidth=0, zorder=layer)
            if t.below is None:
                axes.text(
                    x + 0.1,
                    y - 0.5,
                    words[t.word],
                    ha="right",
                    va="top",
                    rotation=40,
                    rotation_mode="anchor",
                    color="#333333",
                )
        right = sum(classes[id(t)] == t.score for t in tree.nodes())
        count = len(places)
        axes.set_title(title, loc="left", fontweight="bold", fontsize=13)
        told = f"{right} of {count} nodes read right"
        axes.set_title(told, loc="right", color="#555555")
        lowest = min(y for _, y in places.values())
        axes.set(xlim=(-1.4, leaves - 0.4), ylim=(lowest - 2.4, 0.6))
        axes.axis("off")
    marks = [
        Line2D([], [], marker="o", ls="", ms=9, color=colour, label=feeling)
        for colour, feeling in zip(COLOURS, FEELINGS, strict=True)
    ]
    figure.legend(
        handles=marks,
        loc="outside lower center",
        ncols=5,
        frameon=False,
        title="disc: the sentiment read    ring: the true one",
    )
    figure.savefig(path, dpi=150)


def lay_out(tree: Tree) -> dict[int, tuple[float, float]]:
    """Where to draw each node: a column for each leaf, parents in the middle."""
    places: dict[int, tuple[float, float]] = {}
    columns = iter(range(10**6))

    def place(t: Tree, depth: int) -> float:
        below = [place(child, depth + 1) for child in t.below or ()]
        x = sum(below) / 2 if below else float(next(columns))
        places[id(t)] = x, -float(depth)
        return x

    place(tree, 0)
    return places

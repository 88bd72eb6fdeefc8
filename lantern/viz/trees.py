"""A tree with values: of a sentence's sentiments, of a recursive program's calls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lantern.errors import ArgumentError
from lantern.viz.drawing import (
    INK,
    MONO,
    PAPER,
    SOFT,
    Picture,
    brief,
    clipped,
    matplotlib,
    sheet,
)

__all__ = ["Tree", "tree"]

_LEVEL = 0.74  # inches from one generation to the next
_SPACE = 0.14  # between neighbours
_LETTERS = 22  # at most, in a node
_MOST = 400  # nodes in a picture
_NEGATIVE, _POSITIVE = (0, 114, 178), (213, 94, 0)  # blue, vermilion


@dataclass
class _Node:
    label: str
    value: float | None
    children: list["_Node"]
    x: float = 0.0

    @property
    def lines(self) -> list[str]:
        shown = [] if self.value is None else [f"{self.value:.3g}"]
        return [*([self.label] if self.label else []), *shown]

    @property
    def width(self) -> float:
        return max([0.16, *(len(line) * MONO + 0.18 for line in self.lines)])


class Tree(Picture):
    """The picture that ``tree`` returns."""

    def __init__(self, root: _Node) -> None:
        super().__init__(lambda: _draw(root), "\n".join(_lines(root)))


def tree(
    root: Any,
    children: Callable[[Any], Sequence[Any]] | None = None,
    label: Callable[[Any], str] | None = None,
    value: Callable[[Any], Any] | None = None,
) -> Tree:
    """A tree, its nodes with labels and coloured by a value.

    Args:
        root: the tree: nested lists or tuples, or a node of any kind.
        children: the children of a node. Without it, those of a list or a tuple are
            its elements, and everything else is a leaf.
        label: what to write in a node. Without it, a leaf is written as it is.
        value: a number for a node, or None. Negative ones are blue, positive ones
            orange, the deeper the farther from zero.

    Raises:
        ArgumentError: if there are more nodes than one can look at.

    Example:
        >>> print(tree((("not", "good"), "."), value=lambda node: len(node)))
        ● 2
        ├── ● 2
        │   ├── not 3
        │   └── good 4
        └── . 1
    """
    children = children or (lambda x: x if isinstance(x, list | tuple) else ())
    count = 0

    def made(x: Any) -> _Node:
        nonlocal count
        count += 1
        if count > _MOST:
            raise ArgumentError(
                f"tree: more than {_MOST} nodes cannot be looked at. Give a part of it."
            )
        below = list(children(x))
        text = "" if below else x if isinstance(x, str) else brief(x)
        text = text if label is None else label(x)
        number = None if value is None else value(x)
        number = None if number is None else float(number)
        return _Node(clipped(text, _LETTERS), number, [made(child) for child in below])

    return Tree(made(root))


def _lines(node: _Node, first: str = "", rest: str = "") -> Iterator[str]:
    words = node.lines if node.label else ["●", *node.lines]
    yield first + " ".join(words)
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        yield from _lines(
            child,
            rest + ("└── " if last else "├── "),
            rest + ("    " if last else "│   "),
        )


def _nodes(node: _Node, depth: int = 0) -> Iterator[tuple[_Node, int]]:
    yield node, depth
    for child in node.children:
        yield from _nodes(child, depth + 1)


def _place(root: _Node) -> float:
    """Give each node its place, leaves from left to right; the width of it all.

    A node stands above the middle of its children; where that would cover a neighbour
    of the same generation, it moves to the right with all that is below it.
    """
    ends: dict[int, float] = {}

    def move(node: _Node, by: float, depth: int) -> None:
        for below, further in _nodes(node, depth):
            below.x += by
            end = below.x + below.width / 2
            ends[further] = max(ends.get(further, 0.0), end)

    def place(node: _Node, depth: int) -> None:
        for child in node.children:
            place(child, depth + 1)
        least = ends.get(depth, 0.0) + _SPACE + node.width / 2
        if node.children:
            node.x = (node.children[0].x + node.children[-1].x) / 2
        else:
            node.x = least
        move(node, max(0.0, least - node.x), depth)

    place(root, 0)
    return max(ends.values()) + _SPACE


def _colour(value: float | None, largest: float) -> tuple[Any, str]:
    """A node's colour, and that of what is written on it."""
    if value is None or not largest or value != value:
        return PAPER, INK
    share = min(abs(value) / largest, 1.0)
    end = _POSITIVE if value > 0 else _NEGATIVE
    mixed = tuple((255 + share * (x - 255)) / 255 for x in end)
    red, green, blue = mixed
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
    return mixed, PAPER if dark else INK


def _draw(root: _Node) -> Any:
    patches = matplotlib("matplotlib.patches")
    for node, _ in _nodes(root):
        node.x = 0.0
    width = _place(root)
    depth = max(level for _, level in _nodes(root))
    tall = max(len(node.lines) for node, _ in _nodes(root))
    height = depth * _LEVEL + 0.24 * max(tall, 1) + 0.4
    shift = max(0.0, 3.0 - width) / 2  # a small tree stands in the middle
    figure, axes = sheet(max(width, 3.0), height)
    values = [abs(n.value) for n, _ in _nodes(root) if n.value is not None]
    largest = max((x for x in values if x < float("inf")), default=0.0)
    top = height - 0.2 - 0.12 * max(tall, 1)
    for node, level in _nodes(root):
        x, y = node.x + shift, top - level * _LEVEL
        for child in node.children:
            ends = [x, child.x + shift], [y, y - _LEVEL]
            axes.plot(*ends, color=SOFT, linewidth=1, zorder=1)
        fill, ink = _colour(node.value, largest)
        size = node.width, 0.1 + 0.19 * max(len(node.lines), 0.4)
        box = patches.FancyBboxPatch(
            (x - size[0] / 2, y - size[1] / 2),
            *size,
            boxstyle="round,pad=0,rounding_size=0.07",
            facecolor=fill,
            edgecolor=SOFT,
            linewidth=0.8,
            zorder=2,
        )
        axes.add_patch(box)
        text = {"ha": "center", "va": "center", "color": ink, "linespacing": 1.15}
        family = "DejaVu Sans Mono"
        axes.text(x, y, "\n".join(node.lines), family=family, zorder=3, **text)
    return figure

"""A tree with values: of a sentence's sentiments, of a recursive program's calls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lantern.errors import ArgumentError
from lantern.viz.drawing import (
    CODE,
    INK,
    MONO,
    PAPER,
    SOFT,
    Picture,
    brief,
    clipped,
    dot,
    matplotlib,
    sheet,
)

__all__ = ["Tree", "tree"]

_LEVEL = 0.74  # inches from one generation to the next
_SPACE = 0.14  # between neighbours
_ROW, _INDENT = 0.27, 0.24  # of a tree that is written line by line
_WIDE = 10.0  # inches: a wider tree is written line by line
_LETTERS = 22  # at most, in a node
_MOST = 500  # nodes in a picture
_NEGATIVE, _POSITIVE = (0, 114, 178), (213, 94, 0)  # blue, vermilion


@dataclass(eq=False)
class _Node:
    label: str
    value: float | None
    above: "_Node | None"
    children: list["_Node"] = field(default_factory=list)
    x: float = 0.0

    def __post_init__(self) -> None:
        self.depth: int = self.above.depth + 1 if self.above else 0
        if self.above:
            self.above.children.append(self)

    @property
    def lines(self) -> list[str]:
        shown = [] if self.value is None else [f"{self.value:.3g}"]
        return [*([self.label] if self.label else []), *shown]


def _width(letters: int) -> float:
    """Of a node in which so many letters stand."""
    return letters * MONO + 0.18 if letters else 0.16


class Tree(Picture):
    """The picture that ``tree`` returns.

    Example:
        >>> print(tree(("it", ("works", "well"))))
        ●
        ├── it
        └── ●
            ├── works
            └── well
    """

    def __init__(self, nodes: list[_Node]) -> None:
        super().__init__(lambda: _draw(nodes), "\n".join(_lines(nodes)))
        self._nodes = nodes

    def to_dot(self) -> str:
        """The tree in the language of Graphviz, for those who have its ``dot``.

        Example:
            >>> print(tree(("it", "works")).to_dot())
            digraph {
            graph [ordering="out"]
            node [shape="box"]
            "0" [label=""]
            "1" [label="it"]
            "2" [label="works"]
            "0" -> "1" []
            "0" -> "2" []
            }
        """
        largest = _largest(self._nodes)
        parts: list[tuple[tuple[str, ...], dict[str, str]]] = []
        names = {node: str(i) for i, node in enumerate(self._nodes)}
        for node, name in names.items():
            said = {"label": "\n".join(node.lines)}
            if node.value is not None:
                fill, ink = _colour(node.value, largest)
                if not isinstance(fill, str):
                    fill = "#" + bytes(round(255 * x) for x in fill).hex()
                said |= {"style": "filled", "fillcolor": fill, "fontcolor": ink}
            parts.append(((name,), said))
        parts += [((names[x.above], name), {}) for x, name in names.items() if x.above]
        return dot(parts)


def tree(
    root: Any,
    children: Callable[[Any], Sequence[Any]] | None = None,
    label: Callable[[Any], str] | None = None,
    value: Callable[[Any], Any] | None = None,
) -> Tree:
    """A tree, its nodes with labels and coloured by a value.

    One that would be wider than a page is written line by line, like a table of
    contents.

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
    nodes: list[_Node] = []
    waiting: list[tuple[Any, _Node | None]] = [(root, None)]
    while waiting:  # no recursion: a tree may be deep
        x, above = waiting.pop()
        if len(nodes) == _MOST:
            raise ArgumentError(
                f"tree: more than {_MOST} nodes cannot be looked at. Give a part of it."
            )
        below = list(children(x))
        text = "" if below else x if isinstance(x, str) else brief(x)
        text = " ".join((text if label is None else label(x)).split())
        number = None if value is None else value(x)
        number = None if number is None else float(number)
        nodes.append(_Node(clipped(text, _LETTERS), number, above))
        waiting += [(child, nodes[-1]) for child in reversed(below)]
    return Tree(nodes)


def _lines(nodes: list[_Node]) -> Iterator[str]:
    """The text of a tree, whose nodes come from above and from the left."""
    lead = {nodes[0]: ""}
    for node in nodes:
        begin = ""
        if node.above:
            last = node is node.above.children[-1]
            begin = lead[node.above] + ("└── " if last else "├── ")
            lead[node] = lead[node.above] + ("    " if last else "│   ")
        yield begin + " ".join(node.lines if node.label else ["●", *node.lines])


def _place(nodes: list[_Node]) -> float:
    """Give each node its place, leaves from left to right; the width of it all.

    A node stands above the middle of its children; where that would cover a neighbour
    of the same generation, it moves to the right with all that is below it.
    """
    size = dict.fromkeys(nodes, 1)  # how many nodes stand in a row from it on below it
    for node in reversed(nodes):
        if node.above:
            size[node.above] += size[node]
    width = {x: _width(max(map(len, x.lines), default=0)) for x in nodes}
    ends: dict[int, float] = {}
    # Children first: in the order in which what is below a node comes to an end.
    order = enumerate(nodes)
    for i, node in sorted(order, key=lambda x: (x[0] + size[x[1]], -x[1].depth)):
        least = ends.get(node.depth, 0.0) + _SPACE + width[node] / 2
        node.x = least
        if node.children:
            node.x = (node.children[0].x + node.children[-1].x) / 2
        by = max(0.0, least - node.x)
        for below in nodes[i : i + size[node]]:
            below.x += by
            end = below.x + width[below] / 2
            ends[below.depth] = max(ends.get(below.depth, 0.0), end)
    return max(ends.values()) + _SPACE


def _largest(nodes: list[_Node]) -> float:
    """The largest finite size of a value."""
    values = [abs(node.value) for node in nodes if node.value is not None]
    return max((x for x in values if x < float("inf")), default=0.0)


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


def _draw(nodes: list[_Node]) -> Any:
    width = _place(nodes)
    largest = _largest(nodes)
    if width > _WIDE:
        return _draw_lines(nodes, largest)
    tall = max(max(len(node.lines) for node in nodes), 1)
    shift = max(0.0, 3.0 - width) / 2  # a small tree stands in the middle
    top = max(node.depth for node in nodes) * _LEVEL + 0.12 * tall + 0.2
    figure, axes = sheet(max(width, 3.0), top + 0.12 * tall + 0.2)
    for node in nodes:
        x, y = node.x + shift, top - node.depth * _LEVEL
        for child in node.children:
            ends = [x, child.x + shift], [y, y - _LEVEL]
            axes.plot(*ends, color=SOFT, linewidth=1, zorder=1)
        _draw_node(axes, node, "\n".join(node.lines), x, y, largest)
    return figure


def _draw_lines(nodes: list[_Node], largest: float) -> Any:
    """A row for each node, below and to the right of the one above it."""
    deepest = max(node.depth for node in nodes)
    indent = min(_INDENT, 0.6 * _WIDE / max(deepest, 1))
    texts = [" ".join(node.lines) for node in nodes]
    begins = [0.2 + indent * node.depth for node in nodes]
    ends = [x + _width(len(text)) for x, text in zip(begins, texts, strict=True)]
    height = _ROW * len(nodes) + 0.2
    figure, axes = sheet(max(ends) + 0.2, height)
    rows = {node: height - 0.1 - _ROW * (i + 0.5) for i, node in enumerate(nodes)}
    for node, text, begin, end in zip(nodes, texts, begins, ends, strict=True):
        y = rows[node]
        if node.above:
            stem = begin - indent + 0.08
            path = [stem, stem, begin], [rows[node.above], y, y]
            axes.plot(*path, color=SOFT, linewidth=1, zorder=1)
        _draw_node(axes, node, text, (begin + end) / 2, y, largest)
    return figure


def _draw_node(
    axes: Any, node: _Node, text: str, x: float, y: float, largest: float
) -> None:
    """A box with words in it, around a point."""
    patches = matplotlib("matplotlib.patches")
    lines = text.split("\n")
    fill, ink = _colour(node.value, largest)
    size = _width(max(map(len, lines))), 0.05 + 0.18 * (len(lines) if text else 0.6)
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
    style = CODE | {"ha": "center", "va": "center", "color": ink, "linespacing": 1.15}
    axes.text(x, y, text, zorder=3, **style)
